"""Row changes of `pgoutput`: tuples as its declaration writes them, and layouts, which hold for one relation.

See formats/direct/layouts.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from struct import Struct
from typing import Any

from ...errors import EncodeError
from ...events import UNCHANGED, Delete, Relation, RowChange, TupleData, Unchanged
from ...pgtypes import type_name
from ...pgtypes.binary import binary_text, has_text
from ..direct.layouts import MOST_LAYOUTS, REFUSALS, ByteLayout, Part, Value, ValueWriter, layout_key, values_of
from .messages import BINARY_CELL, KEY, NEW, NULL, OLD_KINDS, TEXT_CELL, UNCHANGED_CELL

_HEX = re.compile(r"\\x(?:[0-9a-f]{2})*")
_TAGS = {name: tag for tag, name in OLD_KINDS.items()}


def fits(event: RowChange, relation: Relation) -> bool:
    """Whether the row can be said with these columns."""
    try:
        images(event, relation)
    except EncodeError:
        return False
    return True


def images(event: RowChange, relation: Relation) -> list[tuple[int, dict[str, Any]]]:
    """The tag and the cells of each tuple of a row, as the declaration writes them; raises EncodeError."""
    found = []
    if event.binary:
        _check_binary(event, relation)
    if event.old is not None:
        if event.old_kind is not None and event.old_kind not in _TAGS:
            raise EncodeError("old_kind: expected 'key' or 'full'")
        tag = old_tag(event, relation)
        found.append((tag, _image("old", event.old, relation, event.binary, is_key=tag == KEY)))
    elif event.old_kind is not None:
        raise EncodeError("old_kind: there is no old row")
    if event.new is not None:
        found.append((NEW, _image("new", event.new, relation, event.binary, is_key=False)))
    steps = {"INSERT": ("new",), "UPDATE": ("new",), "DELETE": ("old",)}[event.kind]
    for side in steps:
        if getattr(event, side) is None:
            raise EncodeError(f"{side}: expected a row image")
    if (event.kind == "INSERT" and event.old is not None) or (isinstance(event, Delete) and event.new is not None):
        raise EncodeError(f"{'old' if event.kind == 'INSERT' else 'new'}: it has no place in {event.kind}")
    return found


def _check_binary(event: RowChange, relation: Relation) -> None:
    """Raises EncodeError for a column that would be read back without `binary`."""
    oids = dict(zip(relation.columns, relation.type_oids, strict=True))
    images = [image for image in (event.new, event.old) if image is not None]
    cells = [cell for image in images for cell in zip(image.names, image.values, strict=False)]
    names = {name for name, _ in cells}
    for name in event.binary:
        if name not in names:
            raise EncodeError("binary: expected names of columns of the row")
        oid = oids.get(name, 0)
        values = [value for other, value in cells if other == name and isinstance(value, str)]
        if has_text(oid) and not (values and all(_stays_binary(oid, value) for value in values)):
            raise EncodeError(f"binary: a binary {type_name(oid)} is read as its text; expected the text")


def _stays_binary(oid: int, value: str) -> bool:
    """Whether hex digits, of a type that has texts, are of a value whose text would be too long."""
    try:
        return binary_text(oid, binary_value("binary", value), "utf-8", "replace") is None
    except ValueError:
        return False


def old_tag(event: RowChange, relation: Relation) -> int:
    """The byte before the old tuple."""
    return _TAGS[event.old_kind or ("full" if relation.replica_identity == "full" else "key")]


def _image(side: str, image: TupleData, relation: Relation, binary: tuple[str, ...], *, is_key: bool) -> dict[str, Any]:
    if not len(image.names) == len(image.values) == len(image.types):
        raise EncodeError(f"{side}: names, values and types must have the same length")
    if not is_key and image.names != relation.columns:
        raise EncodeError(f"{side}: its columns are not those of the relation")
    binary_names = frozenset(binary)
    known = {name: type_name(oid) for name, oid in zip(relation.columns, relation.type_oids, strict=True)}
    if any(known.get(name) != type for name, type in zip(image.names, image.types, strict=True)):
        raise EncodeError(f"{side}: its columns and their types are not those of the relation")
    if not is_key:
        cells = zip(image.names, image.values, strict=True)
        return {"cells": [{"cell": _cell(side, value, name in binary_names)} for name, value in cells]}
    given = dict(zip(image.names, image.values, strict=True))
    if image.names != tuple(name for name in relation.columns if name in given):
        raise EncodeError(f"{side}: its columns are not those of the relation, in their order")
    keys = frozenset(relation.key_columns)
    if not keys <= given.keys():
        raise EncodeError(f"{side}: it lacks columns of the key")
    if any(value is None and name not in keys for name, value in given.items()):
        raise EncodeError(f"{side}: NULL in a column outside of the key cannot be said")
    return {"cells": [{"cell": _cell(side, given.get(name), name in binary_names)} for name in relation.columns]}


def _cell(side: str, value: str | Unchanged | None, is_binary: bool) -> tuple[int, str | bytes | None]:
    if value is None:
        return NULL, None
    if isinstance(value, Unchanged):
        return UNCHANGED_CELL, None
    if not is_binary:
        return TEXT_CELL, value
    return BINARY_CELL, binary_value(side, value)


def binary_value(side: str, value: str) -> bytes:
    """The bytes of a value that is listed in binary; raises EncodeError."""
    if not _HEX.fullmatch(value):
        raise EncodeError(f"{side}: expected \\x and hex digits in a column that is listed in binary")
    return bytes.fromhex(value[2:])


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
