"""Changes of rows in order, and their compaction: one insert of each row that they leave.

Every change becomes steps of keys: a row comes to a key (insert, or an update that moves it there), is set, or goes
(delete, or moves away). The steps are sorted by key and then by order, so that the facts of a key are those of a range
of steps. A row that moved without some of its values had them at its previous key: the step that came to the new key
refers to the step that left the old one, whose values may come from an older key. Each round of jumps doubles the
distance that such references reach back.

What is compacted is changes again, so that more of them can follow. Only whole transactions may be compacted, since a
key may hold two rows within one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import BadRows
from ...lsn import lsn_text
from ..arrays import Array, take_rows, take_values
from ..codes import MOST_BITS, codes_of_values, combined_codes, grouped
from ..row_changes import TABLE_INSERT, TABLE_TRUNCATE, TABLE_UPDATE

COMES, SETS, GOES = 1, 0, -1
"""How a step changes the number of rows at the key."""


class RowsNeeded(Exception):
    """The rows from before the changes decide whether a key has a row: in its first transaction one came, and one went.

    It may have been the same row, or that of before, as where two rows swap their keys under a deferrable constraint,
    which cannot be the replica identity.
    """


@dataclass(frozen=True)
class Changes:
    """Changes of rows, in the order in which they were made.

    kinds      int8[n]: indices in TABLE_KINDS
    scopes     int64[n]: a number for each stream and table; keys of different scopes have nothing to do with each other
    lsns       uint64[n]: the position of the commit, which identifies the transaction in its stream
    ordinals   int64[n]: the position in the transaction
    rows       a table of n rows: the values after the change, or those of the deleted row
    moved      int64[m]: updates that may have changed the key
    old_keys   the columns of their old keys, each of m values
    unsent     columns to bool[n]: whether the change did not send the value. Without those that all changes send
    """

    kinds: Array
    scopes: Array
    lsns: Array
    ordinals: Array
    rows: pa.Table
    moved: Array
    old_keys: Sequence[pa.ChunkedArray]
    unsent: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.kinds)

    def where(self, is_chosen: Array) -> Changes:
        """Returns some of the changes; is_chosen is bool[n]."""
        if is_chosen.all():
            return self
        has_chosen = is_chosen[self.moved]
        return Changes(
            self.kinds[is_chosen],
            self.scopes[is_chosen],
            self.lsns[is_chosen],
            self.ordinals[is_chosen],
            self.rows.filter(pa.array(is_chosen)),
            (np.cumsum(is_chosen) - 1)[self.moved[has_chosen]],
            [column.filter(pa.array(has_chosen)) for column in self.old_keys],
            _some({name: is_unsent[is_chosen] for name, is_unsent in self.unsent.items()}),
        )

    def inserts(self, indices: Array, rows: pa.Table, unsent: Mapping[str, Array]) -> Changes:
        """Returns inserts of rows, at the positions of some of the changes."""
        return Changes(
            np.full(len(indices), TABLE_INSERT, np.int8),
            self.scopes[indices],
            self.lsns[indices],
            self.ordinals[indices],
            rows,
            np.zeros(0, np.int64),
            [pa.chunked_array([], column.type) for column in self.old_keys],
            _some(unsent),
        )

    def without_values(self, names: Collection[str], keys: Sequence[str]) -> Changes:
        """Returns the changes with NULL in some of the columns, before and after.

        keys   the columns of old_keys
        """
        columns = {
            field.name: pa.chunked_array([pa.nulls(len(self), field.type)]) if field.name in names else column
            for field, column in zip(self.rows.schema, self.rows.columns, strict=True)
        }
        old_keys = [
            pa.chunked_array([pa.nulls(len(self.moved), old.type)]) if key in names else old
            for key, old in zip(keys, self.old_keys, strict=True)
        ]
        unsent = {name: flags for name, flags in self.unsent.items() if name not in names}
        rows = pa.Table.from_arrays([*columns.values()], schema=self.rows.schema)
        return replace(self, rows=rows, old_keys=old_keys, unsent=unsent)

    def after_truncates(self) -> Changes:
        """Returns the changes of rows after the last TRUNCATE of their scope."""
        truncates = np.flatnonzero(self.kinds == TABLE_TRUNCATE)
        if not len(truncates):
            return self
        last = np.full(int(self.scopes.max()) + 1, -1)
        last[self.scopes[truncates]] = truncates
        return self.where(np.arange(len(self)) > last[self.scopes])


def _some(flags: Mapping[str, Array]) -> dict[str, Array]:
    return {name: of_column for name, of_column in flags.items() if of_column.any()}


def joined(parts: Sequence[Changes]) -> Changes:
    """Returns the changes of several parts, of which there must be one, without a copy of the rows."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *map(len, parts)])
    names = dict.fromkeys(name for part in parts for name in part.unsent)
    return Changes(
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.scopes for part in parts]),
        np.concatenate([part.lsns for part in parts]),
        np.concatenate([part.ordinals for part in parts]),
        pa.concat_tables([part.rows for part in parts]),
        np.concatenate([part.moved + start for part, start in zip(parts, starts[:-1].tolist(), strict=True)]),
        [
            pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
            for columns in zip(*(part.old_keys for part in parts), strict=True)
        ],
        {name: np.concatenate([part.unsent.get(name, np.zeros(len(part), bool)) for part in parts]) for name in names},
    )


