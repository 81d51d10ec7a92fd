"""Ranges of a slot: whole transactions, the same again after a restart. Without Spark."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import StructType

import wireformat as wf
from spark_udfs.source import transactions
from spark_udfs.source.options import SlotOptions
from spark_udfs.source.ranges import SlotRanges
from spark_udfs.source.reader import SlotStreamReader
from spark_udfs.source.transactions import Buffer, Limit
from wireformat.live.transaction_ends import Cutter, ends_of
from wireformat.stream.capture_position import SlotPosition

from .slot_messages import all_ids, ids_of, transaction
from .walsender import SYSTEM, Message, Session, Walsender, plays, serving

ENVELOPE = b"w" + bytes(24)

MESSAGES = [
    *transaction(100, [1, 2], describes=True),
    *transaction(200, [3]),
    *transaction(300, [4, 5, 6]),
    *transaction(400, [7]),
]


def at(lsn: int) -> SlotPosition:
    return SlotPosition(SYSTEM, "s", lsn, 1)


def buffer_of(messages: list[Message], origin: int = 0, pieces: int = 1) -> Buffer:
    """A buffer with messages that arrived in pieces."""
    buffer, cutter = Buffer(origin), Cutter(ends_of("pgoutput"))
    step = -(-len(messages) // pieces)
    for first in range(0, len(messages), step):
        found = [ENVELOPE + payload for _, payload in messages[first : first + step]]
        buffer.add(cutter.piece(pa.array(found, pa.binary())))
    return buffer


@pytest.mark.parametrize("pieces", [1, 2, 5, len(MESSAGES)])
def test_ends_of_ranges(pieces: int) -> None:
    """As many transactions as fit, and at least one; None if there are none."""
    buffer = buffer_of(MESSAGES, pieces=pieces)
    size = [buffer.size - sum(int(one.sizes[-1]) for one in buffer._after(end)) for end in (100, 200, 300, 400)]
    assert buffer.reached == 400
    for start, limit, until, end in (
        (0, Limit(), None, 400),
        (0, Limit(), 399, 300),
        (0, Limit(), 99, None),
        (0, Limit(1), None, 100),
        (0, Limit(size[1]), None, 200),
        (0, Limit(size[1] - 1), None, 100),
        (0, Limit(size[2]), None, 300),
        (100, Limit(size[2] - size[0]), None, 300),
        (0, Limit(None, 3), None, 200),
        (0, Limit(None, 5), None, 200),
        (200, Limit(None, 1), None, 300),
        (100, Limit(size[1] - size[0], 100), None, 200),
        (400, Limit(), None, None),
    ):
        assert buffer.end(start, limit, until) == end, (start, limit, until)


@pytest.mark.parametrize("pieces", [1, 2, 5, len(MESSAGES)])
def test_slices_can_be_read_by_themselves(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server describes a table once; every slice has the description, also when what had it is gone.

    How the messages arrived does not show: a task for each of many small pieces would take long.
    """
    buffer = buffer_of(MESSAGES, pieces=pieces)
    assert ids_of(buffer.slices(0, 400)) == [[1, 2, 3, 4, 5, 6, 7]]
    assert ids_of(buffer.slices(100, 300)) == [[3, 4, 5, 6]]
    assert buffer.slices(400, 400) == []
    monkeypatch.setattr(transactions, "SLICE_BYTES", 1)
    assert ids_of(buffer.slices(0, 400)) == [[1, 2], [3], [4, 5, 6], [7]]
    buffer.drop(200)
    assert (buffer.origin, ids_of(buffer.slices(200, 400))) == (200, [[4, 5, 6], [7]])


def test_what_comes_again_is_dropped() -> None:
    buffer = buffer_of(MESSAGES, origin=200)
    assert ids_of(buffer.slices(200, 400)) == [[4, 5, 6, 7]]
    assert buffer.end(200, Limit(), None) == 400


def test_a_transaction_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "TRANSACTION_BYTES", 1000)
    with pytest.raises(wf.LimitExceeded, match=r"limited to 1000 bytes.*wireformat\.live\.follow"):
        buffer_of(transaction(100, range(100), describes=True)[:-1])


def ranges_of(server: Walsender, **options: Any) -> SlotRanges:
    given: dict[str, Any] = {"driver": "psycopg", "reconnect_seconds": 5.0, **options}
    return SlotRanges(server.dsn, "s", ["p"], **given)


@contextmanager
def reading(server: Walsender) -> Iterator[SlotRanges]:
    with serving(server):
        ranges = ranges_of(server)
        try:
            yield ranges
        finally:
            ranges.close()


def test_the_same_range_again() -> None:
    """Another process asks for a range that was logged, when there is more: it ends where it ended."""
    server = Walsender(plays(MESSAGES), end=1 << 40)
    with reading(server) as ranges:
        start = ranges.initial()
        assert start == at(1)
        end = ranges.next(start, Limit(None, 3), None)
        assert end == 200
        first = ids_of(ranges.slices(start, at(end)))
        assert ids_of(ranges.slices(start, at(end))) == first == [[1, 2, 3]]
        ranges.close()
        other = ranges_of(server)
        assert ids_of(other.slices(start, at(end))) == first
        assert other.next(at(end), Limit(), 400) == 400
        assert ids_of(other.slices(at(200), at(400))) == [[4, 5, 6, 7]]
        other.close()
    assert [start.split()[4] for start in server.starts] == ["0/1", "0/1"]


