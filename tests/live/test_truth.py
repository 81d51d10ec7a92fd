"""Where a stream does not go on, because something would be missing; and what `check` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.live import Finding
from wireformat.live.connection import Connection
from wireformat.live.sink import Sink

from ..servers.installations import installations
from ..servers.server import running
from .databases import Database, database, told


def lake_with_rows(db: Database, folder: Path) -> Path:
    db.follow(folder, create_slot=True)
    db.execute("insert into t values (1, 'a', 1)")
    db.follow(folder)
    return folder


def refusal(db: Database, folder: Path, **options: object) -> str:
    """Why a lake does not go on; nothing of it has changed."""
    before = wf.lake.position(folder)
    with pytest.raises(wf.ServerError) as raised:
        db.follow(folder, **options)
    assert wf.lake.position(folder) == before
    return str(raised.value)


def test_a_slot_that_somebody_else_advanced(db: Database, tmp_path: Path) -> None:
    lake = lake_with_rows(db, tmp_path / "lake")
    db.execute("insert into t values (2, 'b', 1)")
    db.rows(f"select pg_replication_slot_advance('{db.slot}', pg_current_wal_flush_lsn())")
    assert "it was advanced by another client, or dropped and created again" in refusal(db, lake)


def test_a_slot_that_is_gone_and_made_again(db: Database, tmp_path: Path) -> None:
    lake = lake_with_rows(db, tmp_path / "lake")
    wf.live.drop_slot(db.dsn, db.slot)
    said = refusal(db, lake)
    assert f"slot: {db.slot} does not exist |" in said
    assert "but its slot no longer exists" in said
    assert "but its slot no longer exists" in refusal(db, lake, create_slot=True)
    assert db.rows(f"select count(*) from pg_replication_slots where slot_name = '{db.slot}'") == [(0,)]
    db.execute("insert into t values (2, 'b', 1)")
    wf.live.create_slot(db.dsn, db.slot)
    assert "dropped and created again" in refusal(db, lake)


def test_a_slot_that_is_made_again_before_the_first_batch(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    wf.live.drop_slot(db.dsn, db.slot)
    db.execute("insert into t values (2, 'b', 1)")
    wf.live.create_slot(db.dsn, db.slot)
    assert "dropped and created again" in refusal(db, lake)


def test_another_slot(db: Database, tmp_path: Path) -> None:
    lake = lake_with_rows(db, tmp_path / "lake")
    wf.live.create_slot(db.dsn, f"{db.slot}_other")
    assert f"pass --slot {db.slot}" in refusal(db, lake, slot=f"{db.slot}_other")


def test_a_position_after_the_end_of_the_log(db: Database, tmp_path: Path) -> None:
    """As of a server that was restored from a backup."""
    lake = lake_with_rows(db, tmp_path / "lake")
    manifest = lake / "_wireformat.json"
    fields = json.loads(manifest.read_text())
    fields["position"]["slot"]["lsn"] += 1 << 40
    manifest.write_text(json.dumps(fields))
    assert "it was restored from a backup" in refusal(db, lake)


def test_a_lake_that_was_not_read_from_a_slot(db: Database, tmp_path: Path) -> None:
    wf.Capture([], "pgoutput").write(tmp_path / "lake")
    db.execute(f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')")
    assert "was not written from a slot" in refusal(db, tmp_path / "lake")


def test_a_slot_that_is_read_by_somebody_else(db: Database, tmp_path: Path) -> None:
    lake = lake_with_rows(db, tmp_path / "lake")
    with Connection(db.dsn) as other:
        other.start(db.slot, 0, {"proto_version": "1", "publication_names": "p"})
        assert f"{db.slot} is active: process" in refusal(db, lake)


@pytest.mark.parametrize("options", [{"snapshot": True}, {"via": "sql"}])
def test_two_runs_while_the_server_does_not_stream(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Tables are copied, or read by SQL functions: the server does not know that the slot is in use. The second run
    would write to the lake at the same time, or to another one, and confirm what the first one has not."""
    monkeypatch.setattr("wireformat.live.slots.CLAIM_SECONDS", 0.1)
    write, refused = Sink.write, list[str]()

    def and_another(self: Sink, messages: Any, *rest: Any) -> Any:
        if not isinstance(messages, list) and not refused:
            with pytest.raises(wf.ServerError) as raised:
                db.follow(tmp_path / "other", **options)
            refused.append(str(raised.value))
        return write(self, messages, *rest)

    if "via" in options:
        db.execute(f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')")
    db.execute("insert into t values (1, 'a', 1)")
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "write", and_another)
        db.follow(tmp_path / "lake", create_slot=True, **options)
    assert "another process copies its tables, or reads it" in refused[0]
    assert told(tmp_path / "lake") == [("insert", 1)]
    db.follow(tmp_path / "lake", **options)


