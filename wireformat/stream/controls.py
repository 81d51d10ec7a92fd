"""Control records begin and end the transactions of a stream."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..events import ROW_CHANGES

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
"""The kinds that determine to which transaction rows belong, and whether it is committed."""

DELIVERED_KINDS = (*ROW_CHANGES, "TRUNCATE", "DDL", "MESSAGE", "STREAM_CHANGE")
"""The kinds whose rows are delivered with their transaction; MESSAGE only if it is transactional."""


class Control(NamedTuple):
    """The fields of a control record that transactions need, None if the record lacks one. Numbers are unsigned.

    commit_time, prepare_time   in any form that the caller uses for times
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
        ids = ((name, getattr(self, name)) for name in ("xid", "subxid", "gid"))
        return " ".join([self.kind, *(f"{name} {value!r}" for name, value in ids if value is not None)])


def commit_lsn_of(record: Control) -> int | None:
    """Returns the commit LSN of a record, or else its own LSN."""
    return record.lsn if record.commit_lsn is None else record.commit_lsn


def agree(begin: Control, end: Control) -> bool:
    """Whether both records may belong to one transaction: the xid, gid and commit LSN that both have are equal."""
    return (
        may_be_same(begin.xid, end.xid)
        and may_be_same(begin.gid, end.gid)
        and may_be_same(begin.commit_lsn, end.commit_lsn)
    )


def is_of_earlier(prepare: Control, begin: Control) -> bool:
    """Whether a PREPARE belongs to a transaction from before this BEGIN, and so has been sent again.

    If it belongs to a later transaction, the end of the open transaction was lost.
    """
    begin_lsn = commit_lsn_of(begin)
    if agree(begin, prepare) or begin_lsn is None or prepare.lsn is None:
        return False
    return prepare.lsn < begin_lsn


def may_be_same(left: Any, right: Any) -> bool:
    """Whether two values are equal, as far as both are known."""
    return left is None or right is None or left == right


_UPDATED = ("xid", "csn", "username", "origin")


def updated(begin: Control, record: Control) -> Control:
    """Returns the BEGIN with the fields that a later record of the same transaction adds or changes."""
    values = {name: getattr(record, name) for name in _UPDATED}
    changed = {name: value for name, value in values.items() if value not in (None, getattr(begin, name))}
    return begin._replace(**changed) if changed else begin
