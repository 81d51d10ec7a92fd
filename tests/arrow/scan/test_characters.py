"""Compiled code reads names in other encodings as Python's strict decoders read them, or leaves them to Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.arrays import Array
from wireformat.arrow.jit.compiler import compiled
from wireformat.arrow.scan.joined_texts import JOINABLE
from wireformat.arrow.scan.relations.characters import MOST_GROWTH, NO_CHARACTERS, characters_of, decode_name

AFTER = b"\0\x81after"
"""What follows a name in these tests: a zero byte, and bytes that no name includes."""


@compiled
def _decode(data: Array, stop: int, to: int, characters: Array) -> tuple[int, int]:
    return decode_name(data, 1, stop, data, to, characters)


def decoded(name: bytes, encoding: str, after: bytes = AFTER) -> str | None:
    """The name by the table, or None."""
    begin = 1 + len(name) + len(after)
    data = np.zeros(begin + MOST_GROWTH * len(name) + 8, np.uint8)
    data[1:begin] = np.frombuffer(name + after, np.uint8)
    end, stop = _decode(data, begin, begin, characters_of(encoding))
    if end < 0:
        return None
    assert end == 1 + len(name)
    return bytes(data[begin:stop]).decode()


def expected(name: bytes, encoding: str) -> str | None:
    try:
        return name.decode(encoding)
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("encoding", sorted(JOINABLE))
@given(st.lists(st.one_of(st.integers(1, 255), st.integers(0x80, 0xFF)), max_size=9).map(bytes))
def test_as_python_or_not_at_all(encoding: str, name: bytes) -> None:
    assert decoded(name, encoding) in (None, expected(name, encoding))


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "big5", "shift_jis", "euc_jp", "johab", "koi8-r", "cp1252"])
def test_all_characters_of_one_and_two_bytes(encoding: str) -> None:
    """Those that several sequences of bytes mean may be left to Python, but for the one that Python writes."""
    for first in range(0x80, 0x100):
        for name in (bytes((first,)), *(bytes((first, second)) for second in range(1, 0x100))):
            text = expected(name, encoding)
            is_left = text is not None and text.encode(encoding) != name
            assert decoded(name, encoding) in ((None, text) if is_left else (text,)), name


@pytest.mark.parametrize(("encoding", "size"), [("euc_jp", 3), ("euc_jis_2004", 3), ("gb18030", 4)])
def test_characters_of_more_bytes(encoding: str, size: int) -> None:
    """All that an encoding of two bytes for most has, but for those beyond the alphabets of GB 18030."""
    codes = range(0x80, 0x2000 if size == 4 else 0xD800)
    names = [name for code in codes if len(name := chr(code).encode(encoding, "ignore")) == size]
    assert len(names) > 1000
    for name in names:
        assert decoded(name, encoding) == expected(name, encoding)
        assert decoded(name[:-1], encoding, b"") is None
    assert decoded("\uac00".encode("gb18030"), "gb18030") is None


@pytest.mark.parametrize("encoding", ["gbk", "cp1252"])
def test_names_without_a_zero_byte(encoding: str) -> None:
    for text in ("", "a", "é"):
        assert decoded(text.encode(encoding), encoding, b"") == text
    assert decoded("é".encode("gbk")[:1], "gbk", b"") is None


def test_encodings_of_other_packages() -> None:
    assert characters_of("punycode") is NO_CHARACTERS
