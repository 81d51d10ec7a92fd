"""Captures of all kinds of servers, played by a server that is made up: cut anywhere, and sent again."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.live import Progress

from ..golden_cases import FOLDER
from .databases import changes_of
from .walsender import PATIENCE_SECONDS, Message, Session, Walsender, plays, serving

CAPTURES = Path(__file__).parent.parent / "captures"

FAST: dict[str, Any] = {"slot": "s", "batch_seconds": 0.01, "threads": 1, "once": True}

GAUSSDB = {
    "b_many_batch": {"decode-style": "b"},
    "j_names_batch": {"decode-style": "j"},
    "t_names_batch": {"decode-style": "t"},
}
IN_A_SHORT_RUN = "b_many_batch"


def messages_of(payloads: list[bytes], format: str) -> list[Message]:
    """The messages with LSNs as a server has them: those of their last records."""
    rows = wf.arrow.changes(payloads, format, columns=["message", "lsn"]).to_pylist()
    lsns: dict[int, int] = {row["message"]: row["lsn"] for row in rows if row["lsn"] is not None}
    found, last = [], 1
    for index, payload in enumerate(payloads):
        last = lsns.get(index, last)
        found.append((last, payload))
    return found


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    monkeypatch.setattr("wireformat.live.intake.QUIET_END_SECONDS", 0.2)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case != IN_A_SHORT_RUN else []) for case in GAUSSDB]
)
def test_gaussdb_over_connections_that_break(case: str, tmp_path: Path) -> None:
    payloads = pq.read_table(FOLDER / f"{case}.parquet")["payload"].to_pylist()
    random = Random(case)
    options = {"parallel-decode-num": 4, "sending-batch": 1, **GAUSSDB[case]}
    format = wf.Options.gaussdb(options).format
    cuts = sorted(random.randrange(len(payloads)) for _ in range(4))
    server = Walsender(plays(messages_of(payloads, format), cuts), "mppdb_decoding", end=1 << 40, version="9.2.4")
    with serving(server):
        wf.live.follow(server.dsn, tmp_path / "lake", options=options, reconnect_seconds=10, **FAST)
    wf.Capture(payloads, format).write(tmp_path / "expected")
    assert len(server.starts) == len(cuts) + 1
    check_same(tmp_path)
    assert server.starts[0].startswith('START_REPLICATION SLOT "s" LOGICAL 0/1 (')
    assert """"decode-style" '""" in server.starts[0]


@pytest.mark.slow
def test_gaussdb_by_sql_functions(tmp_path: Path) -> None:
    """A look has what is not confirmed, to the end of the transaction that reaches the number that was asked for."""
    payloads = pq.read_table(FOLDER / "mppdb_stream.parquet")["payload"].to_pylist()
    ends = [index + 1 for index, payload in enumerate(payloads) if payload.startswith(b"COMMIT")]
    assert len(ends) > 3
    looks: list[str] = []

    def peek(query: str) -> list[dict[str, str]]:
        looks.append(query)
        begin = next((end for end in reversed(ends) if end * 10 <= server.confirmed), 0)
        end = next((end for end in ends if end - begin >= 5), ends[-1])
        return [
            {"location": wf.lsn_text((index + 1) * 10), "xid": "1", "data": payloads[index].decode()}
            for index in range(begin, end)
        ]

    def advance(query: str) -> list[dict[str, str]]:
        server.confirmed = wf.lsn_value(query.split("'")[3])
        return [{"slot_name": "s"}]

    server = Walsender(
        plays([]),
        "mppdb_decoding",
        end=1 << 40,
        version="9.2.4",
        answers={"peek_changes": peek, "slot_advance": advance},
    )
    with serving(server):
        wf.live.follow(
            server.dsn, tmp_path / "lake", via="sql", options={"include-xids": True}, mode="PERMISSIVE", **FAST
        )
    wf.Capture(payloads[: ends[-1]], "mppdb-json", mode="PERMISSIVE").write(tmp_path / "expected")
    check_same(tmp_path)
    assert len(looks) > 2
    assert "'s', null, 20000, 'include-xids', 'on')" in looks[0]
    assert server.starts == []


