"""Bad messages of pgoutput in envelopes and in streamed blocks, and a row as wide as there can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

import wireformat as wf

from ..accounting import account_all
from ..engines import agree, read
from ..handmade_pgoutput import (
    DESCRIBED,
    NULL,
    ROWS,
    STOP,
    change,
    column,
    envelope,
    image,
    relation,
    start,
    streamed,
)
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, truncations
from ..support.pgoutput import GOOD, SUPPORT

FORMAT = "pgoutput"


@pytest.mark.parametrize("name", [name for name, bad in SUPPORT.bad.items() if bad.message[:1] not in (b"", b"w")])
def test_bad_messages_in_an_envelope(name: str) -> None:
    """They are kept without it, and with its LSN."""
    message = SUPPORT.bad[name].message
    answer = agree([DESCRIBED, envelope(message, 7), DESCRIBED, GOOD], format=FORMAT, mode="PERMISSIVE")
    before, found, *after = answer.events
    assert [event.kind for event in (before, *after)] == ["RELATION", "RELATION", "INSERT"]
    assert isinstance(found, wf.Corrupt)
    assert (found.raw, found.lsn) == (message, 7)


@pytest.mark.parametrize("mutations", [truncations, changed_bytes, overwritten_lengths, inserted_and_deleted])
@pytest.mark.parametrize("name", ROWS)
def test_mutated_rows(name: str, mutations: Callable[[bytes], Iterable[bytes]]) -> None:
    """Outside and inside of a block. What is not corrupt is written back to the same bytes."""
    message = ROWS[name][0]
    if name.startswith("relation"):
        return
    for opening, data, closing in (([], message, []), ([start(800)], streamed(message), [STOP])):
        messages = [
            DESCRIBED,
            *opening,
            *(one for one in mutations(data) if one[:1] not in (b"R", b"S", b"E")),
            *closing,
        ]
        answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
        by_message = answer.by_message()
        account_all(messages, by_message, FORMAT)
        bad = {place for place, events in by_message.items() if isinstance(events[0], wf.Corrupt)}
        assert bad
        good = [message for place, message in enumerate(messages) if place not in bad]
        assert list(wf.encode([one for one in answer.events if not isinstance(one, wf.Corrupt)], FORMAT)) == good


@pytest.mark.slow
def test_a_row_of_as_many_columns_as_the_message_can_say() -> None:
    """All of them key columns, of which each is looked up; the scan has room for them only behind another row."""
    count = 65535
    described = relation(*[column(b"c%d" % number, 23, is_key=True) for number in range(count)])
    row = change(b"U", image(b"K", *[NULL] * count), image(b"N", *[NULL] * count))
    events = read([described, row], format=FORMAT, kinds=["UPDATE"])
    assert [(len(event.new.names), len(event.old.names)) for event in events] == [(count, count)]
