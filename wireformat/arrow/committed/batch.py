"""Where transactions begin and end in a batch of row changes: control records, runs of rows, whole transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows, OptionError
from ...lsn import unsigned
from ...options.reading import KINDS
from ...stream.committed_changes import corrupt_error
from ...stream.controls import CONTROL_KINDS, DELIVERED_KINDS, Control
from ..arrays import Array
from ..commit_times import parse_times
from ..schemas import CHANGES, format_of
from .cells import Column, detail, detail_keys, flags, numbers
from .plain_transactions import are_plain

_READABLE: dict[str, Callable[[pa.DataType], bool]] = {
    "kind": lambda type: _is_text(type.value_type if pa.types.is_dictionary(type) else type),
    **dict.fromkeys(("lsn", "xid", "csn", "commit_lsn"), pa.types.is_int64),
    "commit_time": lambda type: pa.types.is_timestamp(type) and type.unit == "us",
    "detail": lambda type: pa.types.is_map(type) and _is_text(type.key_type) and _is_text(type.item_type),
}
"""Of which types the columns may be that are read; others are passed through."""

NEEDED_COLUMNS = tuple(_READABLE)
"""Columns that rows must have to be put into transactions."""

_CODE = {kind: code for code, kind in enumerate(KINDS)}
_BEGIN, _COMMIT, _MESSAGE, _ORIGIN = (_CODE[kind] for kind in ("BEGIN", "COMMIT", "MESSAGE", "ORIGIN"))
_IS_DELIVERED = np.array([kind in DELIVERED_KINDS for kind in KINDS])
_IS_CONTROL = np.array([kind in CONTROL_KINDS for kind in KINDS])
_NUMBERS = ("lsn", "xid", "csn", "commit_lsn")
_TRUE = {"true": True, "false": False}


STRETCH = 16
"""How many plain transactions must follow each other to be worth looking at together."""

MARKS = 4096
"""How many control records of a batch are Python objects at a time."""


class RowRun(NamedTuple):
    """Rows from start to stop, `count` of which count, without a control record between them.

    lone    it is one transactional message without an LSN, which may stand outside of a transaction
    """

    start: int
    stop: int
    count: int
    lone: bool


class ControlRow(NamedTuple):
    """A control record and its row."""

    row: int
    control: Control


RowPosition = dict[str, Any]
"""The position of a row as errors show it: message, record, and kept columns as `note`."""


class Stretch(NamedTuple):
    """Plain transactions, one directly behind the other: rows of their BEGINs and of their COMMITs."""

    begins: Array
    commits: Array


@dataclass
class Rows:
    """A batch of row changes, seen as the input of the machine.

    delivered   bool[n]: rows that are delivered if their transaction is
    before      int64[n + 1]: how many of those there are before each row
    """

    batch: pa.RecordBatch
    codes: Array
    delivered: Array
    before: Array

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Rows:
        """Raises OrderError at a CORRUPT row, BadRows at a row of an unknown kind."""
        codes = _codes(batch)
        delivered = _IS_DELIVERED[codes]
        messages = np.flatnonzero(codes == _MESSAGE)
        if len(messages):
            said = detail(batch, messages, "transactional")
            delivered[messages] = flags(pc.fill_null(pc.equal(said, "true"), False))
        before = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(delivered, out=before[1:])
        return cls(batch, codes, delivered, before)

    @cached_property
    def kept(self) -> Array:
        """bool[n]: rows that are kept as long as their transaction is open."""
        return self.delivered | _IS_CONTROL[self.codes]

    @cached_property
    def is_origin(self) -> Array:
        """bool[n]: ORIGIN records."""
        return self.codes == _ORIGIN

    @cached_property
    def xids(self) -> Column:
        """The rows' own xids."""
        return Column.of(self.batch["xid"])

    def items(self) -> Iterator[ControlRow | RowRun | Stretch]:
        """What the batch holds, in order; every row that counts and every control record is in exactly one item."""
        ends = np.flatnonzero(_IS_CONTROL[self.codes] & (self.codes != _ORIGIN))
        firsts = self._plain(ends)
        begins, commits = ends[firsts], ends[firsts + 1]
        singles = self._outside(begins, commits)
        outside = self.before[begins[1:]] - self.before[commits[:-1] + 1]
        bounds = np.searchsorted(singles, begins)
        breaks = np.flatnonzero((outside > 0) | (bounds[1:] != bounds[:-1])) + 1
        stretches = [
            Stretch(begins[start:stop], commits[start:stop])
            for start, stop in zip([0, *breaks], [*breaks, len(begins)], strict=True)
            if stop - start >= STRETCH
        ]
        if sum(len(stretch.begins) for stretch in stretches) < len(begins):
            begins, commits = (
                np.concatenate([found[side] for found in stretches]) if stretches else begins[:0] for side in (0, 1)
            )
            singles = self._outside(begins, commits)
        yield from self._in_order(singles, stretches)

    def _outside(self, begins: Array, commits: Array) -> Array:
        """Rows of control records and lone messages that are in none of these transactions."""
        inside = np.zeros(len(self.codes) + 1, np.int8)
        inside[begins] += 1
        inside[commits + 1] -= 1  # where the next one may begin
        covered = np.cumsum(inside[:-1], dtype=np.int8).astype(bool)
        return np.flatnonzero(~covered & (_IS_CONTROL[self.codes] | self._lone))

    @cached_property
    def _lone(self) -> Array:
        """bool[n]: transactional messages without an LSN, as test_decoding prints them."""
        lone = self.delivered & (self.codes == _MESSAGE)
        rows = np.flatnonzero(lone)
        if len(rows):
            lone[rows] = ~self.numbers("lsn", rows).valid
        return lone

    def _plain(self, ends: Array) -> Array:
        """Indexes in `ends` of the BEGINs that the COMMIT behind them ends as plain transactions."""
        codes = self.codes[ends]
        firsts = np.flatnonzero((codes[:-1] == _BEGIN) & (codes[1:] == _COMMIT))
        if not len(firsts):
            return firsts
        return firsts[are_plain(self.batch, ends[firsts], ends[firsts + 1])]

    def _in_order(self, singles: Array, stretches: list[Stretch]) -> Iterator[ControlRow | RowRun | Stretch]:
        starts = np.concatenate([singles, np.array([stretch.begins[0] for stretch in stretches], np.int64)])
        stops = np.concatenate([singles + 1, np.array([stretch.commits[-1] + 1 for stretch in stretches], np.int64)])
        order = np.argsort(starts)
        starts, stops = starts[order], stops[order]
        gap_starts, gap_stops = np.append(0, stops), np.append(starts, len(self.codes))
        counts = self.before[gap_stops] - self.before[gap_starts]
        marks = chain(self._marks(starts, order >= len(singles), iter(stretches)), [None])
        for start, stop, count, mark in zip(
            gap_starts.tolist(), gap_stops.tolist(), counts.tolist(), marks, strict=True
        ):
            if count:
                yield RowRun(start, stop, count, False)
            if mark is not None:
                yield mark

    def _marks(
        self, rows: Array, are_stretches: Array, stretches: Iterator[Stretch]
    ) -> Iterator[ControlRow | RowRun | Stretch]:
        """What begins at these rows: control records, lone messages, stretches."""
        are_controls = ~are_stretches & (self.codes[rows] != _MESSAGE)
        for first in range(0, len(rows), MARKS):
            some = slice(first, first + MARKS)
            controls = iter(self._controls(rows[some][are_controls[some]]))
            for row, is_control, is_stretch in zip(
                rows[some].tolist(), are_controls[some].tolist(), are_stretches[some].tolist(), strict=True
            ):
                if is_control:
                    yield ControlRow(row, next(controls))
                else:
                    yield next(stretches) if is_stretch else RowRun(row, row + 1, 1, True)

    def _controls(self, rows: Array) -> list[Control]:
        """The control records of these rows."""
        if not len(rows):
            return []
        at = pa.array(rows)
        numbers = [self.batch[name].take(at).view(pa.uint64()).to_pylist() for name in _NUMBERS]
        keys = detail_keys(self.batch, rows)
        none = [None] * len(rows)
        said: dict[str, list[Any]] = {
            key: read(detail(self.batch, rows, key)) if key in keys else none for key, read in _DETAIL_READERS.items()
        }
        return [
            *map(
                Control,
                [KINDS[code] for code in self.codes[rows].tolist()],
                *numbers,
                self.batch["commit_time"].take(at).cast(pa.int64()).to_pylist(),
                *said.values(),
            )
        ]

    def control(self, row: int) -> Control:
        """The control record of one row."""
        return self._controls(np.array([row]))[0]

    def numbers(self, name: str, rows: Array) -> Column:
        """A column of numbers at these rows."""
        return numbers(self.batch, name, rows)

    def row_of(self, item: ControlRow | RowRun | Stretch) -> int:
        """The row where an item begins: of a run, its first row that counts."""
        if isinstance(item, RowRun):
            return item.start + int(np.argmax(self.delivered[item.start : item.stop]))
        return int(item.begins[0]) if isinstance(item, Stretch) else item.row

    def position_of(self, row: int) -> RowPosition:
        """The position of a row, for an error."""
        return self._positions(np.array([row]))[0]

    def with_positions(
        self, items: Iterable[ControlRow | RowRun | Stretch]
    ) -> Iterator[tuple[ControlRow | RowRun | Stretch, RowPosition]]:
        """Each item, and the position of its first row."""
        found = [*items]
        rows = np.array([int(item.begins[0]) if isinstance(item, Stretch) else item[0] for item in found], np.int64)
        is_run = np.array([isinstance(item, RowRun) for item in found], bool)
        rows[is_run] = np.flatnonzero(self.delivered)[self.before[rows[is_run]]]
        return zip(found, self._positions(rows), strict=True)

    def _positions(self, rows: Array) -> list[RowPosition]:
        """message and record, and the kept columns that are integers or strings."""
        fields = [field for field in self.batch.schema if field.name not in CHANGES.names]
        kept = [field.name for field in fields if pa.types.is_integer(field.type) or pa.types.is_string(field.type)]
        there = [name for name in ("message", "record") if name in self.batch.schema.names]
        at = pa.array(rows)
        told = {name: self.batch[name].take(at).to_pylist() for name in (*there, *kept)}
        none = [None] * len(rows)
        notes = [
            ", ".join(f"{name}={value}" for name, value in zip(kept, values, strict=True))
            for values in zip(*(told[name] for name in kept), strict=True)
        ]
        return [
            {"message": message, "record": record, "note": note}
            for message, record, note in zip(
                told.get("message", none), told.get("record", none), notes or none, strict=True
            )
        ]


