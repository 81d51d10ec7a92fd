"""Events out of a scan's notes: what the event API yields, without a second decoder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..events import Begin, Commit, Delete, Event, Heartbeat, Insert, RowChange, TupleData, Unknown, Update
from ..lsn import lsn_value, unsigned
from ..stream.reader import Located
from .scanner import Scanned
from .spans import CSN, DETAIL, KIND, LSN, MESSAGE, NEW, OLD, RAW, RECORD, TABLE_NAME, TABLE_SCHEMA, XID

_ROW_CHANGES: dict[str, type[RowChange]] = {event.kind: event for event in (Insert, Update, Delete)}
_NUMERIC_DETAIL = {"first_lsn": lsn_value, "origin": int, "wal_end": int, "wal_flushed": int, "time": int}


def located_events(scanned: Scanned) -> Iterator[Located]:
    """The events of the rows, in order, each with its place."""
    notes = _Notes(scanned)
    for row in range(scanned.rows):
        if row in scanned.events:
            yield from scanned.events[row]
        else:
            yield Located(notes.numbers[MESSAGE][row], notes.numbers[RECORD][row], notes.event(row))


class _Notes:
    """The notes as Python lists: one conversion for all rows."""

    def __init__(self, scanned: Scanned) -> None:
        spans, rows = scanned.spans, scanned.rows
        self._source = str(scanned.source, "latin-1")
        self._text = str(spans.text, "latin-1")
        self.numbers = spans.numbers[:, :rows].tolist()
        self._present = spans.present[:, :rows].tolist()
        self._texts = spans.texts[:, :rows].tolist()
        self._begins = [[0, *ends] for ends in spans.ends[:, :rows].tolist()]
        self._given = spans.given[:, :rows].tolist()
        self._cells = [
            cells[: self._begins[place][-1]].tolist()
            for place, cells in ((NEW, spans.new), (OLD, spans.old), (DETAIL, spans.detail))
        ]
        self._shapes: dict[tuple[int, ...], tuple[str, ...]] = {}

    def event(self, row: int) -> Event:
        """The event of one good row."""
        kind = self._string(*self._texts[KIND][row])
        lsn = self._number(LSN, row)
        if kind in _ROW_CHANGES:
            schema, table = self._string(*self._texts[TABLE_SCHEMA][row]), self._string(*self._texts[TABLE_NAME][row])
            images = {"new": self._image(NEW, row), "old": self._image(OLD, row)}
            return _ROW_CHANGES[kind](lsn=lsn, table_schema=schema, table_name=table, **images)
        if kind == Unknown.kind:
            start, length = self._texts[RAW][row]
            return Unknown(lsn=lsn, raw=self._source[start : start + length].encode("latin-1"))
        detail = self._detail(row)
        if kind == Begin.kind:
            return Begin(lsn=lsn, csn=self._number(CSN, row), xid=self._number(XID, row), **detail)
        if kind == Commit.kind:
            return Commit(lsn=lsn, xid=self._number(XID, row), **detail)
        return Heartbeat(lsn=lsn, **detail)

    def _number(self, number: int, row: int) -> int | None:
        return unsigned(self.numbers[number][row]) if self._present[number][row] else None

    def _string(self, start: int, length: int) -> str:
        text = self._source[start : start + length] if start >= 0 else self._text[~start : ~start + length]
        return text if text.isascii() else text.encode("latin-1").decode()

    def _image(self, place: int, row: int) -> TupleData | None:
        if not self._given[place][row]:
            return None
        cells = self._cells[place][self._begins[place][row] : self._begins[place][row + 1]]
        string = self._string
        shape = tuple(cell[4] for cell in cells)
        types = self._shapes.get(shape)
        if types is None:
            types = tuple(string(cell[4], cell[5]) for cell in cells)
            if all(start < 0 for start in shape):
                self._shapes[shape] = types
        return TupleData(
            tuple([string(start, length) for start, length, *_ in cells]),
            tuple([None if length < 0 else string(start, length) for _, _, start, length, *_ in cells]),
            types,
        )

    def _detail(self, row: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, name_length, value, value_length in self._cells[DETAIL][
            self._begins[DETAIL][row] : self._begins[DETAIL][row + 1]
        ]:
            key, text = self._string(name, name_length), self._string(value, value_length)
            found[key] = _NUMERIC_DETAIL.get(key, str)(text)
        return found