def test_test_decoding_of_opengauss(tmp_path: Path) -> None:
    """It ends transactions with a CSN, unlike PostgreSQL's plugin of the same name."""
    payloads = pq.read_table(FOLDER / "testdec_stream.parquet")["payload"].to_pylist()
    ends = [index + 1 for index, payload in enumerate(payloads) if payload.startswith(b"COMMIT")]
    messages = [(10 * (index + 1), payload) for index, payload in enumerate(payloads[: ends[-1]])]
    server = Walsender(plays(messages, ends[1:2]), "test_decoding", end=1 << 40, version="9.2.4")
    with serving(server):
        wf.live.follow(server.dsn, tmp_path / "lake", mode="PERMISSIVE", reconnect_seconds=10, **FAST)
    capture = wf.Capture(payloads[: ends[-1]], "opengauss-test-decoding", mode="PERMISSIVE")
    capture.write(tmp_path / "expected")
    check_same(tmp_path)
    assert """"skip-empty-xacts" 'on'""" in server.starts[0]


def test_gaussdb_in_another_encoding_with_a_broken_record(tmp_path: Path) -> None:
    """They are read as a Capture reads them, also where transactions are searched for."""
    row = wf.TupleData(names=("id", "name"), values=("1", "\u4e2d\u6587"), types=("integer", "text"))
    insert = wf.Insert(table_schema="public", table_name="t", new=row)
    events = (wf.Begin(xid=5), insert, insert, wf.Commit(xid=5, csn=9, commit_time="2024-01-01 00:00:00+00"))
    payloads = list(wf.encode(events, "mppdb-json", encoding="gbk"))
    payloads[1] = payloads[1][:-9]
    reading: dict[str, Any] = {"encoding": "gbk", "mode": "DROPMALFORMED"}
    messages = [(10 * (index + 1), payload) for index, payload in enumerate(payloads)]
    server = Walsender(plays(messages), "mppdb_decoding", end=1 << 40, version="9.2.4")
    with serving(server):
        options = {"parallel-decode-num": 1}
        rejects = tmp_path / "rejects"
        wf.live.follow(server.dsn, tmp_path / "lake", options=options, rejects=str(rejects), **reading, **FAST)
    wf.Capture(payloads, "mppdb-json", **reading).write(tmp_path / "expected")
    check_same(tmp_path)
    assert changes_of(tmp_path / "lake")["name"].to_pylist() == ["\u4e2d\u6587"]
    assert sum(pq.read_table(file).num_rows for file in rejects.iterdir()) == 1


def check_same(folder: Path) -> None:
    """The lake that was followed has the rows of the one that was written at once, in order."""
    expected = wf.lake.tables(folder / "expected").to_pylist()
    assert expected
    for row in expected:
        name = f"{row['table_schema']}.{row['table_name']}"
        there = changes_of(folder / "expected", name)
        found = changes_of(folder / "lake", name).select(there.column_names)
        assert list(map(repr, found.to_pylist())) == list(map(repr, there.to_pylist()))  # NaN is not equal to NaN


def pgoutput(transactions: int) -> list[Message]:
    """What PostgreSQL has sent, up to the end of a transaction."""
    table = pq.read_table(CAPTURES / "18-pgoutput-1.parquet")
    messages: list[Message] = list(zip(table["lsn"].to_pylist(), table["payload"].to_pylist(), strict=True))
    ends = [index for index, (_, payload) in enumerate(messages) if payload[:1] == b"C"]
    return messages[: ends[transactions - 1] + 1]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_pgoutput_over_connections_that_break(seed: int, tmp_path: Path) -> None:
    messages = pgoutput(60)
    random = Random(seed)
    cuts = sorted(random.randrange(len(messages)) for _ in range(6))
    server = Walsender(plays(messages, cuts), end=1 << 40)
    with serving(server):
        position = wf.live.follow(server.dsn, tmp_path / "lake", publication="p", mode="PERMISSIVE", **FAST)
    wf.Capture([payload for _, payload in messages], "pgoutput", mode="PERMISSIVE").write(tmp_path / "expected")
    check_same(tmp_path)
    starts = [text.split()[4] for text in server.starts]
    assert starts == sorted(starts, key=wf.lsn_value)
    assert position.slot.lsn == 1 << 40 == max(server.flushed)  # type: ignore[union-attr]


