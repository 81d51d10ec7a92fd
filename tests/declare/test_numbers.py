"""Numbers and Struct say the same as construct's, of good bytes and of bytes that end too soon."""

from __future__ import annotations

from typing import Any

import construct
import pytest
from construct import Computed, Construct, If, this

from wireformat import declare
from wireformat.declare import Counted, Text, Told, fields
from wireformat.errors import DecodeError

_NAMES = ("Int8ub", "Int16ub", "Int32ub", "Int64ub", "Int32sb", "Int64sb")


def read(declaration: Construct, data: bytes) -> Any:
    """What is read from all bytes but the first, or the text of the error."""
    try:
        found = declare.parse(
            declaration, b"?" + data, 1, 1 + len(data), encoding="utf-8", errors="strict", asked=1, untold=0
        )
    except DecodeError as error:
        return str(error)
    return {name: value for name, value in found.items() if name != "_io"}


def made(source: Any, struct: Any) -> Construct:
    """A declaration of one source's numbers."""
    cell = struct("name" / Text(source.Int16ub), "oid" / source.Int32sb)
    return struct(
        "first" / source.Int8ub,
        "cells" / Counted(source.Int16ub, cell),
        *(name.lower() / getattr(source, name) for name in _NAMES),
        "maybe" / (Told("asked", source.Int16ub) if source is fields else If(this._params.asked, source.Int16ub)),
        "not" / (Told("untold", source.Int16ub) if source is fields else If(this._params.untold, source.Int16ub)),
        "at" / source.Tell,
        "twice" / Computed(lambda context: 2 * context["first"]),
        "more" / Counted(this.first, source.Int8ub),
    )


def test_every_length_of_a_record() -> None:
    data = b"\2\0\2" + b"\0\1a\xff\xff\xff\xfe" * 2 + b"".join(b"\x80" + bytes(size - 1) for size in (1, 2, 4, 8, 4, 8))
    data += b"\0\7\1\2"
    ours, theirs = made(fields, fields.Struct), made(construct, construct.Struct)
    for size in range(len(data) + 2):
        cut = (data + b"?")[:size]
        assert read(ours, cut) == read(theirs, cut)
    found = read(ours, data)
    assert (found["first"], found["twice"], found["maybe"], found["more"]) == (2, 4, 7, [1, 2])
    assert [cell.oid for cell in found["cells"]] == [-2, -2]


@pytest.mark.parametrize("name", _NAMES)
def test_numbers_are_written_as_by_construct(name: str) -> None:
    ours, theirs = getattr(fields, name), getattr(construct, name)
    assert ours.build(77) == theirs.build(77)
    assert ours.sizeof() == theirs.sizeof()
