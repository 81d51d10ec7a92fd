"""The layouts by which compiled code writes rows, as far as they are known while a stream is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ...events import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Message,
    Origin,
    Relation,
    RowChange,
    Truncate,
    Type,
    Unknown,
    Update,
)
from ...formats.base import Writer
from ...formats.direct.layouts import REFUSALS, ByteLayout, Value, ValueWriter, values_of
from ...formats.direct.records import RecordForm
from .heads import MOST_CODES, NO_CODE


class LayoutWriter(Writer, Protocol):
    """A writer that tells the layouts of rows, and the declarations of records."""

    def layout(self, event: RowChange) -> tuple[ByteLayout, int | None] | None:
        """The layout of rows like this one, with the number of their relation, if they have one; None if such rows are
        not written from layouts now."""

    def form(self, event: type[Event]) -> RecordForm | None:
        """How events of this type are written now; None if not by their declaration alone."""


class RowForm(NamedTuple):
    """How compiled code writes the rows of a format.

    null, tag   the bytes of a NULL, and those before the length of a value
    new_first   whether the new tuple comes before the old one
    framed      whether rows are records of gauss_batch
    """

    null: bytes
    tag: bytes
    new_first: bool
    framed: bool


FORMS: Mapping[str, RowForm] = {
    "gaussdb-binary": RowForm(null=b"\xff\xff\xff\xff", tag=b"", new_first=True, framed=True),
    "pgoutput": RowForm(null=b"n", tag=b"t", new_first=False, framed=False),
}

_KEEP: frozenset[type[Event]] = frozenset(
    (Relation, Begin, Commit, Origin, Type, Heartbeat, Unknown, Message, Insert, Update, Delete, Truncate)
)
"""Events after which layouts stay as they are, unless they bring relations along. Those of a Relation's
table change; all other events may open or close a block, in which tables are described anew."""

KEPT_KINDS = pa.array([event.kind for event in _KEEP])


class Layouts:
    """The layouts of the numbers of rows, as far as they are known now.

    indexes    int32[MOST_CODES], where in `known` of the rows that are measured the layout of a number is, or NO_CODE
    fixed      int64[MOST_CODES], bytes of its pieces; no_nulls: uint8[MOST_CODES], whether it is not for NULLs
    refused    the layouts of numbers last found to have values that compiled code does not write
    """

    def __init__(self, writer: LayoutWriter, form: RowForm) -> None:
        self.indexes = np.full(MOST_CODES, NO_CODE, np.int32)
        self.fixed = np.zeros(MOST_CODES, np.int64)
        self.no_nulls = np.zeros(MOST_CODES, np.uint8)
        self._writer, self._form = writer, form
        self._text = form.tag + len(_TEXT).to_bytes(4, "big") + _TEXT.encode()
        self._of_code: dict[int, ByteLayout] = {}
        self.refused: dict[int, tuple[ByteLayout, int | None]] = {}
        self._users: dict[Any, set[int]] = {}
        self._described: dict[Any, tuple[Relation, list[bytes]]] = {}
        self._types: dict[tuple[str, str], dict[str, str]] = {}

    def in_use(self) -> list[ByteLayout]:
        """The layouts that numbers have now, which gives them new indexes."""
        self.indexes[list(self._of_code)] = np.arange(len(self._of_code))
        return [*self._of_code.values()]

    def repeated(self, event: Event) -> list[bytes] | None:
        """The messages of a Relation that says again what holds already; None for all other events."""
        if not isinstance(event, Relation):
            return None
        found = [self._described.get(key) for key in _keys(event)]
        same, messages = found[0] or (None, None)
        return messages if found[0] is found[1] and same == event else None

    def learn(self, code: int, event: Event, messages: list[bytes], names: list[str], known: list[ByteLayout]) -> None:
        """Learns from an event of a row with this number, which was written as these messages.

        names   those of the values that the row has, new and old
        known   the layouts of the rows that are measured, to which that of the row is added
        """
        if self.repeated(event):
            return
        if type(event) not in _KEEP:
            self._forget([*self._of_code])
            self._described.clear()
        for key in _changed(event, len(messages)):
            self._forget(self._users.pop(key, ()))
            self._described.pop(key, None)
        if isinstance(event, Relation) and event.xid is None:
            self._described |= dict.fromkeys(_keys(event), (event, messages))
        if not isinstance(event, RowChange):
            return
        self._note_types(event)
        if code == NO_CODE:
            return
        found = self._writer.layout(event)
        cells = [
            cell for image in (event.new, event.old) if image for cell in zip(image.names, image.values, strict=False)
        ]
        if found is None or names != [name for name, value in cells if value is not UNCHANGED]:
            return
        layout, relation_id = made = found
        if self.refused.get(code) == made:
            return
        values = values_of(event, new_first=self._form.new_first)
        if UNCHANGED in values:
            layout = _without_unsent(layout, values)
        if len(layout.cells) != len(names):
            return
        if self._of_code.get(code) == layout:
            return
        nulls = {_tried(write, None) for _, write in layout.cells}
        if not nulls <= {self._form.null, None} or any(_tried(write, _TEXT) != self._text for _, write in layout.cells):
            self.refused[code] = made
            return
        self.no_nulls[code] = None in nulls
        self.indexes[code] = len(known)
        self.fixed[code] = len(layout.tail) + sum(len(before) for before, _ in layout.cells)
        self.refused.pop(code, None)
        known.append(layout)
        self._of_code[code] = layout
        for key in ((event.table_schema, event.table_name), relation_id):
            self._users.setdefault(key, set()).add(code)

    def _note_types(self, event: RowChange) -> None:
        """Forgets the layouts of the table if a column has another type now: `RowEvents` must see each row of it, since
        later rows may leave the type out."""
        table, image = (event.table_schema, event.table_name), event.new or event.old
        types = {} if image is None else dict(zip(image.names, image.types, strict=False))
        known = self._types.setdefault(table, {})
        if any(known.get(name, type) != type for name, type in types.items()):
            self._forget(self._users.pop(table, ()))
        known |= types

    def _forget(self, codes: Iterable[int]) -> None:
        for code in codes:
            self.indexes[code] = NO_CODE
            self._of_code.pop(code, None)


def _without_unsent(layout: ByteLayout, values: tuple[Value, ...]) -> ByteLayout:
    """The layout in which values that were not sent are no cells."""
    cells = zip(layout.cells, values, strict=True)
    parts = [(before, write(value) if value is UNCHANGED else write) for (before, write), value in cells]
    return ByteLayout.of((*chain.from_iterable(parts), layout.tail))


_TEXT = "\\x07"
"""A value that types which have a binary form write in that, and others as a text."""


def _tried(write: ValueWriter, value: str | None) -> bytes | None:
    """How a value is written; None where it cannot be said."""
    try:
        return write(value)
    except REFUSALS:
        return None


def _keys(event: Relation) -> tuple[Any, ...]:
    return (event.table_schema, event.table_name), event.relation_id


def _changed(event: Event, messages: int) -> tuple[Any, ...]:
    """Whose layouts are no longer good: names of tables, and numbers of relations."""
    if isinstance(event, Relation):
        return _keys(event)
    if isinstance(event, RowChange) and messages > 1:
        return ((event.table_schema, event.table_name),)
    return (None,) if messages > 1 else ()
