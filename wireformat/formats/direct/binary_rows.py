"""The layouts of rows of gaussdb-binary, out of its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct

from construct import Construct

from ...declare import build
from ...events import RowChange
from ...pgtypes import type_oid
from .layouts import Part, Value, ValueWriter, image_cells

_LENGTH = Struct(">I")

MOST_HEADS = 1 << 12
"""How many heads of cells are kept, which the layouts of a table share."""


class BinaryRows:
    """Makes the parts of row changes.

    kinds       the kind byte of each event
    head        declares schema and table
    tags        the byte before each tuple, by its name, in their order
    count       declares how many cells follow
    cell_head   declares name and type of a cell
    null        stands for a value that is NULL
    """

    def __init__(
        self,
        kinds: dict[type[RowChange], int],
        head: Construct,
        tags: dict[str, int],
        count: Construct,
        cell_head: Construct,
        null: int,
    ) -> None:
        self._kinds = kinds
        self._head = head
        self._tags = tags
        self._count = count
        self._cell_head = cell_head
        self._built_head = lru_cache(MOST_HEADS)(self._build_head)
        self._null = _LENGTH.pack(null)

    def parts(self, event: RowChange, encoding: str) -> Iterator[Part]:
        """See RowParts."""
        write = _value_writer(self._null, encoding)
        table = {"table_schema": event.table_schema, "table_name": event.table_name}
        yield bytes([self._kinds[type(event)]]) + build(self._head, table, encoding=encoding)
        for name, tag in self._tags.items():
            image = getattr(event, name)
            if image is not None:
                yield bytes([tag]) + build(self._count, len(image.names), encoding=encoding)
                for column, type_text in image_cells(image):
                    yield self._built_head(column, type_text, encoding)
                    yield write

    def _build_head(self, column: str, type_text: str, encoding: str) -> bytes:
        return build(self._cell_head, {"name": column, "type_oid": type_oid(type_text)}, encoding=encoding)


def _value_writer(null: bytes, encoding: str) -> ValueWriter:
    encode, length = str.encode, _LENGTH.pack

    def write(value: Value) -> bytes:
        if value is None:
            return null
        data = encode(value, encoding)  # type: ignore[arg-type]  # a TypeError is for the declaration
        return length(len(data)) + data

    return write
