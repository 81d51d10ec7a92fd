"""A write while Spark runs a second attempt of a task beside the first: nothing twice, nothing half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..lake.reading import read, tables_of
from .test_capture_faults import KINDS, ROOT, messages, on_one_machine, rows_of, what_readers_see, write_messages

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lakes of one program, of each kind."""
    folder = tmp_path_factory.mktemp("speculation")
    write_messages(messages(), folder / "raw")
    command = [sys.executable, "-m", "tests.spark.speculation", str(folder), *KINDS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_two_attempts_of_a_task(kind: str, written: Path) -> None:
    assert {path.name for path in (written / kind).glob("attempt-*")} == {"attempt-0", "attempt-1"}
    wanted = on_one_machine(messages())
    lake = written / kind / "lake"
    assert {*tables_of(lake)} == {*wanted}
    for name, rows in wanted.items():
        assert rows_of(read(lake, name)) == rows, name
        seen = what_readers_see(kind, lake, name)
        assert seen is not None
        assert rows_of(seen) == rows, name
