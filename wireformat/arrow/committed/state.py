"""The saved state of `Transactions`: the open transactions, the handles of their rows in the store, and the position.

Version 1 has four tables: the batches in the store, the open transactions, the row ranges of their rows (`parts`), and
their rolled-back subtransactions (`undone`). Tables refer to each other by row index. Docs: docs/transactions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...errors import OptionError
from ...stream.attempts import STAGES, Attempt
from ...stream.controls import CONTROL_KINDS, Control
from ...stream.positions import SHAPE as POSITION
from ...stream.positions import fields_of, position_of
from ...stream.saved import (
    COUNT,
    FLAG,
    NAME,
    SIGNED,
    TEXT,
    UNSIGNED,
    SavedTable,
    Shape,
    damaged,
    dump,
    load,
    maybe,
    one_of,
    seal,
    unseal,
)
from ...stream.transactions import TWO_PHASE, TransactionMachine
from .open_rows import OpenRows, SavedBatch
from .row_ranges import RowRange

KIND = "wireformat.transactions"

BEGIN: dict[str, Any] = {
    "kind": one_of(*CONTROL_KINDS),
    "lsn": maybe(UNSIGNED),
    "xid": maybe(UNSIGNED),
    "csn": maybe(UNSIGNED),
    "commit_lsn": maybe(UNSIGNED),
    "commit_time": maybe(SIGNED),
    "prepare_time": maybe(SIGNED),
    "gid": maybe(TEXT),
    "subxid": maybe(UNSIGNED),
    "first_segment": maybe(FLAG),
    "username": maybe(TEXT),
    "origin": maybe(TEXT),
}
"""The fields of the record that began a transaction. Times are microseconds since 1970."""

_TABLES = {
    "batches": SavedTable({"handle": NAME, "rows": COUNT, "row_bytes": COUNT}),
    "open": SavedTable({"stage": one_of(*STAGES), "prepared_gid": maybe(TEXT), **BEGIN}),
    "parts": SavedTable({"transaction": COUNT, "batch": COUNT, "start": COUNT, "stop": COUNT, "count": COUNT}),
    "undone": SavedTable({"transaction": COUNT, "xid": UNSIGNED}),
}
"""Batches in the store; open transactions; their row ranges, in order; their subtransactions that were rolled back.

transaction, batch   indices into `open` and `batches`
count                how many of the rows are delivered if the transaction is

