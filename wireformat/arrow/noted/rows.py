"""The rows of a scan: facts of all of them, and the columns of the row-change table of those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...limits import BATCH_TEXT_BYTES
from ...options.reading import KINDS
from ..arrays import Array
from ..columns.gather import record_batch
from ..columns.row_limits import TooMuchText, in_ranges
from ..columns.rows_from_events import build, row_count
from ..scan.notes import (
    BODY,
    COMPLETE,
    DETAIL,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    KIND,
    MAPS,
    MESSAGE,
    NEW,
    OLD,
    PRESENT,
    RECORD,
    UNTYPED,
    XID,
    ScannedRows,
)
from ..schemas import change_schema

_ROW_CHANGES = ("INSERT", "UPDATE", "DELETE")
_IS_RECORD = np.array([kind not in _ROW_CHANGES for kind in KINDS])

RECORD_COLUMNS = (
    *("message", "record", "kind", "lsn", "xid", "csn", "commit_lsn", "commit_time"),
    *("table_schema", "table_name", "detail", "raw"),
)
"""The columns of the records that are no row changes."""

MANY_OF = 4
"""A quarter of the rows is many: `detail` is then gathered by itself, so that the cells of the others are not copied,
although details of BEGIN are left out."""

_BITS_OF_IMAGES = 3 << (GIVEN + NEW) | 1 << HAS_UNCHANGED | 3 << (COMPLETE + NEW) | 1 << UNTYPED
"""What PRESENT says of the maps NEW and OLD."""

_BYTES_PER_BYTE = 4
"""A byte of a message is about this many bytes of the row-change table."""


def noted_rows(scanned: ScannedRows, schema: pa.Schema, factor: int) -> Iterator[NotedRows | pa.RecordBatch]:
    """Yields the rows of a scan, in several parts if they have much text.

    schema   the schema of the row-change table
    factor   microseconds in a heartbeat's unit, 0 to guess

    The events of a single row that has too many for one record batch are yielded as record batches.
    """

    def made(part: ScannedRows) -> list[NotedRows | pa.RecordBatch]:
        if part.row_count > 1 and part.rows[BODY + 1, : part.row_count].sum() > BATCH_TEXT_BYTES:
            raise TooMuchText
        built = _built(part, schema, factor)
        if len(built) < 2:
            return [NotedRows(part, schema, built[0] if built else None)]
        if part.row_count > 1:
            raise TooMuchText
        return [*built]

    for rows in in_ranges(scanned, made):
        yield from rows


def _built(scanned: ScannedRows, schema: pa.Schema, factor: int) -> list[pa.RecordBatch]:
    """Returns the rows of the events, in their order."""
    if not scanned.events:
        return []
    return [*build((event for row in sorted(scanned.events) for event in scanned.events[row]), schema, factor)]


class NotedRows:
    """The rows of a scan, with those of events in place of those that the scan could not read. It is a RowSource.

    scanned   the notes
    schema    of the rows with all columns
    built     the rows of the events; None if there are no events
    origins   int64[n]: for each row, its row in the notes, or ~ its row in `built`; None if it is that of the notes
    """

    def __init__(self, scanned: ScannedRows, schema: pa.Schema, built: pa.RecordBatch | None) -> None:
        self.scanned = scanned
        self.schema = schema
        self.built = built
        self.origins = None if built is None else _origins(scanned)
        self.codes = self._joined(scanned.rows[KIND, : scanned.row_count], _built_codes).astype(np.uint8)
        self.record_rows = np.flatnonzero(_IS_RECORD[self.codes])

    @cached_property
    def records(self) -> pa.RecordBatch:
        """See RowSource."""
        return self.gathered(self.record_rows, change_schema(RECORD_COLUMNS).with_metadata(self.schema.metadata))

    @cached_property
    def row_bytes(self) -> float:
        """See RowSource."""
        count = self.scanned.row_count
        return _BYTES_PER_BYTE * int(self.scanned.rows[BODY + 1, :count].sum()) / max(count, 1)

    @property
    def xids(self) -> tuple[Array, Array]:
        """See RowSource."""
        rows, count = self.scanned.rows, self.scanned.row_count
        has_xid = (rows[PRESENT, :count] >> XID & 1).astype(bool)
        return (
            self._joined(rows[XID, :count], lambda built: _numbers(built["xid"])),
            self._joined(has_xid, lambda built: np.asarray(built["xid"].is_valid())),
        )

    def places(self, rows: Array) -> Iterator[tuple[int, int]]:
        """See RowSource."""
        notes, count = self.scanned.rows, self.scanned.row_count
        message = self._joined(notes[MESSAGE, :count], lambda built: _numbers(built["message"]))
        record = self._joined(notes[RECORD, :count], lambda built: _numbers(built["record"]))
        return zip(message[rows].tolist(), record[rows].tolist(), strict=True)

    def are_noted_changes(self, rows: Array) -> Array:
        """Returns bool[n]: whether these rows are row changes that the notes have."""
        are_changes = ~_IS_RECORD[self.codes[rows]]
        return are_changes if self.origins is None else are_changes & (self.origins[rows] >= 0)

    def notes_of(self, rows: Array) -> Array:
        """Returns the rows in the notes of these rows, which must be there."""
        return rows if self.origins is None else self.origins[rows]

    def taken(self, rows: Array) -> pa.RecordBatch:
        """See RowSource."""
        return self.gathered(rows, self.schema)

    def gathered(self, rows: Array, schema: pa.Schema) -> pa.RecordBatch:
        """Returns some columns of these rows."""
        if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
            return self.gathered(rows[order], schema).take(pa.array(_inverse(order)))
        if self.built is None or self.origins is None:
            return gathered_notes(self.scanned, rows, schema)
        origins = self.origins[rows]
        noted, built = np.flatnonzero(origins >= 0), np.flatnonzero(origins < 0)
        batches = [
            gathered_notes(self.scanned, origins[noted], schema),
            self.built.select(schema.names).take(pa.array(~origins[built])),
        ]
        columns = [pa.concat_arrays(pair) for pair in zip(*(batch.columns for batch in batches), strict=True)]
        joined = pa.RecordBatch.from_arrays(columns, schema=schema)
        return joined.take(pa.array(_inverse(np.concatenate([noted, built])))) if len(noted) else joined

    def _joined(self, noted: Array, of_built: Callable[[pa.RecordBatch], Array]) -> Array:
        """Returns a value of each row.

        noted      the values of the notes
        of_built   returns those of `built`
        """
        if self.built is None or self.origins is None:
            return noted
        values = np.empty(len(self.origins), noted.dtype)
        is_noted = self.origins >= 0
        values[is_noted] = noted[self.origins[is_noted]]
        values[~is_noted] = of_built(self.built)
        return values


def _inverse(order: Array) -> Array:
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _origins(scanned: ScannedRows) -> Array:
    counts = np.ones(scanned.row_count, np.int64)
    is_built = np.zeros(scanned.row_count, bool)
    for row, located in scanned.events.items():
        counts[row], is_built[row] = row_count(located), True
    origins = np.repeat(np.arange(scanned.row_count), counts)
    built = np.flatnonzero(np.repeat(is_built, counts))
    origins[built] = ~np.arange(len(built))
    return origins


def _built_codes(built: pa.RecordBatch) -> Array:
    return np.asarray(pc.index_in(built["kind"], pa.array(KINDS)))


def _numbers(column: pa.Array) -> Array:
    return np.asarray(column.fill_null(0))


def gathered_notes(scanned: ScannedRows, rows: Array, schema: pa.Schema) -> pa.RecordBatch:
    """Returns some columns of these rows of the notes, int64[n], ascending."""
    if not len(rows):
        return pa.RecordBatch.from_pylist([], schema)
    if MANY_OF * len(rows) < scanned.row_count:
        return _record_batch(chosen_notes(scanned, rows, (NEW, OLD, DETAIL)), schema)
    names = [name for name in schema.names if name != "detail"]
    batch = _record_batch(chosen_notes(scanned, rows, (NEW, OLD)), pa.schema([schema.field(name) for name in names]))
    columns = dict(zip(names, batch.columns, strict=True))
    if len(names) < len(schema):
        if (scanned.rows[PRESENT, rows] >> (GIVEN + DETAIL) & 1).any():
            details = _record_batch(chosen_notes(scanned, rows, (DETAIL,)), pa.schema([schema.field("detail")]))
            columns["detail"] = details.column(0)
        else:
            columns["detail"] = pa.nulls(len(rows), schema.field("detail").type)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _record_batch(scanned: ScannedRows, schema: pa.Schema) -> pa.RecordBatch:
    batches = [*in_ranges(scanned, lambda part: record_batch(part, schema))]
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def chosen_notes(scanned: ScannedRows, rows: Array, maps: Sequence[int]) -> ScannedRows:
    """Returns these rows of the notes, int64[n], ascending, without the cells of other maps.

    maps   NEW and OLD, or DETAIL, or all

    Cells are copied only if some cells of these maps are left out.
    """
    if len(rows) == scanned.row_count:
        return scanned
    chosen = np.take(scanned.rows, rows, axis=1)
    firsts = [np.where(rows > 0, scanned.rows[ENDS + one, rows - 1], 0) for one in maps]
    counts = [chosen[ENDS + one] - first for one, first in zip(maps, firsts, strict=True)]
    chosen[ENDS : ENDS + len(MAPS)] = 0
    chosen[PRESENT] &= ~((0 if NEW in maps else _BITS_OF_IMAGES) | (0 if DETAIL in maps else 1 << (GIVEN + DETAIL)))
    shifts = []  # how far the cells of each row move
    for one, first, count in zip(maps, firsts, counts, strict=True):
        chosen[ENDS + one] = np.cumsum(count)
        shifts.append(first - chosen[ENDS + one] + count)
    kept = scanned._replace(rows=chosen, row_count=len(rows), events={})
    if not any(shift.any() for shift in shifts):
        return kept
    totals = [int(chosen[ENDS + one, -1]) for one in maps]
    cells = np.empty((*scanned.cells.shape[:2], max(totals), 2), np.int32)
    for one, total, count, shift in zip(maps, totals, counts, shifts, strict=True):
        cells[one, :, :total] = scanned.cells[one][:, np.arange(total) + np.repeat(shift, count)]
    return kept._replace(cells=cells)


def records_of(rows: pa.RecordBatch | NotedRows) -> pa.RecordBatch:
    """Returns rows that have at least all records that are no row changes."""
    return rows if isinstance(rows, pa.RecordBatch) else rows.records