def test_connections_that_break() -> None:
    """What was read is read again from the start of the range, and comes once."""
    server = Walsender(plays(MESSAGES, cuts=[3, 6, 9]), end=1 << 40)
    found: list[int] = []
    with reading(server) as ranges:
        position = ranges.initial()
        while position.lsn < 400:
            end = ranges.next(position, Limit(None, 1), 400)
            assert end is not None
            found += all_ids(ranges.slices(position, at(end)))
            position = at(end)
    assert found == [1, 2, 3, 4, 5, 6, 7]
    assert len(server.starts) == 4


@pytest.mark.parametrize("steady", [0.0, 30.0])
def test_a_connection_that_is_lost_late(monkeypatch: pytest.MonkeyPatch, steady: float) -> None:
    """The attempts are counted from there, and not from the beginning of the range; those that fail at once are not."""
    monkeypatch.setattr("spark_udfs.source.ranges.STEADY_SECONDS", steady)

    def play(session: Session, number: int) -> None:
        if number < 4:
            session.wait_for_status()  # the stream has begun, and not only its connection
            time.sleep(0.4)
            session.cut()
        plays(MESSAGES)(session, number)

    server = Walsender(play, end=1 << 40)
    with serving(server):
        ranges = ranges_of(server, reconnect_seconds=0.3)
        with closing(ranges):
            if steady:
                with pytest.raises(wf.ServerError):
                    ranges.slices(at(1), at(400))
                assert len(server.starts) == 2
            else:
                assert all_ids(ranges.slices(at(1), at(400))) == [1, 2, 3, 4, 5, 6, 7]
                assert len(server.starts) == 5


def test_the_server_hears_what_is_safe() -> None:
    """It hears a position when the next one is asked for, or when it is committed, and not before."""
    server = Walsender(plays(MESSAGES), end=1 << 40)
    with reading(server) as ranges:
        end = ranges.next(at(1), Limit(None, 1), 400)
        assert end == 100
        ranges.slices(at(1), at(100))
        ranges.next(at(100), Limit(None, 1), 400)
        ranges.slices(at(100), at(200))
        ranges.confirm(at(200))
    assert max(server.flushed) == 200
    assert set(server.flushed) <= {1, 100, 200}


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (at(50), "checkpoint ends at 0/32, the slot begins at 0/64.*start with a new checkpoint"),
        (at(1 << 41), "the server's log ends at"),
        (SlotPosition("1", "s", 150), "was read from system 1"),
        (SlotPosition(SYSTEM, "other", 150), "was read from slot other, not from s; set the option slot to other"),
    ],
)
def test_where_the_slot_cannot_go_on(position: SlotPosition, words: str) -> None:
    server = Walsender(plays(MESSAGES), end=1 << 40, confirmed=100)
    with reading(server) as ranges, pytest.raises(wf.ServerError, match=words):
        ranges.next(position, Limit(), None)
    assert server.starts == []


def test_a_range_that_the_server_lacks() -> None:
    """It would be waited for without end."""
    server = Walsender(plays(MESSAGES), end=250)
    with reading(server) as ranges, pytest.raises(wf.ServerError, match="the server's log ends at 0/FA"):
        ranges.slices(at(1), at(400))


def test_only_pgoutput() -> None:
    server = Walsender(plays([]), "test_decoding", end=1 << 40)
    with (
        reading(server) as ranges,
        pytest.raises(wf.OptionError, match=r"test_decoding: read it with wireformat\.live"),
    ):
        ranges.initial()


def reader_of(server: Walsender, **options: str) -> SlotStreamReader:
    given = {"url": server.dsn, "slot": "s", "publication": "p", **options}
    return SlotStreamReader(SlotOptions.check(given), StructType())