def compacted(changes: Changes, keys: Sequence[str], *, counts_rows: bool, follows_rows: bool) -> Changes:
    """Returns an insert of each current row, in the order of its last change.

    keys          columns that identify a row in its scope
    counts_rows   whether a key may hold several rows, which are equal: each insert adds one, each delete removes one,
                  and an update does both. Otherwise an insert replaces the row of the key
    follows_rows  whether a key to which a row comes may have had one before the changes

    Raises BadRows if the changes of a key are not in the order of their positions, or if it cannot be told which row a
    change removes; and RowsNeeded.
    """
    changes = changes.after_truncates()
    if not len(changes):
        return changes
    steps = _sorted_steps(changes, keys, counts_rows)
    return _counted(changes, keys, steps) if counts_rows else _current(changes, steps, follows_rows)


@dataclass(frozen=True)
class _Steps:
    """The steps of keys, sorted by key and then by order.

    changes   int64[m]: the change of each step
    roles     int8[m]: COMES, SETS or GOES
    starts    int64[k]: the first step of each key
    """

    changes: Array
    roles: Array
    starts: Array

    @property
    def ends(self) -> Array:
        """int64[k]: the last step of each key."""
        return np.append(self.starts[1:], len(self.roles)) - 1


_ROLES = np.array([COMES, SETS, GOES], np.int8)
"""The role of a change that stays at its key, by kind."""


def _sorted_steps(changes: Changes, keys: Sequence[str], counts_rows: bool) -> _Steps:
    count = len(changes)
    order_bits = count.bit_length() + 1
    columns = [codes_of_values(column) for column in _with_old(changes, keys)]
    if counts_rows:  # a value that was not sent is a value of its own
        for index, key in enumerate(keys):
            if key in changes.unsent:
                columns[index][_before_and_after(changes, changes.unsent[key])] = columns[index].max(initial=0) + 1
    codes = combined_codes([_before_and_after(changes, changes.scopes), *columns], MOST_BITS - order_bits)
    new, old = codes[:count], codes[count:]
    roles = _ROLES[changes.kinds]
    is_move = np.ones(len(old), bool) if counts_rows else old != new[changes.moved]
    moved = changes.moved[is_move]
    roles[moved] = COMES
    # where a row leaves a key and comes to it in one change, it leaves first
    arrives = (new << order_bits) | (np.arange(count) << 1) | 1
    leaves = (old[is_move] << order_bits) | (moved << 1)
    steps = np.sort(np.concatenate([arrives, leaves]))
    of_step = (steps & ((1 << order_bits) - 1)) >> 1
    arrived = (steps & 1).astype(bool)
    slots = steps >> order_bits
    return _Steps(of_step, np.where(arrived, roles[of_step], GOES), _starts(slots[1:] != slots[:-1]))


