"""Generated events of gaussdb-binary: hostile names and values, numbers at their ends, optional fields or not.

Strategies are made once: hypothesis looks for the characters of an encoding among all that there are, for each anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import wireformat as wf
from wireformat.identifiers import KEYWORDS

from .golden_cases import type_names
from .mutations import LIES_16, LIES_32

KNOWN_KINDS = b"BCIUDh"

U64_ENDS = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
U64 = st.sampled_from(U64_ENDS) | st.integers(0, (1 << 64) - 1)
I64 = st.sampled_from([-(1 << 63), -1, 0, (1 << 63) - 1]) | st.integers(-(1 << 63), (1 << 63) - 1)
I32 = st.sampled_from([-(1 << 31), -1, 0, (1 << 31) - 1]) | st.integers(-(1 << 31), (1 << 31) - 1)

HOSTILE_NAMES = [
    '"',
    '""',
    'a"b',
    '"a"',
    '"a',
    'a"',
    " ",
    "a b",
    "a.b",
    "$",
    "a$1",
    "Upper",
    "0",
    "",
    "_",
    "a\0",
    "\\",
    "x" * 300,
]
"""All are ASCII, so every server encoding can say them."""

PLAIN_TIMES = st.from_regex(
    r"(?a)\A\d{4}-[01]\d-[0-3]\d [0-2]\d:[0-5]\d:[0-5]\d(\.\d{1,6})?[+-][01]\d(:[0-5]\d){0,2}( BC)?\Z"
)
TIMES = st.sampled_from(["infinity", "-infinity", "(timestamp out of range)", ""]) | PLAIN_TIMES


ALL_CHARACTERS = ("utf-8", "gb18030")
"""Encodings that can say all characters, so that hypothesis need not try each of a million."""


@cache
def characters(encoding: str, but: str = "") -> SearchStrategy[str]:
    """Every character that the encoding can say, but these; no surrogates."""
    codec = None if encoding in ALL_CHARACTERS else encoding
    return st.characters(codec=codec, exclude_categories=["Cs"], exclude_characters=but)


@cache
def values(encoding: str = "utf-8") -> SearchStrategy[str | None]:
    """Cell values: NULL, empty, with zero bytes, looking like framing, large, and any text."""
    shapes = st.sampled_from([None, "", "\0", "\0" * 9, "F", "P\0\0\0\0", "NULL", "\\x00", "t" * 5000])
    return shapes | st.text(characters(encoding), max_size=30)


@cache
def names(encoding: str = "utf-8") -> SearchStrategy[str]:
    """Names of schemas, tables and columns."""
    return (
        st.sampled_from(["id", "public", "orders", *HOSTILE_NAMES])
        | st.sampled_from(sorted(KEYWORDS))
        | st.text(characters(encoding), max_size=12)
    )


@cache
def type_texts() -> SearchStrategy[str]:
    """Types as events name them: in the catalogue, and numbers that are in none."""
    known = type_names()
    unlisted = st.sampled_from([0, 1, 16383, 16384, 65536, 0x7FFFFFFF, 0xFFFFFFFF]) | st.integers(16384, 0xFFFFFFFF)
    return st.sampled_from(sorted(known.values())) | unlisted.filter(lambda oid: oid not in known).map("oid:{}".format)


@cache
@st.composite
def images(draw: Callable[..., Any], encoding: str = "utf-8") -> wf.TupleData:
    """A row image; without columns, with few, or with the same one several times."""
    cells = draw(st.lists(st.tuples(names(encoding), values(encoding), type_texts()), max_size=5))
    names_, values_, types = zip(*cells, strict=True) if cells else ((), (), ())
    return wf.TupleData(names_, values_, types)


@cache
def row_changes(encoding: str = "utf-8") -> SearchStrategy[wf.RowChange]:
    """INSERT, UPDATE and DELETE with both images, either or none."""
    facts = {
        "lsn": U64,
        "table_schema": names(encoding),
        "table_name": names(encoding),
        "new": st.none() | images(encoding),
        "old": st.none() | images(encoding),
    }
    return st.one_of(*(st.builds(kind, **facts) for kind in (wf.Insert, wf.Update, wf.Delete)))


@cache
def transaction_ends(encoding: str = "utf-8") -> SearchStrategy[wf.Event]:
    """BEGIN and COMMIT with any of the tagged fields."""
    text = st.text(characters(encoding), max_size=20)
    facts = {
        "lsn": U64,
        "xid": st.none() | U64,
        "commit_time": st.none() | TIMES | text,
        "origin": st.none() | I32,
        "username": st.none() | text,
    }
    return st.builds(wf.Begin, csn=U64, first_lsn=U64, **facts) | st.builds(wf.Commit, **facts)


@cache
def heartbeats() -> SearchStrategy[wf.Heartbeat]:
    """Framed, or bare where lsn is None."""
    return st.builds(wf.Heartbeat, lsn=st.none() | U64, wal_end=U64, wal_flushed=U64, time=I64)


@cache
def unknowns() -> SearchStrategy[wf.Unknown]:
    """Records of kinds that no table lists."""
    kinds = st.sampled_from([bytes([byte]) for byte in range(256) if byte not in KNOWN_KINDS])
    return st.builds(wf.Unknown, lsn=U64, raw=st.builds(bytes.__add__, kinds, st.binary(max_size=20)))


@cache
def events(encoding: str = "utf-8") -> SearchStrategy[wf.Event]:
    """Everything that the format can say."""
    return st.one_of(row_changes(encoding), transaction_ends(encoding), heartbeats(), unknowns())


@st.composite
def cuts(draw: Callable[..., Any], data: bytes) -> list[bytes]:
    """The bytes in pieces, cut anywhere; some pieces may be empty."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]


@st.composite
def mutated(draw: Callable[..., Any], messages: list[bytes]) -> bytes:
    """One of the messages with up to three things done to it."""
    data = draw(st.sampled_from(messages))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        width = draw(st.sampled_from([1, 2, 4]))
        lie = draw({1: st.integers(0, 255), 2: st.sampled_from(LIES_16), 4: st.sampled_from(LIES_32)}[width])
        other = draw(st.sampled_from(messages))
        data = draw(
            st.sampled_from(
                [
                    data[:place] + lie.to_bytes(width, "big") + data[place + width :],
                    data[:place] + lie.to_bytes(width, "big") + data[place:],
                    data[:place] + data[place + width :],
                    data[:place],
                    data[:place] + other[min(place, len(other)) :],
                    data[:place] + other,
                ]
            )
        )
    return data
