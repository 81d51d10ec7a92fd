"""Bad messages of pgoutput: what errors say, what PERMISSIVE keeps, and that both engines agree on every mutation."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import wireformat as wf

from ..accounting import account_all
from ..engines import ENGINES, agree, ask, read
from ..handmade import u16, u32, u64
from ..handmade_pgoutput import (
    ALL,
    DESCRIBED,
    NULL,
    OPENGAUSS,
    ROWS,
    STOP,
    STREAMED,
    TIME,
    change,
    column,
    envelope,
    image,
    relation,
    start,
    streamed,
    text,
)
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, splices, truncations

FORMAT = "pgoutput"
ONE = image(b"N", text(b"1"), NULL)
GOOD = change(b"I", ONE)
TABLE = "table public.t"

BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "short data: expected a record, got an empty message [pgoutput: byte 0, record 0]"),
    "envelope without a record": (
        envelope(b"", 5),
        (
            "short data: expected 25 bytes and a record, got 25, then the message ends "
            "[pgoutput: byte 0, record 0, field envelope]"
        ),
    ),
    "begin cut": (
        b"B" + u64(5) + TIME[:3],
        (
            "short data: expected 8 bytes, got 3, then the record ends "
            f"[pgoutput: byte 9, record 0, field commit_time, bytes there {TIME[:3].hex(' ')}]"
        ),
    ),
    "begin too long": (
        b"B" + u64(5) + TIME + u32(7) + b"\1\2",
        "trailing bytes: expected the end of the record, got 2 more bytes [pgoutput: byte 21, record 0]",
    ),
    "time of no year": (
        b"B" + u64(5) + u64((1 << 63) - 1) + u32(7),
        (
            "bad value: expected a time from 4713 BC to 294246, got another "
            "[pgoutput: byte 9, record 0, field commit_time]"
        ),
    ),
    "flags of a commit": (
        b"C\1" + u64(5) + u64(6) + TIME,
        "bad value: expected flags 0, got 1 [pgoutput: byte 1, record 0, field flags]",
    ),
    "flags of a truncate": (
        b"T" + u32(0) + b"\4",
        "bad value: expected flags 0 to 3, got 4 [pgoutput: byte 5, record 0, field flags]",
    ),
    "flags of a message": (
        b"M\2" + u64(5) + b"\0" + u32(0),
        "bad value: expected flags 0 or 1, got 2 [pgoutput: byte 1, record 0, field transactional]",
    ),
    "first segment": (
        b"S" + u32(7) + b"\2",
        "bad value: expected 0 or 1, got 2 [pgoutput: byte 5, record 0, field first_segment]",
    ),
    "flags of a column": (
        relation(b"\2a\0" + u32(23) + u32(0)),
        "bad value: expected flags 0 or 1, got 2 [pgoutput: byte 17, record 0, field columns[0].is_key]",
    ),
    "replica identity": (
        relation(identity=b"x"),
        "bad value: expected 'd', 'n', 'f' or 'i', got 120 [pgoutput: byte 14, record 0, field replica_identity]",
    ),
    "fewer columns than said": (
        relation(column(b"a"))[:-10],
        (
            "short data: expected a zero byte that ends the text, got the end of the record "
            "[pgoutput: byte 18, record 0, field columns[0].name]"
        ),
    ),
    "a name without an end": (
        b"O" + u64(5) + b"node",
        (
            "short data: expected a zero byte that ends the text, got the end of the record "
            "[pgoutput: byte 9, record 0, field origin]"
        ),
    ),
    "a name that is no text": (
        b"O" + u64(5) + b"ab\xff\0",
        (
            "bad text: expected text in utf-8, got 1 bytes that are none "
            "[pgoutput: byte 9, record 0, field origin, byte in the field 2]"
        ),
    ),
    "no image": (
        change(b"I"),
        "short data: expected 'N', got the end of the record [pgoutput: byte 5, record 0, field images]",
    ),
    "another image": (
        change(b"I", image(b"O", text(b"1"), NULL)),
        "bad tag: expected 'N', got another byte [pgoutput: byte 5, record 0, field images]",
    ),
    "delete of nothing": (
        change(b"D", ONE),
        "bad tag: expected 'K' or 'O', got another byte [pgoutput: byte 5, record 0, field images]",
    ),
    "two images of an insert": (
        change(b"I", ONE, ONE),
        "trailing bytes: expected the end of the record, got 10 more bytes [pgoutput: byte 15, record 0]",
    ),
    "an old image after the new one": (
        change(b"U", ONE, image(b"K", NULL, NULL)),
        "trailing bytes: expected the end of the record, got 5 more bytes [pgoutput: byte 15, record 0]",
    ),
    "fewer cells than columns": (
        change(b"I", image(b"N", text(b"secret"))),
        (
            "bad length: expected 2 cells, a cell a column of the relation, got 1 "
            f"[pgoutput: byte 6, record 0, field new.cells, {TABLE}]"
        ),
    ),
    "more cells than columns": (
        change(b"D", image(b"O", NULL, NULL, NULL)),
        (
            "bad length: expected 2 cells, a cell a column of the relation, got 3 "
            f"[pgoutput: byte 6, record 0, field old.cells, {TABLE}]"
        ),
    ),
    "more cells than there are": (
        change(b"I", b"N" + u16(65535) + NULL),
        (
            "short data: expected 'n' or 'u' or 't' or 'b', got the end of the record "
            "[pgoutput: byte 9, record 0, field new.cells[1].cell]"
        ),
    ),
    "a cell of no kind": (
        change(b"I", image(b"N", b"x", NULL)),
        "bad tag: expected 'n' or 'u' or 't' or 'b', got 'x' [pgoutput: byte 8, record 0, field new.cells[0].cell]",
    ),
    "a cell longer than the message": (
        change(b"I", image(b"N", b"t" + u32(0xFFFFFFFF), NULL)),
        (
            "bad length: expected a length of at most 1, the rest of the record, got 4294967295 "
            "[pgoutput: byte 9, record 0, field new.cells[0].cell, bytes there ff ff ff ff]"
        ),
    ),
    "a binary cell longer than the message": (
        change(b"I", image(b"N", b"b" + u32(2), NULL)),
        (
            "bad length: expected a length of at most 1, the rest of the record, got 2 "
            "[pgoutput: byte 9, record 0, field new.cells[0].cell, bytes there 00 00 00 02]"
        ),
    ),
    "a value that is no text": (
        change(b"I", image(b"N", text(b"secret\xff"), NULL)),
        (
            "bad text: expected text in utf-8, got 1 bytes that are none "
            "[pgoutput: byte 13, record 0, field new.cells[0].cell, byte in the field 6]"
        ),
    ),
    "more tables than there are": (
        b"T" + u32(0xFFFFFFFF) + b"\0" + u32(16385),
        (
            "short data: expected 4 bytes, got 0, then the record ends "
            "[pgoutput: byte 10, record 0, field relation_ids[1]]"
        ),
    ),
    "a content longer than the message": (
        b"M\1" + u64(5) + b"p\0" + u32(9) + b"secret",
        (
            "bad length: expected a length of at most 6, the rest of the record, got 9 "
            "[pgoutput: byte 12, record 0, field content, bytes there 00 00 00 09]"
        ),
    ),
    "keepalive that is no flag": (
        b"k" + u64(5) + TIME + b"\7",
        "bad value: expected 0 or 1, got 7 [pgoutput: byte 17, record 0, field reply]",
    ),
    "half of a parallel abort": (
        b"A" + u32(7) + u32(7) + u64(5),
        "short data: expected 8 bytes, got 0, then the record ends [pgoutput: byte 17, record 0, field commit_time]",
    ),
}

each_case = pytest.mark.parametrize("name", BAD)


@pytest.mark.parametrize("engine", ENGINES)
@each_case
def test_failfast_says_what_is_wrong_and_where(name: str, engine: str) -> None:
    message, words = BAD[name]
    answer = ask([DESCRIBED, GOOD, None, message, GOOD], engine, format=FORMAT)
    assert len(answer.events) == 2
    assert str(answer.error).replace("message 3, ", "") == words
    assert "secret" not in str(answer.error)
    assert str(pickle.loads(pickle.dumps(answer.error))) == str(answer.error)


@each_case
def test_permissive_keeps_it_and_goes_on(name: str) -> None:
    """With the LSN of the envelope, if it came in one."""
    message, words = BAD[name]
    is_alone = message[:1] in (b"", b"w")
    for data, lsn in [(message, None)] if is_alone else [(message, None), (envelope(message, 7), 7)]:
        answer = agree([DESCRIBED, data, DESCRIBED, GOOD, None, GOOD], format=FORMAT, mode="PERMISSIVE")
        before, found, *after = answer.events
        assert [event.kind for event in (before, *after)] == ["RELATION", "RELATION", "INSERT", "INSERT"]
        assert isinstance(found, wf.Corrupt)
        assert (found.raw, found.lsn) == (message, lsn)
        if lsn is None:
            assert found.error.replace("message 1, ", "") == words
    dropped = agree([DESCRIBED, message, DESCRIBED, GOOD], format=FORMAT, mode="DROPMALFORMED")
    assert [event.kind for event in dropped.events] == ["RELATION", "RELATION", "INSERT"]


def mutants(message: bytes) -> list[bytes]:
    found = truncations(message)
    for mutations in (changed_bytes, overwritten_lengths, inserted_and_deleted):
        found += mutations(message)
    return found


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


OTHERS = {name: pair[0] for name, pair in ALL.items() if name not in ROWS or name.startswith("relation")}


@pytest.mark.parametrize("name", OTHERS)
def test_mutated_others(name: str) -> None:
    """They change what the next ones mean, alike in both engines."""
    messages = [DESCRIBED]
    for number, mutant in enumerate(mutants(OTHERS[name])[::3]):
        messages += [mutant, GOOD, streamed(GOOD)] if number % 5 == 0 else [mutant]
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), FORMAT)


@pytest.mark.parametrize("name", OPENGAUSS)
def test_mutated_opengauss(name: str) -> None:
    messages = [DESCRIBED, *mutants(OPENGAUSS[name][0])[::3]]
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE", dialect="opengauss")
    account_all(messages, answer.by_message(), FORMAT)


def test_mutated_envelopes() -> None:
    messages = [DESCRIBED, *mutants(envelope(GOOD, 1 << 40))[::3]]
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), FORMAT)


def test_splices() -> None:
    update, delete = ROWS["update of all"][0], ROWS["delete by all"][0]
    messages = [DESCRIBED]
    for left, right in ((update, delete), (delete, update), (GOOD, DESCRIBED), (STREAMED["stream prepare"][0], update)):
        messages += splices(left, right, step=3)
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), FORMAT)


SOME = [mutant for message, _ in ROWS.values() for mutant in mutants(message)][::61]

READINGS: dict[str, dict[str, Any]] = {
    "gbk": {"encoding": "gbk"},
    "latin-1": {"encoding": "latin-1"},
    "gbk, replaced": {"encoding": "gbk", "encoding_errors": "replace"},
    "utf-8, replaced": {"encoding_errors": "replace"},
    "one table": {"tables": ["public.t"]},
    "no table": {"tables": []},
    "some kinds": {"kinds": ["INSERT", "COMMIT", "UNKNOWN"]},
    "no kind": {"kinds": []},
    "opengauss": {"dialect": "opengauss"},
}


@pytest.mark.parametrize("name", READINGS)
def test_mutants_in_other_readings(name: str) -> None:
    """What cannot be read is there whatever the filters leave out, and counted where it is dropped."""
    messages = [DESCRIBED, *SOME]
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE", **READINGS[name])
    corrupt = [event for event in answer.events if isinstance(event, wf.Corrupt)]
    dropped = agree(messages, format=FORMAT, mode="DROPMALFORMED", **READINGS[name])
    assert dropped.events == [event for event in answer.events if not isinstance(event, wf.Corrupt)]
    assert dropped.table is not None
    assert dropped.table.schema.metadata[b"wireformat.dropped"] == str(len(corrupt)).encode()


def test_a_lie_costs_nothing() -> None:
    """Counts and lengths far beyond the message are refused before anything is made of their size."""
    lies = [
        relation()[:-2] + b"\xff\xff" + column(b"a") * 3,
        b"T" + u32(0xFFFFFFFF) + b"\0" + u32(16385) * 9,
        change(b"I", b"N" + u16(0xFFFF) + NULL * 100),
        change(b"I", image(b"N", b"t" + u32(0x7FFFFFFF), NULL)),
        b"M\0" + u64(1) + b"\0" + u32(0xFFFFFFFF),
    ]
    tracemalloc.start()
    try:
        answer = ask([DESCRIBED, *lies], "declaration", format=FORMAT, mode="PERMISSIVE")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [event.kind for event in answer.events] == ["RELATION", *["CORRUPT"] * len(lies)]
    assert peak < 4 << 20


def test_a_row_of_as_many_columns_as_the_message_can_say() -> None:
    """All of them key columns, of which each is looked up; the scan has room for them only behind another row."""
    count = 65535
    described = relation(*[column(b"c%d" % number, 23, is_key=True) for number in range(count)])
    row = change(b"U", image(b"K", *[NULL] * count), image(b"N", *[NULL] * count))
    events = read([described, row], format=FORMAT, kinds=["UPDATE"])
    assert [(len(event.new.names), len(event.old.names)) for event in events] == [(count, count)]
