"""A program that the tests kill: a query from a slot to a lake, `python -m … DSN SLOT FOLDER SINK`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import spark_udfs

from ..spark.conftest import SETTINGS
from ..test_documentation import BLOCK, ROOT


def sinks() -> dict[str, Any]:
    """The functions of the page."""
    names: dict[str, Any] = {}
    for block in BLOCK.findall((ROOT / "docs" / "spark_live.md").read_text(encoding="utf-8")):
        exec(compile(block, "docs/spark_live.md", "exec"), names)
    return names


def main(dsn: str, slot: str, folder: Path, sink: str, *, once: bool = False) -> None:
    """Reads the typed changes of public.t; says so when a batch has been written."""
    spark = spark_udfs.local_session(2, settings={**SETTINGS, "spark.master": "local[2,4]"})  # a task has four attempts
    spark_udfs.register(spark)
    options = {"url": dsn, "slot": slot, "publication": "p", "table": "public.t", "maxBytesPerTrigger": "500000"}
    lake, functions = str(folder / "lake"), sinks()
    write = functions["to_parquet"](lake) if sink == "parquet" else functions["to_delta"](lake, "orders")

    def write_and_tell(rows: Any, batch: int) -> None:
        write(rows, batch)
        with (folder / "batches").open("a") as told:
            told.write(f"{batch}\n")

    writer = spark.readStream.format("wireformat").options(**options).load().writeStream.foreachBatch(write_and_tell)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(availableNow=True) if once else writer).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
