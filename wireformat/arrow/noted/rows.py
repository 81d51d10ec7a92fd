"""The rows of a scan: facts of all of them, and the columns of the row-change table of those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...limits import BATCH_TEXT_BYTES
from ...options.reading import KINDS
from ..arrays import Array
from ..columns.gather import chosen_notes, record_batch
from ..columns.known_layouts import KnownLayouts, LayoutsOfRows
from ..columns.last_columns import LastColumns
from ..columns.row_limits import TooMuchText, in_ranges
from ..columns.rows_from_events import build
from ..row_changes import IS_ROW_CHANGE, one_batch
from ..scan.notes import (
    BODY,
    DETAIL,
    GIVEN,
    KIND,
    MESSAGE,
    NEW,
    OLD,
    PRESENT,
    RECORD,
    STEPPED,
    STEPPED_MESSAGE,
    STEPPED_RECORD,
    XID,
    ScannedRows,
)
from ..schemas import change_schema

OTHER_RECORD_COLUMNS = (
    *("message", "record", "kind", "lsn", "xid", "csn", "commit_lsn", "commit_time"),
    *("table_schema", "table_name", "detail", "raw"),
)
"""The columns of the records that are no row changes."""

_OF_IMAGES = {"new", "old", "unchanged", "types"}
"""The columns that are made of the cells of row images."""

MANY_OF = 4
"""A quarter of the rows is many: `detail` is then gathered by itself, so that the cells of the others are not copied,
although details of BEGIN are left out."""

_BYTES_PER_BYTE = 4
"""A byte of a message is about this many bytes of the row-change table."""


def noted_rows(
    scanned: ScannedRows, schema: pa.Schema, factor: int, known: KnownLayouts
) -> Iterator[NotedRows | pa.RecordBatch]:
    """Yields the rows of a scan, in several parts if they have much text.

    schema   the schema of the row-change table
    factor   microseconds in a heartbeat's unit, 0 to guess
    known    the layouts that were read before

    The events of a single row that has too many for one record batch are yielded as record batches.
    """

    def made(part: ScannedRows) -> list[NotedRows | pa.RecordBatch]:
        if part.row_count > 1 and part.rows[BODY + 1, : part.row_count].sum() > BATCH_TEXT_BYTES:
            raise TooMuchText
        built = _built(part, schema, factor)
        if len(built) < 2:
            return [NotedRows(part, schema, built[0] if built else None, known)]
        if part.row_count > 1:
            raise TooMuchText
        return [*built]

    for rows in in_ranges(scanned, made):
        yield from rows


def _built(scanned: ScannedRows, schema: pa.Schema, factor: int) -> list[pa.RecordBatch]:
    """Returns the rows of the events, in their order."""
    if not scanned.events:
        return []
    return [*build(scanned.events_in_order(), schema, factor)]


class NotedRows:
    """The rows of a scan, with those of events in place of those that the scan could not read. It is a RowSource.

    scanned   the notes
    schema    of the rows with all columns
    built     the rows of the events; None if there are no events
    known     the layouts that were read before
    origins   int64[n]: for each row, its row in the notes, or ~ its row in `built`; None if it is that of the notes
    """

    def __init__(
        self, scanned: ScannedRows, schema: pa.Schema, built: pa.RecordBatch | None, known: KnownLayouts
    ) -> None:
        self.scanned = scanned
        self.known = known
        self.schema = schema
        self.built = built
        self.origins = None if built is None else scanned.origins()
        self.kind_codes = self._joined(scanned.rows[KIND, : scanned.row_count], _kind_codes_of).astype(np.uint8)
        self._are_changes = IS_ROW_CHANGE[self.kind_codes]
        self.other_rows = np.flatnonzero(~self._are_changes)

    @cached_property
    def other_records(self) -> pa.RecordBatch:
        """See RowSource."""
        return self.gathered(self.other_rows, change_schema(OTHER_RECORD_COLUMNS).with_metadata(self.schema.metadata))

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

    @cached_property
    def stepped(self) -> Array | None:
        """See RowSource."""
        stepped = self.scanned.stepped
        if stepped.after == stepped.before:
            return None
        before = self.scanned.rows[STEPPED, : self.scanned.row_count]
        if self.origins is not None:
            before = np.repeat(before, self.scanned.counts())
        return np.append(before, stepped.after) - stepped.before

    def position_of_stepped(self, row: int) -> tuple[int, int]:
        """See RowSource."""
        scanned, stepped, count = self.scanned, self.scanned.stepped, self.scanned.row_count
        notes = np.arange(count + 1)
        if self.origins is not None:
            notes = np.append(np.repeat(notes[:-1], scanned.counts()), count)
        first = int(notes[row - 1]) + 1 if row else 0
        all_stepped = np.concatenate([[stepped.before], scanned.rows[STEPPED, :count], [stepped.after]])
        note = first + int(np.argmax(np.diff(all_stepped)[first:] > 0))
        if note == count:
            return stepped.message, stepped.record
        return int(scanned.rows[STEPPED_MESSAGE, note]), int(scanned.rows[STEPPED_RECORD, note])

    def positions(self, rows: Array) -> Iterator[tuple[int, int]]:
        """See RowSource."""
        notes, count = self.scanned.rows, self.scanned.row_count
        message = self._joined(notes[MESSAGE, :count], lambda built: _numbers(built["message"]))
        record = self._joined(notes[RECORD, :count], lambda built: _numbers(built["record"]))
        return zip(message[rows].tolist(), record[rows].tolist(), strict=True)

    def are_noted_changes(self, rows: Array) -> Array:
        """Returns bool[n]: whether these rows are row changes that the notes have."""
        return self._are_noted_changes[rows]

    @cached_property
    def _are_noted_changes(self) -> Array:
        """bool[n]: whether each row is a row change that the notes have."""
        return self._are_changes if self.origins is None else self._are_changes & (self.origins >= 0)

    def notes_of(self, rows: Array) -> Array:
        """Returns the rows in the notes of these rows, which must be there."""
        return rows if self.origins is None else self.origins[rows]

    def layouts_of(self, notes: Array, last: LastColumns | None) -> LayoutsOfRows:
        """Returns the layouts of these row changes in the notes, maybe among those of all of them.

        last   see KnownLayouts.of
        """
        places, found = self._layouts
        if found is None:
            return self.known.of(self.scanned, notes, last)
        chosen = places[notes]
        found = found._replace(codes=found.codes[chosen], completed=found.completed.of(chosen))
        if last is not None:
            last.take(found.codes, found.layouts)
        return found

    @cached_property
    def _layouts(self) -> tuple[Array, LayoutsOfRows | None]:
        """For each row of the notes, its index among those of row changes, and the layouts of these for all readers."""
        notes = self.notes_of(np.flatnonzero(self._are_noted_changes))
        places = np.zeros(self.scanned.row_count, np.int64)
        places[notes] = np.arange(len(notes))
        return places, self.known.for_all(self.scanned, notes)

    def batch_of(self, rows: Array) -> pa.RecordBatch:
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
        joined = pa.concat_batches(batches)
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


def _kind_codes_of(built: pa.RecordBatch) -> Array:
    return np.asarray(pc.index_in(built["kind"], pa.array(KINDS)))


def _numbers(column: pa.Array) -> Array:
    return np.asarray(column.fill_null(0))


def gathered_notes(scanned: ScannedRows, rows: Array, schema: pa.Schema) -> pa.RecordBatch:
    """Returns some columns of these rows of the notes, int64[n], ascending."""
    if not len(rows):
        return pa.RecordBatch.from_pylist([], schema)
    if _OF_IMAGES.isdisjoint(schema.names):
        return _record_batch(chosen_notes(scanned, rows, (DETAIL,)), schema)
    if MANY_OF * len(rows) < scanned.row_count:
        return _record_batch(chosen_notes(scanned, rows, (NEW, OLD, DETAIL)), schema)
    names = [name for name in schema.names if name != "detail"]
    batch = _record_batch(chosen_notes(scanned, rows, (NEW, OLD)), pa.schema([schema.field(name) for name in names]))
    columns = dict(zip(names, batch.columns, strict=True))
    if len(names) < len(schema):
        if (scanned.rows[PRESENT, rows] >> (GIVEN + DETAIL) & 1).any():
            details = _record_batch(
                chosen_notes(scanned, rows, (DETAIL,), (MESSAGE, RECORD)), pa.schema([schema.field("detail")])
            )
            columns["detail"] = details.column(0)
        else:
            columns["detail"] = pa.nulls(len(rows), schema.field("detail").type)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _record_batch(scanned: ScannedRows, schema: pa.Schema) -> pa.RecordBatch:
    return one_batch([*in_ranges(scanned, lambda part: record_batch(part, schema))])


def other_records_of(rows: pa.RecordBatch | NotedRows) -> pa.RecordBatch:
    """Returns rows among which are all records that are no row changes."""
    return rows if isinstance(rows, pa.RecordBatch) else rows.other_records