def _with_old(changes: Changes, keys: Sequence[str]) -> list[pa.ChunkedArray]:
    """Returns the columns of the keys: of all changes, and then the old ones of the changes that moved."""
    return [
        pa.chunked_array([*changes.rows[key].chunks, *old_key.chunks], old_key.type)
        for key, old_key in zip(keys, changes.old_keys, strict=True)
    ]


def _before_and_after(changes: Changes, of_changes: Array) -> Array:
    """Returns what is so of all changes, and then of those that moved."""
    return np.concatenate([of_changes, of_changes[changes.moved]])


def _starts(differs: Array) -> Array:
    """Returns where a range begins: at 0, and at every element that differs from the one before."""
    return np.flatnonzero(np.concatenate([[True], differs]))


def _last(is_chosen: Array) -> Array:
    """Returns, for each element, the last one at or before it that is chosen; -1 if there is none."""
    return np.maximum.accumulate(np.where(is_chosen, np.arange(len(is_chosen)), -1))


def _counted(changes: Changes, keys: Sequence[str], steps: _Steps) -> Changes:
    """Returns each row once per copy that the table holds.

    If more rows are removed than were added, they had values that were not sent when they were added. Otherwise the
    history does not begin with the table's first row, and those rows existed before it.
    """
    balance = np.cumsum(steps.roles, dtype=np.int64)
    before = balance[steps.starts] - steps.roles[steps.starts]
    balance -= np.repeat(before, steps.ends - steps.starts + 1)
    missing = -np.minimum(np.minimum.reduceat(balance, steps.starts), 0)
    counts = balance[steps.ends] + missing
    if changes.unsent and missing.any():
        _take_rows_with_unsent_values(changes, keys, steps, counts, missing)
    last = _last(steps.roles == COMES)[steps.ends]
    count_of_change = np.zeros(len(changes), np.int64)
    count_of_change[steps.changes[last[counts > 0]]] = counts[counts > 0]
    indices = np.repeat(np.arange(len(changes)), count_of_change)
    unsent = {name: flags[indices] for name, flags in changes.unsent.items()}
    return changes.inserts(indices, take_rows(changes.rows, indices), unsent)


def _take_rows_with_unsent_values(
    changes: Changes, keys: Sequence[str], steps: _Steps, counts: Array, missing: Array
) -> None:
    """Removes rows that have values that were not sent: such a value equals any other one.

    A row in which fewer values are unknown goes first: if it was another one that went, both are the same as far as is
    known. Raises BadRows where that does not decide.

    counts    int64[k], changed: how many rows each key has
    missing   int64[k], changed: how many of its rows were removed that it did not have
    """
    chosen = np.flatnonzero((counts > 0) | (missing > 0))
    rows = _rows_of_keys(changes, keys, steps, chosen)
    left, wanted = counts[chosen], missing[chosen]
    is_removed = wanted > 0
    asking = {}
    for number in np.argsort(rows.patterns.sum(axis=1), kind="stable").tolist():
        if rows.patterns[number].any() and (left[rows.of_pattern == number] > 0).any():
            asking[number] = _take_rows_of_pattern(rows, number, is_removed, left, wanted)
    if _has_choice(rows, asking) or _may_remove_others(rows, left, wanted):
        raise BadRows(
            "old rows that tell which row a change removes",
            "one that lacks values in which rows differ",
            hint="pass keys, or set the replica identity to a key",
        )
    counts[chosen], missing[chosen] = left, wanted


class _RowsOfKeys(NamedTuple):
    """A row for each of some keys that are whole rows, and which of its values were not sent.

    scopes       int64[n]: see Changes
    values       for each column, int64[n]: codes that are equal for equal values
    patterns     bool[p, columns]: the columns that were not sent together, each set of them once
    of_pattern   int64[n]: the pattern of each row
    """

    scopes: Array
    values: Sequence[Array]
    patterns: Array
    of_pattern: Array

    def alike(self, pattern: Array) -> Array:
        """Returns codes that are equal for rows that are equal but for the columns of a pattern."""
        compared = [column for column, is_ignored in zip(self.values, pattern, strict=True) if not is_ignored]
        return combined_codes([self.scopes, *compared])


