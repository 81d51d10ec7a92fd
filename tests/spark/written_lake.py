"""A program that the tests kill, or whose tasks fail: FOLDER/raw to lakes by `spark_udfs.capture`.

`python -m … FOLDER KIND`: it says when it is about to write FOLDER/lake, and waits for a line.
`python -m … FOLDER KIND KIND`: each task that writes FOLDER/KIND fails at the end of its first attempt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import spark_udfs

from .conftest import SETTINGS

MODULE: Any = import_module("spark_udfs.capture")


def fail_once_each(whole: Any, marks: Path) -> None:
    """From now on, each task that writes files fails once, after it has written them and left a mark."""

    def fail_once(reading: Any, write: Any, batches: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        mark = marks / f"mark-{task.partitionId()}"
        found = [*whole(reading, write, batches)]
        if found and not mark.exists():
            mark.touch()
            raise RuntimeError("this task fails once")
        yield from found

    MODULE.file_batches = fail_once


def main(folder: Path, kinds: Sequence[str]) -> None:
    spark = spark_udfs.local_session(2, settings={**SETTINGS, "spark.master": "local[2, 4]"})
    df = spark.read.parquet(str(folder / "raw"))
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=["offset"], chunks=6)
    if len(kinds) > 1:
        whole = MODULE.file_batches
        for kind in kinds:
            (folder / kind).mkdir()
            fail_once_each(whole, folder / kind)
            capture.write(str(folder / kind / "lake"), format=kind)
        return
    capture.tables()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    capture.write(str(folder / "lake"), format=kinds[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
