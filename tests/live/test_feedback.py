"""Keepalives and status updates of GaussDB and openGauss, which are structs of C, and what they say."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.live import Progress
from wireformat.live.messages import GAUSSDB, POSTGRES, feedback_of
from wireformat.live.transaction_ends import Cutter, Piece, ends_of

from ..golden_cases import FOLDER
from .test_walsender import FAST, check_same, messages_of
from .walsender import PATIENCE_SECONDS, Message, Refused, Session, Walsender, plays, serving

FAR = 1 << 39
PARALLEL = {"parallel-decode-num": 4, "sending-batch": 1, "decode-style": "b"}
SERIAL = {"parallel-decode-num": 1, "include-xids": True}


class StandbyReplyMessage(ctypes.LittleEndianStructure):
    """Of openGauss-server, src/include/replication/walprotocol.h, as a compiler lays it out."""

    _fields_ = (
        ("receive", ctypes.c_uint64),
        ("write", ctypes.c_uint64),
        ("flush", ctypes.c_uint64),
        ("apply", ctypes.c_uint64),
        ("applyRead", ctypes.c_uint64),
        ("peer_role", ctypes.c_int),
        ("peer_state", ctypes.c_int),
        ("sendTime", ctypes.c_int64),
        ("replyRequested", ctypes.c_bool),
        ("replyFlags", ctypes.c_uint32),
    )


def keepalive_with(*flags: str) -> type[ctypes.LittleEndianStructure]:
    """PrimaryKeepaliveMessage of the same header, which got more flags in time."""

    class PrimaryKeepaliveMessage(ctypes.LittleEndianStructure):
        _fields_ = (
            ("walEnd", ctypes.c_uint64),
            ("peer_role", ctypes.c_int),
            ("peer_state", ctypes.c_int),
            ("sendTime", ctypes.c_int64),
            ("replyRequested", ctypes.c_bool),
            *((flag, ctypes.c_bool) for flag in flags),
        )

    return PrimaryKeepaliveMessage


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    monkeypatch.setattr("wireformat.live.intake.QUIET_END_SECONDS", 2)  # a busy machine pauses, too


@pytest.mark.parametrize("asks", [False, True])
def test_a_status_update_is_the_struct_of_the_header(asks: bool) -> None:
    message = GAUSSDB.status(0x1_0000_0030, 0x1_0000_0010, 800_000_000_000_000, asks)
    assert message[:1] == b"r"
    assert len(message) == 1 + ctypes.sizeof(StandbyReplyMessage) == 65
    found = StandbyReplyMessage.from_buffer_copy(message, 1)
    assert {name: getattr(found, name) for name, _ in StandbyReplyMessage._fields_} == {
        "receive": 0x1_0000_0030,
        "write": 0x1_0000_0030,
        "flush": 0x1_0000_0010,
        "apply": 0x1_0000_0010,
        "applyRead": 0x1_0000_0010,
        "peer_role": 0,
        "peer_state": 0,
        "sendTime": 800_000_000_000_000,
        "replyRequested": asks,
        "replyFlags": 0,
    }
    assert message[58:61] == bytes(3)


def test_postgresql_gets_single_fields() -> None:
    message = POSTGRES.status(3, 2, 1, True)
    assert message == b"r" + b"".join(number.to_bytes(8, "big") for number in (3, 2, 2, 1)) + b"\1"


@pytest.mark.parametrize("flags", [(), ("catchup",), ("catchup", "uwal_catchup", "fullSync")])
@pytest.mark.parametrize("asks", [False, True])
def test_a_keepalive_of_any_version(flags: tuple[str, ...], asks: bool) -> None:
    struct = keepalive_with(*flags)
    message = b"k" + bytes(struct(1 << 33, 2, 1, -5, asks, *[True] * len(flags)))
    assert len(message) == 33
    assert GAUSSDB.read_keepalive(message) == (1 << 33, asks)
    with pytest.raises(wf.DecodeError, match="expected PostgreSQL's keepalive of 18 bytes, got 33 bytes"):
        POSTGRES.read_keepalive(message)


@pytest.mark.parametrize("size", [1, 2, 9, 18, 25])
def test_a_keepalive_that_is_too_short(size: int) -> None:
    with pytest.raises(wf.DecodeError, match=f"GaussDB's keepalive of at least 26 bytes, got {size} bytes"):
        GAUSSDB.read_keepalive(b"k" + bytes(size - 1))


def test_the_version_says_the_layout() -> None:
    """PostgreSQL decodes from 9.4 on."""
    assert [feedback_of(version) for version in (90204, 90400, 90624, 100000, 180000)] == [GAUSSDB] + [POSTGRES] * 4


def keepalive(lsn: int, asks: bool = False) -> bytes:
    return b"k" + bytes(keepalive_with("catchup")(lsn, 2, 1, 0, asks, False))


def cut(cutter: Cutter, *messages: bytes) -> Piece:
    return cutter.piece(pa.array(messages, pa.binary()))


@pytest.mark.parametrize("is_parallel", [False, True])
def test_how_far_the_log_was_read_is_a_position_in_serial_decoding_alone(is_parallel: bool) -> None:
    format = "gaussdb-binary" if is_parallel else "mppdb-json"
    cutter = Cutter(ends_of(format), feedback=GAUSSDB, is_parallel=is_parallel)
    piece = cut(cutter, keepalive(50), keepalive(60, asks=True))
    assert (len(piece.messages), piece.lsn, piece.received) == (0, None if is_parallel else 60, 60)
    assert piece.asked


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"k" + bytes(24), "bad length: expected GaussDB's keepalive of at least 26 bytes, got 25 bytes"),
        (b"k", "got 1 bytes"),
        (b"w" + bytes(23), "short data: expected an envelope of 25 bytes, got 24, then the message ends"),
        (b"p" + bytes(40), "bad tag: expected 'w', the envelope of CopyData, or 'k', a keepalive, got b'p'"),
        (b"", "bad tag: .* got b''"),
    ],
)
def test_a_message_that_is_broken(message: bytes, text: str) -> None:
    with pytest.raises(wf.DecodeError, match=text):
        cut(Cutter(ends_of("mppdb-json"), feedback=GAUSSDB), keepalive(50), message)


def binary() -> list[Message]:
    """A stream of parallel decoding, which ends with a transaction."""
    payloads = pq.read_table(FOLDER / "b_many_batch.parquet")["payload"].to_pylist()
    return messages_of(payloads, "gaussdb-binary")


def gaussdb(play: Any, **options: Any) -> Walsender:
    return Walsender(play, "mppdb_decoding", version="9.2.4", **options)


def test_a_keepalive_that_asks_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[int] = []
    monkeypatch.setattr("wireformat.live.intake.STATUS_SECONDS", 1e6)  # it would be told anyway
    monkeypatch.setattr("wireformat.live.follower.ONCE_ASKS_SECONDS", 1e6)

    def play(session: Session, number: int) -> None:
        session.wait_for_status()  # at the start
        for _ in range(3):
            session.keepalive(50, asks=True)
            answers.append(session.wait_for_status())
        session.keepalive(FAR)
        session.idle(FAR)

    with serving(gaussdb(play, end=FAR)) as server:
        wf.live.follow(server.dsn, tmp_path / "lake", options=PARALLEL, **FAST)
    assert len(answers) == 3
    assert {len(body) for body in server.statuses} == {65}


def test_a_keepalive_ahead_of_parallel_decoding_is_no_position(tmp_path: Path) -> None:
    """The server has read its log up to there, and still decodes what it found before it."""
    messages, lake = binary(), tmp_path / "lake"
    known: list[int] = []

    def play(session: Session, number: int) -> None:
        for _ in range(3):
            session.keepalive(FAR, asks=True)
            session.wait_for_status()
        known.append(json.loads((lake / "_wireformat.json").read_text())["position"]["slot"]["lsn"])
        if number == 0:
            session.cut()
        for lsn, payload in messages:
            session.data(lsn, payload)
        session.idle(FAR)

    with serving(gaussdb(play, end=1000)) as server:
        position = wf.live.follow(server.dsn, lake, options=PARALLEL, idle_seconds=0, **FAST)
    wf.Capture([payload for _, payload in messages], "gaussdb-binary").write(tmp_path / "expected")
    check_same(tmp_path)
    assert known == [1, 1]
    assert [start.split()[4] for start in server.starts] == ["0/1", "0/1"]
    assert position.slot is not None
    assert position.slot.lsn == messages[-1][0] == max(server.flushed) < FAR


def test_once_ends_when_a_server_that_decodes_in_parallel_is_quiet(tmp_path: Path) -> None:
    """Its keepalives alone reach the end of the log."""
    with serving(gaussdb(plays(binary()), end=FAR)) as server:
        position = wf.live.follow(server.dsn, tmp_path / "lake", options=PARALLEL, batch_seconds=600, **{
            name: value for name, value in FAST.items() if name != "batch_seconds"
        })  # fmt: skip
    assert position.slot is not None
    assert position.slot.lsn == binary()[-1][0]


def test_a_keepalive_of_serial_decoding_is_a_position(tmp_path: Path) -> None:
    with serving(gaussdb(plays([], end=FAR), end=FAR)) as server:
        position = wf.live.follow(server.dsn, tmp_path / "lake", options=SERIAL, **FAST)
    assert position.slot is not None
    assert position.slot.lsn == FAR == max(server.flushed)


@pytest.mark.parametrize("version", ["9.2.4", "18.0"])
@pytest.mark.parametrize("message", [b"k", b"k" + bytes(16), b"k" + bytes(100), b"w" + bytes(8), b"s" + bytes(40)])
def test_a_broken_message_ends_the_run(message: bytes, version: str, tmp_path: Path) -> None:
    is_gaussdb = version == "9.2.4"
    if is_gaussdb and len(message) > 100:
        pytest.skip("a later version may have more fields")

    def play(session: Session, number: int) -> None:
        session.copy_data(message)
        session.idle(FAR)

    server = Walsender(play, "mppdb_decoding" if is_gaussdb else "pgoutput", version=version, end=FAR)
    given: dict[str, Any] = {"options": SERIAL} if is_gaussdb else {"publication": "p"}
    with serving(server), pytest.raises(wf.DecodeError):
        wf.live.follow(server.dsn, tmp_path / "lake", **given, **FAST)
    assert len(server.starts) == 1
    assert all(lsn == 1 for lsn in server.flushed)


@pytest.mark.parametrize(
    ("state", "passes"),
    [("08P01", False), ("08004", False), ("57P04", False), ("08006", True), ("57P01", True), ("57P03", True)],
)
def test_what_is_tried_again(state: str, passes: bool, tmp_path: Path) -> None:
    """A server that does not understand this reader will not the next time either."""

    def play(session: Session, number: int) -> None:
        if number == 0:
            session.fail(state, "insufficient data left in message")
        session.idle(FAR)

    server = Walsender(play, end=FAR)
    with serving(server):
        if passes:
            wf.live.follow(server.dsn, tmp_path / "lake", publication="p", **FAST)
        else:
            with pytest.raises(wf.ServerError, match="insufficient data left") as raised:
                wf.live.follow(server.dsn, tmp_path / "lake", publication="p", **FAST)
            assert (raised.value.sqlstate, raised.value.is_temporary) == (state, False)
    assert len(server.starts) == (2 if passes else 1)


def test_bytes_that_are_no_message(tmp_path: Path) -> None:
    """libpq gives a stream up of which it cannot find the next message; another connection may be good."""

    def play(session: Session, number: int) -> None:
        if number == 0:
            session.keepalive(50)
            session.garble()
        session.idle(FAR)

    server = Walsender(play, end=FAR)
    with serving(server):
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", reconnect_seconds=60, **FAST)
    assert len(server.starts) == 2


@pytest.mark.parametrize(("timeout", "connections"), [("100", 2), ("60000", 1), ("0", 1)])
def test_a_server_that_is_silent_for_as_long_as_it_may_be(
    timeout: str, connections: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It skips a large transaction, and asks for an answer after half of its wal_sender_timeout, if it has one."""
    monkeypatch.setattr("wireformat.live.intake.SILENT_SECONDS", 0.3)

    def play(session: Session, number: int) -> None:
        if number == 0:
            time.sleep(1.5)
        session.idle(FAR)

    server = Walsender(play, end=FAR, answers={"wal_sender_timeout": lambda _: [{"setting": timeout}]})
    with serving(server):
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", reconnect_seconds=60, **FAST)
    assert len(server.starts) == connections


