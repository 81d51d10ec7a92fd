"""A program that the tests kill: a streaming capture from Parquet to Parquet, `python -m … FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spark_udfs

from .conftest import SETTINGS

NO_SETTINGS: Mapping[str, Any] = {}


def main(folder: Path, settings: Mapping[str, Any] = NO_SETTINGS) -> None:
    """Goes on until all files in FOLDER/rows are read; what was delivered is in FOLDER/found."""
    spark = spark_udfs.local_session(2, settings={**SETTINGS, **settings})
    schema = spark.read.parquet(str(folder / "rows")).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    capture = spark_udfs.capture(rows, "value", "pgoutput", stream_by=["stream"], order_by=["offset"])
    writer = capture.committed().writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "found")).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
