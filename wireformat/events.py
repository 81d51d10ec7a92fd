"""The events: what one record says, as frozen values. Every format reads and writes the same ones.

Field names are those of the row-change table. A field is None where the record does not carry it; numbers are unsigned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final


class Unchanged:
    """The type of UNCHANGED, the only one of its kind; it pickles to itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"

    def __reduce__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""Stands for a TOAST value that did not change and was not sent: neither a value nor SQL NULL."""

LITERAL_TYPES = "?"
"""Types that begin with this are none: `sql-decoding` names no types, and keeps here how each value was written."""


@dataclass(frozen=True, slots=True)
class TupleData:
    """One row image: parallel tuples, in the order of the record.

    names   column names, without quotes; `$1`, `$2`, … where the format names none
    values  text form of each value as the type's output function gives it; None is SQL NULL, UNCHANGED was not sent
    types   SQL type names; `oid:16385` where the number is in no catalogue; `sql-decoding` has none, and says here how
            each value was written: `?null ?boolean ?number ?bits ?string ?unchanged`
    """

    names: tuple[str, ...] = ()
    values: tuple[str | Unchanged | None, ...] = ()
    types: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, str | Unchanged | None]:
        """Column name to value."""
        return dict(zip(self.names, self.values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events. `lsn` is the position that the record itself carries."""

    kind: ClassVar[str]
    lsn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Event):
    """A transaction begins."""

    kind: ClassVar[str] = "BEGIN"
    csn: int | None = None
    """Commit sequence number: the order of commits in GaussDB and openGauss."""
    first_lsn: int | None = None
    """Where the transaction's first change lies in the log."""
    xid: int | None = None
    commit_time: str | None = None
    """As sent, in the sender's time zone."""
    origin: int | None = None
    """Replication origin, signed 32 bits."""
    username: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Event):
    """A transaction ends; in GaussDB's parallel styles `lsn` is the position just after it."""

    kind: ClassVar[str] = "COMMIT"
    csn: int | None = None
    """Sent here by the serial plugins, in BEGIN by the parallel styles."""
    xid: int | None = None
    commit_time: str | None = None
    origin: int | None = None
    username: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort(Event):
    """A transaction ends and nothing of it holds; only where an area of the log is decoded."""

    kind: ClassVar[str] = "ABORT"
    xid: int | None = None
    commit_time: str | None = None
    """As sent; it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Event):
    """A transaction is prepared; only where an area of the log is decoded."""

    kind: ClassVar[str] = "PREPARE"
    xid: int | None = None
    commit_time: str | None = None
    """As sent; it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange(Event):
    """Base of INSERT, UPDATE and DELETE: a table and up to two row images."""

    table_schema: str
    table_name: str
    new: TupleData | None = None
    """The row after the change."""
    old: TupleData | None = None
    """The columns of the replica identity before the change, or the whole row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(RowChange):
    """A row came."""

    kind: ClassVar[str] = "INSERT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(RowChange):
    """A row changed."""

    kind: ClassVar[str] = "UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(RowChange):
    """A row went."""

    kind: ClassVar[str] = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(Event):
    """Tables were emptied by one statement: one event, but in the row-change table one row a table."""

    kind: ClassVar[str] = "TRUNCATE"
    tables: tuple[tuple[str, str], ...]
    """Pairs of schema and name."""
    restart_identity: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddl(Event):
    """The structure of the database changed. Which fields there are depends on the server and its options."""

    kind: ClassVar[str] = "DDL"
    sql: str | None = None
    """The statement, where the server says it."""
    content: str | None = None
    """A template in JSON, as sent, or the words of a command without one."""
    prefix: str | None = None
    relid: int | None = None
    cmdtype: str | None = None
    size: int | None = None
    """Bytes of the content in the server's encoding, with a zero byte that is not sent."""
    owner: str | None = None
    """`none` where the server says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """The sender is alive. `lsn` is None in the bare layout, which has none."""

    kind: ClassVar[str] = "HEARTBEAT"
    wal_end: int
    """By LSN order the end of the log read; in CSN order the CSN already sent."""
    wal_flushed: int
    """By LSN order the log flushed to disk; in CSN order the CSN that the next transaction will get."""
    time: int
    """When the newest decoded log was written, since 1970; signed; the unit is not published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """A well-framed record of a kind that no table lists: its bytes, without the framing."""

    kind: ClassVar[str] = "UNKNOWN"
    raw: bytes
    text: str | None = None
    """The bytes as text, in a text style and if they are text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(Event):
    """What could not be read, in PERMISSIVE mode.

    error   what is wrong and where: the text of the DecodeError that FAILFAST raises
    raw     the bytes, without the framing around them where that was good
    """

    kind: ClassVar[str] = "CORRUPT"
    error: str
    raw: bytes
