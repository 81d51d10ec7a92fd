"""A program that tests start: asks a Spark Connect server everything, `SPARK_REMOTE=sc://… python -m … FOLDER`.

A process that has a Spark session of its own cannot have one of Spark Connect.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pyarrow.feather as feather
from pyspark.sql import SparkSession

import spark_udfs

from .connect_calls import CALLS, FAULTS, QUICK, Input, fault


def main(folder: Path) -> None:
    """Write answers and faults into folders of FOLDER; what fails goes into a text in place of the answer."""
    for name in ("answers", "faults", "streams"):
        (folder / name).mkdir()
    spark = SparkSession.builder.getOrCreate()
    for setting, value in QUICK.items():
        spark.conf.set(setting, value)
    spark_udfs.register(spark)
    data = Input(spark, folder / "streams")
    for name in CALLS:
        try:
            feather.write_feather(CALLS[name](data).toArrow(), folder / "answers" / name)
        except Exception:
            (folder / "answers" / f"{name}.txt").write_text(traceback.format_exc())
    for name in FAULTS:
        (folder / "faults" / name).write_text(fault(data, name))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