def check_columns(schema: pa.Schema, first: pa.Schema | None) -> pa.Schema:
    """The schema; raises OptionError where rows with these columns cannot be put into transactions.

    first   that of the rows before, if there were any; these must have the same, and come from the same format
    """
    names = schema.names
    if first is not None:
        if not schema.equals(first):
            raise OptionError(f"row changes: expected the columns of the first batch, got {', '.join(names)}")
        format_of([first, schema])
        return first
    missing = [name for name in NEEDED_COLUMNS if name not in names]
    if missing:
        raise OptionError(
            f"row changes: expected the columns {', '.join(NEEDED_COLUMNS)}, got none named {', '.join(missing)}"
        )
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise OptionError(f"row changes: expected columns of different names, got twice {', '.join(double)}")
    for name, is_readable in _READABLE.items():
        if not is_readable(schema.field(name).type):
            expected = CHANGES.field(name).type
            raise OptionError(f"row changes, column {name}: expected {expected}, got {schema.field(name).type}")
    for field in schema:
        try:
            pa.nulls(0, field.type).take(pa.array([], pa.int64()))
        except pa.ArrowNotImplementedError:
            text = "expected a type of which Arrow takes single rows; cast it"
            raise OptionError(f"row changes, column {field.name}: {text}, got {field.type}") from None
    return schema


