"""Numbers that compiled code writes are those that Python writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.arrays import Array
from wireformat.arrow.jit.compiler import compiled
from wireformat.arrow.scan.primitives import write_decimal, write_hexadecimal

ENDS = [number for digits in range(20) for number in (10**digits - 1, 10**digits, 10**digits + 1)]


@compiled
def _decimal(text: Array, value: int, signed: bool) -> int:
    return write_decimal(text, 1, value, signed)


@compiled
def _hexadecimal(text: Array, value: int) -> int:
    return write_hexadecimal(text, 1, value)


def written(end: int, text: Array) -> str:
    assert text[0] == 0
    assert not text[end:].any()
    return bytes(text[1:end]).decode()


def assert_written(number: int) -> None:
    text = np.zeros(24, np.uint8)
    assert written(_decimal(text, np.uint64(number).astype(np.int64), False), text) == str(number)
    if number < 2**63:
        for signed in (number, -number):
            text[:] = 0
            assert written(_decimal(text, np.int64(signed), True), text) == str(signed)
    if number < 2**32:
        text[:] = 0
        assert written(_hexadecimal(text, np.int64(number)), text) == f"{number:X}"


@pytest.mark.parametrize("number", [*ENDS, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_ends_of_ranges(number: int) -> None:
    assert_written(number)


@given(st.integers(0, 2**64 - 1))
def test_any_number(number: int) -> None:
    assert_written(number)


def test_the_lowest_number() -> None:
    text = np.zeros(24, np.uint8)
    assert written(_decimal(text, np.int64(-(2**63)), True), text) == str(-(2**63))
