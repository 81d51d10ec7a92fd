"""Lakes are whole whatever stopped a write, and the next write adds nothing twice."""

from __future__ import annotations

import gc
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.lake import Lake
from wireformat.lake.stored.store import Store
from wireformat.lake.table_folder import TableFolder

from ..disks import small_disk
from .histories import TABLES, messages_of, transactions
from .reading import read, values
from .writing import KINDS, MESSAGES, Stopped, capture_of, check, expected, files_of, write


@pytest.mark.parametrize(("format", "state"), [*KINDS, ("parquet", "latest")])
@pytest.mark.parametrize("moment", range(3))
def test_a_write_that_stops_between_tables(
    format: str, state: str, moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word, as a process that is killed. The next write has less, as much or more, and adds nothing twice."""
    first = [] if state == "latest" and format == "parquet" else MESSAGES[:20]
    if first:
        write(first, tmp_path, format, state)
    publish = TableFolder.publish
    calls = iter(range(100))

    def stopping(target: Any) -> None:
        if next(calls) == moment:
            raise Stopped
        publish(target)

    with monkeypatch.context() as patched:
        patched.setattr(TableFolder, "publish", stopping)
        patched.setattr(Lake, "discard", lambda lake: None)
        with pytest.raises(Stopped):
            write(MESSAGES[:40], tmp_path, format, state, threads=1)
    end = (30, 40, 50)[moment]
    write(MESSAGES[:end], tmp_path, format, state)
    if format == "parquet":
        check(MESSAGES[:end], tmp_path, state)
    if state == "changes" or format == "delta":
        write(MESSAGES, tmp_path, format, state)
        check(MESSAGES, tmp_path, state)
    assert list(tmp_path.rglob(".wireformat-*")) == []


def test_columns_with_the_names_of_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a Delta table has already are found without them."""
    messages = messages_of([*transactions(60, more="csn")])
    write(messages[:20], tmp_path, "delta", "changes")
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "commit", lambda lake, position: None)
        write(messages[:40], tmp_path, "delta", "changes")
    write(messages, tmp_path, "delta", "changes")
    for table in TABLES:
        wanted = capture_of(messages).typed(f"public.{table}").read_all().select(["id", "csn", "_sequence"])
        assert values(read(tmp_path, ("public", table)).select(wanted.column_names)) == values(wanted)


def test_a_write_that_stops_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes nothing that the manifest names."""
    commit = Lake.commit

    def stopping(lake: Any, position: wf.CapturePosition) -> None:
        commit(lake, position)
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "commit", stopping)
        with pytest.raises(Stopped):
            write(MESSAGES, tmp_path, "parquet", "changes")
    check(MESSAGES, tmp_path, "changes")


PROGRAM = """
import os
import sys
from tests.lake.writing import MESSAGES, expected, write

expected(MESSAGES, "orders", "latest")  # loads what the processes that write would load
for folder in iter(sys.stdin.readline, ""):
    writer = os.fork()
    if not writer:
        write(MESSAGES, folder.strip(), sys.argv[1], sys.argv[2])
        os._exit(0)
    print(writer, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]), flush=True)
