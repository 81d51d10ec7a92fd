"""Memory of a write: it does not grow with the stream, however many tables there are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.lake.parquet import ParquetFile
from wireformat.lake.table_folder import TableFolder

from .histories import messages_of
from .writing import capture_of

ROOT = Path(__file__).parents[2]

PROGRAM = """
import resource
import sys
import pyarrow as pa
import wireformat as wf

TABLES, ROWS, TIMES = 200, 40_000, int(sys.argv[3])

def events():
    lsn = 100
    for first in range(0, ROWS, 100):
        yield wf.Begin(lsn=lsn, csn=first + 1, first_lsn=lsn)
        for number in range(first, first + 100):
            lsn += 8
            row = wf.TupleData(("id", "text"), (str(number), f"{number} " * 60), ("integer", "text"))
            name = f"t{number * 7 % TABLES}"
            yield wf.Insert(lsn=lsn, table_schema="public", table_name=name, new=row)
        lsn += 16
        yield wf.Commit(lsn=lsn - 8, xid=first)

messages = list(wf.encode(events(), "gaussdb-binary", options={"sending-batch": 1}))
given = {} if sys.argv[2] == "changes" else {"keys": ["id"]}
wf.Capture(messages[:3], "gaussdb-binary", drop_resent=False).write(sys.argv[1] + "/first", state=sys.argv[2], **given)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
capture = wf.Capture(messages * TIMES, "gaussdb-binary", drop_resent=False, memory_limit=16 << 20)
written = capture.write(sys.argv[1] + "/lake", state=sys.argv[2], **given)
rows = ROWS * TIMES if sys.argv[2] == "changes" else ROWS
assert sum(written["rows"].to_pylist()) == rows, written
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("state", ["changes", "latest"])
def test_two_hundred_tables(state: str, tmp_path: Path) -> None:
    """Twice as many rows, 96 MB more, take at most 40 MB more: both fill the buffers, with fewer rows they may not."""
    peaks = []
    for times in (8, 16):
        folder = tmp_path / str(times)
        folder.mkdir()
        command = [sys.executable, "-c", PROGRAM, str(folder), state, str(times)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 40_000, peaks


@pytest.mark.parametrize(
    ("partitions", "memory", "most_open", "files"),
    [
        pytest.param(60, 16 << 20, 25, 60, id="many: those that are not written to any more end"),
        pytest.param(60, 1 << 28, 60, 60, id="many, with memory for all"),
        pytest.param(60, 1 << 20, 17, 60, id="many, with memory for few"),
        pytest.param(16, 1 << 20, 16, 16, id="few: all stay open"),
    ],
)
@pytest.mark.parametrize("state", ["changes", "latest"])
def test_open_files(
    partitions: int,
    memory: int,
    most_open: int,
    files: int,
    state: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes memory until it ends."""
    peaks, file_of = [0], TableFolder._file

    def counted(folder: TableFolder, *given: Any) -> ParquetFile:
        found = file_of(folder, *given)
        peaks.append(len(folder._files))
        return found

    monkeypatch.setattr(TableFolder, "_file", counted)
    rows = [wf.TupleData(("id", "p"), (str(one), f"p{one % partitions}"), ("integer", "text")) for one in range(240)]
    inserts = [wf.Insert(lsn=20 + one, table_schema="s", table_name="t", new=row) for one, row in enumerate(rows)]
    messages = messages_of([[wf.Begin(lsn=16, csn=5, first_lsn=16), *inserts, wf.Commit(lsn=500, xid=9)]])
    given: Mapping[str, Any] = {"keys": ["id"]} if state == "latest" else {}
    capture = capture_of(messages, memory_limit=memory)
    (written,) = capture.write(tmp_path, state=state, partition_by="p", **given).to_pylist()
    assert (written["rows"], written["files"]) == (240, files)
    assert max(peaks) <= (most_open if state == "changes" else partitions)
