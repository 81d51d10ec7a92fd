"""A program that tests start: FOLDER/raw to lakes, `python -m … FOLDER KIND…`, while a task has two attempts.

The first attempt of one task waits after it has written its files, until the second one, which Spark starts because the
first is slow, has written the same. Spark gives the second one to another host: this machine by two of its addresses.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pyspark

import spark_udfs

from .conftest import SETTINGS

MODULE: Any = import_module("spark_udfs.capture")
ROOT = Path(__file__).parents[2]
HOME = Path(pyspark.__file__).parent
HOSTS = ("127.0.0.1", "127.0.0.2")
SPECULATION = {
    "spark.executor.cores": 1,
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.2",
}
WAITS = 60
"""Seconds after which the first attempt no longer waits, and the test fails."""


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A cluster with a worker at each of HOSTS; gives the URL of its master."""
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = str(free.getsockname()[1])
    master = f"spark://{HOSTS[0]}:{port}"
    with ExitStack() as stack:
        stack.enter_context(started(folder, "master.Master", "--host", HOSTS[0], "--port", port))
        for host in HOSTS:
            own = ("--cores", "1", "--memory", "512M", "--work-dir", str(folder / host))
            stack.enter_context(started(folder, "worker.Worker", "--host", host, *own, master))
        yield master


@contextmanager
def started(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    """A process of Spark's, which is stopped in the end."""
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments, "--webui-port", "0"]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "SPARK_HOME": str(HOME)})
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def wait_in_first(whole: Any, marks: Path) -> None:
    """From now on, the first attempt of the first task that writes files waits for the second one."""

    def waiting(reading: Any, write: Any, batches: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        found = [*whole(reading, write, batches)]
        if task.partitionId() == 0 and found:
            (marks / f"attempt-{task.attemptNumber()}").touch()
            until = time.monotonic() + WAITS
            while not (marks / "attempt-1").exists() and time.monotonic() < until:
                time.sleep(0.1)
        yield from found

    MODULE.file_batches = waiting


def main(folder: Path, kinds: Sequence[str]) -> None:
    with cluster(folder) as master:
        spark = spark_udfs.local_session(2, settings={**SETTINGS, **SPECULATION, "spark.master": master})
        df = spark.read.parquet(str(folder / "raw"))
        capture = spark_udfs.capture(df, "value", "pgoutput", order_by=["offset"], chunks=6)
        capture.tables()
        whole = MODULE.file_batches
        for kind in kinds:
            (folder / kind).mkdir()
            wait_in_first(whole, folder / kind)
            capture.write(str(folder / kind / "lake"), format=kind)
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
