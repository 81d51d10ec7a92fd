"""Filters of whole transactions while reading: by user, and skip_empty_xacts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from ..events import ROW_CHANGES, RecordFacts
from ..formats.message_writer import ENDS, EmptyTransactions, is_outside
from .records_before import FilterBefore

Record = TypeVar("Record")


CHANGE_KINDS = frozenset((*ROW_CHANGES, "TRUNCATE"))
"""The kinds of records that never begin, end or hold back anything."""


class TransactionFilter(Generic[Record]):
    """Takes the records of a stream in order, and decides which are kept.

    users       transactions whose BEGIN carries one of these names are left out
    skip_empty  transactions without changes are left out; see EmptyTransactions
    before      the state before the first record, unless the stream begins there; call `hold` with the records held

    A record that cannot be read is always kept.
    """

    def __init__(self, users: Collection[str], skip_empty: bool, before: FilterBefore | None = None) -> None:
        self._users = frozenset(users)
        self._empty: EmptyTransactions[Record] | None = EmptyTransactions() if skip_empty else None
        self._is_excluded = before is not None and before.is_excluded
        if before is not None and self._empty is not None:
            self._empty.block, self._empty.has_changes = before.block, dict(before.has_changes)

    @property
    def before_next(self) -> FilterBefore:
        """The state before the next record."""
        if self._empty is None:
            return FilterBefore(self._is_excluded, 0, None, {})
        return FilterBefore(self._is_excluded, len(self._empty.held), self._empty.block, dict(self._empty.has_changes))

    @property
    def passes_changes(self) -> bool:
        """Whether a record of CHANGE_KINDS would be kept and decide nothing: `take` need not see it."""
        return not self._is_excluded and (self._empty is None or not self._empty.held)

    @property
    def held(self) -> tuple[Record, ...]:
        """The records that wait for what follows them."""
        return () if self._empty is None else self._empty.held

    def hold(self, records: tuple[Record, ...]) -> None:
        """Replaces the records that wait by others that stand for them."""
        if self._empty is not None:
            self._empty.held = records

    @property
    def may_pass_transactions(self) -> bool:
        """Whether `take` need not see row-only transactions: BEGIN without gid, row changes and COMMIT.

        The caller then calls `pass_transactions` in their place, and leaves out empty ones where they are skipped.
        """
        return not self._users

    def pass_transactions(self) -> None:
        """Takes any number of row-only transactions: what waits before them is left out, as before any BEGIN."""
        self._is_excluded = False
        if self._empty is not None:
            self._empty.drop_held()

    def take(self, facts: RecordFacts, username: str | None, record: Record) -> tuple[Record, ...]:
        """Returns the records that are kept, now that this one is known."""
        if facts.kind == "BEGIN":
            self._is_excluded = username in self._users
            self.hold(())
        if self._is_excluded and facts.kind != "CORRUPT" and not is_outside(facts):
            self._is_excluded = facts.kind not in ENDS
            return ()
        return (record,) if self._empty is None else self._empty.take(facts, record)
