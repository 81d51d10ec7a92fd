"""What an OrderError says."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import wireformat as wf
from wireformat.events import RecordFacts
from wireformat.stream.order import BETWEEN, Order


def make_error(**more: Any) -> wf.OrderError:
    facts = {"format": "pgoutput", "message": 7, "record": 3, "record_lsn": 0x16B374D848, "state": BETWEEN, **more}
    return wf.OrderError("BEGIN", "COMMIT xid 5", **facts)


def test_the_text_says_everything() -> None:
    error = make_error(open="BEGIN xid 4 gid 'g' since message 2", streamed=("xid 9 since message 1",) * 7)
    text = str(error)
    assert text.startswith("bad order: between transactions: expected BEGIN, got COMMIT xid 5 [pgoutput: message 7, ")
    for part in ("record 3", "lsn 16/B374D848", "open BEGIN xid 4 gid 'g' since message 2", "streamed xid 9 since "):
        assert part in text
    assert text.count("xid 9") == 5
    assert "open nothing" in str(make_error())


def test_it_pickles() -> None:
    error = make_error(streamed=("xid 9 since message 1",))
    for other in (copy.copy(error), *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(2, 6))):
        assert type(other) is wf.OrderError
        assert (str(other), other.__dict__) == (str(error), error.__dict__)
    assert isinstance(error, wf.WireformatError)
    assert isinstance(error, ValueError)


EXPLAINED: dict[str, tuple[str, list[RecordFacts], str]] = {
    "another transaction's end": (
        "pgoutput",
        [RecordFacts("BEGIN", 5), RecordFacts("COMMIT", 6)],
        r"expected COMMIT with the xid and gid of the open .*, got COMMIT xid 6 \[.* open BEGIN xid 5 since message 0",
    ),
    "another name": (
        "pgoutput",
        [RecordFacts("BEGIN", 5, "a"), RecordFacts("PREPARE", 5, "b")],
        r"got PREPARE xid 5 gid 'b' \[.* open BEGIN xid 5 gid 'a' since message 0",
    ),
    "a prepared one committed": (
        "pgoutput",
        [RecordFacts("BEGIN", 5, "a"), RecordFacts("COMMIT")],
        "COMMIT after a BEGIN without gid",
    ),
    "one not prepared": (
        "pgoutput",
        [RecordFacts("BEGIN", 5), RecordFacts("PREPARE", 5, "a")],
        "PREPARE after a BEGIN with gid",
    ),
    "a block in a transaction": (
        "pgoutput",
        [RecordFacts("BEGIN"), RecordFacts("STREAM_START", 1)],
        "after BEGIN: .* STREAM_START xid 1",
    ),
    "a transaction in a block": (
        "pgoutput",
        [RecordFacts("STREAM_START", 1), RecordFacts("BEGIN", 2)],
        "open STREAM_START xid 1 since",
    ),
    "the end of a block that is open": (
        "pgoutput",
        [RecordFacts("STREAM_START", 1), RecordFacts("STREAM_COMMIT", 1)],
        "after STREAM_START: .*open STREAM_START xid 1 since message 0, streamed xid 1 since message 0",
    ),
    "one that never streamed": (
        "pgoutput",
        [RecordFacts("STREAM_START", 1), RecordFacts("STREAM_STOP"), RecordFacts("STREAM_COMMIT", 2)],
        "STREAM_COMMIT of a streamed transaction that has not ended, got STREAM_COMMIT xid 2 .*streamed xid 1 since",
    ),
    "a first segment that is none": (
        "pgoutput",
        [
            RecordFacts("STREAM_START", 1),
            RecordFacts("STREAM_STOP"),
            RecordFacts("STREAM_START", 1, first_segment=True),
        ],
        "STREAM_START with first_segment only for the first block of a transaction",
    ),
    "an abort of all of one that never streamed": (
        "pgoutput",
        [RecordFacts("STREAM_ABORT", 1, None, 1)],
        "STREAM_ABORT of a subtransaction, or of a streamed transaction that has not ended, got STREAM_ABORT xid 1",
    ),
    "an origin too late": (
        "pgoutput",
        [RecordFacts("BEGIN"), RecordFacts("INSERT"), RecordFacts("ORIGIN")],
        "got ORIGIN",
    ),
    "a transactional message outside": (
        "pgoutput",
        [RecordFacts("MESSAGE", transactional=True)],
        "MESSAGE that is not transactional, got MESSAGE",
    ),
    "a change of another block": (
        "test-decoding",
        [RecordFacts("STREAM_START", 1), RecordFacts("STREAM_CHANGE", 2)],
        "STREAM_CHANGE with the xid and gid of the open transaction",
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_was_wrong(name: str) -> None:
    format, records, words = EXPLAINED[name]
    order = Order(format)
    *good, bad = records
    for place, record in enumerate(good):
        order.take(record, message=place, number=0, lsn=None)
    with pytest.raises(wf.OrderError, match=words):
        order.take(bad, message=len(good), number=0, lsn=None)
