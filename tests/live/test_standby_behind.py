"""A standby that has not replayed yet what a lake or checkpoint has is waited for, also at the start of a run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from spark_udfs.source.ranges import SlotRanges
from spark_udfs.source.transactions import Limit

from .databases import told
from .slot_messages import all_ids
from .test_slot_ranges import MESSAGES, at
from .walsender import Walsender, plays, serving

OPTIONS: dict[str, Any] = {"slot": "s", "publication": "p", "threads": 1, "once": True, "batch_seconds": 0.01}


def behind(*ends: int) -> Walsender:
    """A standby whose log ends there when it is asked for the first time, and so on; afterwards it has all."""
    left = [*ends]

    def standby(query: str) -> list[dict[str, str]]:
        server.end = left.pop(0) if left else 400
        return [{"standby": "t"}]

    server = Walsender(plays(MESSAGES, end=400), end=400, answers={"pg_is_in_recovery": standby})
    return server


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    monkeypatch.setattr("spark_udfs.source.ranges._WAIT_SECONDS", (0.01,))


def lake_at_300(folder: Path) -> None:
    with serving(Walsender(plays(MESSAGES[:-3], end=300), end=300)) as server:
        wf.live.follow(server.dsn, folder, **OPTIONS)


def test_follow_waits_from_the_start(tmp_path: Path) -> None:
    lake_at_300(tmp_path)
    seen = list[str]()
    with serving(behind(100, 200)) as server:
        wf.live.follow(server.dsn, tmp_path, on_progress=lambda progress: seen.append(progress.state), **OPTIONS)
    waits = [state for state in seen if "the standby's log ends at" in state]
    assert [state.partition("the standby's log ends at ")[2][:4] for state in waits] == ["0/64", "0/C8"]
    assert all(state.startswith("connecting again: position: the lake ends at 0/12C") for state in waits)
    assert [id for _, id in told(tmp_path)] == [1, 2, 3, 4, 5, 6, 7]


def test_follow_does_not_wait_for_ever(tmp_path: Path) -> None:
    lake_at_300(tmp_path)
    with (
        serving(behind(*[100] * 1000)) as server,
        pytest.raises(wf.ServerError, match="the standby's log ends at 0/64; wait until"),
    ):
        wf.live.follow(server.dsn, tmp_path, reconnect_seconds=0.1, **OPTIONS)


def test_another_server_is_not_waited_for(tmp_path: Path) -> None:
    lake_at_300(tmp_path)
    server = behind(*[100] * 1000)
    server.answers["IDENTIFY_SYSTEM"] = lambda _: [
        {"systemid": "7300000000000000002", "timeline": "1", "xlogpos": "0/64", "dbname": "shop"}
    ]
    with serving(server), pytest.raises(wf.ServerError, match="this server is system 7300000000000000002"):
        wf.live.follow(server.dsn, tmp_path, reconnect_seconds=1e6, **OPTIONS)


@pytest.mark.parametrize("question", ["next", "slices"])
def test_ranges_wait_from_the_start(question: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also for the end of a range that was logged. The log of the driver says what is waited for."""
    with serving(behind(100, 200)) as server:
        ranges = SlotRanges(server.dsn, "s", ["p"], driver="psycopg", reconnect_seconds=60)
        with closing(ranges):
            if question == "slices":
                assert all_ids(ranges.slices(at(100), at(400))) == [3, 4, 5, 6, 7]
            else:
                assert ranges.next(at(300), Limit(), 400) == 400
    ends = [message.partition("log ends at ")[2].partition(";")[0] for message in caplog.messages]
    assert ends == ["0/64", "0/C8"]
    assert caplog.messages[0].startswith("slot s: trying again for 60 s: position: the checkpoint ends at ")