@pytest.mark.server
@pytest.mark.slow
def test_a_slot_that_lost_its_log(tmp_path: Path) -> None:
    settings = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with running(installations()[18]) as server, database(server, "lost") as db:
        lake = lake_with_rows(db, tmp_path / "lake")
        for name, value in settings.items():
            db.execute(f"alter system set {name} = '{value}'")
        db.execute("select pg_reload_conf()")
        for _ in range(5):
            db.execute("create table x as select repeat('x', 1000) from generate_series(1, 10)", "drop table x")
            db.execute("select pg_switch_wal()", "checkpoint")
        said = refusal(db, lake)
        assert f"slot: {db.slot} is lost: wal_removed; the server has removed the log that it needs" in said


def level_of(found: list[Finding], check: str) -> str:
    return max((one.level for one in found if one.check == check), key=["ok", "note", "warning", "error"].index)


def test_a_server_that_is_ready(db: Database) -> None:
    wf.live.create_slot(db.dsn, db.slot)
    found = wf.live.check(db.dsn, slot=db.slot, publication="p")
    assert {one.level for one in found} <= {"ok", "note"}
    assert {"wal_level", "encoding", "slot", "retained", "publication", "max_slot_wal_keep_size", "failover"} <= {
        one.check for one in found
    }


def test_what_is_missing_is_found_with_what_to_do(db: Database) -> None:
    db.execute(
        "create table no_key (id int)",
        "create table nothing (id int primary key)",
        "alter table nothing replica identity nothing",
        "alter publication p add table no_key, nothing",
        "create publication empty_one",
    )
    found = wf.live.check(db.dsn, slot="none", publication=["p", "empty_one", "missing"])
    told = {(one.level, one.check): one for one in found}
    assert "pass --create-slot" in told["error", "slot"].advice
    assert told["error", "publication"].text == "missing does not exist"
    assert told["warning", "publication"].text == "empty_one has no tables"
    identities = [one.text for one in found if one.check == "replica identity"]
    assert [text.split()[0] for text in identities] == ["public.no_key", "public.nothing"]
    assert "REPLICA IDENTITY FULL" in told["warning", "replica identity"].advice


def test_a_slot_of_another_database_or_kind(db: Database) -> None:
    wf.live.create_slot(db.dsn, db.slot)
    found = wf.live.check(db.dsn.replace(db.name, "postgres"), slot=db.slot, publication="p")
    assert level_of(found, "database") == "error"
    db.execute("select pg_create_physical_replication_slot('physical')")
    try:
        found = wf.live.check(db.dsn, slot="physical", publication="p")
        assert level_of(found, "slot") == "error"
    finally:
        db.execute("select pg_drop_replication_slot('physical')")
    assert level_of(wf.live.check(db.dsn, slot=db.slot), "publication") == "error"


def test_a_slot_that_sends_prepared_transactions(db: Database, tmp_path: Path) -> None:
    """It does so although nobody asks for it: after PREPARE the changes do not come again."""
    db.rows(f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput', false, true)")
    assert level_of(wf.live.check(db.dsn, slot=db.slot, publication="p"), "slot") == "error"
    with pytest.raises(wf.ServerError, match="was created with two_phase"):
        db.follow(tmp_path / "lake")


@pytest.mark.parametrize(
    "options",
    [
        {"publication": None},
        {"options": {"streaming": "on"}},
        {"options": {"binary": "on"}, "snapshot": True},
        {"options": {"binary": True}, "format": "delta", "state": "latest"},
        {"plugin": "test_decoding"},
        {"plugin": "test_decoding", "publication": None, "snapshot": True},
        {"via": "sql", "snapshot": True},
    ],
    ids=str,
)
def test_no_slot_is_created_for_wrong_options(db: Database, tmp_path: Path, options: dict[str, Any]) -> None:
    """Nobody would read it, and the server would keep its log."""
    with pytest.raises(wf.OptionError):
        db.follow(tmp_path / "lake", create_slot=True, **options)
    assert db.rows(f"select count(*) from pg_replication_slots where slot_name = '{db.slot}'") == [(0,)]


def test_a_slot_is_not_created_twice(db: Database) -> None:
    wf.live.create_slot(db.dsn, db.slot, failover=True)
    assert db.rows(f"select failover from pg_replication_slots where slot_name = '{db.slot}'") == [(True,)]
    with pytest.raises(wf.ServerError, match=r"was not created: .*already exists"):
        wf.live.create_slot(db.dsn, db.slot)
    with pytest.raises(wf.ServerError, match=r"was not dropped: .*does not exist"):
        wf.live.drop_slot(db.dsn, "none")
