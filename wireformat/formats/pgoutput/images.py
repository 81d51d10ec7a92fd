"""Row images of `pgoutput`: the tuples of an event as its declaration writes them, by the relation of the row."""

from __future__ import annotations

import re
from typing import Any

from ...errors import EncodeError
from ...events import Delete, Relation, RowChange, TupleData, Unchanged
from ...pgtypes import type_name
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
