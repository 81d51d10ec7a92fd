"""Spark is killed at random moments while sessions write: the lake has each change once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import wireformat as wf

from ..servers.seeds import run_seed, tell_seed
from ..spark.conftest import spark
from . import slot_query
from .crashes import ROOT, check_changes, prepare, writing
from .databases import Database

__all__ = ["spark"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("WIREFORMAT_KILLS", "3"))
START_SECONDS = 300

PAUSES = (0, 0.01, 0.02)
"""While Spark starts, a session without pauses would keep a processor busy, and leave the query behind for long."""


@pytest.mark.parametrize("sink", ["parquet", "delta"])
def test_spark_that_is_killed(spark: SparkSession, db: Database, tmp_path: Path, sink: str) -> None:
    """First its workers, whose tasks then run again; then the driver, its JVM and its workers at once."""
    if sink == "delta":
        pytest.importorskip("deltalake")
    tell_seed()
    random = Random(f"{run_seed()} spark {sink}")
    prepare(db)
    wf.live.create_slot(db.dsn, db.slot)
    kills = KILLS if sink == "parquet" else 1  # what differs is the sink alone
    for _ in range(kills):
        with writing(db, random, PAUSES):
            run_and_kill(db, tmp_path, sink, random)
    slot_query.main(db.dsn, db.slot, tmp_path, sink, once=True)
    check_changes(db, in_order(tmp_path / "lake", sink))
    assert len({*batches_of(tmp_path)}) > kills


def batches_of(folder: Path) -> list[int]:
    """The numbers of the batches that were written, also again."""
    told = folder / "batches"
    return [int(line) for line in told.read_text().split()] if told.exists() else []


def run_and_kill(db: Database, folder: Path, sink: str, random: Random) -> None:
    """Kills the query some time after it has written two batches: the first may be one that was logged before."""
    before = len(batches_of(folder))
    command = [sys.executable, "-m", "tests.live.slot_query", db.dsn, db.slot, str(folder), sink]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "said").open("ab") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said, start_new_session=True)
    try:
        wait_for_batches(process, folder, before + 2)
        time.sleep(random.uniform(0, 0.5))
        workers = workers_of(process.pid)
        assert workers
        for worker in workers:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(worker, signal.SIGKILL)
        wait_for_batches(process, folder, len(batches_of(folder)) + 1)
        time.sleep(random.uniform(0, 1))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_batches(process: subprocess.Popen[bytes], folder: Path, count: int) -> None:
    """Waits until so many batches have been written."""
    end = time.monotonic() + START_SECONDS
    while len(batches_of(folder)) < count:
        assert process.poll() is None, (folder / "said").read_text()
        assert time.monotonic() < end, "the query writes nothing"
        time.sleep(0.05)


def workers_of(session: int) -> list[int]:
    """The processes of a session that Spark's daemon of workers has forked."""
    daemons: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone
            _, parent, _, own, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(own) == session and b".daemon" in (folder / "cmdline").read_bytes():
                daemons[int(folder.name)] = int(parent)
    return [worker for worker, parent in daemons.items() if parent in daemons]


def in_order(lake: Path, sink: str) -> pa.Table:
    """All rows of the lake, in the order of their positions."""
    if sink == "parquet":
        rows = ds.dataset(lake, format="parquet", partitioning="hive").to_table()
    else:
        from deltalake import DeltaTable

        rows = DeltaTable(lake).to_pyarrow_table()
    keys = [pc.struct_field(rows["_sequence"], name) for name in ("commit_lsn", "ordinal")]
    rows = rows.append_column("lsn", keys[0]).append_column("ordinal", keys[1])
    return rows.sort_by([("lsn", "ascending"), ("ordinal", "ascending")])
