"""Spark Connect: every call gives what it gives without it, and every error says as much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from pyspark.sql import SparkSession

from ..engines import FORMAT
from .connect_calls import CALLS, FAULTS, QUICK, Input, ask
from .messages import TORN
from .test_errors import place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

ENDS_WITHIN = 60
"""Seconds that the server and its workers have to end."""


@contextmanager
def program(name: str, *arguments: str, errors: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A program of this folder with all that it starts, in a session of its own, which is empty afterwards."""
    command = [sys.executable, "-m", f"{__package__}.{name}", *arguments]
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=errors.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + ENDS_WITHIN
    while processes_of(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(process.pid) == []


def processes_of(session: int) -> list[psutil.Process]:
    """The processes of a session that run."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a client writes that asks a server."""
    folder = tmp_path_factory.mktemp("connect")
    with program("connect_server", errors=folder / "server") as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, (folder / "server").read_text()
        remote = f"sc://127.0.0.1:{port}"
        with program("connect_client", str(folder), errors=folder / "client", SPARK_REMOTE=remote) as client:
            client.communicate()
            assert client.returncode == 0, (folder / "client").read_text()
        server.communicate()
        assert server.returncode == 0, (folder / "server").read_text()
    return folder


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Input]:
    """The same without Spark Connect."""
    yield Input(spark, tmp_path_factory.mktemp("classic"))
    spark.catalog.clearCache()


@pytest.mark.parametrize("name", CALLS)
def test_the_answer_is_the_same(folder: Path, data: Input, set_conf: Callable[[str, Any], None], name: str) -> None:
    failed = folder / "answers" / f"{name}.txt"
    assert not failed.exists(), failed.read_text()
    for setting, value in QUICK.items():
        set_conf(setting, value)
    found, wanted = feather.read_table(folder / "answers" / name), ask(data, name)
    assert found.schema.equals(wanted.schema, check_metadata=True)
    left, right = lines(found), lines(wanted)
    assert len(right) > 0
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one == other


def lines(rows: pa.Table) -> list[str]:
    """The rows, to compare in any order; times as numbers, since datetime ends with the year 9999."""
    while any(pa.types.is_struct(kind) for kind in rows.schema.types):
        rows = rows.flatten()
    for at, kind in enumerate(rows.schema.types):
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            number = pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
            rows = rows.set_column(at, rows.column_names[at], rows.column(at).cast(number))
    return sorted(map(repr, rows.to_pylist()))


REASON, WHERE = place(TORN).split(f" [{FORMAT}: ")
TORN_WORDS = (f"{REASON} [{FORMAT}: {WHERE}, row seq=1]",)
WORDS: dict[str, tuple[str, ...]] = {
    "decode": ("PythonException: ", *TORN_WORDS),
    "decode, pandas": TORN_WORDS,
    "decode of a stream": ("StreamingQueryException: ", *TORN_WORDS),
    "wal_changes": TORN_WORDS,
    "wal_decode": (f"{REASON} [{FORMAT}: message ", WHERE),
    "transactions": ("bad order: ", "expected records that could be read", "record 2, open nothing, at seq=1]"),
    "transactions of a stream": ("OptionError: transactions of a streaming DataFrame lie in a RocksDB state store",),
    "typed": ("bad cell: expected a value of the type int32, got a text that is no integer [table public.t, column v",),
    "an option": ("OptionError: option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED; got 'FAILFST'",),
    "local_session": ("RemoteProcess: local_session: expected a process that asks no Spark Connect server",),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_says_what_is_wrong_and_where(folder: Path, name: str) -> None:
    text = (folder / "faults" / name).read_text()
    assert [words for words in WORDS[name] if words not in text] == []
