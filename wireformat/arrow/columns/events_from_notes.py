"""Makes events from the notes of a scan, so that the event API needs no decoder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ...events import (
    EVENTS,
    ROW_CHANGES,
    UNCHANGED,
    Corrupt,
    Event,
    Relation,
    RowChange,
    Truncate,
    TupleData,
    Type,
    Unknown,
)
from ...formats.pgoutput.relations import DETAIL_READERS
from ...lsn import unsigned
from ...options.reading import KINDS
from ...stream.reader import Located
from ..arrays import Array
from ..row_changes import IS_ROW_CHANGE
from ..scan.notes import (
    COMMIT_LSN,
    CSN,
    DETAIL,
    ENDS,
    ERROR,
    GIVEN,
    KIND,
    LSN,
    MAPS,
    MESSAGE,
    NAME,
    NEW,
    OLD,
    ORIGIN_KIND,
    PRESENT,
    RAW,
    RECORD,
    TABLE_NAME,
    TABLE_SCHEMA,
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    VALUE,
    XID,
    ScannedRows,
)
from .complete_images import expand_complete_images
from .gather import cell_count, chosen_notes, strings, text_pairs
from .layouts import numbered_layouts
from .row_limits import in_ranges

_NUMBER_FIELDS = {"xid": XID, "csn": CSN, "commit_lsn": COMMIT_LSN}
_NUMBERS = {
    event: tuple((name, field) for name, field in _NUMBER_FIELDS.items() if name in event.__dataclass_fields__)
    for event in EVENTS.values()
}
"""The numbers of each class of events, with their fields in the notes."""


def _type_fields(schema: str, table: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {"namespace": schema, "name": table, "type_oid": detail["type_oids"][0]}


def _truncate_fields(schema: str, table: str, detail: dict[str, Any]) -> dict[str, Any]:
    relation_id = detail.pop("relation_id", None)
    relation_ids = () if relation_id is None else (relation_id,)
    return {**detail, "tables": ((schema, table),), "relation_ids": relation_ids}


_OF_NAMES: dict[type[Event], Callable[[str, str, dict[str, Any]], dict[str, Any]]] = {
    Relation: lambda schema, table, detail: {**detail, "table_schema": schema, "table_name": table},
    Type: _type_fields,
    Truncate: _truncate_fields,
}
"""The fields of events that have the names of a table or type, from these and from `detail`."""

_TRUNCATE = KINDS.index(Truncate.kind)

FEW_AS_STRINGS = 32
"""Up to this number of texts it is faster to copy them one by one than to set up an Arrow array."""

FEW_ROWS = 16
"""Up to this number of row changes it is faster to read each on its own than to find those that are alike."""


def located_events(scanned: ScannedRows) -> Iterator[Located]:
    """Yields the events of the rows, in order, each with the indices of its message and record."""
    found = (located for events in in_ranges(scanned, _Events) for located in events.located())
    has_truncates = (scanned.rows[KIND, : scanned.row_count] == _TRUNCATE).any()
    yield from _with_whole_truncates(found) if has_truncates else found


def _with_whole_truncates(found: Iterator[Located]) -> Iterator[Located]:
    """Yields events, with one TRUNCATE for each record, whose rows have a table each."""
    truncate: list[Located] = []
    for one in found:
        if truncate and one[:2] != truncate[0][:2]:
            yield _joined(truncate)
            truncate = []
        if isinstance(one.event, Truncate):
            truncate.append(one)
        else:
            yield one
    if truncate:
        yield _joined(truncate)


def _joined(truncate: list[Located]) -> Located:
    """Returns one event of those of a record."""
    first = truncate[0]
    if len(truncate) == 1:
        return first
    events = [cast(Truncate, one.event) for one in truncate]
    tables = tuple(chain.from_iterable(event.tables for event in events))
    numbers = tuple(chain.from_iterable(event.relation_ids for event in events))
    return first._replace(event=replace(events[0], tables=tables, relation_ids=numbers))


class _Events:
    """The events of good rows. Of row changes with the same layout only the first is read in full.

    Raises TooMuchText if the rows must be split.
    """

    def __init__(self, scanned: ScannedRows) -> None:
        self._scanned = scanned
        is_good = np.ones(scanned.row_count, bool)
        is_good[[*scanned.events]] = False
        notes = scanned.rows[:, : scanned.row_count]
        is_typed = notes[PRESENT] >> UNTYPED & 1 == 0  # else events have forms of literals, which a layout does not say
        changes = np.flatnonzero(is_good & is_typed & IS_ROW_CHANGE[notes[KIND]])
        codes = np.full(scanned.row_count, -1)
        samples = changes[:0]
        if len(changes) > FEW_ROWS:
            codes[changes], samples = numbered_layouts(scanned, changes)
        is_read = is_good & (codes < 0)
        is_read[samples] = True
        read = np.flatnonzero(is_read)
        self._codes: list[int] = codes.tolist()
        self._notes = _NotesAsLists(chosen_notes(scanned, read, (NEW, OLD, DETAIL)))
        self._index = dict(zip(read.tolist(), range(len(read)), strict=True))
        first = [cast(RowChange, self._notes.event(self._index[row])) for row in samples.tolist()]
        self._first = [(event, _MAKERS[event.kind]) for event in first]
        if first:
            self._images = [_ImageValues(scanned, image) for image in (NEW, OLD)]

    def located(self) -> Iterator[Located]:
        """Yields the events of all rows, also those of the rows that are not good."""
        scanned, first = self._scanned, self._first
        messages, records = (scanned.rows[field, : scanned.row_count].tolist() for field in (MESSAGE, RECORD))
        if first:
            new_images, old_images = self._images
            lsns, xids = (_numbers(scanned, field) for field in (LSN, XID))
        for row, (message, record, code) in enumerate(zip(messages, records, self._codes, strict=True)):
            if code >= 0:
                like, make = first[code]
                new = None if like.new is None else new_images.of_row(row, like.new)
                old = None if like.old is None else old_images.of_row(row, like.old)
                yield Located(message, record, make(like, lsns[row], new, old, xids[row]))
            elif row in scanned.events:
                yield from scanned.events[row]
            else:
                yield Located(message, record, self._notes.event(self._index[row]))


class _ImageValues:
    """The values of the new or old images of all rows."""

    def __init__(self, scanned: ScannedRows, image: int) -> None:
        ends = scanned.rows[ENDS + image, : scanned.row_count]
        self._ends: list[int] = [0, *ends.tolist()]
        self._values = _values(scanned, image)

    def of_row(self, row: int, like: TupleData) -> TupleData:
        """Returns the image of a row that has the columns of another one."""
        made = _make(TupleData)
        _set_names(made, like.names)
        _set_values(made, tuple(self._values[self._ends[row] : self._ends[row + 1]]))
        _set_types(made, like.types)
        return made


# Setting the fields of a frozen object is faster than its class, which also checks tuples that are known to be of the
# same length.
_make = object.__new__
_set_names, _set_values, _set_types = (getattr(TupleData, name).__set__ for name in ("names", "values", "types"))
_FIELDS = ("lsn", "table_schema", "table_name", "new", "old", "xid", "old_kind", "relation_id", "binary")
assert {*_FIELDS} == {field.name for field in fields(RowChange)}, "what `_maker` returns sets all fields"

MakeRowChange: TypeAlias = (
    "Callable[[RowChange, int | None, TupleData | None, TupleData | None, int | None], RowChange]"
)


def _maker(event: type[RowChange]) -> MakeRowChange:
    """Returns what makes a row change of this class, like another one but for lsn, new, old and xid."""
    # In Python 3.10, each class has slots of its own for the fields that it inherits.
    set_lsn, set_schema, set_table, set_new, set_old, set_xid, set_old_kind, set_relation_id, set_binary = (
        getattr(event, name).__set__ for name in _FIELDS
    )

    def make(
        like: RowChange, lsn: int | None, new: TupleData | None, old: TupleData | None, xid: int | None
    ) -> RowChange:
        made = _make(event)
        set_lsn(made, lsn)
        set_schema(made, like.table_schema)
        set_table(made, like.table_name)
        set_new(made, new)
        set_old(made, old)
        set_xid(made, xid)
        set_old_kind(made, like.old_kind)
        set_binary(made, like.binary)
        set_relation_id(made, like.relation_id)
        return made

    return make


_MAKERS = {event.kind: _maker(event) for event in ROW_CHANGES.values()}


class _NotesAsLists:
    """The notes as Python lists, converted once for all rows.

    rows   for each row, its fields
    """

    def __init__(self, scanned: ScannedRows) -> None:
        expand_complete_images(scanned.rows, scanned.row_count, scanned.cells, scanned.dictionary)
        self.rows: list[list[int]] = scanned.rows[:, : scanned.row_count].T.tolist()
        self._schemas, self._tables = (
            _texts(text_pairs(scanned, field), scanned.row_count, scanned) for field in (TABLE_SCHEMA, TABLE_NAME)
        )
        self._scanned = scanned
        self._maps = [_MapCells(scanned, map_index) for map_index in range(len(MAPS))]

    def event(self, row: int) -> Event:
        """Returns the event of one good row."""
        fields = self.rows[row]
        kind = KINDS[fields[KIND]]
        lsn = _number(fields, LSN)
        if kind in ROW_CHANGES:
            schema, table = self._schemas[row], self._tables[row]
            new, old = self._image(NEW, row, fields), self._image(OLD, row, fields)
            detail = self._detail(row, fields)
            return ROW_CHANGES[kind](
                lsn=lsn,
                table_schema=schema,
                table_name=table,
                new=new,
                old=old,
                xid=_number(fields, XID),
                old_kind=detail.get("old"),
                relation_id=detail.get("relation_id"),
                binary=detail.get("binary", ()),
            )
        if kind == Unknown.kind:
            return Unknown(lsn=lsn, raw=self._raw(fields))
        if kind == Corrupt.kind:
            error = _text(self._scanned, fields[ERROR], fields[ERROR + 1]) or ""
            return Corrupt(lsn=lsn, error=error, raw=self._raw(fields))
        event = EVENTS[kind]
        numbers = {name: _number(fields, field) for name, field in _NUMBERS[event]}
        detail = self._detail(row, fields)
        if detail.pop("binary", None):  # of a MESSAGE: its content is `\\x` and hexadecimal digits
            detail["content"] = bytes.fromhex(detail["content"][2:])
        if event in _OF_NAMES:
            detail = _OF_NAMES[event](self._schemas[row], self._tables[row], detail)
        return event(lsn=lsn, **numbers, **detail)

    def _raw(self, fields: list[int]) -> bytes:
        return bytes(self._scanned.source[fields[RAW] : fields[RAW] + fields[RAW + 1]].tobytes())

    def _bounds(self, map_index: int, row: int, fields: list[int]) -> slice:
        return slice(self.rows[row - 1][ENDS + map_index] if row else 0, fields[ENDS + map_index])

    def _image(self, map_index: int, row: int, fields: list[int]) -> TupleData | None:
        if not fields[PRESENT] >> (GIVEN + map_index) & 1:
            return None
        return self._maps[map_index].tuple_data(self._bounds(map_index, row, fields))

    def _detail(self, row: int, fields: list[int]) -> dict[str, Any]:
        bounds, detail = self._bounds(DETAIL, row, fields), self._maps[DETAIL]
        is_text = fields[KIND] == ORIGIN_KIND  # of a BEGIN, the origin is a number
        return {
            key: text if is_text or key not in DETAIL_READERS else DETAIL_READERS[key](text)
            for key, text in zip(detail.names[bounds], detail.values[bounds], strict=True)
        }


class _MapCells:
    """The cells of one map column, of all rows."""

    def __init__(self, scanned: ScannedRows, map_index: int) -> None:
        cells = scanned.cells[map_index]
        count = cell_count(scanned, map_index)
        self.names = _texts(cells[NAME], count, scanned)
        self.values = _values(scanned, map_index)
        self._types = _texts(cells[TYPE], count, scanned) if map_index != DETAIL else []

    def tuple_data(self, bounds: slice) -> TupleData:
        """Returns the row image with these cells."""
        return TupleData(tuple(self.names[bounds]), tuple(self.values[bounds]), tuple(self._types[bounds]))


def _values(scanned: ScannedRows, map_index: int) -> list[Any]:
    """Returns the values of all cells of a map column."""
    pairs = scanned.cells[map_index, VALUE, : cell_count(scanned, map_index)]
    values = _texts(pairs, len(pairs), scanned)
    for cell in np.flatnonzero(pairs[:, 1] == UNCHANGED_LENGTH).tolist():
        values[cell] = UNCHANGED
    return values


def _texts(pairs: Array, count: int, scanned: ScannedRows) -> list[Any]:
    """Returns texts as Python strings, None for NULL. Many texts are converted by way of Arrow."""
    if count <= FEW_AS_STRINGS:
        return [_text(scanned, start, length) for start, length in pairs[:count].tolist()]
    texts: list[Any] = np.asarray(strings(pairs, count, scanned, pa.string())).tolist()
    return texts


def _text(scanned: ScannedRows, start: int, length: int) -> str | None:
    if length < 0:
        return None
    data, begin = (scanned.source, start) if start >= 0 else (scanned.text, ~start)
    return data[begin : begin + length].tobytes().decode()


def _number(fields: list[int], field: int) -> int | None:
    return unsigned(fields[field]) if fields[PRESENT] >> field & 1 else None


def _numbers(scanned: ScannedRows, field: int) -> list[int | None]:
    """Returns a number of all rows."""
    rows = scanned.rows[:, : scanned.row_count]
    is_there = rows[PRESENT] >> field & 1 != 0
    numbers = rows[field].astype(np.uint64).astype(object)
    numbers[~is_there] = None
    found: list[int | None] = numbers.tolist()
    return found
