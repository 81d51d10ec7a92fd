"""Row changes of `pgoutput` from layouts, which hold for one relation; see formats/direct/layouts.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from struct import Struct
from typing import Any

from ...events import UNCHANGED, Relation, RowChange, TupleData
from ..direct.layouts import MOST_LAYOUTS, REFUSALS, ByteLayout, Part, Value, ValueWriter, layout_key, values_of
from .images import binary_value, images, old_tag
from .messages import BINARY_CELL, KEY, NEW, NULL, TEXT_CELL, UNCHANGED_CELL

_COUNT, _NUMBER, _VALUE_HEAD = Struct(">H"), Struct(">I"), Struct(">BI")
_NULL, _UNCHANGED = bytes([NULL]), bytes([UNCHANGED_CELL])


class RowLayouts:
    """The layouts of one stream.

    tags        the kind byte of each event
    encoding    of its texts
    """

    def __init__(self, tags: Mapping[Any, int], encoding: str) -> None:
        self._tags = {event: bytes([tag]) for event, tag in tags.items()}
        self._encoding = encoding
        self._layouts: dict[Any, tuple[Relation, ByteLayout | None]] = {}

    def write(self, event: RowChange, relation: Relation, *, in_block: bool) -> bytes | None:
        """The message of a row change; None if the declaration must write it, or say what is wrong with it."""
        if not in_block and event.xid is not None:
            return None
        try:
            layout = self._layout(event, relation)
            if layout is None:
                return None
            body = layout.write(values_of(event, new_first=False))
            head = self._tags[type(event)]
            return head + _NUMBER.pack(event.xid) + body if in_block else head + body
        except REFUSALS:
            return None

    def layout(self, event: RowChange, relation: Relation) -> ByteLayout | None:
        """The layout of messages outside of blocks; None if rows like this one have none."""
        try:
            layout = self._layout(event, relation)
        except REFUSALS:
            return None
        if layout is None:
            return None
        head = self._tags[type(event)]
        if not layout.cells:
            return ByteLayout((), head + layout.tail)
        (before, write), *others = layout.cells
        return ByteLayout(((head + before, write), *others), layout.tail)

    def _layout(self, event: RowChange, relation: Relation) -> ByteLayout | None:
        key = (*layout_key(event), event.old_kind, event.binary)
        found = self._layouts.get(key)
        return found[1] if found is not None and found[0] is relation else self._made(key, event, relation)

    def _made(self, key: Any, event: RowChange, relation: Relation) -> ByteLayout | None:
        if len(self._layouts) >= MOST_LAYOUTS:
            self._layouts.clear()
        self._layouts[key] = relation, None
        layout = ByteLayout.of(self._parts(event, relation))
        self._layouts[key] = relation, layout
        return layout

    def _parts(self, event: RowChange, relation: Relation) -> Iterator[Part]:
        """What follows the kind and the transaction id."""
        if len(frozenset(relation.columns)) < len(relation.columns):
            raise ValueError("columns")
        images(replace(event, new=_probe(event.new), old=_probe(event.old)), relation)  # all but the values fits
        yield _NUMBER.pack(relation.relation_id)
        if event.old is not None:
            tag = old_tag(event, relation)
            yield from self._image(tag, event.old, relation, event.binary)
        if event.new is not None:
            yield from self._image(NEW, event.new, relation, event.binary)

    def _image(self, tag: int, image: TupleData, relation: Relation, binary: tuple[str, ...]) -> Iterator[Part]:
        keys = frozenset(relation.key_columns if tag == KEY else relation.columns)
        names, binary_names = frozenset(image.names), frozenset(binary)
        yield bytes([tag]) + _COUNT.pack(len(relation.columns))
        for name in relation.columns:
            if name not in names:
                yield _NULL
            else:
                yield _value_writer(self._encoding, name in binary_names, may_be_null=name in keys)


def _probe(image: TupleData | None) -> TupleData | None:
    """The image with values that fit into every column."""
    return image and replace(image, values=("\\x",) * len(image.values))


def _value_writer(encoding: str, is_binary: bool, *, may_be_null: bool) -> ValueWriter:
    encode, head = str.encode, _VALUE_HEAD.pack

    def write(value: Value) -> bytes:
        if value is None:
            if not may_be_null:
                raise ValueError("NULL")
            return _NULL
        if value is UNCHANGED:
            return _UNCHANGED
        data = encode(value, encoding)  # type: ignore[arg-type]  # a TypeError is for the declaration
        return head(TEXT_CELL, len(data)) + data

    def write_binary(value: Value) -> bytes:
        if not isinstance(value, str):
            return write(value)
        data = binary_value("", value)
        return head(BINARY_CELL, len(data)) + data

    return write_binary if is_binary else write