def advancing(server: Walsender) -> Walsender:
    """The server follows pg_replication_slot_advance."""

    def advance(query: str) -> list[dict[str, str]]:
        server.flushed.append(wf.lsn_value(query.split("'")[3]))
        server.confirmed = max(server.confirmed, server.flushed[-1])
        return [{"slot_name": "s"}]

    server.answers["slot_advance"] = advance
    return server


def test_by_sql_functions_what_is_not_on_disk_is_not_confirmed(tmp_path: Path) -> None:
    """A look reads what is on disk. A transaction that has been written and is not yet on disk is not in it."""
    server = advancing(gaussdb(plays([]), end=FAR, on_disk=500))
    looks = 0

    def peek(query: str) -> list[dict[str, str]]:
        nonlocal looks
        looks += 1
        if looks == 4:
            server.on_disk = FAR
        return []

    server.answers["peek_changes"] = peek
    with serving(server):
        position = wf.live.follow(server.dsn, tmp_path / "lake", via="sql", idle_seconds=0, **FAST)
    assert looks >= 4
    assert set(server.flushed) <= {1, 500, FAR}
    assert server.flushed.index(500) < server.flushed.index(FAR)
    assert position.slot is not None
    assert position.slot.lsn == FAR


@pytest.mark.parametrize("state", ["42883", "42501"])
def test_by_sql_functions_of_a_server_that_does_not_say_what_is_on_disk(state: str, tmp_path: Path) -> None:
    """Only transactions move the position. `once` ends when nothing has come for a while."""
    asked: list[str] = []
    payloads = pq.read_table(FOLDER / "mppdb_stream.parquet")["payload"].to_pylist()
    end = next(index + 1 for index, payload in enumerate(payloads) if payload.startswith(b"COMMIT"))

    def refuse(query: str) -> list[dict[str, str]]:
        asked.append(query)
        raise Refused(state, "gs_walwriter_flush_position")

    def peek(query: str) -> list[dict[str, str]]:
        if server.confirmed >= end:
            return []
        return [
            {"location": wf.lsn_text(index + 1), "xid": "1", "data": payload.decode()}
            for index, payload in enumerate(payloads[:end])
        ]

    server = advancing(gaussdb(plays([]), end=FAR))
    server.answers |= {"gs_walwriter": refuse, "peek_changes": peek}
    with serving(server):
        position = wf.live.follow(
            server.dsn, tmp_path / "lake", via="sql", options={"include-xids": True}, mode="PERMISSIVE", **FAST
        )
    assert len(asked) == 1
    assert position.slot is not None
    assert position.slot.lsn == max(server.flushed) < FAR
    assert wf.lake.tables(tmp_path / "lake").num_rows


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_by_sql_functions_an_idle_slot_moves_and_the_run_can_be_stopped(tmp_path: Path, stop: threading.Event) -> None:
    server = advancing(gaussdb(plays([]), end=FAR))
    seen: list[Progress] = []

    def look(progress: Progress) -> None:
        seen.append(progress)
        if server.confirmed == FAR:
            stop.set()

    given = {name: value for name, value in FAST.items() if name != "once"}
    with serving(server):
        run = threading.Thread(
            target=wf.live.follow,
            args=(server.dsn, tmp_path / "lake"),
            kwargs={"via": "sql", "idle_seconds": 0.1, "on_progress": look, "stop": stop, **given},
            daemon=True,
        )
        run.start()
        run.join(PATIENCE_SECONDS)
        assert not run.is_alive()
    assert server.confirmed == FAR
    assert seen