"""
"""Writes to each folder that it reads, in a process of its own; prints the number of the process, then how it ended."""

ROOT = Path(__file__).parents[2]


def stop(*given: Any) -> None:
    raise Stopped


@pytest.mark.parametrize("has_commits", [False, True])
def test_files_of_delta_tables_that_no_commit_names(has_commits: bool, tmp_path: Path) -> None:
    """A process that is killed leaves them where readers of the folder see them; the next write removes them."""
    if has_commits:
        write(MESSAGES[:20], tmp_path, "delta", "changes")
    (logged,) = [*tmp_path.rglob("wireformat-*.parquet")][:1] or [None]
    left = [
        tmp_path / "public" / folder / f"wireformat-{number:016x}-{write:06d}{end}.parquet"
        for number, folder in enumerate([*TABLES, "other", "items/status=new"])
        for write in (1 + has_commits, 7)
        for end in ("", "-3", "-3-0123abcd_0001")
    ]
    others = [tmp_path / "public" / "orders" / name for name in ("part-0-c000.snappy.parquet", "wireformat.parquet")]
    for path in (*left, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    (tmp_path / ".wireformat-begun").touch()
    write(MESSAGES, tmp_path, "delta", "changes")
    check(MESSAGES, tmp_path, "changes")
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in others), "they are not of `Capture.write`"
    assert logged is None or logged.exists()


def test_files_of_delta_tables_that_only_a_checkpoint_names_stay(tmp_path: Path) -> None:
    """The manifest is older than the tables, so that their files look like those of a write that was killed."""
    write(MESSAGES[:20], tmp_path, "delta", "changes")
    older = (tmp_path / "_wireformat.json").read_bytes()
    write(MESSAGES[:40], tmp_path, "delta", "changes")
    for log in tmp_path.rglob("_delta_log"):
        table = deltalake.DeltaTable(log.parent)
        table.alter.set_table_description("a commit without files")
        table.create_checkpoint()
        for commit in sorted(log.glob("*.json"))[:-1]:
            commit.unlink()
        assert b'"add"' not in max(log.glob("*.json")).read_bytes()
    (tmp_path / "_wireformat.json").write_bytes(older)
    (tmp_path / ".wireformat-begun").touch()
    write(MESSAGES, tmp_path, "delta", "changes")
    check(MESSAGES, tmp_path, "changes")


def test_files_that_only_earlier_versions_of_delta_tables_have_stay(tmp_path: Path) -> None:
    """VACUUM removes them, when it is time."""
    write(MESSAGES[:20], tmp_path, "delta", "changes")
    older = (tmp_path / "_wireformat.json").read_bytes()
    write(MESSAGES[:40], tmp_path, "delta", "changes")
    tables = [log.parent for log in tmp_path.rglob("_delta_log")]
    for table in tables:
        deltalake.DeltaTable(table).optimize.compact()
    (tmp_path / "_wireformat.json").write_bytes(older)
    (tmp_path / ".wireformat-begun").touch()
    write(MESSAGES, tmp_path, "delta", "changes")
    check(MESSAGES, tmp_path, "changes")
    for table in tables:
        assert deltalake.DeltaTable(table, version=1).to_pyarrow_table().num_rows


def test_files_that_a_delta_table_names_stay_where_parquet_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write was killed before there was a manifest, so the next one may be of another format."""
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "commit", stop)
        patched.setattr(Lake, "discard", lambda lake: None)
        with pytest.raises(Stopped):
            write(MESSAGES[:20], tmp_path, "delta", "changes")
    tables = {log.parent for log in tmp_path.rglob("_delta_log")}
    before = {table: values(deltalake.DeltaTable(table).to_pyarrow_table()) for table in tables}
    assert tables
    write(MESSAGES, tmp_path, "parquet", "changes")
    assert {table: values(deltalake.DeltaTable(table).to_pyarrow_table()) for table in tables} == before


