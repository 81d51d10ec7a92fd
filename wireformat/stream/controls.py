"""Control records: what begins and ends the transactions of a stream, and which two of them belong together."""

from __future__ import annotations

from typing import Any, NamedTuple

CONTROL_KINDS = (
    "BEGIN",
    "COMMIT",
    "ABORT",
    "PREPARE",
    "COMMIT_PREPARED",
    "ROLLBACK_PREPARED",
    "STREAM_START",
    "STREAM_STOP",
    "STREAM_ABORT",
    "STREAM_COMMIT",
    "STREAM_PREPARE",
    "ORIGIN",
)
"""The kinds that say to which transaction rows belong, and what becomes of it."""

DELIVERED_KINDS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "DDL", "MESSAGE", "STREAM_CHANGE")
"""The kinds whose rows are delivered with their transaction; MESSAGE only where it is transactional."""


class Control(NamedTuple):
    """The fields of a control record that matter; None where the record lacks one. Numbers are unsigned.

    commit_time, prepare_time   in whatever form the caller has times
    """

    kind: str
    lsn: int | None = None
    xid: int | None = None
    csn: int | None = None
    commit_lsn: int | None = None
    commit_time: Any = None
    prepare_time: Any = None
    gid: str | None = None
    subxid: int | None = None
    first_segment: bool | None = None
    username: str | None = None
    origin: str | None = None

    def __str__(self) -> str:
        numbers = ((name, getattr(self, name)) for name in ("xid", "subxid", "gid"))
        return " ".join([self.kind, *(f"{name} {value!r}" for name, value in numbers if value is not None)])


def commit_lsn_of(record: Control) -> int | None:
    """The commit LSN that a record names, else the LSN of the record itself."""
    return record.lsn if record.commit_lsn is None else record.commit_lsn


def agree(begin: Control, end: Control) -> bool:
    """Whether both are of one transaction, as far as both say it; else what lies between was lost."""
    return _same(begin.xid, end.xid) and _same(begin.gid, end.gid) and _same(begin.commit_lsn, end.commit_lsn)


def is_behind(prepare: Control, begin: Control) -> bool:
    """Whether a PREPARE is of another transaction than this BEGIN, and of one from before: so it was sent again.

    Of one that comes later, the end of what is open was lost.
    """
    begin_lsn = commit_lsn_of(begin)
    if agree(begin, prepare) or begin_lsn is None or prepare.lsn is None:
        return False
    return prepare.lsn < begin_lsn


def _same(left: Any, right: Any) -> bool:
    return left is None or right is None or left == right


_FILLED = ("xid", "csn", "username", "origin")


def filled(begin: Control, record: Control) -> Control:
    """The BEGIN with the fields that a later record of the same transaction adds or changes."""
    values = {name: getattr(record, name) for name in _FILLED}
    changed = {name: value for name, value in values.items() if value not in (None, getattr(begin, name))}
    return begin._replace(**changed) if changed else begin
