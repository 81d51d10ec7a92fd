"""A program that the tests kill, or whose tasks fail: FOLDER/raw to FOLDER/lake by `spark_udfs.capture`.

`python -m … FOLDER KIND failing`: each task fails at the end of its first attempt, when its files are written.
`python -m … FOLDER KIND`: it says when it is about to write, and waits for a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import spark_udfs

from .conftest import SETTINGS


def failing(folder: Path) -> None:
    """From now on, each task that writes files fails once, after it has written them."""
    module: Any = import_module("spark_udfs.capture")
    whole = module.file_batches

    def fail_once(reading: Any, write: Any, batches: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        mark = folder / f"mark-{task.partitionId()}"
        found = [*whole(reading, write, batches)]
        if found and not mark.exists():
            mark.touch()
            raise RuntimeError("this task fails once")
        yield from found

    module.file_batches = fail_once


def main(folder: Path, kind: str, fails: bool) -> None:
    spark = spark_udfs.local_session(2, settings={**SETTINGS, "spark.master": "local[2, 4]"})
    df = spark.read.parquet(str(folder / "raw"))
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=["offset"], chunks=6)
    if fails:
        failing(folder)
    else:
        capture.tables()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
    capture.write(str(folder / "lake"), format=kind)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "failing" in sys.argv[3:])
