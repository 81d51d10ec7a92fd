"""Leaves out whole transactions: those of some users, and those in which nothing happens."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

_ENDS = frozenset({"COMMIT", "ABORT", "PREPARE"})

Record = TypeVar("Record")


class TransactionFilter(Generic[Record]):
    """Takes records in the order of the stream, and says which of them stay.

    users       transactions whose BEGIN carries one of these names are left out
    skip_empty  a BEGIN stays only if something follows it before the end
    held        a BEGIN that waits for what follows it; None if there is none

    As at the servers, a heartbeat belongs to no transaction and waits for nothing: it overtakes a BEGIN that is held.
    What cannot be read always stays, and may be anything: a transaction with such a record in it is not empty.
    """

    def __init__(self, users: Collection[str], skip_empty: bool) -> None:
        self._users = frozenset(users)
        self._skip_empty = skip_empty
        self._is_excluded = False
        self.held: Record | None = None

    def take(self, kind: str, username: str | None, record: Record) -> tuple[Record, ...]:
        """The records that stay, now that this one is known."""
        if kind == "HEARTBEAT":
            return (record,)
        if kind == "BEGIN":
            self._is_excluded = username in self._users
            self.held = record if self._skip_empty and not self._is_excluded else None
            return () if self._is_excluded or self._skip_empty else (record,)
        if self._is_excluded and kind != "CORRUPT":
            self._is_excluded = kind not in _ENDS
            return ()
        held, self.held = self.held, None
        if held is None:
            return (record,)
        return () if kind in _ENDS else (held, record)
