"""How Java runs in processes that tests start: queries are short, so it compiles little and collects simply.

The first session that tests share leaves an archive of the classes that it has loaded: Java maps it into memory, and
later sessions start in two thirds of the time. An archive of another Java or Spark is not used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

_OPTIONS = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *((f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if ARCHIVE.exists() else ()),
)

SHORT_QUERIES = {"SPARK_SUBMIT_OPTS": " ".join(_OPTIONS)}
"""Of the environment of whatever starts Spark."""


@contextmanager
def leaving_classes(start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """Starts a session and stops it; unless the archive is there, its JVM makes it when it ends."""
    if ARCHIVE.exists():
        session = start()
        yield session
        session.stop()
        return
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] += f" -Xlog:disable -XX:ArchiveClassesAtExit={unfinished}"
    session = start()
    os.environ.update(SHORT_QUERIES)  # other processes do not make one
    yield session
    session.stop()
    _end_java()
    if unfinished.exists():  # not every Java makes one
        unfinished.rename(ARCHIVE)


def _end_java() -> None:
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