def _is_text(type: pa.DataType) -> bool:
    return pa.types.is_string(type) or pa.types.is_large_string(type)


def _times(texts: pa.StringArray) -> list[int | None]:
    micros, is_time = parse_times(texts.drop_null())
    found = np.full(len(texts), None, object)
    found[flags(texts.is_valid())] = np.where(is_time, micros, None)
    told: list[int | None] = found.tolist()
    return told


_DETAIL_READERS: dict[str, Callable[[pa.StringArray], list[Any]]] = {
    "prepare_time": _times,
    "gid": pa.StringArray.to_pylist,
    "subxid": lambda texts: texts.cast(pa.uint64()).to_pylist(),
    "first_segment": lambda texts: [_TRUE.get(text) for text in texts.to_pylist()],
    "username": pa.StringArray.to_pylist,
    "origin": pa.StringArray.to_pylist,
}
"""How the texts in `detail` of control records are read, in the order of the fields of Control."""

NEEDED_DETAILS = (*_DETAIL_READERS, "transactional")
"""The keys of `detail` that are read: of control records, and whether a MESSAGE is transactional."""


def _codes(batch: pa.RecordBatch) -> Array:
    """uint8[n]: each row's kind as an index in KINDS."""
    kinds = batch["kind"]
    found = pc.index_in(kinds.cast(pa.string()) if kinds.type != pa.string() else kinds, value_set=pa.array(KINDS))
    if found.null_count:
        row = int(np.flatnonzero(flags(found.is_null()))[0])
        rows = Rows(batch, *[np.zeros(len(kinds), np.uint8)] * 3)
        raise BadRows(f"one of the kinds {', '.join(KINDS)}", repr(kinds[row].as_py()), **rows.position_of(row))
    codes: Array = np.frombuffer(found.buffers()[1], np.int32)[found.offset : found.offset + len(found)].astype(
        np.uint8
    )
    corrupt = np.flatnonzero(codes == _CODE["CORRUPT"])
    if len(corrupt):
        row = int(corrupt[0])
        rows = Rows(batch, codes, codes, codes)
        lsn = batch["lsn"][row].as_py()
        raise corrupt_error(None if lsn is None else unsigned(lsn), **rows.position_of(row))
    return codes
