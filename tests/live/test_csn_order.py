"""Slots and streams of GaussDB in CSN order, where a transaction may come after one with a higher LSN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.stream.positions import Position

from .test_walsender import FAST
from .walsender import Walsender, plays, serving


def slot(confirmed_flush: str, confirmed_csn: str | None) -> list[dict[str, Any]]:
    """The row of a slot, as GaussDB has it. Of a slot in CSN order, confirmed_flush is empty or has no meaning."""
    return [
        {
            "slot_name": "s",
            "plugin": "mppdb_decoding",
            "slot_type": "logical",
            "database": "shop",
            "active": "f",
            "restart_lsn": "0/1",
            "confirmed_flush": confirmed_flush,
            **({} if confirmed_csn is None else {"confirmed_csn": confirmed_csn}),
        }
    ]


def gaussdb(**answers: Any) -> Walsender:
    return Walsender(plays([], end=100), "mppdb_decoding", version="9.2.4", end=100, answers=answers)


def test_one_that_comes_later_with_a_lower_lsn_is_no_repeat() -> None:
    """Files in CSN order can be read: a position has both numbers. A server is told only one."""
    after = Position().advanced(200, 10)
    assert not after.covers(100, 11)
    assert after.advanced(100, 11) == Position(2, 200, 11)


@pytest.mark.parametrize("given", [{"output-order": 1}, {"output-order": "1", "parallel-decode-num": 1}])
def test_a_stream_in_csn_order_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    text = "option options: output-order 1 is not supported here: positions are LSNs"
    with serving(gaussdb()) as server, pytest.raises(wf.OptionError, match=text):
        wf.live.follow(server.dsn, tmp_path / "lake", options=given, **FAST)
    assert server.starts == []
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("via", ["streaming", "sql"])
@pytest.mark.parametrize("flush", ["", "0/32"])
def test_a_slot_in_csn_order_is_refused(flush: str, via: str, tmp_path: Path) -> None:
    with (
        serving(gaussdb(pg_replication_slots=lambda _: slot(flush, "10025527"))) as server,
        pytest.raises(wf.ServerError, match=r"slot: s is in CSN order: .* on a data node: pg_create_logical"),
    ):
        wf.live.follow(server.dsn, tmp_path / "lake", via=via, **FAST)
    assert server.starts == []
    assert not (tmp_path / "lake").exists()


def test_a_new_slot_of_a_coordinator_is_refused(tmp_path: Path) -> None:
    """There CSN order is the default. Nothing is read with it, and the error says to drop it: it retains log."""
    made = list[str]()

    def create(query: str) -> list[dict[str, str]]:
        made.append(query)
        return [{"slotname": "s", "xlog_position": "0/59AD800"}]

    server = gaussdb(pg_create_logical=create, pg_replication_slots=lambda _: slot("", "10025527") if made else [])
    with serving(server), pytest.raises(wf.ServerError, match=r"s is in CSN order.* drop it .*check --drop-slot"):
        wf.live.follow(server.dsn, tmp_path / "lake", create_slot=True, plugin="mppdb_decoding", **FAST)
    assert len(made) == 1
    assert server.starts == []


@pytest.mark.parametrize("csn", [None, "", "0"])
def test_a_slot_in_lsn_order_is_read(csn: str | None, tmp_path: Path) -> None:
    with serving(gaussdb(pg_replication_slots=lambda _: slot("0/1", csn))) as server:
        position = wf.live.follow(
            server.dsn, tmp_path / "lake", options={"parallel-decode-num": 1, "output-order": 0}, **FAST
        )
    assert position.slot is not None
    assert position.slot.lsn == 100
