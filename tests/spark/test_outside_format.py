"""A format of another package on Spark: the workers find it by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..formats.test_outside_format import EVENTS, FOLDER, FORMAT

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_decodes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    messages = list(wf.encode(EVENTS, FORMAT))
    path = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"seq": range(len(messages)), "payload": messages}), path)
    paths = [str(FOLDER), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.outside_format", str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = wf.arrow.changes(messages, FORMAT).to_pylist()
    printed = [f"{row['kind']} {row['table_name']} {row['new'] and sorted(row['new'])}" for row in rows]
    assert done.stdout.splitlines() == 2 * printed
