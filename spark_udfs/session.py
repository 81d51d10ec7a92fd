"""A Spark session on this machine, for the demo, tests and experiments."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pyspark.sql import SparkSession, is_remote

from wireformat.options.checks import mapping, number
from wireformat.options.keywords import checks_keywords

LEAST_JAVA = 17
"""The lowest version of Java that Spark 4 runs on."""


class JavaMissing(RuntimeError):
    """No usable Java was found; the text says what was found and what to do."""


class RemoteProcess(RuntimeError):
    """This process uses Spark Connect, and Spark has no local session next to it."""


@checks_keywords
def local_session(
    cores: int | str = 2, *, app_name: str = "wireformat", settings: Mapping[str, object] | None = None
) -> SparkSession:
    """Returns a local session whose workers run this interpreter, or the existing local session.

    The existing one keeps its settings, except for those in `settings` that can still change.

    cores       a number, or * for all
    app_name    the name of the application, as Spark shows it
    settings    Spark settings by name; they override the settings made here

    Sets PYSPARK_PYTHON, which tells Spark where the interpreter is. Data pass between the JVM and the workers through
    Unix domain sockets if the system has them and PYSPARK_UDS_MODE is not set. In the workers, Arrow uses jemalloc if
    it has it and ARROW_DEFAULT_MEMORY_POOL is not set. Raises OptionError, JavaMissing, and RemoteProcess if this
    process has created a Spark Connect session or SPARK_REMOTE is set.
    """
    if cores != "*":
        number("cores", int(cores) if isinstance(cores, str) and cores.isdecimal() else cores, 1)
    given = mapping("settings", settings)
    check_not_remote()
    from pyspark import SparkContext  # the client of Spark Connect has none

    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:
        check_java()
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(f"local[{cores}]").appName(app_name)
        given = {**SETTINGS, **unix_sockets(), **memory_pool(), **given}
    for name, value in given.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


REMOTE = "SPARK_REMOTE"
"""The environment variable that names a Spark Connect server."""

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The setting of the state store of streaming queries, and the store that a `capture` of a stream needs."""

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

SETTINGS: dict[str, object] = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.maxBytesPerBatch": 8 << 20,
    "spark.sql.shuffle.partitions": 4,
    STATE_STORE: ROCKSDB,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The session does not listen to the network, the log is quiet, and there are few shuffle partitions. With small
batches, a worker starts before the JVM has read much."""


SOCKETS = "spark.python.unix.domain.socket.enabled"
SOCKETS_FOLDER = "spark.python.unix.domain.socket.dir"
"""The settings of Unix domain sockets between the JVM and its workers, through which rows pass faster than by TCP."""

SOCKETS_VARIABLE = "PYSPARK_UDS_MODE"
"""The environment variable with which users decide on Unix domain sockets for all their sessions."""

SOCKET_PATH_BYTES = 100
"""The longest path of a socket: systems allow 104 or 108 bytes, with the null at the end."""

SOCKET_NAME_BYTES = len("/.00000000-0000-0000-0000-000000000000.sock")
"""The length of the names that Spark gives its sockets."""


def unix_sockets() -> dict[str, object]:
    """Returns the settings for Unix domain sockets, if the system has them and the user has not decided otherwise."""
    if not hasattr(socket, "AF_UNIX") or SOCKETS_VARIABLE in os.environ:
        return {}
    folder = _sockets_folder()
    if len(os.fsencode(folder)) + SOCKET_NAME_BYTES > SOCKET_PATH_BYTES:
        return {}
    return {SOCKETS: "true", SOCKETS_FOLDER: folder}


@lru_cache
def _sockets_folder() -> str:
    """Returns a folder that only this user can enter. Spark leaves a socket behind: the process removes the folder."""
    folder = tempfile.mkdtemp(prefix="spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


MEMORY_POOL, ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL", "jemalloc"
"""The environment variable that names the allocator of Arrow, and the one that workers use. Arrow's default, mimalloc,
keeps more of what they let go."""


def memory_pool() -> dict[str, object]:
    """Returns the setting of the workers' allocator, if Arrow has it and the user has not decided otherwise."""
    import pyarrow as pa

    if MEMORY_POOL in os.environ or ALLOCATOR not in pa.supported_memory_backends():
        return {}
    return {f"spark.executorEnv.{MEMORY_POOL}": ALLOCATOR}


def check_not_remote() -> None:
    """Raises RemoteProcess if Spark's builder would create a session of Spark Connect, or fail."""
    if is_remote() or REMOTE in os.environ:
        found = f"{REMOTE} is set" if REMOTE in os.environ else "it has created a Spark Connect session"
        raise RemoteProcess(
            f"local_session: expected a process that does not use Spark Connect, but {found}; a process can have only "
            "one kind of session: use the session of the server, or start another process"
        )


def check_java() -> None:
    """Raises JavaMissing if the Java that Spark would start is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    try:
        shown = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        found = f"JAVA_HOME is {home}, which has no bin/java that runs" if home else "there is no java on PATH"
    else:
        version = re.search(r"java\.specification\.version = ([\d.]+)", shown)
        if version and float(version[1]) >= LEAST_JAVA:
            return
        found = f"{java} is version {version[1] if version else 'unknown'}"
    raise JavaMissing(
        f"Spark needs Java {LEAST_JAVA} or newer: {found}. Install one (Debian, Ubuntu: apt-get install "
        "openjdk-17-jre-headless) or set JAVA_HOME to its folder"
    )