def test_the_server_hears_a_position_only_when_the_lake_has_it(tmp_path: Path) -> None:
    """At each report, the manifest has at least that position."""
    lake, late = tmp_path / "lake", list[tuple[int, int]]()
    messages = pgoutput(30)

    def play(session: Session, number: int) -> None:
        for index, (lsn, payload) in enumerate(messages):
            session.data(lsn, payload)
            if index % 20 == 19:
                session.keepalive(lsn, asks=True)
                flushed = session.wait_for_status()
                there = json.loads((lake / "_wireformat.json").read_text())["position"]["slot"]["lsn"]
                late.append((flushed, there))
        session.idle(1 << 40)

    with serving(Walsender(play, end=1 << 40)) as server:
        wf.live.follow(server.dsn, lake, publication="p", mode="PERMISSIVE", **FAST)
    assert len(late) > 3
    assert all(flushed <= there for flushed, there in late)


def test_a_keepalive_inside_a_transaction_moves_nothing(tmp_path: Path) -> None:
    messages = pgoutput(30)
    commits = [index for index, (_, payload) in enumerate(messages) if payload[:1] == b"C"]
    cut = commits[3] + 3

    def play(session: Session, number: int) -> None:
        for lsn, payload in messages[: cut if number == 0 else len(messages)]:
            session.data(lsn, payload)
        if number == 0:
            session.keepalive(1 << 39)
            for _ in range(2):
                session.keepalive(1 << 39, asks=True)
                assert session.wait_for_status() < 1 << 39
            session.cut()
        session.idle(1 << 40)

    assert messages[cut - 1][1][:1] not in (b"B", b"C")
    with serving(Walsender(play, end=1 << 40)) as server:
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", mode="PERMISSIVE", **FAST)
    wf.Capture([payload for _, payload in messages], "pgoutput", mode="PERMISSIVE").write(tmp_path / "expected")
    check_same(tmp_path)


def test_a_server_that_shuts_down_hears_where_it_is(tmp_path: Path) -> None:
    """It asks again and again, and waits until all is safe: what has no changes too, long before it would be told."""

    def play(session: Session, number: int) -> None:
        for lsn, payload in pgoutput(3):
            session.data(lsn, payload)
        while session.wait_for_status() == 1:
            pass
        for _ in range(200):
            session.keepalive(1 << 39, asks=True)
            if session.wait_for_status() == 1 << 39:
                break
        session.idle(1 << 40)

    with serving(Walsender(play, end=1 << 40)) as server:
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", mode="PERMISSIVE", idle_seconds=600, **FAST)
    assert 1 << 39 in server.flushed


def test_a_server_that_shuts_down_does_not_wait_for_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that cannot say that all is safe, as long as a batch is written, lets it go."""
    monkeypatch.setattr("wireformat.live.intake.WAITS_SECONDS", 0.5)
    monkeypatch.setattr("wireformat.live.intake.WAITS_ASKS", 3)
    monkeypatch.setattr("wireformat.live.follower.ASKED_SECONDS", 60)
    seen: list[Progress] = []

    def play(session: Session, number: int) -> None:
        while number == 0:
            session.keepalive(1 << 39, asks=True)
            assert session.wait_for_status() == 1
        session.idle(1 << 40)

    with serving(Walsender(play, end=1 << 40)) as server:
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", on_progress=seen.append, **FAST)
    assert len(server.starts) == 2
    assert any("it shuts down" in progress.state for progress in seen)


def test_the_slot_is_free_when_follow_returns(tmp_path: Path) -> None:
    """So that it can be dropped, advanced, or read again at once."""
    with serving(Walsender(plays([]), end=1, lets_go=0.3)) as server:
        wf.live.follow(server.dsn, tmp_path / "lake", publication="p", **FAST)
        assert server.starts
        assert server.is_free


def test_a_server_that_does_not_come_back(tmp_path: Path) -> None:
    seen: list[Progress] = []

    def play(session: Session, number: int) -> None:
        session.fail("57P01", "terminating connection due to administrator command")

    with serving(Walsender(play)) as server, pytest.raises(wf.ServerError, match="administrator command") as raised:
        wf.live.follow(server.dsn, tmp_path, publication="p", reconnect_seconds=0.1, on_progress=seen.append, **FAST)
    assert raised.value.sqlstate == "57P01"
    assert len(server.starts) > 1
    assert any(progress.state.startswith("connecting again: ") for progress in seen)


@pytest.mark.parametrize(("steady", "ends"), [(30.0, True), (0.0, False)])
def test_connections_that_live_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady: float, ends: bool
) -> None:
    """They are failures, too, though a keepalive comes: the run ends. Those that have lasted are none."""
    monkeypatch.setattr("wireformat.live.follower.STEADY_SECONDS", steady)

    told = threading.Semaphore(0)

    def play(session: Session, number: int) -> None:
        if number < 3 or ends:
            for _ in range(3):
                session.keepalive(1, asks=True)
                session.wait_for_status()
            while told.acquire(blocking=False):
                pass
            for _ in range(3):
                assert told.acquire(timeout=PATIENCE_SECONDS)
            session.cut()
        plays(pgoutput(3), end=1 << 40)(session, number)

    def tell(progress: Progress) -> None:
        if progress.state == "streaming":
            told.release()

    options = {"publication": "p", "mode": "PERMISSIVE", "reconnect_seconds": 0.0, "on_progress": tell, **FAST}
    with serving(Walsender(play, end=1 << 40)) as server:
        if ends:
            with pytest.raises(wf.ServerError, match="the connection was lost"):
                wf.live.follow(server.dsn, tmp_path, **options)
        else:
            wf.live.follow(server.dsn, tmp_path, **options)
    assert len(server.starts) == (2 if ends else 4)


def test_a_full_disk_of_the_server(tmp_path: Path) -> None:
    """It is not taken for the lake's: the connection has ended, and another one is made."""
    seen: list[str] = []

    def play(session: Session, number: int) -> None:
        if number < 2:
            session.fail("53100", "could not write to data file for XID 700: No space left on device")
        plays(pgoutput(3), end=1 << 40)(session, number)

    with serving(Walsender(play, end=1 << 40)) as server:
        wf.live.follow(
            server.dsn,
            tmp_path / "lake",
            publication="p",
            mode="PERMISSIVE",
            on_progress=lambda progress: seen.append(progress.state),
            **FAST,
        )
    assert len(server.starts) == 3
    assert sum("connecting again: the server's disk is full: could not write" in state for state in seen) == 2
    assert not any("the lake's disk" in state for state in seen)


