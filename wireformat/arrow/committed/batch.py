"""Divides a batch of row changes into items: control records, the rows between them, and plain transactions.

Messages that belong to no transaction may be items, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows
from ...lsn import unsigned
from ...options.reading import KINDS
from ...stream.committed_changes import corrupt_error
from ...stream.controls import CONTROL_KINDS, DELIVERED_KINDS, Control
from ..arrays import Array
from ..commit_times import parse_times
from ..row_changes import RowSource
from ..schemas import CHANGES, FLAG_OF_TEXT, NUMBER_COLUMNS
from .cells import ControlCells, NumberColumn, are_one_block, are_plain, flags
from .row_ranges import taken

_CODE = {kind: code for code, kind in enumerate(KINDS)}
_BEGIN, _COMMIT, _MESSAGE, _ORIGIN = (_CODE[kind] for kind in ("BEGIN", "COMMIT", "MESSAGE", "ORIGIN"))
_ONE_BLOCK = tuple(_CODE[kind] for kind in ("STREAM_START", "STREAM_STOP", "STREAM_COMMIT"))
_IS_DELIVERED = np.array([kind in DELIVERED_KINDS for kind in KINDS])
_IS_CONTROL = np.array([kind in CONTROL_KINDS for kind in KINDS])


FEWEST_TOGETHER = 16
"""The fewest plain transactions in a row that are read together."""

RECORDS_AT_ONCE = 4096
"""How many control records or facts of a batch are Python objects at a time."""


class RowsBetween(NamedTuple):
    """The rows between two control records.

    start, stop   the first row, and one past the last
    count         how many of the rows are delivered if their transaction is
    lone          whether this is one transactional message without an LSN, which may be sent outside a transaction
    """

    start: int
    stop: int
    count: int
    lone: bool


class OutsideMessage(NamedTuple):
    """A message that belongs to no transaction, and its row. It is delivered where it is."""

    row: int


class ControlRow(NamedTuple):
    """A control record, and the index of its row."""

    row: int
    control: Control


RowPosition = dict[str, Any]
"""The position of a row, as errors show it: message, record, and the kept columns as `note`."""


class PlainTransactions(NamedTuple):
    """Plain transactions that directly follow each other: the rows of their BEGINs, and of their COMMITs.

    Streamed transactions of one block that are committed directly after it may be among them.
    """

    begins: Array
    commits: Array


Item = ControlRow | RowsBetween | OutsideMessage | PlainTransactions
"""A part of a batch, as the machine takes it."""


@dataclass
class InputRows:
    """Row changes, as input of the machine.

    batch             all rows; of a source, those that are no row changes
    kind_codes        uint8[n]: the index in KINDS of each row's kind
    source            reads the rows that `batch` does not have; None if it has all
    ordinals          int64[n]: the ordinals of delivered rows in their transactions, of held rows; None if all rows
                      that count are there
    has_outside       whether messages that belong to no transaction are items
    outside           bool[n]: whether the row is such an item
    delivered         bool[n]: whether the row is delivered if its transaction is
    counted_through   int64[n + 1]: how many rows that count there are up to and with the row before. Those are the
                      delivered ones, and the row changes that were stepped over
    counted_before    int64[n + 1]: the same, with those that were stepped over between that row and this one
    """

    batch: pa.RecordBatch
    kind_codes: Array
    source: RowSource | None = None
    ordinals: Array | None = None
    has_outside: bool = False
    outside: Array = field(init=False)
    delivered: Array = field(init=False)
    counted_through: Array = field(init=False)
    counted_before: Array = field(init=False)

    def __post_init__(self) -> None:
        self.delivered = _IS_DELIVERED[self.kind_codes]
        self.outside = np.zeros(len(self.kind_codes), bool)
        messages = np.flatnonzero(self.kind_codes == _MESSAGE)
        if len(messages):
            transactional = self.detail(messages, "transactional")
            self.delivered[messages] = flags(pc.fill_null(pc.equal(transactional, "true"), False))
            self.outside[messages] = self.has_outside & ~self.delivered[messages]
        self.counted_before = self.counted_through = np.zeros(len(self.kind_codes) + 1, np.int64)
        np.cumsum(self.delivered, out=self.counted_through[1:])
        stepped = None if self.source is None else self.source.stepped
        if stepped is not None:
            self.counted_before = self.counted_through + stepped
            self.counted_through[1:] += stepped[:-1]

    @classmethod
    def of(cls, batch: pa.RecordBatch, ordinals: Array | None = None, *, has_outside: bool = False) -> InputRows:
        """Returns the rows of a batch; raises OrderError at a CORRUPT row, BadRows at a row of an unknown kind."""
        return cls(batch, _kind_codes(batch), None, ordinals, has_outside)._checked()

    @classmethod
    def of_source(cls, source: RowSource, *, has_outside: bool = False) -> InputRows:
        """Returns the rows of a source; raises OrderError at a CORRUPT row."""
        return cls(source.other_records, source.kind_codes, source, has_outside=has_outside)._checked()

    def _checked(self) -> InputRows:
        corrupt = np.flatnonzero(self.kind_codes == _CODE["CORRUPT"])
        if len(corrupt):
            lsn = self.numbers("lsn", corrupt[:1])
            raise corrupt_error(
                unsigned(int(lsn.values[0])) if lsn.valid[0] else None, **self.position_of(int(corrupt[0]))
            )
        return self

    def batch_of(self, rows: Array) -> pa.RecordBatch:
        """Returns rows with all columns."""
        return taken(self.batch, rows) if self.source is None else self.source.batch_of(rows)

    @property
    def row_bytes(self) -> float:
        """About the size of a row with all columns."""
        return self.batch.nbytes / len(self.batch) if self.source is None else self.source.row_bytes

    def _in_batch(self, rows: Array) -> Array:
        """Returns the indices in `batch` of these rows, which it must have."""
        return rows if self.source is None else np.searchsorted(self.source.other_rows, rows)

    @cached_property
    def _cells(self) -> ControlCells:
        are_all = self.source is not None
        return ControlCells(self.batch, None if are_all else np.flatnonzero(_IS_CONTROL[self.kind_codes]))

    @cached_property
    def kept(self) -> Array:
        """bool[n]: whether the row is kept as long as its transaction is open."""
        return self.delivered | _IS_CONTROL[self.kind_codes]

    @cached_property
    def may_be_handed_on(self) -> Array:
        """bool[n]: whether the row is delivered if its transaction is, or belongs to none and is delivered."""
        return self.delivered | self.outside

    @cached_property
    def is_origin(self) -> Array:
        """bool[n]: whether the row is an ORIGIN record."""
        return self.kind_codes == _ORIGIN

    @cached_property
    def xids(self) -> NumberColumn:
        """The xid of each record."""
        return NumberColumn.of(self.batch["xid"]) if self.source is None else NumberColumn(*self.source.xids)

    def items(self, *, one_block: bool = True) -> Iterator[Item]:
        """Yields the items, in order. Each delivered row, each control record and each message outside of transactions
        is in exactly one item.

        one_block   whether streamed transactions of one block are read together like plain ones
        """
        ends = np.flatnonzero(_IS_CONTROL[self.kind_codes] & (self.kind_codes != _ORIGIN))
        firsts = self._plain(ends)
        begins, commits = ends[firsts], ends[firsts + 1]
        blocks = self._one_block(ends) if one_block else firsts[:0]
        if len(blocks):
            begins, commits = np.append(begins, ends[blocks]), np.append(commits, ends[blocks + 2])
            order = np.argsort(begins)
            begins, commits = begins[order], commits[order]
        singles = self._singles(begins, commits)
        outside = self.counted_before[begins[1:]] - self.counted_through[commits[:-1] + 1]
        bounds = np.searchsorted(singles, begins)
        breaks = np.flatnonzero((outside > 0) | (bounds[1:] != bounds[:-1])) + 1
        groups = [
            PlainTransactions(begins[start:stop], commits[start:stop])
            for start, stop in zip([0, *breaks], [*breaks, len(begins)], strict=True)
            if stop - start >= FEWEST_TOGETHER
        ]
        if sum(len(group.begins) for group in groups) < len(begins):
            begins, commits = (
                np.concatenate([group[side] for group in groups]) if groups else begins[:0] for side in (0, 1)
            )
            singles = self._singles(begins, commits)
        yield from self._in_order(singles, groups)

    def _singles(self, begins: Array, commits: Array) -> Array:
        """Returns the rows that are items by themselves, if they are in none of these transactions."""
        inside = np.zeros(len(self.kind_codes) + 1, np.int8)
        inside[begins] += 1
        inside[commits + 1] -= 1  # the next transaction may begin there
        covered = np.cumsum(inside[:-1], dtype=np.int8).astype(bool)
        return np.flatnonzero(~covered & (_IS_CONTROL[self.kind_codes] | self._lone | self.outside))

    @cached_property
    def _lone(self) -> Array:
        """bool[n]: whether the row is a transactional message without an LSN, as test_decoding prints them.

        After row changes that were stepped over it does not matter, since these need a transaction.
        """
        lone = self.delivered & (self.kind_codes == _MESSAGE)
        rows = np.flatnonzero(lone)
        if len(rows):
            lone[rows] = ~self.numbers("lsn", rows).valid & (self.counted_before[rows] == self.counted_through[rows])
        return lone

    def _plain(self, ends: Array) -> Array:
        """Returns the indices in `ends` of the BEGINs that form a plain transaction with the next record."""
        codes = self.kind_codes[ends]
        firsts = np.flatnonzero((codes[:-1] == _BEGIN) & (codes[1:] == _COMMIT))
        firsts = self._without_outside(firsts, ends[firsts], ends[firsts + 1])
        if not len(firsts):
            return firsts
        return firsts[are_plain(self._cells, *(self._in_batch(ends[pair]) for pair in (firsts, firsts + 1)))]

    def _one_block(self, ends: Array) -> Array:
        """Returns the indices in `ends` of the STREAM_STARTs that form a transaction with the next two records."""
        codes = self.kind_codes[ends]
        start, stop, commit = _ONE_BLOCK
        firsts = np.flatnonzero((codes[:-2] == start) & (codes[1:-1] == stop) & (codes[2:] == commit))
        firsts = self._without_outside(firsts, ends[firsts], ends[firsts + 2])
        if not len(firsts):
            return firsts
        stops, commits = ends[firsts + 1], ends[firsts + 2]
        origins = np.cumsum(self.is_origin)
        is_between = (self.counted_before[commits] > self.counted_through[stops + 1]) | (
            origins[commits] > origins[stops]
        )
        firsts = firsts[~is_between]
        return firsts[are_one_block(self._cells, *(self._in_batch(ends[firsts + index]) for index in range(3)))]

    def _without_outside(self, firsts: Array, begins: Array, commits: Array) -> Array:
        """Returns those of `firsts` between whose BEGIN and COMMIT is no message that belongs to no transaction."""
        if not self.has_outside:
            return firsts
        outside = np.cumsum(self.outside)
        return firsts[outside[begins] == outside[commits]]

    def _in_order(self, singles: Array, groups: list[PlainTransactions]) -> Iterator[Item]:
        """Yields the items of these single rows and groups of transactions, and the rows between them."""
        starts = np.concatenate([singles, np.array([group.begins[0] for group in groups], np.int64)])
        stops = np.concatenate([singles + 1, np.array([group.commits[-1] + 1 for group in groups], np.int64)])
        order = np.argsort(starts)
        starts, stops = starts[order], stops[order]
        gap_starts, gap_stops = np.append(0, stops), np.append(starts, len(self.kind_codes))
        counts = self.counted_before[gap_stops] - self.counted_through[gap_starts]
        items = chain(self._items_at(starts, order >= len(singles), iter(groups)), [None])
        for start, stop, count, item in zip(
            gap_starts.tolist(), gap_stops.tolist(), counts.tolist(), items, strict=True
        ):
            if count:
                yield RowsBetween(start, stop, count, False)
            if item is not None:
                yield item

    def _items_at(self, rows: Array, are_groups: Array, groups: Iterator[PlainTransactions]) -> Iterator[Item]:
        """Yields the items that begin at these rows: control records, messages and groups of transactions."""
        are_controls = ~are_groups & (self.kind_codes[rows] != _MESSAGE)
        for first in range(0, len(rows), RECORDS_AT_ONCE):
            window = slice(first, first + RECORDS_AT_ONCE)
            controls = iter(self._controls(rows[window][are_controls[window]]))
            for row, is_control, is_group in zip(
                rows[window].tolist(), are_controls[window].tolist(), are_groups[window].tolist(), strict=True
            ):
                if is_control:
                    yield ControlRow(row, next(controls))
                elif is_group:
                    yield next(groups)
                else:
                    yield OutsideMessage(row) if self.outside[row] else RowsBetween(row, row + 1, 1, True)

    def _controls(self, rows: Array) -> list[Control]:
        """Returns the control records of these rows."""
        if not len(rows):
            return []
        at = pa.array(self._in_batch(rows))
        numbers = [self.batch[name].take(at).view(pa.uint64()).to_pylist() for name in NUMBER_COLUMNS]
        none = [None] * len(rows)
        details: dict[str, list[Any]] = {
            key: read(self.detail(rows, key)) if key in self.detail_keys else none
            for key, read in _DETAIL_READERS.items()
        }
        return [
            *map(
                Control,
                [KINDS[code] for code in self.kind_codes[rows].tolist()],
                *numbers,
                self.batch["commit_time"].take(at).cast(pa.int64()).to_pylist(),
                *details.values(),
            )
        ]

    def control(self, row: int) -> Control:
        """Returns the control record of one row."""
        return self._controls(np.array([row]))[0]

    def numbers(self, name: str, rows: Array) -> NumberColumn:
        """Returns a column of numbers at these rows, which are no row changes."""
        return self._cells.numbers(name, self._in_batch(rows))

    def detail(self, rows: Array, key: str) -> pa.Array:
        """Returns the texts of a key of `detail` at these rows, which are no row changes."""
        return self._cells.detail(self._in_batch(rows), key)

    @property
    def detail_keys(self) -> set[str]:
        """The keys of `detail` that occur in rows that are no row changes."""
        return self._cells.detail_keys

    def position_of_item(self, item: Item) -> RowPosition:
        """Returns the position of the first row of an item: of rows between control records, the first that counts."""
        if not isinstance(item, RowsBetween):
            return self.position_of(int(item.begins[0]) if isinstance(item, PlainTransactions) else item.row)
        rows = slice(item.start, item.stop + 1)
        row = item.start + int(np.argmax(self.counted_before[rows] > self.counted_through[item.start]))
        if self.source is None or self.counted_through[row] > self.counted_through[item.start]:
            return self.position_of(row - 1)
        message, record = self.source.position_of_stepped(row)
        return {"message": message, "record": record, "note": None}

    def position_of(self, row: int) -> RowPosition:
        """Returns the position of a row, for an error."""
        return self._positions(np.array([row]))[0]

    def _positions(self, rows: Array) -> list[RowPosition]:
        """Returns message, record, and the kept columns that are integers or strings."""
        if self.source is not None:
            return [
                {"message": message, "record": record, "note": None} for message, record in self.source.positions(rows)
            ]
        fields = [field for field in self.batch.schema if field.name not in CHANGES.names]
        kept = [field.name for field in fields if pa.types.is_integer(field.type) or pa.types.is_string(field.type)]
        given = [name for name in ("message", "record") if name in self.batch.schema.names]
        at = pa.array(rows)
        values_of = {name: self.batch[name].take(at).to_pylist() for name in (*given, *kept)}
        none = [None] * len(rows)
        notes = [
            ", ".join(f"{name}={value}" for name, value in zip(kept, values, strict=True))
            for values in zip(*(values_of[name] for name in kept), strict=True)
        ]
        return [
            {"message": message, "record": record, "note": note}
            for message, record, note in zip(
                values_of.get("message", none), values_of.get("record", none), notes or none, strict=True
            )
        ]


def _times(texts: pa.StringArray) -> list[int | None]:
    micros, is_time = parse_times(texts.drop_null())
    found = np.full(len(texts), None, object)
    found[flags(texts.is_valid())] = np.where(is_time, micros, None)
    times: list[int | None] = found.tolist()
    return times


_DETAIL_READERS: dict[str, Callable[[pa.StringArray], list[Any]]] = {
    "prepare_time": _times,
    "gid": pa.StringArray.to_pylist,
    "subxid": lambda texts: texts.cast(pa.uint64()).to_pylist(),
    "first_segment": lambda texts: [FLAG_OF_TEXT.get(text) for text in texts.to_pylist()],
    "username": pa.StringArray.to_pylist,
    "origin": pa.StringArray.to_pylist,
}
"""The keys of `detail` that control records need, with functions that read their texts, in the order of Control."""


def _kind_codes(batch: pa.RecordBatch) -> Array:
    """Returns uint8[n]: the index of each row's kind in KINDS."""
    kinds = batch["kind"]
    found = pc.index_in(kinds.cast(pa.string()) if kinds.type != pa.string() else kinds, value_set=pa.array(KINDS))
    if found.null_count:
        row = int(np.flatnonzero(flags(found.is_null()))[0])
        rows = InputRows(batch, np.zeros(len(kinds), np.uint8))
        raise BadRows(f"one of the kinds {', '.join(KINDS)}", repr(kinds[row].as_py()), **rows.position_of(row))
    codes: Array = np.frombuffer(found.buffers()[1], np.int32)[found.offset : found.offset + len(found)].astype(
        np.uint8
    )
    return codes