def _rows_of_keys(changes: Changes, keys: Sequence[str], steps: _Steps, chosen: Array) -> _RowsOfKeys:
    of_step = steps.changes[steps.starts[chosen]]
    leaves = (steps.roles[steps.starts[chosen]] == GOES) & (changes.kinds[of_step] == TABLE_UPDATE)
    entries = np.where(leaves, len(changes) + np.searchsorted(changes.moved, of_step), of_step)
    values = [codes_of_values(take_values(column, entries)) for column in _with_old(changes, keys)]
    unsent = np.array([changes.unsent.get(key, np.zeros(len(changes), bool))[of_step] for key in keys]).T
    patterns, of_pattern = np.unique(unsent, axis=0, return_inverse=True)
    return _RowsOfKeys(changes.scopes[of_step], values, patterns, of_pattern.reshape(-1))


def _take_rows_of_pattern(rows: _RowsOfKeys, number: int, is_removed: Array, left: Array, wanted: Array) -> Array:
    """Takes rows of a pattern for the removed ones that they may be; returns which of these might take one, bool[n].

    is_removed     bool[n]: of which more rows were removed than there were
    left, wanted   int64[n], changed: how many rows there are, and how many removed ones are not found yet
    """
    pattern, has_rows = rows.patterns[number], (rows.of_pattern == number) & (left > 0)
    alike = grouped(rows.alike(pattern))[1]
    there = np.zeros(len(alike), np.int64)
    there[alike[has_rows]] = left[has_rows]
    fits = (rows.patterns <= pattern).all(axis=1)[rows.of_pattern] & (rows.of_pattern != number)
    asks = is_removed & fits & (there[alike] > 0)
    takers = np.flatnonzero(asks)[np.argsort(alike[asks], kind="stable")]
    if len(takers):
        of_row, ends = alike[takers], np.cumsum(wanted[takers])
        first = _starts(of_row[1:] != of_row[:-1])
        begins = ends - wanted[takers]
        begins = begins - np.repeat(begins[first], np.diff(first, append=len(takers)))
        taken = np.clip(there[of_row] - begins, 0, wanted[takers])
        wanted[takers] -= taken
        np.subtract.at(there, of_row, taken)
        left[has_rows] = there[alike[has_rows]]
    return asks


def _has_choice(rows: _RowsOfKeys, asking: Mapping[int, Array]) -> bool:
    """Whether a removed row might take rows of two patterns of which neither has all unknown values of the other.

    asking   for each pattern, bool[n]: which removed rows might take its rows; those with fewer unknown values first
    """
    return any(
        (asking[one] & asking[other]).any() and not (rows.patterns[one] <= rows.patterns[other]).all()
        for one, other in combinations(asking, 2)
    )


def _may_remove_others(rows: _RowsOfKeys, left: Array, wanted: Array) -> bool:
    """Whether a removed row that lacks values might be one of several that are there."""
    for number, pattern in enumerate(rows.patterns):
        removed = (rows.of_pattern == number) & (wanted > 0)
        if not pattern.any() or not removed.any():
            continue
        for other, of_rows in enumerate(rows.patterns):
            if not (pattern <= of_rows).all():
                alike = rows.alike(pattern | of_rows)
                if np.isin(alike[removed], alike[(rows.of_pattern == other) & (left > 0)]).any():
                    return True
    return False


def _current(changes: Changes, steps: _Steps, follows_rows: bool) -> Changes:
    """Returns the row of each key that has one."""
    _check_order(changes, steps)
    begins, is_occupied = _occupation(changes, steps, follows_rows)
    last = _last(steps.roles != GOES)[steps.ends][is_occupied]
    last_of_change = np.full(len(changes), -1)
    last_of_change[steps.changes[last]] = last
    indices = np.flatnonzero(last_of_change >= 0)
    last = last_of_change[indices]
    sources = {name: _sources(changes, steps, name, begins)[last] for name in changes.unsent}
    rows = take_rows(changes.rows, indices, sources)
    return changes.inserts(indices, rows, {name: found < 0 for name, found in sources.items()})


