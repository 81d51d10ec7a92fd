"""The saved state of `Transactions`: what is open, where its rows are in the store, how far the stream was delivered.

Version 1 is four tables: the batches in the store, the transactions that have not ended, the parts of their rows, and
what of them was undone. Rows of a table are known by their index in it. Docs: docs/transactions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...errors import OptionError
from ...stream.attempts import Attempt
from ...stream.controls import CONTROL_KINDS, Control
from ...stream.saved import (
    COUNT,
    FLAG,
    NAME,
    SIGNED,
    TEXT,
    UNSIGNED,
    Shape,
    Table,
    damaged,
    dump,
    load,
    maybe,
    one_of,
    seal,
    unseal,
)
from ...stream.saved_position import SHAPE as POSITION
from ...stream.saved_position import fields_of, position_of
from ...stream.transactions import STAGES, TWO_PHASE, Machine
from .open_rows import OpenRows, SavedBatch
from .row_ranges import RowRange

KIND = "wireformat.transactions"

_BEGIN: dict[str, Any] = {
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
"""What the record says that began a transaction; times are microseconds since 1970."""

_TABLES = {
    "batches": Table({"handle": NAME, "rows": COUNT, "row_bytes": COUNT}),
    "open": Table({"stage": one_of(*STAGES), "prepared_gid": maybe(TEXT), **_BEGIN}),
    "parts": Table({"transaction": COUNT, "batch": COUNT, "start": COUNT, "stop": COUNT, "count": COUNT}),
    "undone": Table({"transaction": COUNT, "xid": UNSIGNED}),
}
"""Batches in the store; transactions that have not ended; their rows, in order; subtransactions that were undone.

transaction, batch   index into `open` and `batches`
count                how many of the rows are delivered if the transaction is
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
"""The fields of version 1, which is never changed: another field is another version, with a reader of its own."""


def write_state(machine: Machine[RowRange], held: OpenRows, rows_seen: int, columns: Sequence[str]) -> bytes:
    """Everything but the rows.

    rows_seen   how many rows of the input there were
    columns     names of the columns of the held rows
    Raises OptionError where a handle of the store cannot be saved.
    """
    batches = held.saved
    index_of = {number: index for index, number in enumerate(batches)}
    staged = [*machine.staged()]
    attempts = [attempt for _, _, attempt in staged]
    pieces = [(index, piece) for index, attempt in enumerate(attempts) for piece in attempt.pieces]
    begins = dict(
        zip(Control._fields, _turned([attempt.begin for attempt in attempts], len(Control._fields)), strict=True)
    )
    tables = {
        "batches": _turned(batches.values(), 3),
        "open": [*_turned([(stage, gid) for stage, gid, _ in staged], 2), *(begins[name] for name in _BEGIN)],
        "parts": _turned(
            [(index, index_of[number], start, stop, count) for index, ((number, start, stop), count) in pieces], 5
        ),
        "undone": _turned([(index, xid) for index, attempt in enumerate(attempts) for xid in attempt.undone], 2),
    }
    if NAME.trouble([*tables["batches"][0]]) is not None:
        raise OptionError("option store: expected handles that are texts or integers of 64 bits, got others")
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


def read_state(data: bytes, machine: Machine[RowRange], held: OpenRows) -> tuple[int, list[str]]:
    """Brings a machine and parts that took nothing yet to where the saved ones were; returns rows_seen and columns.

    Raises StateError; OptionError where the machine has other options.
    """
    version, payload = unseal(KIND, _READERS, data)
    return _READERS[version](payload, machine, held)


def _read_1(payload: memoryview, machine: Machine[RowRange], held: OpenRows) -> tuple[int, list[str]]:
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
    open_rows = _open_rows(found["parts"], batches, len(attempts))
    for transaction, *part, count in zip(*(found["parts"][name] for name in _TABLES["parts"].columns), strict=True):
        attempts[transaction].pieces.append(((part[0], part[1], part[2]), count))
    for transaction, xid in zip(found["undone"]["transaction"], found["undone"]["xid"], strict=True):
        _expect(transaction < len(attempts), "transactions of `open` in `undone`")
        attempts[transaction].undone.add(xid)
    machine.go_on(position_of(found["position"]))
    machine.go_on_with(staged, found["unknown_prepared"])
    held.go_on_with(zip(batches, open_rows, strict=True))
    return found["rows_seen"], found["columns"]


_READERS = {1: _read_1}


def _check_open(staged: Sequence[tuple[str, str | None, Attempt[RowRange]]]) -> None:
    current = [stage for stage, _, _ in staged if stage in ("plain", "block")]
    _expect(len(current) <= 1, "one transaction at most in the stage plain or block")
    gids = [gid for stage, gid, _ in staged if stage == "prepared"]
    _expect(None not in gids and len({*gids}) == len(gids), "a gid of its own for each prepared transaction")
    xids = [attempt.begin.xid for stage, _, attempt in staged if stage in ("block", "streamed")]
    _expect(None not in xids and len({*xids}) == len(xids), "an xid of its own for each streamed transaction")


def _open_rows(parts: dict[str, list[int]], batches: Sequence[SavedBatch], transactions: int) -> list[int]:
    """How many rows of each batch are open."""
    _expect(len({batch.handle for batch in batches}) == len(batches), "a handle of its own for each batch")
    transaction, batch, start, stop, count = (np.array(parts[name], np.int64) for name in _TABLES["parts"].columns)
    _expect((transaction < transactions).all() and (batch < len(batches)).all(), "parts of what is open in batches")
    rows = np.array([batch.rows for batch in batches], np.int64)
    fits = (start < stop) & (stop <= rows[batch]) & (count <= stop - start)
    order = np.lexsort((start, batch))
    apart = (np.diff(batch[order]) > 0) | (start[order][1:] >= stop[order][:-1])
    _expect(fits.all() and apart.all(), "parts that are in their batches and apart")
    open = np.zeros(len(batches), np.int64)
    np.add.at(open, batch, stop - start)
    _expect((open > 0).all(), "an open row in each batch")
    found: list[int] = open.tolist()
    return found


def _expect(holds: Any, expected: str) -> None:
    if not holds:
        raise damaged(KIND, expected, "others")


def _turned(rows: Collection[tuple[Any, ...]], width: int) -> list[Sequence[Any]]:
    """Rows as columns."""
    return [*zip(*rows, strict=True)] if rows else [()] * width
