"""Events out of a scan's notes: what the event API yields, without a second decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..events import Begin, Commit, Delete, Event, Heartbeat, Insert, RowChange, TupleData, Unknown, Update
from ..lsn import lsn_value, unsigned
from ..options.reading import KINDS
from ..stream.reader import Located
from .scanner import Scanned
from .spans import (
    CSN,
    DETAIL,
    ENDS,
    GIVEN,
    KIND,
    LSN,
    MAPS,
    MESSAGE,
    NEW,
    OLD,
    PRESENT,
    RAW,
    RECORD,
    TABLE_NAME,
    TABLE_SCHEMA,
    XID,
)

_ROW_CHANGES: dict[str, type[RowChange]] = {event.kind: event for event in (Insert, Update, Delete)}
_NUMERIC_DETAIL: dict[str, Callable[[str], int]] = {
    "first_lsn": lsn_value,
    "origin": int,
    "wal_end": int,
    "wal_flushed": int,
    "time": int,
}


def located_events(scanned: Scanned) -> Iterator[Located]:
    """The events of the rows, in order, each with its place."""
    notes = _Notes(scanned)
    for row, fields in enumerate(notes.rows):
        if row in scanned.events:
            yield from scanned.events[row]
        else:
            yield Located(fields[MESSAGE], fields[RECORD], notes.event(row, fields))


class _Notes:
    """The notes as Python lists: one conversion for all rows."""

    def __init__(self, scanned: Scanned) -> None:
        self.rows: list[list[int]] = scanned.rows.T.tolist()
        self._source = scanned.source.tobytes().decode("latin-1")
        self._text = scanned.text.tobytes().decode("latin-1")
        self._cells: list[list[list[int]]] = [
            scanned.cells[place, : (self.rows[-1][ENDS + place] if self.rows else 0)].tolist()
            for place in range(len(MAPS))
        ]
        self._shapes: dict[tuple[int, ...], tuple[str, ...]] = {}

    def event(self, row: int, fields: list[int]) -> Event:
        """The event of one good row."""
        kind = KINDS[fields[KIND]]
        lsn = _number(fields, LSN)
        if kind in _ROW_CHANGES:
            return _ROW_CHANGES[kind](
                lsn=lsn,
                table_schema=self._string(fields[TABLE_SCHEMA], fields[TABLE_SCHEMA + 1]),
                table_name=self._string(fields[TABLE_NAME], fields[TABLE_NAME + 1]),
                new=self._image(NEW, row, fields),
                old=self._image(OLD, row, fields),
            )
        if kind == Unknown.kind:
            return Unknown(lsn=lsn, raw=self._source[fields[RAW] : fields[RAW] + fields[RAW + 1]].encode("latin-1"))
        detail = self._detail(row, fields)
        if kind == Begin.kind:
            return Begin(lsn=lsn, csn=_number(fields, CSN), xid=_number(fields, XID), **detail)
        if kind == Commit.kind:
            return Commit(lsn=lsn, xid=_number(fields, XID), **detail)
        return Heartbeat(lsn=lsn, **detail)

    def _string(self, start: int, length: int) -> str:
        text = self._source[start : start + length] if start >= 0 else self._text[~start : ~start + length]
        return text if text.isascii() else text.encode("latin-1").decode()

    def _row_cells(self, place: int, row: int, fields: list[int]) -> list[list[int]]:
        begin = self.rows[row - 1][ENDS + place] if row else 0
        return self._cells[place][begin : fields[ENDS + place]]

    def _image(self, place: int, row: int, fields: list[int]) -> TupleData | None:
        if not fields[PRESENT] >> (GIVEN + place) & 1:
            return None
        cells = self._row_cells(place, row, fields)
        string = self._string
        return TupleData(
            tuple([string(start, length) for start, length, _, _, _, _ in cells]),
            tuple([None if length < 0 else string(start, length) for _, _, start, length, _, _ in cells]),
            self._types(cells),
        )

    def _types(self, cells: list[list[int]]) -> tuple[str, ...]:
        shape = tuple([cell[4] for cell in cells])
        types = self._shapes.get(shape)
        if types is None:
            types = self._shapes[shape] = tuple([self._string(cell[4], cell[5]) for cell in cells])
        return types

    def _detail(self, row: int, fields: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, name_length, value, value_length, _, _ in self._row_cells(DETAIL, row, fields):
            key, text = self._string(name, name_length), self._string(value, value_length)
            found[key] = _NUMERIC_DETAIL[key](text) if key in _NUMERIC_DETAIL else text
        return found


def _number(fields: list[int], number: int) -> int | None:
    return unsigned(fields[number]) if fields[PRESENT] >> number & 1 else None
