"""The check of all texts and offsets says what Arrow's own says."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.schemas import NAME_LIST, TEXT_MAP
from wireformat.arrow.written.columns import are_sound
from wireformat.arrow.written.encode import FEW_ROWS


def texts(data: bytes, *ends: int, valid: bytes | None = None, nulls: int = -1) -> pa.Array:
    """Texts of which each ends there."""
    offsets = struct.pack(f"={len(ends)}i", *ends)
    buffers = [valid and pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers, nulls)


def lists(items: pa.Array, *ends: int) -> pa.Array:
    """Lists of items."""
    offsets = pa.py_buffer(struct.pack(f"={len(ends)}i", *ends))
    return pa.Array.from_buffers(NAME_LIST, len(ends) - 1, [None, offsets], children=[items])


def maps(keys: pa.Array, items: pa.Array, *ends: int) -> pa.Array:
    """Maps of keys and items."""
    pairs = pa.StructArray.from_arrays([keys, items], fields=[TEXT_MAP.key_field, TEXT_MAP.item_field])
    offsets = pa.py_buffer(struct.pack(f"={len(ends)}i", *ends))
    return pa.Array.from_buffers(TEXT_MAP, len(ends) - 1, [None, offsets], children=[pairs])


UMLAUT = "aüb".encode()
PLAIN, SPLIT, INVALID = texts(UMLAUT, 0, 1, 4), texts(UMLAUT, 0, 2, 4), texts(b"a\xffb", 0, 1, 3)
WITH_NULL = texts(b"a", 0, 0, 1, valid=b"\x02")


@pytest.mark.parametrize(
    ("array", "sound"),
    [
        (PLAIN, True),
        (SPLIT, False),
        (SPLIT.slice(1), False),
        (INVALID, False),
        (texts(b"abc", 0, 2, 1), False),
        (texts(b"abc", 0, 2, 3, valid=b"\x01", nulls=1), True),
        (texts(b"abc", 0, 2, 3, valid=b"\x01", nulls=2), False),
        (lists(PLAIN, 0, 1, 2), True),
        (lists(SPLIT, 0, 1, 2), False),
        (lists(PLAIN, 0, 2, 1), False),
        (maps(PLAIN, PLAIN, 0, 2), True),
        (maps(PLAIN, WITH_NULL, 0, 2), True),
        (maps(PLAIN, INVALID, 0, 2), False),
        (maps(PLAIN, PLAIN, 0, 2, 1, 2), False),
        (pa.array([], pa.string()), True),
        (pa.array([b"\xff"]), True),
        (pa.array([None, 1]), True),
    ],
)
def test_what_is_sound(array: pa.Array, sound: bool) -> None:
    assert are_sound(array) == sound
    try:
        array.validate(full=True)
    except pa.ArrowException:
        assert not sound
    else:
        assert sound


@pytest.mark.parametrize("rows", [2, FEW_ROWS])
@pytest.mark.parametrize("bad", [(0, 2), (0, 1, 0)])
def test_rows_that_are_not_sound(rows: int, bad: tuple[int, ...]) -> None:
    """They are an error, of few rows and of many."""
    ends = [*bad, *[2] * (rows + 1 - len(bad))]
    columns = {field.name: pa.nulls(rows, field.type) for field in wf.arrow.CHANGES}
    table = pa.table({**columns, "table_schema": texts(b"a\xff" if len(bad) == 2 else b"ab", *ends)})
    with pytest.raises(TypeError, match="valid Arrow data"):
        wf.arrow.encode(table, "pgoutput")
