"""spark_udfs.capture(…).write with tasks that fail, and killed at random moments: nothing twice, nothing half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..lake.reading import read, tables_of, values
from .raw_streams import write_in_order

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("WIREFORMAT_KILLS", "1"))
TABLES = [("shop", f"orders_{number}") for number in range(3)]


def messages() -> list[bytes]:
    return [*map(bytes, wf.encode(wf.testing.stream(3, 100, seed=5, format="pgoutput"), "pgoutput"))]


def write_messages(some: Sequence[bytes], folder: Path) -> None:
    write_in_order({"one": some}, folder, random.Random(3), groups=6)


def on_one_machine(some: Sequence[bytes]) -> dict[tuple[str, str], list[str]]:
    capture = wf.Capture(some, "pgoutput")
    return {name: rows_of(capture.typed(".".join(name)).read_all()) for name in TABLES}


def rows_of(table: pa.Table) -> list[str]:
    """The rows without `_old`, whatever the order of the columns: those that are added later come last in a lake."""
    return values(table.select(sorted({*table.column_names} - {"_old"})))


def start(folder: Path, *kinds: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.written_lake", str(folder), *kinds],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that the JVM and its workers are killed with it
    )


def what_readers_see(kind: str, lake: Path, name: tuple[str, str]) -> pa.Table | None:
    """What a reader finds that does not know the manifest. Files of Delta are no table until its log names them."""
    folder = lake.joinpath(*name)
    if kind == "delta":
        is_table = deltalake.DeltaTable.is_deltatable(str(folder))
        return deltalake.DeltaTable(str(folder)).to_pyarrow_table() if is_table else None
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables(map(pq.read_table, files)) if files else None


def difference(there: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
    """The first rows that are there and should not be, and that should be there and are not."""
    pairs = ((there, rows), (rows, there))
    more, less = ([*(Counter(some) - Counter(others)).elements()][:3] for some, others in pairs)
    return more, less


KINDS = ("parquet", "delta")


@pytest.fixture(scope="module")
def tried_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lakes of one program, of each kind, whose tasks have failed once."""
    folder = tmp_path_factory.mktemp("failing")
    write_messages(messages(), folder / "raw")
    process = start(folder, *KINDS)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_that_are_tried_again(kind: str, tried_again: Path) -> None:
    """Every task fails at the end of its first attempt; only the files of the second belong to the lake."""
    assert len([*(tried_again / kind).glob("mark-*")]) > 3
    wanted = on_one_machine(messages())
    assert {*tables_of(tried_again / kind / "lake")} == {*wanted}
    for name, rows in wanted.items():
        assert rows_of(read(tried_again / kind / "lake", name)) == rows, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_that_is_killed(kind: str, tmp_path: Path) -> None:
    """Each table is as it was or as it should be, and the next write adds nothing twice."""
    given = messages()
    before, after = given[: len(given) // 2 if kind == "parquet" else 0], given  # Delta cannot widen columns
    chance = random.Random(KILLS)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        if before:
            wf.Capture(before, "pgoutput").write(folder / "lake", format=kind)
        write_messages(after, folder / "raw")
        process = start(folder, kind)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", process.communicate()[1].decode()
        process.stdin.write(b"\n")
        process.stdin.flush()
        try:
            process.wait(chance.uniform(0.2, 3))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        states = [on_one_machine(before) if before else {key: [] for key in TABLES}, on_one_machine(after)]
        for name in TABLES:
            seen = what_readers_see(kind, folder / "lake", name)
            there, possible = ([] if seen is None else rows_of(seen)), [state[name] for state in states]
            assert there in possible, (name, [difference(there, rows) for rows in possible])
        wf.Capture(after, "pgoutput").write(folder / "lake", format=kind)
        for name in TABLES:
            assert rows_of(read(folder / "lake", name)) == states[1][name], name