def test_a_run_that_ends() -> None:
    """Trigger.AvailableNow: to the end that the server's log had, one step of an idle server, and no further."""
    server = Walsender(plays(MESSAGES), end=300)
    with serving(server):
        reader = reader_of(server, maxbytespertrigger="1")
        reader.prepareForTriggerAvailableNow()
        server.end = 1 << 40
        offset, seen = reader.initialOffset(), []
        while (after := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
            seen.append(after["lsn"])
            offset = after
        assert seen == ["0/64", "0/C8", "0/12C"]
        reader.stop()
    assert max(server.flushed) == 300


def test_an_idle_stream_moves_now_and_then() -> None:
    def play(session: Session, number: int) -> None:
        session.keepalive(500)
        session.idle(600)

    server = Walsender(play, end=1 << 40)
    with serving(server):
        for seconds, moves in (("100", False), ("0", True)):
            reader = reader_of(server, idleseconds=seconds)
            offset = reader.initialOffset()
            found = reader.latestOffset(offset, ReadMaxBytes(1))
            assert (found != offset) is moves
            assert reader.partitions(offset, found) == []
            reader.stop()
        reported = reader.reportLatestOffset()
        reader.stop()
    assert reported is not None
    assert reported["lag_bytes"] == (1 << 40) - wf.lsn_value(found["lsn"])


def test_a_trigger_without_limits() -> None:
    """Spark's Trigger.Once: the driver would hold all that the server has."""
    reader = reader_of(Walsender(plays([])))
    with pytest.raises(wf.OptionError, match=r"trigger once: .* use trigger\(availableNow=True\)"):
        reader.latestOffset(
            {"version": 2, "system": SYSTEM, "slot": "s", "lsn": "0/64", "timeline": 1}, ReadAllAvailable()
        )


@pytest.mark.parametrize(
    "offset",
    [
        {"version": 3},
        {"version": 2, "system": SYSTEM, "slot": "s", "lsn": "0/64"},
        {"version": 1, "system": SYSTEM, "slot": "s", "lsn": "0/64", "timeline": 1},
        {"version": 2, "system": SYSTEM, "slot": "s", "lsn": "0/64", "timeline": "1"},
    ],
)
def test_an_offset_of_another_version(offset: dict[str, Any]) -> None:
    with pytest.raises(wf.StateError, match="begin with another checkpoint"):
        reader_of(Walsender(plays([]))).partitions(offset, offset)


def test_an_offset_of_an_earlier_version() -> None:
    """Without a timeline: it goes on, and the next one has it."""
    server = Walsender(plays(MESSAGES), end=1 << 40)
    with serving(server):
        reader = reader_of(server)
        found = reader.latestOffset({"version": 1, "system": SYSTEM, "slot": "s", "lsn": "0/64"}, ReadMaxBytes(1))
        reader.stop()
    assert found == {"version": 2, "system": SYSTEM, "slot": "s", "lsn": "0/C8", "timeline": 1}


@pytest.mark.parametrize("switch", ["0/C8", "0/C7"])
def test_a_standby_that_was_promoted(switch: str) -> None:
    """A checkpoint goes on there if the standby had all that it covers, also at the end of a range that was logged."""
    answers: dict[str, Any] = {
        "IDENTIFY_SYSTEM": lambda _: [{"systemid": SYSTEM, "timeline": "2", "xlogpos": "1/0", "dbname": "shop"}],
        "TIMELINE_HISTORY": lambda _: [{"filename": "2.history", "content": f"1\t{switch}\tno reason\n"}],
    }
    server = Walsender(plays(MESSAGES), end=1 << 32, answers=answers)
    with reading(server) as ranges:
        if switch == "0/C8":
            assert all_ids(ranges.slices(at(100), at(200))) == [3]
            assert ranges.after(at(200), 300) == SlotPosition(SYSTEM, "s", 300, 2)
        else:
            with pytest.raises(wf.ServerError, match=r"0/C8 of timeline 1, .* left at 0/C7, for timeline 2"):
                ranges.slices(at(100), at(200))
            assert server.starts == []


SECRET = "a-secret-word"


@pytest.mark.parametrize(
    "options",
    [
        {"slot": f"password={SECRET}"},
        {"publication": f"postgresql://reader:{SECRET}@db/shop"},
        {"password": SECRET},
        {"sslpassword": SECRET},
        {"service": f"shop password = {SECRET}"},
        {"service": f"shop {SECRET}"},
        {"url": "", "service": "shop", "slott": "s"},
        {"maxbytespertrigger": "many"},
        {"maxrowspertrigger": "0"},
        {"idleseconds": "-1"},
        {"idleseconds": "nan"},
        {"mode": "fast"},
        {"table": "orders"},
        {"origin": "all"},
        {"slot": ""},
        {"publication": ""},
    ],
)
def test_wrong_options(options: dict[str, str]) -> None:
    given = {"url": f"host=db password={SECRET}", "slot": "s", "publication": "p", **options}
    if "service" in options:
        del given["url"]
    with pytest.raises(wf.OptionError, match=r"^option ") as caught:
        SlotOptions.check(given)
    assert SECRET not in str(caught.value)


def test_options_that_need_each_other() -> None:
    for given in ({}, {"url": "host=db", "service": "shop"}):
        with pytest.raises(wf.OptionError, match="option url: expected url, or service"):
            SlotOptions.check({"slot": "s", "publication": "p", **given})


def test_no_password_in_workers_and_errors() -> None:
    server = Walsender(plays([]), password="right")
    with serving(server):
        reader = reader_of(server, url=f"{server.dsn} password={SECRET}", reconnectseconds="0")
        with pytest.raises(wf.ServerError) as caught:
            reader.initialOffset()
    assert SECRET not in str(caught.value)
    assert SECRET.encode() not in pickle.dumps(reader)
    assert SECRET not in repr(reader_of(server, url=f"host=db password={SECRET}")._options)
