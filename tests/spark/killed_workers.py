"""A program that kills its workers and decodes the same rows again. If their parent dies too, Spark fails a query."""

from __future__ import annotations

import os
import signal
import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs

from .conftest import SETTINGS
from .messages import transaction


def workers(messages: DataFrame) -> dict[int, str]:
    """The process of each worker, and whether it uses Unix domain sockets."""
    told = F.udf(lambda _: (os.getpid(), os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false")), "pid int, uds string")
    return dict(row[0] for row in messages.select(told("value")).collect())


def main() -> None:
    spark = spark_udfs.local_session(2, settings=SETTINGS)
    messages = spark.createDataFrame([(transaction("a"),), (transaction("b"),)], "value binary").repartition(2)
    rows = spark_udfs.decode(messages).orderBy(F.expr("new['v']"), "kind", "lsn")
    wanted = rows.collect()
    before = workers(messages)
    for process in before:
        os.kill(process, signal.SIGKILL)
    same = rows.collect() == wanted
    survivors = before.keys() & workers(messages).keys()
    sys.stdout.write(" ".join([*{mode.lower() for mode in before.values()}, "same" if same else "other", *survivors]))


if __name__ == "__main__":
    main()
