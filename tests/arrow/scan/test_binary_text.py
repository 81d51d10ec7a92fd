"""Binary values that compiled code writes as text: each as binary_text says, or left to the declaration."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.scan.binary_text import forms
from wireformat.arrow.scan.binary_text.forms import MOST_FIXED_BYTES, most_bytes
from wireformat.pgtypes import SQL_NAMES, type_oid
from wireformat.pgtypes.binary import binary_text, has_text

from ... import handmade_pgoutput as hand
from ...engines import agree
from ...pgtypes.test_binary import array, numeric

WITH_TEXT = [name for oid, name in SQL_NAMES.items() if has_text(oid)]

int16, int32, int64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))


def packed(layout: str, *numbers: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    return st.tuples(*numbers).map(lambda found: struct.pack(layout, *found))


MICROS = int64 | st.integers(-63_082_281_600_000_000, 252_455_615_999_999_999) | st.integers(0, 86_400_000_000)
GOOD = {
    "real": packed(">I", st.integers(0, (1 << 32) - 1)) | st.floats(width=32).map(lambda one: struct.pack(">f", one)),
    "double precision": packed(">Q", st.integers(0, (1 << 64) - 1))
    | (st.floats() | st.integers(0, 1 << 70).map(float)).map(lambda one: struct.pack(">d", one))
    | st.tuples(int32, st.integers(0, 9)).map(lambda found: struct.pack(">d", found[0] / 10 ** found[1])),
    "numeric": st.builds(
        numeric,
        st.lists(st.integers(0, 9999) | st.sampled_from([0, 1000, 10_000]), max_size=6),
        st.integers(-8, 8) | st.integers(-300, 300),
        st.sampled_from([0, 0, 0, 0x4000, 0x4000, 0xC000, 0xD000, 0xF000, 1]),
        st.integers(0, 30) | st.integers(0, 1200),
    ),
    "date": packed(">i", int32 | st.integers(-800_000, 3_000_000)),
    "timestamp without time zone": packed(">q", MICROS),
    "timestamp with time zone": packed(">q", MICROS),
    "time without time zone": packed(">q", MICROS),
    "time with time zone": packed(">qi", MICROS, st.integers(-60_000, 60_000)),
    "interval": packed(">qii", MICROS | st.sampled_from([0]), int32 | st.integers(-2, 2), int32 | st.integers(-30, 30)),
    "jsonb": st.binary(max_size=9).map(lambda data: b"\1" + data) | st.just(b'\1{"a": "\\"", "b": null}'),
    "bit varying": st.integers(0, 40).flatmap(
        lambda count: st.binary(min_size=(count + 7) // 8, max_size=(count + 7) // 8).map(
            lambda data: struct.pack(">i", count) + data
        )
    ),
    "text": st.text(st.sampled_from('aNuULl"\\{},\t\n é表')).map(str.encode) | st.sampled_from([b"null", b"NULL", b""]),
    **{name: st.binary(min_size=size, max_size=size) for name, size in (("bigint", 8), ("uuid", 16), ('"char"', 1))},
    "xid": st.sampled_from([4, 4, 8]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
}
"""Values of types, most of them good."""


@cache
def values_of(name: str) -> st.SearchStrategy[bytes]:
    """Values of a type, many of them good, and other bytes."""
    element = name.removesuffix("[]").removesuffix("vector")
    if name != element:
        element = {"int2": "smallint"}.get(element, element)
        dimensions = st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from([1, 1, 1, 0, -7])), max_size=1 if name.endswith("r") else 3
        )
        items = st.lists(st.none() | values_of(element) if name.endswith("]") else values_of(element), max_size=12)

        def cut(found: tuple[list[tuple[int, int]], list[bytes | None]]) -> bytes:
            count = int(np.prod([length for length, _ in found[0]])) if found[0] else 0
            return array(element, found[0], found[1][:count])

        good = st.tuples(dimensions, items).map(cut)
    else:
        size = {"integer": 4, "oid": 4, "smallint": 2, "boolean": 1, "cid": 4, "xid8": 8}.get(name)
        good = GOOD.get(name, st.binary(max_size=9) if size is None else st.binary(min_size=size, max_size=size))
    return st.one_of(good, good, good, st.binary(max_size=20))


@cache
def readings_of(name: str) -> st.SearchStrategy[tuple[list[bytes], str]]:
    """Values of a type, and an encoding."""
    return st.tuples(st.lists(values_of(name), min_size=1, max_size=30), st.sampled_from(["utf-8", "utf-8", "gbk"]))


def described(*types: str) -> bytes:
    return hand.relation(*(hand.column(b"c%d" % index, type_oid(name)) for index, name in enumerate(types)))


def inserts(values: Sequence[bytes]) -> list[bytes]:
    return [hand.change(b"I", hand.image(b"N", hand.binary(value))) for value in values]


@pytest.mark.parametrize("name", WITH_TEXT)
@given(st.data())
def test_each_value_is_as_the_table_of_types_says(name: str, data: st.DataObject) -> None:
    values, encoding = data.draw(readings_of(name))
    table = wf.arrow.changes([described(name), *inserts(values)], "pgoutput", mode="PERMISSIVE", encoding=encoding)
    for value, row in zip(values, table.slice(1).to_pylist(), strict=True):
        try:
            expected = binary_text(type_oid(name), value, encoding, "strict")
        except ValueError:
            assert row["kind"] == "CORRUPT"
            continue
        shown = f"\\x{value.hex()}" if expected is None else expected
        assert dict(row["new"]) == {"c0": shown}
        assert ("binary" in dict(row["detail"])) == (expected is None)


@pytest.mark.parametrize("name", [name for name in WITH_TEXT if not name.endswith(("[]", "vector"))])
@given(st.data())
def test_a_text_is_never_longer_than_the_space_that_is_left_for_it(name: str, data: st.DataObject) -> None:
    value = data.draw(values_of(name))
    try:
        text = binary_text(type_oid(name), value, "utf-8", "strict")
    except ValueError:
        return
    assert len((text or "").encode()) <= most_bytes(len(value), forms.form_of(type_oid(name)) & forms.SCALAR_FORM)


def test_every_type_has_a_form() -> None:
    found = {name: forms.form_of(oid) & forms.FORM for oid, name in SQL_NAMES.items()}
    assert {name for name, form in found.items() if form != forms.HEX_FORM} == {*WITH_TEXT}
    assert {name for name, form in found.items() if form == forms.DECLINED_FORM} == {"int2vector[]", "oidvector[]"}
    assert len("-178956970 years -11 mons -2147483648 days -2562047788:00:54.775808") < MOST_FIXED_BYTES


LINE = type_oid("line")


@pytest.mark.parametrize("old_tag", [b"K", b"O"])
@given(cells=st.lists(st.sampled_from([hand.NULL, hand.UNCHANGED, hand.binary(b"\1\2"), hand.text(b"x")]), min_size=8))
def test_columns_without_a_text_form_are_listed_once(old_tag: bytes, cells: list[bytes]) -> None:
    names = (b'q"', b"b", b"\x01", "é".encode())
    columns = [hand.column(name, LINE, is_key=index != 1) for index, name in enumerate(names)]
    updates = [
        hand.change(b"U", hand.image(old_tag, *cells[at : at + 4]), hand.image(b"N", *cells[at + 4 : at + 8]))
        for at in range(len(cells) - 7)
    ]
    answer = agree([hand.relation(*columns), *updates], format="pgoutput")
    assert answer.table is not None
    listed = [dict(detail).get("binary") for detail in answer.table["detail"].to_pylist()]
    sent = [any(cell[:1] == b"b" for cell in cells[at : at + 8]) for at in range(len(updates))]
    assert [one is not None for one in listed[1:]] == sent
    assert all(one is None or set(json.loads(one)) <= {name.decode() for name in names} for one in listed)


def test_columns_of_one_name_without_a_text_form() -> None:
    columns = [hand.column(b"a", LINE), hand.column(b"a", LINE), hand.column(b"b", 23)]
    rows = [hand.change(b"I", hand.image(b"N", *[hand.binary(b"\1\2\3\4")] * 3))]
    answer = agree([hand.relation(*columns), *rows], format="pgoutput")
    assert [event.binary for event in answer.events if isinstance(event, wf.Insert)] == [("a",)]


@pytest.mark.parametrize("dimensions", [[], [(0, 1)], [(2, 1), (0, 1)]])
@pytest.mark.parametrize("name", ["integer[]", "numeric[]"])
def test_bytes_after_an_empty_array(name: str, dimensions: list[tuple[int, int]]) -> None:
    empty = array(name[:-2], dimensions, [])
    answer = agree([described(name), *inserts([empty, empty + b"junk"])], format="pgoutput", mode="PERMISSIVE")
    assert [type(event) for event in answer.events] == [wf.Relation, wf.Insert, wf.Corrupt]


def test_long_texts_of_short_values() -> None:
    values = [array("numeric", [(40, 1)], [numeric([1], 250, 0, 0)] * 40)] * 60
    answer = agree([described("numeric[]"), *inserts(values)], format="pgoutput")
    assert len(answer.events) == 61


@pytest.mark.parametrize("days", [212_773_864, -213_503_982, 2_145_031_948, 2_921_939, 2_921_940, -730_119, -730_120])
def test_dates_far_away(days: int) -> None:
    """In microseconds, those beyond an int64 would wrap to a date of our years."""
    messages = [described("date"), *inserts([struct.pack(">i", days)])]
    assert len(agree(messages, format="pgoutput", mode="PERMISSIVE").events) == 2


def test_filters_take_rows_with_binary_values() -> None:
    messages = [described("uuid"), *inserts([bytes(16)] * 3)]
    for tables, count in ((["public.t"], 3), (["public.other"], 0)):
        answer = agree(messages, format="pgoutput", tables=tables, kinds=["INSERT"])
        assert len(answer.events) == count
