"""The end of a quoted text, however many escapes it has."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from wireformat.grammar.cursor import closing_quote


def first_quote(data: bytes, quote: bytes, escape: bytes, at: int, stop: int) -> int:
    """Looks at one byte after the other."""
    while at < stop:
        one, two = data[at : at + 1], data[at : min(at + 2, stop)]
        if two in (escape + escape, escape + quote):
            at += 2
        elif one == quote:
            return at
        else:
            at += 1
    return -1


@pytest.mark.parametrize("escape", [b"'", b"\\"], ids=["doubled", "backslash"])
@given(
    parts=st.lists(
        st.tuples(st.sampled_from([b"'", b"\\", b"\\'", b"''", b"x", b""]), st.integers(0, 300)), max_size=8
    ),
    at=st.integers(0, 10),
    cut=st.integers(0, 10),
)
@example(parts=[(b"'", 300)], at=0, cut=0)
@example(parts=[(b"'", 301)], at=0, cut=0)
@example(parts=[(b"x", 63), (b"'", 2), (b"x", 1), (b"'", 1)], at=0, cut=0)
@example(parts=[(b"x", 62), (b"\\", 3), (b"'", 2)], at=0, cut=0)
def test_the_first_quote_that_is_not_escaped(escape: bytes, parts: list[tuple[bytes, int]], at: int, cut: int) -> None:
    data = b"".join(part * count for part, count in parts)
    stop = len(data) - cut
    assert closing_quote(data, b"'", escape, at, stop) == first_quote(data, b"'", escape, at, stop)