def _check_order(changes: Changes, steps: _Steps) -> None:
    """Raises BadRows if a change of a key is before an earlier one. Transactions can come in another order."""
    lsns, ordinals = changes.lsns[steps.changes], changes.ordinals[steps.changes]
    falls = (lsns[1:] < lsns[:-1]) | ((lsns[1:] == lsns[:-1]) & (ordinals[1:] < ordinals[:-1]))
    falls[steps.starts[1:] - 1] = False
    if falls.any():
        first = int(np.flatnonzero(falls)[0])
        before, after = (f"{lsn_text(int(lsns[step]))} / {ordinals[step]}" for step in (first, first + 1))
        raise BadRows(
            f"changes of each row in the order of _sequence, after {before}",
            after,
            hint="pass all changes as one table, which may be in any order",
        )


def _occupation(changes: Changes, steps: _Steps, follows_rows: bool) -> tuple[Array, Array]:
    """Returns the steps at which a key has no row yet, and for each key whether it has one in the end.

    A key holds one row between transactions. Within a transaction it may hold two (keys swapped under a deferred
    constraint); the row that came first goes first. So whether the key holds a row after the transaction is counted. If
    the transaction begins with a step other than COMES, there was a row before it. Otherwise, the count or the previous
    transaction decides.
    """
    lsns = changes.lsns[steps.changes]
    differs = lsns[1:] != lsns[:-1]
    differs[steps.starts[1:] - 1] = True
    starts = _starts(differs)
    more = np.add.reduceat(steps.roles, starts, dtype=np.int64)
    began_occupied = steps.roles[starts] != COMES
    is_occupied = np.where(began_occupied, more >= 0, more > 0)
    is_known = began_occupied | (more != 0)
    begins_key = np.zeros(len(lsns), bool)
    begins_key[steps.starts] = True
    first_of_key = np.flatnonzero(begins_key[starts])
    if follows_rows and not is_known[first_of_key].all():
        raise RowsNeeded
    is_known[first_of_key] = True  # a row that came to a free key and went
    is_occupied = is_occupied[_last(is_known)]
    is_free = np.concatenate([[True], ~is_occupied[:-1]])
    is_free[first_of_key] = True
    return starts[is_free], is_occupied[np.append(first_of_key[1:], len(starts)) - 1]


def _sources(changes: Changes, steps: _Steps, name: str, begins: Array) -> Array:
    """Returns, for each step, the change that sent the column's value at the key after it; -1 if none did.

    begins   the steps at which a key has no row yet
    """
    sends = (steps.roles != GOES) & ~changes.unsent[name][steps.changes]
    arrives = (steps.roles == COMES) & ~sends
    begins_anew = np.zeros(len(sends), bool)
    begins_anew[begins] = True
    last = _last(sends | arrives | begins_anew)
    origins = _origins(changes, steps, np.flatnonzero(arrives))
    seen = np.arange(len(sends))
    asking = np.flatnonzero(arrives)[origins >= 0]
    seen[asking] = last[origins[origins >= 0]]
    while len(asking):
        older = seen[seen[asking]]
        is_older = older != seen[asking]
        seen[asking] = older
        asking = asking[is_older]
    found = seen[last]
    return np.where(sends[found], steps.changes[found], -1)


def _origins(changes: Changes, steps: _Steps, arrivals: Array) -> Array:
    """Returns, for steps at which rows come to their keys, the steps at which they left other ones; -1 if they did not.

    Where key changes were split, a row leaves with the delete directly before the insert, which has the same position.
    """
    leaves = np.full(len(changes), -1)
    goes = np.flatnonzero(steps.roles == GOES)
    leaves[steps.changes[goes]] = goes
    of_step = steps.changes[arrivals]
    inserts = changes.kinds[of_step] == TABLE_INSERT
    if not inserts.any():
        return leaves[of_step]
    in_scope = np.argsort(changes.scopes, kind="stable")
    before = np.full(len(changes), -1)
    before[in_scope[1:]] = in_scope[:-1]
    origins = np.where(inserts, before[of_step], of_step)
    is_same = changes.lsns[origins] == changes.lsns[of_step]
    is_same &= changes.ordinals[origins] == changes.ordinals[of_step]
    is_same &= changes.scopes[origins] == changes.scopes[of_step]
    return np.where(is_same & (origins >= 0), leaves[origins], -1)
