"""LSNs as text and as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import wireformat as wf
from wireformat.lsn import signed, unsigned

from .strategies import I64, U64

PAIRS = {
    "0/0": 0,
    "0/1": 1,
    "0/CFE5C80": 217996416,
    "0/FFFFFFFF": 0xFFFFFFFF,
    "1/0": 1 << 32,
    "16/B374D848": 0x16B374D848,
    "7FFFFFFF/FFFFFFFF": (1 << 63) - 1,
    "80000000/0": 1 << 63,
    "FFFFFFFF/FFFFFFFF": (1 << 64) - 1,
}


@pytest.mark.parametrize("text", PAIRS)
def test_pairs(text: str) -> None:
    assert wf.lsn_text(PAIRS[text]) == text
    assert wf.lsn_value(text) == PAIRS[text]


@given(U64)
def test_there_and_back(value: int) -> None:
    assert wf.lsn_value(wf.lsn_text(value)) == value
    assert wf.lsn_text(signed(value)) == wf.lsn_text(value)
    assert unsigned(signed(value)) == value


@given(I64)
def test_signed_is_how_a_column_holds_it(value: int) -> None:
    assert signed(unsigned(value)) == value
    assert unsigned(value) == int.from_bytes(value.to_bytes(8, "big", signed=True), "big")


def test_small_letters_and_zeros_in_front_are_read() -> None:
    assert wf.lsn_value("0/cfe5c80") == wf.lsn_value("00000000/0CFE5C80") == 217996416


def test_integers_of_numpy() -> None:
    assert wf.lsn_text(np.int64(5)) == "0/5"
    with pytest.raises(TypeError, match="lsn: expected a number, got float"):
        wf.lsn_text(5.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_out_of_range(value: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        wf.lsn_text(value)


@pytest.mark.parametrize(
    "text", ["", "0", "/", "0/", "/0", "0/0/0", "0/G", " 0/0", "0/0 ", "0/0\n", "0/123456789", "-1/0", "0x1/0", "١/0"]
)
def test_what_is_no_lsn(text: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        wf.lsn_value(text)
