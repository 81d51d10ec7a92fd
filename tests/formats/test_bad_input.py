"""Bad input, spot by spot: which error, at which byte, in which field; and what is kept of the rest."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

import wireformat as wf

from ..accounting import account
from ..engines import ENGINES, FORMAT, agree, ask, read
from ..handmade import (
    COMMIT,
    DELETE,
    HEARTBEAT,
    INSERT,
    SAMPLES,
    begin,
    cell,
    change,
    commit,
    long_text,
    message,
    new,
    old,
    origin,
    record,
    short_text,
    time,
    u16,
    u32,
    u64,
    user,
    xid,
)
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, splices, truncations

each_engine = pytest.mark.parametrize("engine", ENGINES)

BODY = 12
"""Where the first record's kind byte lies."""

GOOD = message(INSERT)
SIZE = len(GOOD)
THIRD = SIZE + len(record(COMMIT)) + 1
"""Where the third record of a message lies."""
BARE = HEARTBEAT + b"F"
A = cell(b"a", 23, b"1")
CELLS = len(b"I" + short_text(b"s") + short_text(b"t") + b"N") + len(u16(1))
"""Where the first cell of `row` lies in its body."""


def row(*images: bytes) -> bytes:
    return change(b"U", b"s", b"t", *images)


def claimed(length: int, rest: bytes) -> bytes:
    """A message that begins with this length, whatever follows."""
    return u32(length) + rest


@dataclass(frozen=True)
class Bad:
    """A bad message and what is expected of it. `byte` is where the field begins; `good` counts records before it."""

    data: bytes
    error: type[wf.DecodeError]
    byte: int
    path: str
    good: int = 0
    field_offset: int | None = None


FRAMING = {
    "an empty message": Bad(b"", wf.ShortData, 0, "length"),
    "three bytes": Bad(b"\0\0\0", wf.ShortData, 0, "length"),
    "a length alone": Bad(u32(9), wf.BadLength, 0, "length"),
    "an end and no record": Bad(b"F", wf.ShortData, 0, "length"),
    "a zero length and no record": Bad(u32(0), wf.BadLength, 0, "length"),
    "a timeout and no record": Bad(b"P" + u32(0), wf.BadLength, 0, "length"),
    "a length without room for the kind": Bad(claimed(8, GOOD[4:]), wf.BadLength, 0, "length"),
    "a length one too long": Bad(claimed(SIZE - 3, GOOD[4:]), wf.BadLength, 0, "length"),
    "a length longer than any record": Bad(claimed(0x40000000, GOOD[4:]), wf.BadLength, 0, "length"),
    "4 GB in 30 bytes": Bad(claimed(0xFFFFFFFF, bytes(26)), wf.BadLength, 0, "length"),
    "4 GB in a second record": Bad(
        GOOD[:-1] + b"P" + claimed(0xFFFFFFFF, bytes(26)), wf.BadLength, SIZE, "length", good=1
    ),
    "no separator": Bad(GOOD[:-1], wf.ShortData, SIZE - 1, "separator", good=1),
    "a wrong separator": Bad(GOOD[:-1] + b"f", wf.BadTag, SIZE - 1, "separator", good=1),
    "a wrong separator before a record": Bad(GOOD[:-1] + b"\0" + GOOD, wf.BadTag, SIZE - 1, "separator", good=1),
    "nothing after P": Bad(GOOD[:-1] + b"P", wf.ShortData, SIZE, "length", good=1),
    "three zeros after P": Bad(GOOD[:-1] + b"P\0\0\0", wf.ShortData, SIZE, "length", good=1),
    "a length too small after P": Bad(GOOD[:-1] + b"P" + claimed(1, GOOD[4:]), wf.BadLength, SIZE, "length", good=1),
    "a byte after F": Bad(GOOD + b"F", wf.TrailingBytes, SIZE, "end", good=1),
    "a message after F": Bad(GOOD + GOOD, wf.TrailingBytes, SIZE, "end", good=1),
    "a byte after the timeout": Bad(
        message(INSERT, end=b"P\0\0\0\0") + b"\0", wf.TrailingBytes, SIZE + 4, "end", good=1
    ),
    "a bare heartbeat cut short": Bad(BARE[:24], wf.ShortData, 0, "heartbeat"),
    "a bare heartbeat without an end": Bad(BARE[:25], wf.ShortData, 25, "separator", good=1),
    "a bare heartbeat before a record": Bad(BARE[:25] + b"P" + GOOD, wf.BadTag, 25, "separator", good=1),
    "a byte after a bare heartbeat": Bad(BARE + b"\0", wf.TrailingBytes, 26, "end", good=1),
    "a bare heartbeat inside a batch": Bad(GOOD[:-1] + b"P" + BARE, wf.BadLength, SIZE, "length", good=1),
}

