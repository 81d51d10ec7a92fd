"""Compiled readers against the casts: the same values and the same misfits, wherever the texts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.arrays import read_only
from wireformat.arrow.jit.intrinsics import BLOCK
from wireformat.arrow.noted_texts import NotedTexts
from wireformat.arrow.readers.reader import FEW_BYTES, FEW_TEXTS, CompiledReader
from wireformat.arrow.typed_tables.casts import arrow_type, cast_of, reader_of
from wireformat.pgtypes.columns import column_type
from wireformat.pgtypes.sql_types import parse_sql_type

from ...servers.values import VALUES

FORMS: dict[str, st.SearchStrategy[str]] = {
    "smallint": st.integers(-33_000, 33_000).map(str),
    "integer": st.integers(-(1 << 32), 1 << 32).map(str),
    "bigint": st.one_of(st.integers(), st.integers(-(1 << 63) - 9, 1 << 63), st.integers(-999, 999)).map(str),
    "oid": st.integers(0, (1 << 32) - 1).map(str),
    "boolean": st.sampled_from(["t", "f", "true", "false", "1", "0"]),
    "numeric(5,2)": st.decimals(-2000, 2000, places=2).map(str),
    "numeric(2,2)": st.decimals(-2, 2, places=2).map(str),
    "numeric(18)": st.integers(-(10**18), 10**18).map(str),
    "numeric(18,18)": st.decimals(-1, 1, places=18).map("{:f}".format),
    "numeric(19,4)": st.decimals(-(10**15), 10**15, places=4).map("{:f}".format),
    "numeric(38,18)": st.decimals(-(10**20), 10**20, places=18).map("{:f}".format),
    "numeric(38)": st.integers(-(10**38), 10**38).map(str),
    "numeric(38,38)": st.decimals(-1, 1, places=38).map("{:f}".format),
    "date": st.dates().map(str),
    "time": st.times().map(str),
    "timestamp": st.datetimes().map(str),
    "timestamptz": st.builds(
        "{}{}".format,
        st.datetimes(),
        st.sampled_from(["+00", "-07", "+05:30", "-15:59", "+16", "+01:02:03", "-15:59:59", "+01:02:60"]),
    ),
    "bytea": st.one_of(
        st.binary(max_size=40).map(lambda data: f"\\x{data.hex()}"),
        st.lists(st.sampled_from(["\\\\", "\\000", "\\377", *"aA0 ~"])).map("".join),
    ),
    "raw": st.binary(max_size=40).map(lambda data: data.hex().upper()),
}
"""Texts as servers print them, and some that do not fit."""

ODD = [
    "",
    " ",
    "-",
    "+",
    ".",
    "-.",
    "1.",
    ".5",
    "00",
    "-0",
    "+1",
    "1e5",
    "NaN",
    "Infinity",
    "infinity",
    "24:00:00",
    "绿",
]


def of_type(type: str) -> tuple[CompiledReader, Any]:
    column = column_type(parse_sql_type(type))
    reader = reader_of(arrow_type(column.arrow), column.reading)
    assert isinstance(reader, CompiledReader)
    return replace(reader, few=0), cast_of(arrow_type(column.arrow), column.reading)


def noted(texts: Sequence[str | None], is_in_source: Sequence[bool]) -> NotedTexts:
    return noted_bytes([None if text is None else text.encode() for text in texts], is_in_source)


def noted_bytes(cells: Sequence[bytes | None], is_in_source: Sequence[bool]) -> NotedTexts:
    """Cells in two buffers; the first ends with its last cell."""
    source, text, pairs = b"", b"", []
    for cell, in_source in zip(cells, is_in_source, strict=True):
        data = cell or b""
        pairs.append((len(source) if in_source else ~len(text), -1 if cell is None else len(data)))
        source, text = (source + data, text) if in_source else (source, text + data)
    return NotedTexts(
        np.array(pairs, np.int32).reshape(-1, 2),
        read_only(np.frombuffer(source, np.uint8)),
        np.frombuffer(bytearray(text + bytes(BLOCK)), np.uint8),
    )


def check(type: str, texts: Sequence[str | None], is_in_source: Sequence[bool]) -> None:
    reader, cast = of_type(type)
    column = pa.array(texts, pa.string())
    expected, misfits = cast.read(column)
    for form in (column, noted(texts, is_in_source)):
        values, found = reader.read(form)
        values.validate(full=True)
        assert values.equals(expected)
        assert found == misfits


@st.composite
def mutants(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with one character taken out, put in, or another one in its place."""
    text = draw(texts)
    at = draw(st.integers(0, len(text)))
    rest = draw(st.integers(at, min(at + 1, len(text))))
    return text[:at] + draw(st.sampled_from(["", *"09-+.:eT /tx\0é\\"])) + text[rest:]


