"""Layouts of row changes: the bytes that rows of the same table and columns share, and how their values are written.

A layout is made once for rows with the same kind, table, columns and types. What cannot be written from a layout goes
to the declaration of the format, which writes it or raises the error. The declaration is what the tests compare with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...events import ROW_CHANGES, RowChange, TupleData, Unchanged

Value = str | Unchanged | None
ValueWriter = Callable[[Value], bytes]
"""Writes a value; raises one of REFUSALS for one that the declaration must judge."""

Part = bytes | ValueWriter
"""A part of a record: bytes that are always the same, or the writer of the next value."""

RowParts = Callable[[Any, str], Iterable[Part]]
"""The parts of a row change in an encoding, without a look at values. Raises one of REFUSALS for a row change that the
declaration must judge."""

REFUSALS = (AttributeError, TypeError, ValueError, struct.error)
"""What is raised for what cannot be written directly; EncodeError is a ValueError."""

MOST_LAYOUTS = 4096
"""How many layouts are kept: rows of `sql-decoding` need one for each pattern of NULLs."""

ROW_CHANGE_EVENTS = frozenset(ROW_CHANGES.values())


class ByteLayout(NamedTuple):
    """The bytes of row changes that differ only in their values.

    cells   for each value, the bytes before it and its writer
    tail    the bytes after the last value
    """

    cells: tuple[tuple[bytes, ValueWriter], ...]
    tail: bytes

    @classmethod
    def of(cls, parts: Iterable[Part]) -> ByteLayout:
        """Joins parts."""
        cells = []
        before: list[bytes] = []
        for part in parts:
            if isinstance(part, bytes):
                before.append(part)
            else:
                cells.append((b"".join(before), part))
                before = []
        return cls(tuple(cells), b"".join(before))

    def write(self, values: tuple[Value, ...]) -> bytes:
        """The bytes of a row change with these values; raises one of REFUSALS."""
        written = [before + write(value) for (before, write), value in zip(self.cells, values, strict=True)]
        written.append(self.tail)
        return b"".join(written)


class Layouts:
    """The layouts of a writer of a format in which a row change depends on no earlier message.

    parts       of a row change
    encoding    of its texts
    new_first   whether the new tuple comes before the old one
    """

    def __init__(self, parts: RowParts, encoding: str, *, new_first: bool) -> None:
        self._parts = parts
        self._encoding = encoding
        self._new_first = new_first
        self._layouts: dict[Any, ByteLayout | None] = {}

    def write(self, event: RowChange) -> bytes | None:
        """The bytes of a row change; None if the declaration must write it, or say what is wrong with it."""
        try:
            layout = self.layout(event)
            return None if layout is None else layout.write(values_of(event, new_first=self._new_first))
        except REFUSALS:
            return None

    def layout(self, event: RowChange) -> ByteLayout | None:
        """The layout of a row change; None, or one of REFUSALS, if it has none."""
        if (
            type(event) not in ROW_CHANGE_EVENTS
            or event.xid is not None
            or event.old_kind is not None
            or event.binary != ()
        ):
            return None
        key = layout_key(event)
        return self._layouts[key] if key in self._layouts else self._made(key, event)

    def _made(self, key: Any, event: RowChange) -> ByteLayout | None:
        if len(self._layouts) >= MOST_LAYOUTS:
            self._layouts.clear()
        self._layouts[key] = None
        self._layouts[key] = layout = ByteLayout.of(self._parts(event, self._encoding))
        return layout


def layout_key(event: RowChange) -> tuple[Any, ...]:
    """All that row changes of one layout have in common."""
    new, old = event.new, event.old
    return (
        type(event),
        event.table_schema,
        event.table_name,
        None if new is None else (new.names, new.types),
        None if old is None else (old.names, old.types),
    )


def values_of(event: RowChange, *, new_first: bool) -> tuple[Value, ...]:
    """The values of both tuples."""
    new, old = event.new, event.old
    if old is None:
        return () if new is None else new.values
    if new is None:
        return old.values
    return new.values + old.values if new_first else old.values + new.values


def image_cells(image: TupleData) -> Iterable[tuple[str, str]]:
    """Name and type of each column; raises ValueError where there are not as many types as names."""
    return zip(image.names, image.types, strict=True)