@pytest.mark.parametrize(("format", "state"), KINDS)
@pytest.mark.parametrize("name", [".wireformat-begun", "_wireformat.json"])
def test_a_write_that_stops_at_a_name(
    name: str, format: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a write without rows, as the one that stops at the manifest, leaves nothing for ever."""
    write(MESSAGES[:20] if name == ".wireformat-begun" else MESSAGES, tmp_path, format, state)
    move = Store.move

    def stopping(store: Store, path: str, target: str) -> None:
        if target == name:
            raise Stopped
        move(store, path, target)

    with monkeypatch.context() as patched, suppress(Stopped):
        patched.setattr(Store, "move", stopping)
        patched.setattr(Store, "delete", lambda store, path: None)
        write(MESSAGES, tmp_path, format, state)
    write(MESSAGES, tmp_path, format, state)
    assert not list(tmp_path.rglob(".wireformat-*"))


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("below", ["b", "public/b", "a/b/c"])
def test_lakes_in_the_folder_of_a_lake_stay(format: str, below: str, tmp_path: Path) -> None:
    """Also what is not finished there: another process may write to them now."""
    for end in (20, 40):
        write(MESSAGES[:end], tmp_path / below, format, "changes")
    (tmp_path / below / ".wireformat-begun").touch()
    (tmp_path / below / "public" / "orders" / ".wireformat-01234567-wireformat-000003.parquet").touch()
    before = files_of(tmp_path / below)
    (tmp_path / ".wireformat-begun").touch()
    write(MESSAGES, tmp_path, format, "changes")
    assert files_of(tmp_path / below) == before


@pytest.mark.slow
@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_process_that_is_killed(format: str, state: str, tmp_path: Path) -> None:
    """At 20 random moments. Each table is as it was or as it should be, and the next write adds nothing twice."""
    chance = random.Random(11)
    before, after = ({table: expected(part, table, state) for table in TABLES} for part in (MESSAGES[:20], MESSAGES))
    write(MESSAGES[:20], tmp_path / "begun", format, state)
    command = [sys.executable, "-c", PROGRAM, format, state]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as program:
        assert _written(program, _copy(tmp_path, "whole")) == 0
        started = time.monotonic()
        assert _written(program, _copy(tmp_path, "timed")) == 0
        seconds = time.monotonic() - started
        ended = [_written(program, _copy(tmp_path, str(n)), chance.uniform(0, 1.2 * seconds)) for n in range(20)]
    assert -signal.SIGKILL in ended
    assert {*ended} <= {0, -signal.SIGKILL}
    for number in range(20):
        folder = tmp_path / str(number)
        for table in TABLES:
            assert values(_seen(folder, table)) in (before[table], after[table]), (number, table)
        write(MESSAGES, folder, format, state)
        for table in TABLES:
            assert values(read(folder, ("public", table))) == after[table], (number, table)


def _copy(folder: Path, name: str) -> Path:
    """A copy of the lake that holds the first part."""
    return Path(shutil.copytree(folder / "begun", folder / name, dirs_exist_ok=True))


def _written(program: subprocess.Popen[bytes], folder: Path, seconds: float | None = None) -> int:
    """Lets the program write to a folder, and kills the writing process after these seconds; returns how it ended."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{folder}\n".encode())
    writer = int(program.stdout.readline())
    if not select.select([program.stdout], [], [], seconds)[0]:
        with suppress(ProcessLookupError):  # it ends just now
            os.kill(writer, signal.SIGKILL)
    return int(program.stdout.readline())


def _seen(folder: Path, table: str) -> pa.Table:
    """What a reader that does not know the manifest sees."""
    place = folder / "public" / table.replace("Notes", "~4Eotes")
    if (place / "_delta_log").exists():
        return deltalake.DeltaTable(str(place)).to_pyarrow_table()
    return pa.concat_tables([pq.read_table(file) for file in sorted(place.glob("*.parquet"))])


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_full_disk(format: str, state: str, tmp_path: Path) -> None:
    """An error, and the lake is as it was: the largest file that this process may write is small."""
    write(MESSAGES[:20], tmp_path, format, state)
    before = files_of(tmp_path)
    with small_disk(), pytest.raises(OSError, match=r"File too large|LIMIT"):
        write(MESSAGES, tmp_path, format, state)
    gc.collect()
    left = {name: data for name, data in files_of(tmp_path).items() if state == "changes" or name in before}
    assert left == before
    write(MESSAGES, tmp_path, format, state)
    check(MESSAGES, tmp_path, state)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """The error of the operating system for a write to an open file has no path."""
    with small_disk(), pytest.raises(OSError, match="File too large") as error:
        write(MESSAGES, tmp_path / "lake", "parquet", "changes")
    assert Path(error.value.filename).parent == tmp_path / "lake" / "public"


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_damaged_log(state: str, tmp_path: Path) -> None:
    """The error of deltalake becomes one of this package, which names the folder of the table."""
    write(MESSAGES[:20], tmp_path, "delta", state)
    log = max(tmp_path.rglob("_delta_log/*.json"))
    log.write_text(log.read_text()[:50])
    with pytest.raises(wf.LakeError, match=re.escape(str(log.parent.parent))) as error:
        write(MESSAGES, tmp_path, "delta", state)
    assert "\n" not in str(error.value)
