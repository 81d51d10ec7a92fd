"""Numbers of rows: the same for the same, in every column and however much there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.written import heads
from wireformat.arrow.written.heads import NO_CODE, Heads

NAMES = ("table_schema", "table_name", "new", "types", "old", "detail")
TEXTS = st.sampled_from(
    ["", "a", "abc", "abcd", "abcde", "abcdefgh", "abcdefgi", "x" * 16, "x" * 200, "x" * 100 + "y" * 100]
)
PAIRS = st.none() | st.lists(st.tuples(TEXTS, st.just("")), max_size=3)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "table_schema": st.none() | TEXTS,
            "table_name": TEXTS,
            "new": PAIRS,
            "types": st.none() | st.lists(TEXTS, max_size=3),
            "old": PAIRS,
            "detail": PAIRS,
            "unchanged": st.none() | st.lists(TEXTS, min_size=1, max_size=3),
        }
    ),
    max_size=20,
)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, wf.arrow.CHANGES)


def codes_of(known: Heads, rows: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    codes, firsts = known.codes(batch_of(rows), np.zeros(len(rows), np.int32))
    return codes.tolist(), firsts.tolist()


@given(rows=ROWS, size=st.integers(1, 20))
def test_the_same_rows_have_the_same_number(rows: list[dict[str, Any]], size: int) -> None:
    """Also in later batches; the first row of each number is told."""
    known = Heads()
    numbers: dict[str, int] = {}
    for start in range(0, len(rows), size):
        some = [dict(sorted(row.items())) for row in rows[start : start + size]]  # `repr` is that of equal rows
        codes, firsts = codes_of(known, some)
        assert firsts == [row for row, one in enumerate(some) if repr(one) not in numbers and some.index(one) == row]
        for row, code in zip(some, codes, strict=True):
            assert numbers.setdefault(repr(row), code) == code
    assert len({*numbers.values()}) == len(numbers)


def test_kinds_and_rows_without_a_number() -> None:
    rows = [{"table_name": "t", "types": ["a"]}] * 4 + [{"table_name": "t", "types": ["a", None]}]
    codes, firsts = Heads().codes(batch_of(rows), np.array([0, 1, NO_CODE, 0, 0], np.int32))
    assert codes[0] == codes[3] != codes[1]
    assert codes[[2, 4]].tolist() == [NO_CODE] * 2
    assert firsts.tolist() == [0, 1]


def test_long_names_that_differ_at_any_byte() -> None:
    """Not all of a long text is hashed; all of it is compared."""
    texts = ["x" * at + "y" + "x" * (499 - at) for at in range(500)]
    codes, _ = codes_of(Heads(), [{"table_name": text} for text in texts] * 2)
    assert codes[:500] == codes[500:]
    known = [code for code in codes[:500] if code != NO_CODE]
    assert len({*known}) == len(known) >= heads.PROBES


def test_more_texts_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Space is added, up to a limit; what does not fit has no number."""
    rows = [{"table_name": f"{number}" * 500} for number in range(100)]
    codes, _ = codes_of(Heads(), rows)
    assert NO_CODE not in codes
    monkeypatch.setattr(heads, "MOST_TEXT", 1 << 14)
    known = Heads()
    codes, _ = codes_of(known, rows)
    assert 0 < codes.count(NO_CODE) < 100
    assert codes_of(known, rows)[0] == codes


@pytest.mark.parametrize("name", ["{:04}", "t{}", "{:07}", "orders_{}"])
def test_all_steps_can_be_used(name: str) -> None:
    """Names of four bytes had the same hash, so that few of them got a number."""
    codes, _ = codes_of(Heads(), [{"table_name": name.format(number)} for number in range(10_000)])
    assert len({*codes} - {NO_CODE}) == 10_000


def test_values_that_were_not_sent_leave_numbers_for_other_tables() -> None:
    """Each row may lack other columns."""
    names = [f"c{number:02}" for number in range(16)]
    lacking = [[name for bit, name in enumerate(names) if number >> bit & 1] for number in range(1, 20_001)]
    rows = [{"new": [(name, "v") for name in names if name not in unsent], "unchanged": unsent} for unsent in lacking]
    known = Heads()
    assert NO_CODE in codes_of(known, rows)[0]
    assert NO_CODE not in codes_of(known, [{"table_name": "later"}])[0]
