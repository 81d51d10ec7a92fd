"""Spark Connect: every call gives what Arrow gives, and errors say as much as without it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pytest

import wireformat as wf
from wireformat.times import FIRST_MICROS

from ..engines import FORMAT
from ..servers.captures import read_capture, read_tables
from ..servers.current_tables import typed_rows
from .connect_calls import CALLS, CAPTURE, FAULTS, HALF, MESSAGES, NOT_ALIKE, TORN_MESSAGES
from .many_streams import in_order
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


Rows = list[dict[str, Any]]


@cache
def records() -> pa.Table:
    """The capture; the rows of a TRUNCATE by the names of their tables, as Spark has them."""
    rows = wf.arrow.changes(read_capture(CAPTURE).messages, "pgoutput").rename_columns({"message": "seq"})
    (batch,) = rows.combine_chunks().to_batches()
    return pa.Table.from_batches([in_order(batch, ("seq", "record"))])


@cache
def committed(two_phase: str = "commit") -> pa.Table:
    return wf.arrow.transactions(records(), two_phase=two_phase)


@cache
def tables() -> pa.Table:
    return wf.arrow.tables(records().rename_columns({"seq": "message"}))


def typed(table: str, **options: Any) -> pa.Table:
    return one_machine().typed(table, **options).read_all()


def changes(messages: Any = MESSAGES, format: str = FORMAT, **options: Any) -> Rows:
    return rows_of(wf.arrow.changes(messages, format, **options).rename_columns({"message": "seq"}))


def with_kept(rows: Rows) -> Rows:
    """The rows with the columns KEPT, as they are collected."""
    for row in rows:
        seq = row["seq"]
        row |= {"months": f"INTERVAL '{seq}' MONTH", "time": FIRST_MICROS}
        row |= {"a.b": [seq, None], "pairs": [("k", Decimal(f"{seq}.000"))]}
    return rows


def held(name: str) -> Rows:
    """What the server's table holds at the end."""
    table = ("public", name)
    return rows_of(typed_rows(table, read_tables(CAPTURE[:2])[table], tables()))


def streamed(rows: pa.Table) -> pa.Table:
    return rows.add_column(0, "stream", pa.array(["one"] * len(rows)))


def one_machine(messages: int | None = None, **options: Any) -> wf.Capture:
    return wf.Capture(read_capture(CAPTURE).messages[:messages], "pgoutput", **options)


def written() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        rows = one_machine(mode="PERMISSIVE").write(folder).to_pylist()
    return [{name: value for name, value in row.items() if name not in ("folder", "files")} for row in rows]


WANTED: dict[str, Callable[[], pa.Table | Rows]] = {
    "decode": changes,
    "decode, kept": lambda: with_kept(changes()),
    "decode, kept, pandas": lambda: with_kept(changes()),
    "decode, pgoutput": records,
    "decode, pgoutput, pandas": lambda: changes(read_capture(CAPTURE).messages, "pgoutput", tables=["public.big"]),
    "capture.changes": lambda: wf.arrow.changes(read_capture(CAPTURE).messages, "pgoutput").rename_columns(
        {"message": "seq"}
    ),
    "capture.committed": lambda: one_machine().committed().read_all().drop_columns(["message"]),
    "capture.committed of a stream": lambda: one_machine().committed().read_all().drop_columns(["message"]),
    "capture.open": lambda: one_machine(HALF).open().drop_columns(["message"]),
    "capture.tables": lambda: [
        {name.replace(".message", ".seq"): value for name, value in row.items()}
        for row in rows_of(one_machine().tables())
    ],
    "capture.typed": lambda: one_machine().typed("public.by_key").read_all(),
    "capture.latest": lambda: held("long_by_key"),
    "capture.write": written,
    "capture.changes of files": lambda: one_machine(mode="PERMISSIVE").changes().read_all(),
    "capture.committed of files": lambda: one_machine().committed().read_all().drop_columns(["message"]),
    "capture.tables of files": lambda: one_machine().tables(),
    "capture.typed of files": lambda: one_machine(mode="PERMISSIVE").typed("public.by_key").read_all(),
    "capture.latest of files": lambda: held("long_by_key"),
    "capture.write of files": written,
    "decode of a stream": changes,
    "wal_changes": lambda: changes(TORN_MESSAGES, mode="PERMISSIVE"),
    "wal_decode": changes,
    "wal_decode_pandas": lambda: changes(tables=["public.*"]),
    "wal_transactions": lambda: streamed(committed()),
    "lsn_text, lsn_value": lambda: [
        {"text": wf.lsn_text(lsn), "lsn": lsn} for lsn in records()["lsn"].drop_null().to_pylist() if lsn
    ],
    "capture.committed, at prepare": lambda: (
        one_machine(two_phase="prepare").committed().read_all().drop_columns(["message"])
    ),
    "capture.unknown_prepared": lambda: [
        {"gid": dict(detail)["gid"]}
        for detail in records().filter(pc.field("kind") == "COMMIT_PREPARED")["detail"].to_pylist()
    ],
    "typed, all types": lambda: (
        one_machine(mode="PERMISSIVE").typed("public.every_type").read_all().drop_columns(list(NOT_ALIKE))
    ),
    "typed, both images": lambda: typed("public.by_row_with_key", images="both"),
    "typed, by a schema": lambda: typed("public.by_key"),
    "typed, by names": lambda: typed("public.big", schema={"id": "bigint"}, complete=True),
    "latest of typed changes": lambda: held("long_by_key"),
    "latest, by row": lambda: held("by_row"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_answer_is_that_of_arrow(folder: Path, name: str) -> None:
    failed = folder / "answers" / f"{name}.txt"
    assert not failed.exists(), failed.read_text()
    answer, wanted = rows_of(feather.read_table(folder / "answers" / name)), rows_of(WANTED[name]())
    if "latest" in name:
        answer = [{key: row[key] for key in wanted[0]} for row in answer]
    found, right = lines(answer), lines(wanted)
    assert len(found) == len(right) > 0
    for one, other in zip(found, right, strict=True):
        assert one == other


def rows_of(rows: pa.Table | Rows) -> Rows:
    """Rows as Python values; structs are columns, and times numbers, since datetime ends with the year 9999."""
    if isinstance(rows, list):
        return rows
    while any(pa.types.is_struct(kind) for kind in rows.schema.types):
        rows = rows.flatten()
    for at, kind in enumerate(rows.schema.types):
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            number = pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
            rows = rows.set_column(at, rows.column_names[at], rows.column(at).cast(number))
    found: Rows = rows.to_pylist()
    return found


def lines(rows: Rows) -> list[str]:
    """To compare in any order; the number of a message in an error is another in each task."""
    return sorted(re.sub(r"message \d+, ", "", repr(sorted(row.items()))) for row in rows)


TORN_WORDS = f"{place(TORN)}, row seq=1]"
WORDS: dict[str, tuple[str, ...]] = {
    "decode": ("PythonException: ", TORN_WORDS),
    "decode of a stream": ("StreamingQueryException: ", TORN_WORDS),
    "capture": ("bad order: ", "expected records that could be read", "record 2, open nothing, at seq=1]"),
    "capture of a stream": ("OptionError: a capture of a streaming DataFrame needs a RocksDB state store",),
    "an option": ("OptionError: option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED; got 'FAILFST'",),
    "local_session": ("RemoteProcess: local_session: expected a process that does not use Spark Connect",),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_says_what_is_wrong_and_where(folder: Path, name: str) -> None:
    text = (folder / "faults" / name).read_text()
    assert [words for words in WORDS[name] if words not in text] == []