@pytest.mark.parametrize("type", FORMS)
@given(data=st.data())
def test_a_compiled_reader_is_its_cast(type: str, data: st.DataObject) -> None:
    usual = st.one_of(FORMS[type], st.sampled_from(VALUES.get(type, ["1"])))
    odd = st.one_of(mutants(usual), st.sampled_from(ODD), st.text(max_size=30), usual.map(lambda text: text * 9))
    some = st.one_of(st.none(), usual) if data.draw(st.booleans()) else st.one_of(st.none(), usual, odd)
    texts = data.draw(st.lists(some, max_size=12))
    check(type, texts, data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))


@pytest.mark.parametrize("type", FORMS)
def test_usual_forms_are_read_without_the_cast(type: str) -> None:
    """Else the property would hold of a reader that takes nothing."""
    texts: dict[str, list[str | None]] = {
        "boolean": ["t", "f", "true", "false", "1", "0"],
        "date": ["0001-01-01", "2026-11-22", "9999-12-31"],
        "time": ["00:00:00", "23:59:59.999999", "12:30:00.5"],
        "timestamp": ["0001-01-01 00:00:00", "2026-11-22 12:30:00.5", "9999-12-31 23:59:59.999999"],
        "timestamptz": ["0001-01-01 00:00:00+00", "2026-11-22 12:30:00.5+05:30", "1850-11-22 12:30:00+00:53:28"],
        "bytea": ["\\x", "", "\\x00fF", "a\\\\b\\001\\377"],
        "raw": ["00fF", "\\x00", ""],
        "smallint": ["-32768", "32767", "0"],
        "integer": ["-2147483648", "2147483647"],
        "bigint": ["-9223372036854775807", "9223372036854775807", "12345678", "123456789", "1234567890123456789"],
        "oid": ["4294967295"],
        "numeric(18)": ["-999999999999999999", "7"],
        "numeric(38)": ["9" * 38, "-" + "9" * 38, "1" + "0" * 37],
        "numeric(38,18)": ["12345678901234567890.123456789012345678", "-0.5", "3", "100000000000.25"],
        "numeric(18,18)": ["0.123456789012345678", "-0.1"],
        "numeric(38,38)": ["0." + "9" * 38],
        "numeric(19,4)": ["123456789012345.6789", "-7.25"],
    }
    reader, _ = of_type(type)
    of_type_ = texts.get(type, ["0.99", "-0.05", "0.5", "0"])
    column, left = reader.read_usual(NotedTexts.of(pa.array([*of_type_, None], pa.string())))
    assert not len(left)
    check(type, of_type_, [True] * len(of_type_))
    assert column.null_count == 1


def test_every_end_of_a_month() -> None:
    days = [
        f"{year:04}-{month:02}-{day:02}"
        for year in range(10_000)
        for month in (1, 2, 4, 12)
        for day in (0, 1, 28, 29, 30, 31, 32)
    ]
    column, left = of_type("date")[0].read_usual(NotedTexts.of(pa.array(days)))
    assert column.to_pylist() == [date.fromisoformat(day) if is_day(day) else None for day in days]
    assert left.tolist() == [row for row, day in enumerate(days) if not is_day(day)]


def is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text) is not None
    except ValueError:
        return False


def test_a_slice_of_a_column() -> None:
    column = pa.array(["x", "1", None, "-22", "y"])[1:4]
    reader, _ = of_type("integer")
    values, misfits = reader.read(column)
    assert (values.to_pylist(), misfits) == ([1, None, -22], {})
    assert NotedTexts.of(column).strings().equals(column)
    assert NotedTexts.of(pa.array([], pa.string())).strings().to_pylist() == []


def test_many_texts_that_are_left() -> None:
    times = [None, "infinity", "2026-11-22 01:02:03", "0044-03-15 00:00:00 BC"] * 200
    values, misfits = of_type("timestamp")[0].read(pa.array(times))
    assert values.to_pylist() == [None, None, datetime(2026, 11, 22, 1, 2, 3), None] * 200  # noqa: DTZ001 - without zone
    assert len(misfits) == 400


def test_few_long_texts_are_read_by_compiled_code() -> None:
    """There are never many values of a megabyte in one batch."""
    reader, cast = of_type("bytea")
    few = replace(reader, few=FEW_TEXTS, others=SimpleNamespace(type=reader.type))  # which cannot read
    texts = pa.array(["a\\\\b\\000" * FEW_BYTES, None])
    assert few.read(texts)[0].equals(cast.read(texts)[0])
