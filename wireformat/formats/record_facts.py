"""The facts of a record on which the order of records, and the filters of whole transactions, depend."""

from __future__ import annotations

from typing import NamedTuple

from ..events import Event


def aborts_whole(xid: int | None, subxid: int | None) -> bool:
    """Whether a STREAM_ABORT with these numbers drops its whole transaction, not only a subtransaction."""
    return subxid is None or subxid == xid


class RecordFacts(NamedTuple):
    """What a record says about its transaction; None for what it does not say."""

    kind: str
    xid: int | None = None
    gid: str | None = None
    subxid: int | None = None
    first_segment: bool | None = None
    transactional: bool | None = None

    @classmethod
    def of(cls, event: Event) -> RecordFacts:
        """Those of an event."""
        return cls(event.kind, *(getattr(event, name, None) for name in cls._fields[1:]))

    def __str__(self) -> str:
        said = ((name, getattr(self, name)) for name in ("xid", "subxid", "gid"))
        return " ".join([self.kind, *(f"{name} {value!r}" for name, value in said if value is not None)])
