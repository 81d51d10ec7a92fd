"""Messages around streamed blocks that are read without construct: as the declaration reads them, or not at all."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.pgoutput.reader import PgOutput
from wireformat.formats.pgoutput.stream_messages import STREAM_TAGS, read_stream_message
from wireformat.framing.frames import Frame
from wireformat.options import ReadOptions

from ..engines import MODES, agree

COMMIT = pack(">cIBQQq", b"c", 7, 0, 5, 6, 846_000_000_123_456)
RECORDS = [pack(">cIB", b"S", 7, 1), b"E", COMMIT, pack(">cII", b"A", 7, 8)]
INFINITY = (1 << 63) - 1


@given(
    st.one_of(
        st.sampled_from(RECORDS),
        st.builds(
            lambda xid, flags, lsn, time: pack(">cIBQQq", b"c", xid, flags, lsn, lsn, time),
            *(st.integers(0, (1 << 32) - 1), st.integers(0, 1), st.integers(0, (1 << 64) - 1)),
            st.integers(-1 << 63, INFINITY),
        ),
        st.builds(lambda tag, rest: bytes([tag]) + rest, st.sampled_from([*STREAM_TAGS]), st.binary(max_size=40)),
    ),
    st.none() | st.integers(0, (1 << 64) - 1),
)
@example(pack(">cIBQQq", b"c", 7, 0, 5, 6, INFINITY), None)
@example(pack(">cIB", b"S", 7, 2), 9)
@example(COMMIT, 9)
def test_as_the_declaration_reads_them(record: bytes, lsn: int | None) -> None:
    found = read_stream_message(record, lsn)
    frame = Frame(0, 0, len(record), lsn)
    try:
        expected = PgOutput()._parsed(record, frame, ReadOptions())
    except wf.DecodeError:
        assert found is None
    else:
        assert found in (expected, None)
        assert record not in RECORDS or found == expected
        assert repr(PgOutput().read(record, frame, ReadOptions())) == repr(expected)


@pytest.mark.parametrize("dialect", ["postgresql", "opengauss"])
@pytest.mark.parametrize("mode", MODES)
def test_both_engines_agree(dialect: str, mode: str) -> None:
    messages = [*RECORDS, *(record + b"\0" for record in RECORDS), *(record[:-1] or b"E" for record in RECORDS)]
    agree(messages, format="pgoutput", dialect=dialect, mode=mode)
