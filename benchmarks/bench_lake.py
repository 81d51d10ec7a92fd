"""wf.Capture.write: from messages to a lake of 20 tables, against libraries that write tables which are finished."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import wireformat as wf
from wireformat.options.table_names import written

from .generate import BINARY, Capture
from .measure import Result, Say, interleaved, timed

THREADS = 2
WRITE_PARQUET, WRITE_DELTA, WRITE_LATEST = "Capture.write, Parquet", "Capture.write, Delta", "Capture.write, latest"
PYARROW, DELTALAKE, DUCKDB = "pyarrow.parquet, typed tables", "deltalake, typed tables", "DuckDB, last of each key"
NAMES = (WRITE_PARQUET, PYARROW, WRITE_DELTA, DELTALAKE, WRITE_LATEST, DUCKDB)

ROW_GROUP_ROWS = 122_880

LAST = """COPY (
    SELECT * EXCLUDE (_change_type, _xid, _commit_time, _old)
    FROM read_parquet('{changes}')
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY _sequence DESC) = 1 AND _change_type <> 'delete'
) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"""


def measure(capture: Capture, rounds: int, folder: Path, say: Say) -> dict[str, Result]:
    """Results by name. The typed tables, and files of them for DuckDB, are made before."""
    table = capture.load(BINARY)
    messages = table["payload"]
    say("lake: reading the typed tables")
    listed = wf.Capture(messages, BINARY).tables()
    names = sorted({*zip(listed["table_schema"].to_pylist(), listed["table_name"].to_pylist(), strict=True)})
    typed = {written(name): wf.Capture(messages, BINARY).typed(written(name)).read_all() for name in names}
    changes = sum(map(len, typed.values()))
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "changes").mkdir(parents=True)
    for name, rows in typed.items():
        _write_parquet(rows, folder / "changes" / f"{name}.parquet")
    target = folder / "target"

    def run(work: Callable[[], Any], expected: int | None) -> Callable[[], float]:
        def check(found: Any) -> None:
            if expected is not None and found != expected:
                raise AssertionError(f"{found} rows were written, there are {expected}")

        def once() -> float:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            return timed(work, check)

        return once

    def write(**options: Any) -> int:
        done = wf.Capture(messages, BINARY, threads=THREADS).write(target, **options)
        return int(pc.sum(done["rows"]).as_py())

    def by_table(work: Callable[[str], Any]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, typed))

    def last_of_each_key() -> None:
        with duckdb.connect(config={"threads": THREADS}) as connection:
            for name in typed:
                source, rows = folder / "changes" / f"{name}.parquet", target / f"{name}.parquet"
                connection.execute(LAST.format(changes=source, target=rows))

    works: dict[str, tuple[Callable[[], Any], int | None]] = {
        WRITE_PARQUET: (lambda: write(), changes),
        PYARROW: (lambda: by_table(lambda name: _write_parquet(typed[name], target / f"{name}.parquet")), None),
        WRITE_DELTA: (lambda: write(format="delta"), changes),
        DELTALAKE: (lambda: by_table(lambda name: deltalake.write_deltalake(target / name, typed[name])), None),
        WRITE_LATEST: (lambda: write(state="latest", keys=["id"]), None),
        DUCKDB: (last_of_each_key, None),
    }
    seconds = interleaved({name: run(*work) for name, work in works.items()}, rounds, say)
    shutil.rmtree(folder)
    return {
        name: Result(name=name, input_bytes=messages.nbytes, changes=changes, seconds=found)
        for name, found in seconds.items()
    }


def _write_parquet(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
