"""How Java runs in processes that tests start: queries are short, so it compiles little and collects simply.

The first session that tests share leaves an archive of the classes that its first queries have loaded. Java maps it
into memory, and sessions that start later take three quarters of the time. An archive of another Java or Spark is not
used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_USES_ARCHIVE = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
_CAN_MAKE_ARCHIVE = "-XX:+RecordDynamicDumpInfo -Xlog:disable"


def short_queries() -> dict[str, str]:
    """Returns what the environment of whatever starts Spark should hold, with the archive if it is there by now."""
    return {"SPARK_SUBMIT_OPTS": f"{_OPTIONS} {_USES_ARCHIVE}" if ARCHIVE.exists() else _OPTIONS}


def leaving_classes(start: Callable[[], SparkSession], first_queries: Callable[[SparkSession], Any]) -> SparkSession:
    """Starts a session. Unless the archive is there, runs the queries and makes it of the classes that they load."""
    if ARCHIVE.exists():
        return start()
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_OPTIONS} {_CAN_MAKE_ARCHIVE}"
    session = start()
    first_queries(session)
    _make_archive(session)
    os.environ.update(short_queries())
    return session


def _make_archive(session: SparkSession) -> None:
    """Gives the JVM the command `VM.cds dynamic_dump FILE`, as jcmd does, which not every Java has."""
    from py4j.protocol import Py4JError

    context: Any = session.sparkContext
    gateway, lang, management = context._gateway, context._jvm.java.lang, context._jvm.javax.management

    def array(kind: Any, *items: Any) -> Any:
        made = gateway.new_array(kind, len(items))
        for index, item in enumerate(items):
            made[index] = item
        return made

    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    with suppress(Py4JError):  # a Java that cannot make one
        methods = lang.Class.forName("javax.management.MBeanServer").getMethods()
        (invoke,) = (method for method in methods if method.getName() == "invoke")
        commands = management.ObjectName("com.sun.management:type=DiagnosticCommand")
        given = array(lang.Object, array(lang.String, "dynamic_dump", str(unfinished)))
        types = array(lang.String, "[Ljava.lang.String;")
        server = lang.management.ManagementFactory.getPlatformMBeanServer()
        invoke.invoke(server, array(lang.Object, commands, "vmCds", given, types))
        if unfinished.exists():
            unfinished.rename(ARCHIVE)
