"""The errors of this package: what was expected, what came, and where; never a cell's value."""

from __future__ import annotations

from typing import Any


class WireformatError(Exception):
    """Base of every error that this package raises on purpose."""


class OptionError(WireformatError, ValueError):
    """An option's name, value or combination is not allowed; the text says what is."""


class EncodeError(WireformatError, ValueError):
    """The format, with these options, cannot say this event."""


class LimitExceeded(WireformatError, ValueError):
    """A named limit of `wireformat.limits` was passed; the text says which, its value, and what was asked."""


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
        lsn = None if self.record_lsn is None else f"{self.record_lsn >> 32:X}/{self.record_lsn & 0xFFFFFFFF:X}"
        places = (
            ("message", self.message),
            ("byte", self.message_offset),
            ("stream byte", self.stream_offset),
            ("record", self.record),
            ("field", self.path),
            ("byte in the field", self.field_offset),
            ("lsn", lsn),
            ("table", self.table),
            ("bytes there", self.spot.hex(" ") or None),
            ("row", self.note),
        )
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        return f"{self.words}: expected {self.expected}, got {self.got} [{self.format or 'unknown format'}: {where}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(kind: type[DecodeError], facts: dict[str, Any]) -> DecodeError:
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
