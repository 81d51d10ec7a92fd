"""Nothing is lost and nothing comes twice, whoever is killed when."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

import wireformat as wf

from ..servers.installations import installations
from ..servers.seeds import run_seed, tell_seed
from ..servers.server import Server, running
from .crashes import WAIT_SECONDS, Reader, check_changes, prepare, writing
from .databases import Database, changes_of, database

KILLS = int(os.environ.get("WIREFORMAT_KILLS", "3"))
"""`make endure` kills more often."""

VERSION = 18

pytestmark = pytest.mark.slow


def all_changes(lake: Path, format: str) -> object:
    if format == "parquet":
        return changes_of(lake)
    deltalake = pytest.importorskip("deltalake")
    rows = deltalake.DeltaTable(lake / "public" / "t").to_pyarrow_table()
    sequence = rows["_sequence"].combine_chunks()
    return (
        rows.append_column("lsn", sequence.field(0))
        .append_column("ordinal", sequence.field(1))
        .sort_by([("lsn", "ascending"), ("ordinal", "ascending")])
    )


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_reader_that_is_killed(db: Database, tmp_path: Path, format: str) -> None:
    tell_seed()
    random = Random(f"{run_seed()} {format}")
    lake, metrics = tmp_path / "lake", tmp_path / "metrics"
    prepare(db)
    db.follow(lake, create_slot=True, format=format)
    with writing(db, random):
        for _ in range(KILLS):
            reader = Reader(db, lake, metrics, "--format", format)
            time.sleep(random.uniform(0, 1))
            code, _ = reader.end()
            assert code == -signal.SIGKILL
    finish(db, lake, format)


def finish(db: Database, lake: Path, format: str) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            db.follow(lake, format=format)
            break
        except wf.ServerError as error:  # the server has not noticed yet that the reader is gone
            if not error.is_temporary or time.monotonic() > end:
                raise
            time.sleep(0.1)
    check_changes(db, all_changes(lake, format))  # type: ignore[arg-type]


def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """The reader connects again by itself."""
    tell_seed()
    random = Random(f"{run_seed()} server")
    lake, metrics = tmp_path / "lake", tmp_path / "metrics"
    with running(installations()[VERSION]) as server, database(server, "killed") as db:
        prepare(db)
        db.follow(lake, create_slot=True)
        reader = Reader(db, lake, metrics)
        for number in range(KILLS):
            with writing(db, random):
                time.sleep(random.uniform(0.2, 1))
                server.restart((signal.SIGKILL, signal.SIGINT)[number % 2])
        db.session.close()
        db.session = server.connect(db.name)
        wait_until_caught_up(server, db)
        code, said = reader.end(signal.SIGTERM)
        assert (code, "connecting again" in said) == (0, True), said
        finish(db, lake, "parquet")


def wait_until_caught_up(server: Server, db: Database) -> None:
    (end,) = db.rows("select pg_current_wal_flush_lsn()::text")[0]
    deadline = time.monotonic() + WAIT_SECONDS
    while db.confirmed() < wf.lsn_value(end):
        assert time.monotonic() < deadline, "the reader does not come back"
        db.execute("select pg_logical_emit_message(true, '', '')")
        db.execute("insert into t values (-1, '', 0) on conflict (id) do update set price = t.price + 1")
        time.sleep(0.1)
