"""Binary cells read by compiled code against the text of each cell and the reader of that text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.typed_tables.casts import cast_of
from wireformat.arrow.typed_tables.readers.binary_forms import (
    FORMS,
    read_binary,
    read_binary_decimals,
    read_binary_uuids,
)
from wireformat.pgtypes import type_oid
from wireformat.pgtypes.binary import binary_text

from .test_compiled_readers import noted_bytes

DECIMALS = [pa.decimal128(*digits) for digits in ((5, 2), (2, 2), (10, 0), (18, 9), (38, 18), (38, 38))]
OF_DAY = st.integers(-800_000, 3_000_000)
NUMBERS: dict[str, st.SearchStrategy[bytes]] = {
    "date": OF_DAY.map(struct.Struct(">i").pack),
    "time without time zone": st.integers(-1, 86_400_000_001).map(struct.Struct(">q").pack),
    **dict.fromkeys(
        ("timestamp without time zone", "timestamp with time zone"),
        st.builds(lambda day, micros: struct.pack(">q", day * 86_400_000_000 + micros), OF_DAY, st.integers(0, 999)),
    ),
    "real": st.floats(width=32).map(struct.Struct(">f").pack),
    "double precision": st.floats().map(struct.Struct(">d").pack),
}


def numeric(value: Decimal) -> bytes:
    """As numeric_send does it."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :].rjust(scale, "0")
    whole, fraction = whole.rjust(-(-len(whole) // 4) * 4, "0"), fraction.ljust(-(-scale // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        groups, weight = groups[1:], weight - 1
    while groups and not groups[-1]:
        groups.pop()
    head = struct.pack(">HhHH", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale)
    return head + struct.pack(f">{len(groups)}H", *groups)


def check(name: str, type: pa.DataType, cells: Sequence[bytes | None], is_in_source: Sequence[bool]) -> None:
    noted = noted_bytes(cells, is_in_source)
    if name == "numeric":
        column, left = read_binary_decimals(noted, type)
    elif name == "uuid":
        column, left = read_binary_uuids(noted)
    else:
        column, left = read_binary(noted, FORMS[name, type], type)
    column.validate(full=True)
    assert len(column) == len(cells)
    assert column.null_count == sum(cell is None for cell in cells) + len(left)
    reader = cast_of(type)
    assert reader is not None
    for row, cell in enumerate(cells):
        if cell is None:
            assert row not in left
        elif row not in left:
            text = binary_text(type_oid(name), cell, "utf-8", "strict")
            expected, misfits = reader.read(pa.array([text], pa.string()))
            assert not misfits
            assert column[row].as_py() == expected[0].as_py() or (column[row].as_py() != column[row].as_py())
            assert column[row : row + 1].cast(pa.string()).equals(expected.cast(pa.string()))
        else:
            assert cannot_be_read(name, type, cell)


def cannot_be_read(name: str, type: pa.DataType, cell: bytes) -> bool:
    """Whether the old way finds no value, or the cell is a numeric that no server sends for a column of the type."""
    try:
        text = binary_text(type_oid(name), cell, "utf-8", "strict")
    except ValueError:
        return True
    reader = cast_of(type)
    assert reader is not None
    if text is None or reader.read(pa.array([text], pa.string()))[1]:
        return True
    return name == "numeric" and (cell != numeric(Decimal(text)) or int.from_bytes(cell[6:8], "big") > type.scale)


@pytest.mark.parametrize(("name", "type"), FORMS)
@given(data=st.data())
def test_cells_of_a_fixed_width(name: str, type: pa.DataType, data: st.DataObject) -> None:
    width = FORMS[name, type].width
    cell = st.one_of(st.binary(min_size=width, max_size=width), NUMBERS.get(name, st.none()))
    cells = data.draw(st.lists(st.one_of(st.none(), cell, st.binary(max_size=9)), max_size=10))
    check(name, type, cells, data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))))


@pytest.mark.parametrize("type", DECIMALS, ids=str)
@given(data=st.data())
def test_decimals(type: pa.DataType, data: st.DataObject) -> None:
    limit = 10 ** (type.precision - type.scale)
    usual = st.one_of(
        *(st.decimals(-limit, limit, places=places) for places in {0, type.scale // 2, type.scale, type.scale + 1}),
        st.integers(-(10**40), 10**40).map(Decimal),
    ).map(numeric)
    groups = st.lists(st.integers(0, 10_001), max_size=5)
    head = st.tuples(st.integers(-3, 11), st.sampled_from([0, 0x4000, 0xC000, 1]), st.integers(0, 40))
    odd = st.builds(lambda head, groups: struct.pack(f">HhHH{len(groups)}H", len(groups), *head, *groups), head, groups)
    cells = data.draw(st.lists(st.one_of(st.none(), usual, odd, st.binary(max_size=20)), max_size=10))
    check("numeric", type, cells, data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))))


def test_usual_decimals_are_taken() -> None:
    texts = ["0", "0.00", "-0.05", "999.99", "-999.9", "100", "0.5"]
    column, left = read_binary_decimals(
        noted_bytes([numeric(Decimal(text)) for text in texts], [True] * len(texts)), pa.decimal128(5, 2)
    )
    assert (column.to_pylist(), left.tolist()) == ([Decimal(text) for text in texts], [])


@given(st.lists(st.one_of(st.none(), st.binary(min_size=16, max_size=16), st.binary(max_size=17)), max_size=10))
def test_uuids(cells: list[bytes | None]) -> None:
    check("uuid", pa.string(), cells, [len(cells) % 2 == 0] * len(cells))


def test_no_cells() -> None:
    for (_, type), form in FORMS.items():
        column, left = read_binary(noted_bytes([], []), form, type)
        assert (column, len(left)) == (pa.array([], type), 0)
    assert np.array_equal(read_binary_uuids(noted_bytes([], []))[1], [])
