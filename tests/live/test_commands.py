"""`wireformat check` and `wireformat follow`."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

import wireformat as wf

from ..cli.commands import run
from .crashes import Reader
from .databases import Database, changes_of, told


def test_check_prints_a_line_for_each_finding(db: Database, tmp_path: Path) -> None:
    missing = run("check", db.dsn, "--slot", db.slot, "--publication", "p")
    assert missing.exit_code == 1
    assert f"error   slot: {db.slot} does not exist; pass --create-slot" in missing.stdout
    assert "1 of 5 checks keep the stream from starting" in missing.stderr
    (tmp_path / "file").touch()
    refused = run("check", db.dsn, "--slot", db.slot, "--publication", "p", "--create-slot", "--to", tmp_path / "file")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "created slot" not in refused.stderr
    new = tmp_path / "lake"
    made = run("check", db.dsn, "--slot", db.slot, "--publication", "p", "--create-slot", "--to", new)
    assert made.exit_code == 0
    assert f"{new}: no lake is there yet; a new one begins where the slot is" in made.stderr
    assert not new.exists()
    assert "ok      wal_level: logical" in made.stdout
    db.follow(tmp_path / "lake")
    gone_on = run("check", db.dsn, "--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake")
    assert "ok      position: continues at" in gone_on.stdout
    findings = run("check", db.dsn, "--slot", db.slot, "--publication", "p", "--json").stdout.splitlines()
    assert all(json.loads(line).keys() == {"level", "check", "text", "advice", "passes"} for line in findings)
    assert len(findings) > 1
    dropped = run("check", db.dsn, "--slot", db.slot, "--drop-slot")
    assert (dropped.exit_code, dropped.stderr) == (0, f"dropped slot {db.slot}\n")
    assert db.rows(f"select count(*) from pg_replication_slots where slot_name = '{db.slot}'") == [(0,)]
    assert run("check", db.dsn, "--slot", "s", "--create-slot", "--drop-slot").exit_code == 2


def test_follow_once(db: Database, tmp_path: Path) -> None:
    """Plain lines where there is no terminal, and metrics as lines of JSON."""
    db.execute("insert into t values (1, 'a', 1)")
    lake, metrics = tmp_path / "lake", tmp_path / "metrics"
    options = ("--slot", db.slot, "--publication", "p", "--to", lake, "--once", "--threads", 1)
    first = run("follow", db.dsn, *options, "--create-slot", "--snapshot")
    assert first.exit_code == 0, first.output
    assert "snapshot: public.t, 1 row" in first.stderr
    db.execute("insert into t values (2, 'b', 1)", "delete from t where id = 1")
    then = run("follow", db.dsn, *options, "--metrics", metrics, "--retained-alarm", "0.000001")
    assert then.exit_code == 0, then.output
    assert "streaming: " in then.stderr
    assert "2 rows in 1 commit," in then.stderr
    assert "(ALARM: more than 0.0 MB)" in then.stderr
    assert told(lake) == [("insert", 1), ("insert", 2), ("delete", 1)]
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    last = lines[-1]
    assert (last["rows"], last["commits"], last["tables"], last["alarm"]) == (2, 1, {"public.t": 2}, True)
    assert {"lag_bytes", "lag_seconds", "retained_bytes", "rows_per_second", "open_messages", "last_commit"} <= set(
        last
    )
    to_stdout = run("follow", db.dsn, *options, "--metrics", "-")
    assert json.loads(to_stdout.stdout.splitlines()[0])["state"] == "streaming"
    db.execute(f"select pg_drop_replication_slot('{db.slot}')")
    refused = run("follow", db.dsn, *options)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"wireformat: slot: {db.slot} does not exist")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (("--tables", "public.t"), "has been written with tables=None, got ['public.t']"),
        (("--format", "delta"), "is a lake with --format parquet, got 'delta'"),
        (("--partition-by", "commit_date"), "is a lake with partition_by=None, got 'commit_date'"),
    ],
)
def test_options_of_another_lake(db: Database, tmp_path: Path, other: tuple[str, str], words: str) -> None:
    """Also if there is nothing to write: a typo is noticed in the run that has it."""
    db.follow(tmp_path / "lake", create_slot=True)
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
    result = run("follow", db.dsn, *options, *other)
    assert result.exit_code == 2, result.output
    assert words in result.stderr


def test_metrics_on_a_full_disk(db: Database, tmp_path: Path) -> None:
    """They cost lines, and not the stream."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full, which is always full")
    db.execute(
        f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')", "insert into t values (1, 'a', 1)"
    )
    lake = tmp_path / "lake"
    options = ("--slot", db.slot, "--publication", "p", "--to", lake, "--once", "--threads", 1)
    done = run("follow", db.dsn, *options, "--metrics", "/dev/full")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("--metrics /dev/full: No space left on device; lines are left out") == 1
    assert told(lake) == [("insert", 1)]


@pytest.mark.slow
def test_sigterm_ends_after_the_current_batch(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    db.execute("insert into t select i, 'x', 1 from generate_series(1, 1000) i")
    reader = Reader(db, lake, tmp_path / "metrics")
    code, said = reader.end(signal.SIGTERM)
    assert code == 0, said
    assert "everything before" in said
    assert changes_of(lake).num_rows in (0, 1000)
    assert db.confirmed() <= wf.lake.position(lake).slot.lsn  # type: ignore[union-attr]
