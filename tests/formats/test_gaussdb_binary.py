"""gaussdb-binary: what its messages say, when a batch is closed, and rows as wide as there can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from .. import strategies
from ..accounting import EVERYTHING
from ..codec_checks import check_same_bytes
from ..engines import ENGINES, FORMAT, agree, read
from ..handmade import OTHER_SPELLINGS, SAMPLES, begin, cell, change, message, new, old, time, user, xid
from ..support.gaussdb_binary import SUPPORT, sample

BATCHED = {**EVERYTHING[FORMAT], "sending-batch": 1}


def test_what_the_samples_say() -> None:
    """The samples are read by eye here, so that the checks above stand on something."""
    (update,) = read([SAMPLES["update"]])
    assert update == wf.Update(
        lsn=0x10,
        table_schema="s",
        table_name="t 2",
        new=wf.TupleData(("a", "b"), ("2", ""), ("integer", "oid:17000")),
        old=wf.TupleData(("a",), ("1",), ("integer",)),
    )
    (insert,) = read([SAMPLES["insert"]])
    assert insert == wf.Insert(
        lsn=0x10,
        table_schema="public",
        table_name="t",
        new=wf.TupleData(("a", "B c"), ("1", None), ("integer", "text")),
    )
    first, *_, last = read([SAMPLES["batch"]])
    assert first == wf.Begin(
        lsn=0x10,
        csn=2357,
        first_lsn=0xCFE5C80,
        xid=78108,
        commit_time="2026-11-21 01:02:03.5+08",
        origin=-1,
        username="usér",
    )
    assert last == wf.Commit(lsn=0x13, xid=(1 << 64) - 1, commit_time="infinity")
    assert read([SAMPLES["no tuple"]]) == [wf.Update(lsn=0x10, table_schema="s", table_name="t")]
    (no_columns,) = read([SAMPLES["no columns"]])
    assert (no_columns.new, no_columns.old) == (wf.TupleData(), wf.TupleData())
    (doubled,) = read([SAMPLES["doubled quotes"]])
    assert (doubled.table_schema, doubled.old.names, doubled.old.values) == ('"s"', ('a"b',), ("x\0y",))
    assert read([SAMPLES["unknown"]]) == [wf.Unknown(lsn=0x10, raw=b"Z\x00\xffsomething")]
    ends = {"wal_end": 0xCFE5C80, "wal_flushed": 0xCFE5C00, "time": 1_700_000_000_000}
    assert read([SAMPLES["heartbeat, bare"]]) == [wf.Heartbeat(lsn=None, **ends)]
    assert read([SAMPLES["heartbeat, framed"]]) == [wf.Heartbeat(lsn=0x10, **ends)]


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_other_spellings_say_the_same(name: str) -> None:
    spelled, canonical = OTHER_SPELLINGS[name]
    events = agree([spelled]).events
    assert events == agree([canonical]).events


@given(strategies.events())
def test_one_event_closed_by_size(event: wf.Event) -> None:
    (message,) = wf.encode([event], FORMAT, options=EVERYTHING[FORMAT])
    check_same_bytes(SUPPORT, sample(message), [event])


@given(st.lists(strategies.row_changes(), min_size=1, max_size=8), st.integers(0, 400))
def test_a_batch_is_closed_once_it_is_longer_than_the_limit(events: list[wf.RowChange], batch_bytes: int) -> None:
    """XLogData's header of 25 bytes counts; so does all that is in the message but the separator that ends it."""
    messages = list(wf.encode(events, FORMAT, options=BATCHED, batch_bytes=batch_bytes))
    by_size = [data for data in messages if data.endswith(b"F")]
    assert messages[: len(by_size)] == by_size
    for data in by_size:
        assert 25 + len(data) - 1 > batch_bytes
        (*_, last) = read([data])
        (alone,) = wf.encode([last], FORMAT, options=EVERYTHING[FORMAT])
        without_last = len(data) - 1 - len(b"P" + alone[:-1])
        assert without_last < 0 or 25 + without_last <= batch_bytes
    for data in messages[len(by_size) :]:
        assert len(by_size) == len(messages) - 1
        assert 25 + len(data) - 5 <= batch_bytes


@pytest.mark.parametrize("engine", ENGINES)
def test_every_byte_is_a_kind_or_unknown(engine: str) -> None:
    messages = [message(bytes([kind])) for kind in range(256)]
    kinds = [event.kind for event in read(messages, engine, mode="PERMISSIVE")]
    empty_bodies = {b"C"[0]: "COMMIT", **dict.fromkeys(b"BIUDh", "CORRUPT")}
    assert kinds == [empty_bodies.get(kind, "UNKNOWN") for kind in range(256)]


def test_a_row_as_wide_as_a_count_can_say() -> None:
    """65535 columns in both images, none of a type in the catalogue: the largest row there is room for."""
    cells = [cell(b"", 0xFFFFFFFF - place, b"" if place % 2 else None) for place in range(65535)]
    messages = [
        message(change(b"U", b"s", b"t", new(*cells), old(*cells)), begin(1, 2, xid(3), time(b"t"), user(b"u")))
    ]
    update, after = read(messages)
    assert isinstance(update, wf.Update)
    for image in (update.new, update.old):
        assert image is not None
        assert image.names == ("",) * 65535
        assert image.values == tuple("" if place % 2 else None for place in range(65535))
        assert image.types == tuple(f"oid:{0xFFFFFFFF - place}" for place in range(65535))
    assert after.kind == "BEGIN"
    table = wf.arrow.changes(messages, FORMAT)
    table.validate(full=True)
    assert [len(table[name][0]) for name in ("new", "old", "types")] == [65535] * 3
