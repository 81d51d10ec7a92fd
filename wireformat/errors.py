"""The errors of this package. They say what was expected, what was found and where, but never a cell's value.

And the extras of this package: what each brings, and the error if it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


def counted(count: int, noun: str, form: str = "") -> str:
    """Returns a number of things, such as `1 message` or `2 messages`; `form` is the format of the number."""
    return f"{count:{form}} {noun}{'' if count == 1 else 's'}"


class WireformatError(Exception):
    """Base class of all errors that this package raises."""


class OptionError(WireformatError, ValueError):
    """An option or argument has a name, value or combination that is not allowed; the text says what is allowed."""


class EncodeError(WireformatError, ValueError):
    """The format, with these options, cannot express the event."""


class PluginError(WireformatError):
    """An output plugin violates a rule of the server's interface; the text names the rule."""


class StateError(WireformatError, ValueError):
    """A saved state cannot be read, or a value such as `position` was asked for before the rows were read.

    The text says what was expected, what was found, and how to continue.
    """


class LakeError(WireformatError, OSError):
    """A lake or a Delta table in it could not be read or written; the text names its folder and says why."""


class LakeConflict(LakeError):
    """Another process wrote to a lake during a write. Write again: the lake then drops the transactions that it has."""


class LimitExceeded(WireformatError, ValueError):
    """A limit of `wireformat.limits` was exceeded; the text names the limit, its value and what was requested."""


class ServerError(WireformatError):
    """A server refused something, or the connection to it was lost. No text contains a password.

    sqlstate       the server's code; None if it sent none
    is_temporary   whether the same may succeed later, as after a restart of the server
    """

    def __init__(self, text: str, *, sqlstate: str | None = None, is_temporary: bool = False) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.is_temporary = is_temporary


class MissingExtra(WireformatError, ImportError):
    """A package that an extra installs is missing or too old; the text names the extra."""