BODIES: dict[str, tuple[bytes, type[wf.DecodeError], int, str]] = {
    "an insert without a table": (b"I", wf.ShortData, 1, "table_schema"),
    "an insert with half a length": (b"I\0", wf.ShortData, 1, "table_schema"),
    "a schema longer than the record": (b"I" + u16(9) + b"s" + short_text(b"t"), wf.BadLength, 1, "table_schema"),
    "a table that is not there": (b"I" + short_text(b"s"), wf.ShortData, 4, "table_name"),
    "a table longer than the record": (b"I" + short_text(b"s") + u16(2) + b"t", wf.BadLength, 4, "table_name"),
    "an unknown tag": (row(b"K" + u16(0)), wf.BadTag, 7, "tag"),
    "an unknown tag after a tuple": (row(new(A), b"K"), wf.BadTag, CELLS + len(A), "tag"),
    "a zero byte after the tuples": (row(new(), old(), b"\0"), wf.BadTag, 13, "tag"),
    "O before N": (row(old(), new()), wf.BadTag, 10, "tag"),
    "a second N": (row(new(), new()), wf.BadTag, 10, "tag"),
    "a second O": (row(old(), old()), wf.BadTag, 10, "tag"),
    "a tuple without a count": (row(b"N"), wf.ShortData, 8, "new.cells"),
    "a tuple with half a count": (row(b"N\0"), wf.ShortData, 8, "new.cells"),
    "a count that runs out": (row(b"N" + u16(2) + A), wf.ShortData, CELLS + len(A), "new.cells[1].name"),
    "a count of 65535": (row(new(), b"O" + u16(65535) + A), wf.ShortData, CELLS + 3 + len(A), "old.cells[1].name"),
    "a name longer than the record": (row(new(u16(500) + A[2:])), wf.BadLength, CELLS, "new.cells[0].name"),
    "a type cut short": (row(new(A[:6])), wf.ShortData, CELLS + 3, "new.cells[0].type_oid"),
    "a value length cut short": (row(new(A[:9])), wf.ShortData, CELLS + 7, "new.cells[0].value"),
    "a value cut short": (row(new(A[:-1])), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a value of 4 GB": (row(new(A[:7] + u32(0xFFFFFFFE) + b"1")), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a value of 2 GB": (row(new(A[:7] + u32(0x80000000) + b"1")), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a begin without a csn": (b"B", wf.ShortData, 1, "csn"),
    "a begin cut short": (begin(1, 2)[:-1], wf.ShortData, 9, "first_lsn"),
    "a begin with an unknown tag": (begin(1, 2, b"Z"), wf.BadTag, 17, "tag"),
    "a second X": (begin(1, 2, xid(1), xid(1)), wf.BadTag, 26, "tag"),
    "a second T": (commit(time(b"t"), time(b"t")), wf.BadTag, 7, "tag"),
    "a second O in a commit": (commit(origin(1), origin(1)), wf.BadTag, 6, "tag"),
    "a second N in a commit": (commit(user(b""), xid(1), user(b"")), wf.BadTag, 15, "tag"),
    "an xid cut short": (commit(xid(1)[:-1]), wf.ShortData, 2, "xid"),
    "an origin cut short": (commit(origin(1)[:-1]), wf.ShortData, 2, "origin"),
    "a time without a length": (commit(b"T\0\0"), wf.ShortData, 2, "commit_time"),
    "a time longer than the record": (commit(b"T" + u32(2) + b"t"), wf.BadLength, 2, "commit_time"),
    "a time that is NULL": (commit(b"T" + long_text(None)), wf.BadLength, 2, "commit_time"),
    "a user of 4 GB": (begin(1, 2, b"N" + u32(0xFFFFFFFE)), wf.BadLength, 18, "username"),
    "a heartbeat without numbers": (b"h", wf.ShortData, 1, "wal_end"),
    "a heartbeat cut short": (HEARTBEAT[:-1], wf.ShortData, 17, "time"),
    "a heartbeat without its last number": (HEARTBEAT[:17], wf.ShortData, 17, "time"),
    "a name that opens a quote": (row(new(cell(b'"', 23, b""))), wf.BadValue, CELLS, "new.cells[0].name"),
    "a name that is not closed": (row(new(cell(b'"a', 23, b""))), wf.BadValue, CELLS, "new.cells[0].name"),
    "a name with a single quote in it": (row(old(A, cell(b'"a"b"', 23, b""))), wf.BadValue, 22, "old.cells[1].name"),
    "a name closed by a doubled quote": (row(old(cell(b'"a""', 23, b""))), wf.BadValue, CELLS, "old.cells[0].name"),
}
"""Body, error, byte of the body where the field begins, path."""

NO_UTF8 = {"stray": b"ab\xffcd", "cut": b"abc\xe8\xa1", "surrogate": b"ab\xed\xa0\x80", "long form": b"ab\xc0\xaf"}
BAD_TEXT_PLACES = {
    "table_schema": (lambda text: change(b"I", text, b"t"), 3),
    "table_name": (lambda text: change(b"I", b"s", text), 6),
    "new.cells[0].name": (lambda text: row(new(cell(text, 23, b""))), CELLS + 2),
    "new.cells[0].value": (lambda text: row(new(cell(b"a", 23, text))), CELLS + 11),
    "old.cells[1].name": (lambda text: row(old(A, cell(text, 23, b""))), CELLS + len(A) + 2),
    "old.cells[1].value": (lambda text: row(new(A), old(A, cell(b"a", 23, text))), CELLS + len(A) + 3 + len(A) + 11),
    "commit_time": (lambda text: commit(xid(1), time(text)), 15),
    "username": (lambda text: begin(1, 2, user(text)), 22),
}


def _bad_text() -> Iterator[tuple[str, Bad]]:
    for path, (body, at) in BAD_TEXT_PLACES.items():
        for name, text in NO_UTF8.items():
            first_bad = next(
                place for place in range(len(text)) if not _is_utf8(text[: place + 1]) and text[place] > 127
            )
            yield f"{path}, {name}", Bad(message(body(text)), wf.BadText, BODY + at, path, field_offset=first_bad)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


CASES = {
    **FRAMING,
    **{name: Bad(message(body), error, BODY + at, path) for name, (body, error, at, path) in BODIES.items()},
    **{
        f"{name}, third of four": Bad(message(INSERT, COMMIT, body, DELETE), error, THIRD + BODY + at, path, good=2)
        for name, (body, error, at, path) in BODIES.items()
    },
    "a byte after a heartbeat": Bad(message(HEARTBEAT + b"\0"), wf.TrailingBytes, BODY + 25, ""),
    **dict(_bad_text()),
}


@each_engine
@pytest.mark.parametrize("name", CASES)
def test_failfast_says_what_is_wrong_and_where(name: str, engine: str) -> None:
    bad = CASES[name]
    answer = ask([GOOD, None, bad.data, GOOD], engine)
    error = answer.error
    assert error is not None
    assert type(error) is bad.error
    assert (error.format, error.message, error.record) == (FORMAT, 2, bad.good)
    assert (error.message_offset, error.path or "", error.field_offset) == (bad.byte, bad.path, bad.field_offset)
    assert bad.data[bad.byte :].startswith(error.spot)
    assert len(error.spot) <= 16
    text = str(error)
    assert text.startswith(f"{bad.error.words}: expected ")
    assert f"[{FORMAT}: message 2, byte {bad.byte}, record {bad.good}" in text
    assert f"field {bad.path}" in text or not bad.path
    assert answer.events == [*read([GOOD]), *_good_records(bad)]


@each_engine
@pytest.mark.parametrize("name", CASES)
def test_permissive_keeps_it_and_goes_on(name: str, engine: str) -> None:
    bad = CASES[name]
    first, *kept, last = read([GOOD, bad.data, GOOD], engine, mode="PERMISSIVE")
    assert [first, last] == read([GOOD, GOOD])
    account(bad.data, kept)
    assert kept[: bad.good] == _good_records(bad)
    corrupt = kept[bad.good]
    assert isinstance(corrupt, wf.Corrupt)
    with pytest.raises(bad.error) as raised:
        read([None, bad.data], engine)
    assert corrupt.error == str(raised.value)
    dropped = wf.arrow.changes([bad.data], FORMAT, engine=engine, mode="DROPMALFORMED")
    count = sum(isinstance(event, wf.Corrupt) for event in kept)
    assert (dropped.num_rows, dropped.schema.metadata[b"wireformat.dropped"]) == (len(kept) - count, b"%d" % count)


@pytest.mark.parametrize("name", CASES)
def test_engines_agree(name: str) -> None:
    for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
        agree([CASES[name].data, GOOD], mode=mode)


@pytest.mark.parametrize("name", CASES)
def test_the_error_pickles(name: str) -> None:
    with pytest.raises(CASES[name].error) as raised:
        read([CASES[name].data])
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is type(raised.value)
    assert str(copy) == str(raised.value)
    assert copy.__dict__ == raised.value.__dict__


@each_engine
def test_after_a_bad_body_comes_the_next_record(engine: str) -> None:
    data = message(INSERT, commit(b"?"), b"Z", commit(b"??"), COMMIT)
    events = read([data], engine, mode="PERMISSIVE")
    assert [event.kind for event in events] == ["INSERT", "CORRUPT", "UNKNOWN", "CORRUPT", "COMMIT"]
    assert [event.lsn for event in events] == [0x10, 0x11, 0x12, 0x13, 0x14]
    table = wf.arrow.changes([data], FORMAT, engine=engine, mode="PERMISSIVE")
    assert table["record"].to_pylist() == [0, 1, 2, 3, 4]


@each_engine
def test_a_record_one_byte_short_breaks_the_framing_after_it(engine: str) -> None:
    data = claimed(SIZE - 6, GOOD[4:])
    body, rest = read([data], engine, mode="PERMISSIVE")
    assert isinstance(body, wf.Corrupt)
    assert isinstance(rest, wf.Corrupt)
    assert (body.lsn, body.raw, rest.lsn, rest.raw) == (0x10, GOOD[12:-2], None, GOOD[-2:])


@each_engine
def test_error_names_the_table_where_it_is_known(engine: str) -> None:
    for body, table in (
        (change(b"I", b"sch", b"tab", new(A[:-1])), "sch.tab"),
        (change(b"D", "schéma".encode(), "表".encode(), old(cell(b'"', 23, b""))), "schéma.表"),
        (b"I" + short_text(b"sch") + u16(1), None),
        (commit(b"?"), None),
    ):
        error = ask([message(body)], engine).error
        assert error is not None
        assert error.table == table
        assert (f", table {table}" in str(error)) == (table is not None)


@each_engine
def test_null_messages_give_no_rows(engine: str) -> None:
    assert read([None, None], engine) == []
    table = wf.arrow.changes([None, GOOD, None, GOOD], FORMAT, engine=engine)
    assert table["message"].to_pylist() == [1, 3]


MARKER = "s3cr3t-0f-th3-r0w"


def test_an_error_never_shows_a_value() -> None:
    """A record broken everywhere; its values are all the same marker."""
    value = MARKER.encode()
    cells = (cell(b"a", 25, value), cell(b"bc", 23, value))
    data = message(change(b"U", b"sch", b"t", new(*cells), old(*cells), b""))
    mutants = [
        *truncations(data),
        *changed_bytes(data),
        *overwritten_lengths(data),
        *inserted_and_deleted(data),
        *splices(data, data, step=5),
    ]
    texts = [event.error for event in read(mutants, mode="PERMISSIVE") if isinstance(event, wf.Corrupt)]
    assert len(texts) > len(mutants) // 2 > 500
    shown = value.hex(" ")
    leaks = [text for text in texts if MARKER in text or shown in text or value.hex() in text]
    assert leaks == []


LIES = {
    "record of 4 GB": claimed(0xFFFFFFFF, bytes(26)),
    "record of 1 GB": claimed(0x3FFFFFFF, bytes(26)),
    "65535 cells": message(row(b"N" + u16(65535))),
    "65535 cells, twice": message(row(b"N" + u16(0), b"O" + u16(65535) + A)),
    "value of 4 GB": message(row(b"N" + u16(65535) + A[:7] + u32(0xFFFFFFFE))),
    "time of 4 GB": message(commit(b"T" + u32(0xFFFFFFFE))),
    "user of 2 GB": message(begin(1, 2, b"N" + u32(0x7FFFFFFF))),
    "schema of 64 KB": message(b"I" + u16(65535)),
}
ENOUGH_BYTES = 1 << 20
WATCHED = pa.proxy_memory_pool(pa.default_memory_pool())
"""Counts what Arrow allocates; lives as long as any buffer that comes from it."""


@each_engine
@pytest.mark.parametrize("name", LIES)
def test_lies_take_no_memory(name: str, engine: str) -> None:
    """A message of less than 60 bytes takes less than a mebibyte, whatever it claims."""
    assert len(LIES[name]) < 60
    ask([LIES[name], GOOD], engine, mode="PERMISSIVE")  # what is made once is made now
    pool = pa.default_memory_pool()
    pa.set_memory_pool(WATCHED)
    tracemalloc.start()
    try:
        answer = ask([LIES[name]], engine, mode="PERMISSIVE")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(pool)
    assert [event.kind for event in answer.events] == ["CORRUPT"]
    assert peak < ENOUGH_BYTES
    assert (WATCHED.max_memory() or 0) < ENOUGH_BYTES


def _good_records(bad: Bad) -> list[wf.Event]:
    """The records before the bad spot, read from a message of their own."""
    if bad.data[:1] == b"h":
        return read([BARE])[: bad.good]
    events: list[wf.Event] = []
    at = 0
    for _ in range(bad.good):
        stop = at + 4 + int.from_bytes(bad.data[at : at + 4], "big")
        events += read([bad.data[at:stop] + b"F"])
        at = stop + 1
    return events


def test_the_samples_are_good() -> None:
    assert all(event.kind != "CORRUPT" for event in read(list(SAMPLES.values())))
    assert message(INSERT, COMMIT)[SIZE:] == record(COMMIT, 0x11) + b"F"
    assert len(u64(1)) == 8
