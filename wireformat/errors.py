"""The errors of this package: what was expected, what came, and where; never a cell's value."""

from __future__ import annotations

from typing import Any


class WireformatError(Exception):
    """Base of every error that this package raises on purpose."""


class OptionError(WireformatError, ValueError):
    """An option's name, value or combination is not allowed; the text says what is."""


class EncodeError(WireformatError, ValueError):
    """The format, with these options, cannot say this event."""


class PluginError(WireformatError):
    """An output plugin breaks a rule of the server's interface; the text says which."""


class StateError(WireformatError, ValueError):
    """A saved state cannot be read; the text says what was expected, what came, and how to go on."""


class LimitExceeded(WireformatError, ValueError):
    """A named limit of `wireformat.limits` was passed; the text says which, its value, and what was asked."""


class MissingExtra(WireformatError, ImportError):
    """A package is missing, or too old, that an extra of this one brings; the text names the extra."""


class DecodeError(WireformatError, ValueError):
    """Bytes that are not what the format says they are.

    The text says everything, since of an exception in a Spark worker only the text reaches the driver. The same facts
    are attributes; each is None where it is not known.

    expected        what the format allows at this spot
    got             what stands there, in words
    format          name of the format
    message         index of the message in the input
    record          index of the record in its message
    message_offset  byte in the message where the field begins
    field_offset    byte in the field, where the trouble is inside it
    stream_offset   byte in the whole stream, where bytes were fed without message bounds
    path            the field, as `new.cells[3].value`
    record_lsn      LSN that the record carries
    table           `schema.table` of the record
    spot            the bytes of the field, 16 at the most; empty inside a cell value
    """

    words = "bad data"

    def __init__(self, expected: str, got: str, **where: Any) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.format: str | None = None
        self.message: int | None = None
        self.record: int | None = None
        self.message_offset: int | None = None
        self.field_offset: int | None = None
        self.stream_offset: int | None = None
        self.path: str | None = None
        self.record_lsn: int | None = None
        self.table: str | None = None
        self.spot: bytes = b""
        self.note: str | None = None
        self.add(**where)

    def add(self, **where: Any) -> DecodeError:
        """Fill in facts about the place as the caller learns them, and return the error."""
        for name, value in where.items():
            if name not in self.__dict__:
                raise TypeError(f"DecodeError has no attribute {name!r}")
            setattr(self, name, value)
        return self

    def __str__(self) -> str:
        places = (
            ("message", self.message),
            ("byte", self.message_offset),
            ("stream byte", self.stream_offset),
            ("record", self.record),
            ("field", self.path),
            ("byte in the field", self.field_offset),
            ("lsn", _lsn(self.record_lsn)),
            ("table", self.table),
            ("bytes there", self.spot.hex(" ") or None),
            ("row", self.note),
        )
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        return f"{self.words}: expected {self.expected}, got {self.got} [{self.format or 'unknown format'}: {where}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def _lsn(number: int | None) -> str | None:
    return None if number is None else f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


class OrderError(WireformatError, ValueError):
    """A record that may not come here; `docs/order.md` has the table, `docs/transactions.md` what transactions need.

    expected        the kinds that may come, or what the record would have to be
    got             its kind, xid and gid
    format          name of the format; None where rows are read that do not say it
    message         index of the message in the input
    record          index of the record in its message
    note            what else tells its place, as the kept columns of the row
    record_lsn      LSN that the record carries
    state           the row of the table: where in the stream it stands
    open            what began the transaction or block that is open, and in which message; None if there is none
    streamed        the streamed transactions that have not ended, and in which message each began
    """

    def __init__(
        self,
        expected: str,
        got: str,
        *,
        format: str | None = None,
        message: int | None = None,
        record: int | None = None,
        record_lsn: int | None = None,
        note: str | None = None,
        state: str,
        open: str | None = None,
        streamed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.format = format
        self.message = message
        self.record = record
        self.record_lsn = record_lsn
        self.note = note
        self.state = state
        self.open = open
        self.streamed = streamed

    def add(self, **where: Any) -> OrderError:
        """Fill in facts about the place as the caller learns them, and return the error."""
        vars(self).update(where)
        return self

    def __str__(self) -> str:
        shown = [*self.streamed[:_SHOWN_STREAMED], *(["…"] if len(self.streamed) > _SHOWN_STREAMED else [])]
        places = (
            ("message", self.message),
            ("record", self.record),
            ("lsn", _lsn(self.record_lsn)),
            ("open", self.open or "nothing"),
            ("streamed", "; ".join(shown) or None),
            ("at", self.note),
        )
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        source = self.format or "row changes"
        return f"bad order: {self.state}: expected {self.expected}, got {self.got} [{source}: {where}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


_SHOWN_STREAMED = 5


def _rebuild(kind: Any, facts: dict[str, Any]) -> Any:
    where = dict(facts)
    return kind(where.pop("expected"), where.pop("got"), **where)


class ShortData(DecodeError):
    """The bytes end before the field does."""

    words = "short data"


class BadTag(DecodeError):
    """A byte that chooses what follows is none of those allowed here."""

    words = "bad tag"


class BadLength(DecodeError):
    """A length that cannot be: too small for what it counts, or longer than what is left."""

    words = "bad length"


class BadText(DecodeError):
    """Bytes that are no text in the declared encoding."""

    words = "bad text"


class BadValue(DecodeError):
    """A well-formed field whose content is not allowed."""

    words = "bad value"


class UnknownRelation(DecodeError):
    """A row of a relation that no message has described; the text names its oid."""

    words = "unknown relation"


class TrailingBytes(DecodeError):
    """Bytes after the end of a message or a record body."""

    words = "trailing bytes"


class BadTemplate(DecodeError):
    """A DDL template that cannot be turned into SQL; the path names the element."""

    words = "bad DDL template"


class BadCell(DecodeError):
    """A value that does not go into its column's type.

    column     the column
    sql_type   its SQL type
    path       `new` or `old`: the image that holds the value
    sequence   position of the change in its stream, `commit_lsn/ordinal`, where the rows have one
    """

    words = "bad cell"

    def __init__(self, expected: str, got: str, **where: Any) -> None:
        self.column: str | None = None
        self.sql_type: str | None = None
        self.sequence: str | None = None
        super().__init__(expected, got, **where)

    def __str__(self) -> str:
        places = (
            ("table", self.table),
            ("column", self.column),
            ("type", self.sql_type),
            ("image", self.path),
            ("sequence", self.sequence),
            ("message", self.message),
            ("record", self.record),
            ("row", self.note),
        )
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        return f"{self.words}: expected {self.expected}, got {self.got} [{where}]"


class BadRows(BadCell):
    """Rows of the row-change table of which no typed table can be made; the text says why, and what to do."""

    words = "bad rows"