class DecodeError(WireformatError, ValueError):
    """Bytes that do not match the format.

    The text contains all facts, because only the text of an exception reaches the Spark driver from a worker. The same
    facts are attributes. An attribute is None if it is not known.

    expected        what the format allows here
    got             what was found
    format          name of the format
    source          the file, if messages were read from several
    message         index of the message in the input
    source_message  index of the message in the file, if messages were read from several
    record          index of the record in its message
    message_offset  byte in the message where the field begins
    field_offset    byte in the field, if the error is inside the field
    stream_offset   byte in the whole stream, if bytes were fed without message bounds
    path            the field, such as `new.cells[3].value`
    record_lsn      LSN of the record
    table           `schema.table` of the record
    names           schema and table of the record, as a pair
    spot            the bytes of the field, at most 16; empty inside a cell value
    note            what identifies the message on Spark: kept columns or its position, such as `offset=17`
    hint            what to do, or which format the bytes look like; it ends the text
    """

    words = "bad data"
    usual_hint: ClassVar[str | None] = None

    def __init__(self, expected: str, got: str, **where: Any) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.format: str | None = None
        self.source: str | None = None
        self.message: int | None = None
        self.source_message: int | None = None
        self.record: int | None = None
        self.message_offset: int | None = None
        self.field_offset: int | None = None
        self.stream_offset: int | None = None
        self.path: str | None = None
        self.record_lsn: int | None = None
        self.table: str | None = None
        self.names: tuple[str, str] | None = None
        self.spot: bytes = b""
        self.note: str | None = None
        self.hint: str | None = self.usual_hint
        self.add(**where)

    def add(self, **where: Any) -> DecodeError:
        """Adds facts about the location as the caller learns them, and returns the error."""
        known = self.__dict__
        for name in where:
            if name not in known:
                raise TypeError(f"DecodeError has no attribute {min(where.keys() - known.keys())!r}")
        known.update(where)
        return self

    def in_table(self, schema: str, table: str) -> DecodeError:
        """Adds the table of the record, and returns the error."""
        return self.add(names=(schema, table), table=f"{schema}.{table}")

    def __str__(self) -> str:
        location = (
            ("source", self.source),
            ("message", self.message),
            ("message in the source", self.source_message),
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
        source = self.format or ("unknown format" if _named(location) else "")
        return f"{self.words}: expected {self.expected}, got {self.got}" + _ending(source, location, self.hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def add_hint(error: DecodeError | OrderError, hint: str | None) -> None:
    """Adds a hint after those that the error has; None adds nothing."""
    error.hint = "; ".join(filter(None, (error.hint, hint))) or None


def _named(location: Iterable[tuple[str, Any]]) -> str:
    """Returns the known facts about a location, such as `message 4, byte 57`."""
    return ", ".join([f"{name} {value}" for name, value in location if value is not None])


def _ending(source: str, location: Iterable[tuple[str, Any]], hint: str | None) -> str:
    """Returns the end of an error's text: source and location in brackets, unless both are unknown, and the hint."""
    inside = ": ".join(filter(None, (source, _named(location))))
    return (f" [{inside}]" if inside else "") + (f"; {hint}" if hint else "")


def _lsn(number: int | None) -> str | None:
    return None if number is None else f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


class OrderError(WireformatError, ValueError):
    """A record that is out of order. docs/order.md has the table; docs/transactions.md has the rules for transactions.

    expected        the kinds that are allowed, or the condition that the record must meet
    got             its kind, xid and gid
    format          name of the format; None for rows that do not name it
    source          the file, if messages were read from several
    message         index of the message in the input
    source_message  index of the message in the file, if messages were read from several
    record          index of the record in its message
    note            further identification, such as the kept columns of the row
    record_lsn      LSN of the record
    state           the state of the stream: a row of the table
    open            the record that began the open transaction or block, and its message; None if none is open; empty if
                    the error is not about transactions
    streamed        the streamed transactions that have not ended, and the message in which each began
    hint            what to do, or which format the messages look like if none of them could be read
    """

    def __init__(
        self,
        expected: str,
        got: str,
        *,
        format: str | None = None,
        source: str | None = None,
        message: int | None = None,
        source_message: int | None = None,
        record: int | None = None,
        record_lsn: int | None = None,
        note: str | None = None,
        state: str,
        open: str | None = None,
        streamed: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.format = format
        self.source = source
        self.message = message
        self.source_message = source_message
        self.record = record
        self.record_lsn = record_lsn
        self.note = note
        self.state = state
        self.open = open
        self.streamed = streamed
        self.hint = hint

    def add(self, **where: Any) -> OrderError:
        """Adds facts about the location as the caller learns them, and returns the error."""
        vars(self).update(where)
        return self

    def __str__(self) -> str:
        shown = [*self.streamed[:_SHOWN_STREAMED], *(["…"] if len(self.streamed) > _SHOWN_STREAMED else [])]
        location = (
            ("source", self.source),
            ("message", self.message),
            ("message in the source", self.source_message),
            ("record", self.record),
            ("lsn", _lsn(self.record_lsn)),
            ("open", "nothing" if self.open is None else self.open or None),
            ("streamed", "; ".join(shown) or None),
            ("at", self.note),
        )
        text = f"bad order: {self.state}: expected {self.expected}, got {self.got}"
        return text + _ending(self.format or "row changes", location, self.hint)

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
    """A byte that selects what follows is not one of the allowed values."""

    words = "bad tag"


class BadLength(DecodeError):
    """A length that is too small for what it counts, or larger than the bytes that are left."""

    words = "bad length"


class BadText(DecodeError):
    """Bytes that are not valid text in the declared encoding."""

    words = "bad text"
    usual_hint = "if the server uses another encoding, pass its Python name as `encoding`"


class BadValue(DecodeError):
    """A well-formed field whose content is not allowed."""

    words = "bad value"


class UnknownRelation(DecodeError):
    """A row of a relation that no message has described; the text names its oid."""

    words = "unknown relation"
    usual_hint = (
        "the server describes a table before its first row on a connection: start earlier in the stream, "
        "or on Spark pass order_by to decode, or use spark_udfs.capture"
    )


class TrailingBytes(DecodeError):
    """Bytes after the end of a message or a record body."""

    words = "trailing bytes"


class BadTemplate(DecodeError):
    """A DDL template that cannot be converted to SQL; the path names the element."""

    words = "bad DDL template"


class BadCell(DecodeError):
    """A value that does not fit the type of its column.

    column     the column
    sql_type   its SQL type
    path       `new` or `old`: the image that contains the value
    sequence   position of the change in its stream, `commit_lsn/ordinal`, if the rows have one
    """

    words = "bad cell"

    def __init__(self, expected: str, got: str, **where: Any) -> None:
        self.column: str | None = None
        self.sql_type: str | None = None
        self.sequence: str | None = None
        super().__init__(expected, got, **where)

    def __str__(self) -> str:
        location = (
            ("table", self.table),
            ("column", self.column),
            ("type", self.sql_type),
            ("image", self.path),
            ("sequence", self.sequence),
            ("message", self.message),
            ("record", self.record),
            ("row", self.note),
        )
        return f"{self.words}: expected {self.expected}, got {self.got}" + _ending("", location, self.hint)


class BadRows(BadCell):
    """Rows that cannot be ordered, put into transactions or made a typed table; the text says why, and what to do."""

    words = "bad rows"


PACKAGES = {
    "cli": ("rich", "typer"),
    "spark": ("google", "pandas", "pyspark"),
    "delta": ("deltalake",),
    "postgres": ("psycopg",),
}
"""The modules of each extra that this package or its examples import."""


@contextmanager
def needs(extra: str, user: str) -> Iterator[None]:
    """Wraps the import of what an extra brings, for a part of this package; raises MissingExtra."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").split(".")[0] not in PACKAGES[extra]:
            raise
        raise MissingExtra(
            f"{user} needs the extra {extra}: pip install 'wireformat[{extra}]' ({error})", name=error.name
        ) from None


def encoded(text: object, path: str, encoding: str) -> bytes:
    """Returns a text in the encoding; raises EncodeError for anything else, and if the encoding lacks a character."""
    if not isinstance(text, str):
        raise EncodeError(f"{path}: expected a str, got {type(text).__name__}")
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{path}: character {error.start} has no bytes in {encoding}") from None