The names are saved, so they are never changed.
"""

SHAPE: Shape = {
    "two_phase": one_of(*TWO_PHASE),
    "drop_resent": FLAG,
    "position": POSITION,
    "unknown_prepared": [TEXT],
    "rows_seen": COUNT,
    "columns": [TEXT],
    **_TABLES,
}
"""The fields of version 1, which is never changed. A new field makes a new version, with a reader of its own."""


def write_state(
    machine: TransactionMachine[RowRange], open_rows: OpenRows, rows_seen: int, columns: Sequence[str]
) -> bytes:
    """Returns the state, which is everything but the rows.

    rows_seen   how many rows of the input have been taken
    columns     the names of the columns of held rows

    Raises OptionError if a handle of the store cannot be saved.
    """
    batches = open_rows.saved
    index_of = {number: index for index, number in enumerate(batches)}
    staged = [*machine.staged()]
    attempts = [attempt for _, _, attempt in staged]
    row_ranges = [(index, handle) for index, attempt in enumerate(attempts) for handle in attempt.handles]
    begins = dict(
        zip(Control._fields, _columns_of([attempt.begin for attempt in attempts], len(Control._fields)), strict=True)
    )
    tables = {
        "batches": _columns_of(batches.values(), 3),
        "open": [*_columns_of([(stage, gid) for stage, gid, _ in staged], 2), *(begins[name] for name in BEGIN)],
        "parts": _columns_of(
            [(index, index_of[number], start, stop, count) for index, ((number, start, stop), count) in row_ranges], 5
        ),
        "undone": _columns_of([(index, xid) for index, attempt in enumerate(attempts) for xid in attempt.undone], 2),
    }
    if NAME.misfit([*tables["batches"][0]]) is not None:
        raise OptionError("option store: expected handles that are texts or 64-bit integers, got others")
    fields = {
        "two_phase": machine.two_phase,
        "drop_resent": machine.drop_resent,
        "position": fields_of(machine.position),
        "unknown_prepared": machine.unknown_prepared,
        "rows_seen": rows_seen,
        "columns": columns,
        **{name: dict(zip(table.columns, tables[name], strict=True)) for name, table in _TABLES.items()},
    }
    return seal(KIND, 1, dump(fields))


def read_state(data: bytes, machine: TransactionMachine[RowRange], open_rows: OpenRows) -> tuple[int, list[str]]:
    """Restores a machine and its open rows, which have taken nothing yet, from a state; returns rows_seen and columns.

    Raises StateError, and OptionError if the machine has other options than the saved one.
    """
    version, payload = unseal(KIND, _READERS, data)
    return _READERS[version](payload, machine, open_rows)


def _read_1(payload: memoryview, machine: TransactionMachine[RowRange], open_rows: OpenRows) -> tuple[int, list[str]]:
    found = load(KIND, payload, SHAPE)
    for option in ("two_phase", "drop_resent"):
        if found[option] != getattr(machine, option):
            raise OptionError(
                f"option {option}: expected the one with which the state was saved, {found[option]!r}, "
                f"got {getattr(machine, option)!r}"
            )
    open = found["open"]
    attempts: list[Attempt[RowRange]] = [*map(Attempt, map(Control, *(open[name] for name in Control._fields)))]
    staged = [*zip(open["stage"], open["prepared_gid"], attempts, strict=True)]
    _check_open(staged)
    batches = [*map(SavedBatch, *(found["batches"][name] for name in _TABLES["batches"].columns))]
    open_counts = _open_counts(found["parts"], batches, len(attempts))
    row_ranges = zip(*(found["parts"][name] for name in _TABLES["parts"].columns), strict=True)
    for transaction, batch, start, stop, count in row_ranges:
        attempts[transaction].handles.append(((batch, start, stop), count))
    for transaction, xid in zip(found["undone"]["transaction"], found["undone"]["xid"], strict=True):
        _expect(transaction < len(attempts), "transactions of `open` in `undone`")
        attempts[transaction].undo(xid)
    machine.continue_after(position_of(found["position"]))
    machine.restore(staged, found["unknown_prepared"])
    open_rows.restore(zip(batches, open_counts, strict=True))
    return found["rows_seen"], found["columns"]


_READERS = {1: _read_1}


def _check_open(staged: Sequence[tuple[str, str | None, Attempt[RowRange]]]) -> None:
    current = [stage for stage, _, _ in staged if stage in ("plain", "block")]
    _expect(len(current) <= 1, "at most one transaction in the stage plain or block")
    gids = [gid for stage, gid, _ in staged if stage == "prepared"]
    _expect(None not in gids and len({*gids}) == len(gids), "a unique gid for each prepared transaction")
    xids = [attempt.begin.xid for stage, _, attempt in staged if stage in ("block", "streamed")]
    _expect(None not in xids and len({*xids}) == len(xids), "a unique xid for each streamed transaction")


def _open_counts(row_ranges: dict[str, list[int]], batches: Sequence[SavedBatch], transactions: int) -> list[int]:
    """Returns how many rows of each batch are open."""
    _expect(len({batch.handle for batch in batches}) == len(batches), "a unique handle for each batch")
    transaction, batch, start, stop, count = (np.array(row_ranges[name], np.int64) for name in _TABLES["parts"].columns)
    _expect(
        (transaction < transactions).all() and (batch < len(batches)).all(),
        "row ranges of open transactions in batches of the state",
    )
    rows = np.array([batch.rows for batch in batches], np.int64)
    fits = (start < stop) & (stop <= rows[batch]) & (count <= stop - start)
    order = np.lexsort((start, batch))
    is_apart = (np.diff(batch[order]) > 0) | (start[order][1:] >= stop[order][:-1])
    _expect(fits.all() and is_apart.all(), "row ranges within their batches that do not overlap")
    open = np.zeros(len(batches), np.int64)
    np.add.at(open, batch, stop - start)
    _expect((open > 0).all(), "an open row in each batch")
    found: list[int] = open.tolist()
    return found


def _expect(holds: Any, expected: str) -> None:
    if not holds:
        raise damaged(KIND, expected, "others")


def _columns_of(rows: Collection[tuple[Any, ...]], width: int) -> list[Sequence[Any]]:
    """Returns rows as columns."""
    return [*zip(*rows, strict=True)] if rows else [()] * width
