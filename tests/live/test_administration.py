"""Slots are checked, created and dropped without a replication connection where only SQL functions can be had."""

from __future__ import annotations

import pytest

import wireformat as wf

from ..cli.commands import run
from .databases import Database
from .walsender import Walsender, plays, serving


def test_no_replication_connection_is_needed() -> None:
    with serving(Walsender(plays([]), end=1)) as server:
        wf.live.create_slot(server.dsn, "s", via="sql")
        found = wf.live.check(server.dsn, slot="s", publication="p", via="sql")
        wf.live.drop_slot(server.dsn, "s", via="sql")
        assert run("check", server.dsn, "--slot", "s", "--publication", "p", "--via", "sql").exit_code == 0
        dropped = run("check", server.dsn, "--slot", "s", "--via", "sql", "--drop-slot")
        assert (dropped.exit_code, dropped.stderr) == (0, "dropped slot s\n")
    assert "error" not in {one.level for one in found}
    assert len(server.startups) == 5
    assert not any("replication" in one for one in server.startups)


def test_a_slot_by_sql_functions(db: Database) -> None:
    made = run("check", db.dsn, "--slot", db.slot, "--publication", "p", "--via", "sql", "--create-slot")
    assert (made.exit_code, made.stderr) == (0, f"created slot {db.slot}\n")
    found = wf.live.check(db.dsn, slot=db.slot, publication="p")
    by_sql = wf.live.check(db.dsn, slot=db.slot, publication="p", via="sql")
    assert [(one.level, one.check) for one in by_sql] == [(one.level, one.check) for one in found]
    wf.live.drop_slot(db.dsn, db.slot, via="sql")
    assert db.rows(f"select 1 from pg_replication_slots where slot_name = '{db.slot}'") == []


def test_another_way_is_refused() -> None:
    for call in (wf.live.create_slot, wf.live.drop_slot):
        with pytest.raises(wf.OptionError, match="option via: expected"):
            call("host=nowhere.invalid", "s", via="kafka")
    with pytest.raises(wf.OptionError, match="option via: expected"):
        wf.live.check("host=nowhere.invalid", slot="s", via="kafka")