def test_a_stop_while_a_server_does_not_answer(tmp_path: Path) -> None:
    """The connection is taken, and nothing comes: a run ends soon, however long it may wait."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        dsn = f"host=127.0.0.1 port={server.getsockname()[1]} connect_timeout=1000"
        timer = threading.Timer(0.2, stop.set)
        timer.start()
        begun = time.monotonic()
        with pytest.raises(wf.ServerError, match="stopped before anything was written"):
            wf.live.follow(dsn, tmp_path, publication="p", stop=stop, **FAST)
        timer.join()
    assert time.monotonic() - begun < PATIENCE_SECONDS


def test_an_error_that_stays_is_raised_at_once(tmp_path: Path) -> None:
    def play(session: Session, number: int) -> None:
        session.fail("42704", 'publication "p" does not exist')

    with serving(Walsender(play)) as server, pytest.raises(wf.ServerError, match="does not exist"):
        wf.live.follow(server.dsn, tmp_path, publication="p", **FAST)
    assert len(server.starts) == 1


@pytest.mark.parametrize("text", ["s\0x", "s\udcff"])
@pytest.mark.parametrize("name", ["slot", "publication", "options"])
def test_texts_that_no_server_has(name: str, text: str, tmp_path: Path) -> None:
    """libpq would end them at the zero byte: of another slot, all would be well."""
    given: dict[str, Any] = {"publication": "p", **FAST, name: {"origin": text} if name == "options" else text}
    with (
        serving(Walsender(plays([]), end=1)) as server,
        pytest.raises(wf.OptionError, match="names and options: expected valid text"),
    ):
        wf.live.follow(server.dsn, tmp_path / "lake", **given)


def test_options_are_checked(tmp_path: Path) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "option driver: expected": {"driver": "other"},
        "the package gaussdb is not installed": {"driver": "gaussdb"},
        "option publication: expected": {"publication": []},
        "option batch_bytes: expected": {"batch_bytes": 0},
        "latest needs format='delta'": {"state": "latest"},
        "option format: expected": {"format": "orc"},
    }
    for text, options in wrong.items():
        with pytest.raises(wf.OptionError, match=text):
            wf.live.follow("host=nowhere.invalid", tmp_path, slot="s", **options)
    with (
        serving(Walsender(plays([]), "wal2json")) as server,
        pytest.raises(wf.ServerError, match="the plugin wal2json is not supported") as refused,
    ):
        wf.live.follow(server.dsn, tmp_path, slot="s")
    assert str(refused.value).count("test_decoding") == 1
    with serving(Walsender(plays([]))) as server, pytest.raises(wf.OptionError, match="streaming is not supported"):
        wf.live.follow(server.dsn, tmp_path, slot="s", publication="p", options={"streaming": "on"})
