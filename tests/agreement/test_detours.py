"""Rows that the scan does not finish by itself: detours of all kinds in one row, and what comes before an error."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import wireformat as wf

from .. import handmade, strategies, text_samples
from .. import handmade_pgoutput as hand
from ..engines import MODES, agree, record_text
from ..handmade import u16, u64

TEXT, NUMERIC, INTEGER, TIMESTAMP = 25, 1700, 23, 1114
DESCRIBED = hand.relation(
    hand.column(b"v", TEXT, is_key=True),
    hand.column(b"n", NUMERIC),
    hand.column(b"i", INTEGER),
    hand.column(b"t", TIMESTAMP),
)
ONE_AND_A_HALF = u16(2) + u16(0) + u16(0) + u16(1) + u16(1) + u16(5000)
HUGE = u16(1) + u16(30_000) + u16(0) + u16(0) + u16(1)

CELLS = (
    (
        hand.text(b"x"),
        hand.text("表é".encode()),
        hand.text(b"\xff\xfe"),
        hand.binary(b"\xff\xfe"),
        hand.NULL,
        hand.UNCHANGED,
    ),
    (hand.text(b"1.5"), hand.binary(ONE_AND_A_HALF), hand.binary(ONE_AND_A_HALF[:-1]), hand.binary(HUGE)),
    (hand.binary(bytes(4)), hand.binary(bytes(3))),
    (hand.binary(bytes(8)), hand.binary(u64((1 << 63) - 1)), hand.binary(u64((1 << 63) - 2))),
)
"""Of each column: texts, binary values that the scan or Python reads, and bytes that are none of its type."""

IMAGES = list(product(*CELLS))
INSERTS = [hand.change(b"I", hand.image(b"N", *cells)) for cells in IMAGES]
UPDATES = [
    hand.change(b"U", hand.image(tag, *old), hand.image(b"N", *IMAGES[(7 * place + 31) % len(IMAGES)]))
    for place, old in enumerate(IMAGES)
    for tag in (b"K", b"O")
]


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1", "ascii"])
def test_every_detour_beside_every_other(encoding: str, errors: str) -> None:
    messages = [DESCRIBED, *INSERTS, *UPDATES]
    options = {"format": "pgoutput", "encoding": encoding, "encoding_errors": errors}
    answer = agree(messages, mode="PERMISSIVE", **options)
    kinds = [event.kind for event in answer.events]
    assert len(kinds) == len(messages)
    assert {"INSERT", "UPDATE", "CORRUPT"} <= set(kinds)
    dropped = agree(messages, mode="DROPMALFORMED", tables=["public.*"], **options)
    assert dropped.events == [event for event in answer.events if event.kind != "CORRUPT"]


@pytest.mark.slow
def test_detours_come_before_the_first_error() -> None:
    events = wf.decode([DESCRIBED, *INSERTS], "pgoutput", mode="PERMISSIVE")
    bad = [place for place, event in enumerate(events) if event.kind == "CORRUPT"]
    for place in bad:
        good = [message for index, message in enumerate(INSERTS, 1) if index < place and index not in bad]
        answer = agree([DESCRIBED, *good, INSERTS[place - 1], *INSERTS[:3]], format="pgoutput")
        assert answer.error is not None
        assert answer.error.message == len(good) + 1
        assert len(answer.events) == len(good) + 1


RECORDS: dict[str, list[bytes]] = {
    **text_samples.SAMPLES,
    "gaussdb-json": [
        text_samples.J,
        b"BEGIN CSN: 1 first_lsn: 0/1",
        b"commit xid: 5",
        b"",
        b"beat",
        b'{"x',
        b"commit \xff",
    ],
    "gaussdb-text": [
        text_samples.insert(b" a[integer]:1"),
        b"BEGIN CSN: 1 first_lsn: 0/1",
        b"commit xid: 5",
        b"",
        b"beat",
        b"tabl\xff",
        b"table x",
    ],
    "gaussdb-binary": [
        handmade.BEGIN,
        handmade.INSERT,
        handmade.COMMIT,
        handmade.HEARTBEAT,
        b"?",
        handmade.commit(b"?"),
    ],
    "pgoutput": [message for message, _ in hand.ALL.values()],
}
"""Records as they are alone: good ones, UNKNOWN ones, bad ones, and those that the scan leaves to the declaration."""


def batched(format: str, records: list[bytes]) -> bytes:
    """One message; of a format without batches, one record of them."""
    if format == "gaussdb-binary":
        return handmade.message(*records)
    if format in ("gaussdb-json", "gaussdb-text"):
        return text_samples.batched(*records)
    return records[0]


@pytest.mark.parametrize("format", RECORDS)
@given(data=st.data())
def test_what_was_read_before_an_error_comes_out(format: str, data: st.DataObject) -> None:
    """In both engines alike, record by record, also within a message whose framing is broken further on."""
    record = st.sampled_from(RECORDS[format]) | strategies.mutated(RECORDS[format])
    batch = st.lists(record, min_size=1, max_size=5).map(lambda records: batched(format, records))
    messages = data.draw(st.lists(batch, min_size=1, max_size=3))
    messages[-1] = data.draw(st.just(messages[-1]) | strategies.mutated(messages[-1:]))
    if format == "pgoutput":
        messages.insert(0, hand.DESCRIBED)
    kept, failed, dropped = (agree(messages, format=format, mode=mode) for mode in (MODES[1], MODES[0], MODES[2]))
    corrupt = [place for place, event in enumerate(kept.events) if isinstance(event, wf.Corrupt)]
    assert failed.events == kept.events[: corrupt[0] if corrupt else None]
    assume(len(messages) < 2 or any(not isinstance(event, wf.Unknown) for event in kept.events))  # else: another format
    assert (failed.error is not None) == bool(corrupt)
    if corrupt:
        assert record_text(failed.error) == record_text(kept.events[corrupt[0]].error)  # type: ignore[attr-defined]
    assert dropped.events == [event for event in kept.events if not isinstance(event, wf.Corrupt)]


@pytest.mark.parametrize("format", ["gaussdb-json", "gaussdb-text"])
def test_an_empty_record_hides_none_behind_it(format: str) -> None:
    """The scan leaves the message to the declaration from there on."""
    bad = RECORDS[format][-2 if format == "gaussdb-json" else -1]
    records = [b"BEGIN CSN: 1 first_lsn: 0/1", b"", b"commit xid: 5", bad]
    answer = agree([text_samples.batched(*records)], format=format)
    assert [event.kind for event in answer.events] == ["BEGIN", "UNKNOWN", "COMMIT"]
    assert answer.error is not None
    assert answer.error.record == 3
