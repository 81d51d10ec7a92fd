"""The events: what one record says, as frozen values. Every format reads and writes the same ones.

Field names are those of the row-change table. A field is None where the record does not carry it; numbers are unsigned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TupleData:
    """One row image: parallel tuples, in the order of the record.

    names   column names, without quotes
    values  text form of each value as the type's output function gives it; None is SQL NULL
    types   SQL type names; `oid:16385` where the number is in no catalogue
    """

    names: tuple[str, ...] = ()
    values: tuple[str | None, ...] = ()
    types: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, str | None]:
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
    """A transaction ends; in GaussDB's binary style `lsn` is the position just after it."""

    kind: ClassVar[str] = "COMMIT"
    xid: int | None = None
    commit_time: str | None = None
    origin: int | None = None
    username: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(Event):
    """What could not be read, in PERMISSIVE mode.

    error   what is wrong and where: the text of the DecodeError that FAILFAST raises
    raw     the bytes, without the framing around them where that was good
    """

    kind: ClassVar[str] = "CORRUPT"
    error: str
    raw: bytes
