"""A power cut: what a lake says that it has is on the disk, whichever order the disk writes in."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.delta.folder import DeltaFolder
from wireformat.lake.delta.log import undo_damaged_commits
from wireformat.lake.stored.store import Store

from .histories import TABLES
from .reading import in_order, values
from .writing import KEYS, KINDS, MESSAGES, Stopped, capture_of, check, expected

HALF = len(MESSAGES) // 2


class Disk:
    """A folder on a disk that loses what nobody waited for.

    at_flush   is called before and after each flush
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.at_flush: Callable[[], None] = lambda: None
        self._data: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: dict[int, int] = {}  # keeps the numbers of deleted files from being used again
        monkeypatch.setattr(os, "fsync", self._fsync)
        monkeypatch.setattr(os, "sync", self._sync)

    def _fsync(self, file: int) -> None:
        self.at_flush()
        found = os.fstat(file)
        self._open.setdefault(found.st_ino, os.dup(file))
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {entry.name: entry.inode() for entry in os.scandir(file)}
        else:
            self._data[found.st_ino] = os.pread(file, found.st_size, 0)
        self.at_flush()

    def _sync(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            file = os.open(path, os.O_RDONLY)
            self._fsync(file)
            os.close(file)

    def after_power_cut(self, target: Path, *, names_come_first: bool, of_logs: float = 0) -> Path:
        """Writes what is there after a power cut to another folder.

        names_come_first   whether the disk has all names already, else only those that somebody waited for
        of_logs            the share of the bytes of Delta logs that it then has already
        """
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        if names_come_first:
            for path in self.folder.rglob("*"):
                copy = target / path.relative_to(self.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.is_file():
                    size = int(path.stat().st_size * of_logs) if path.parent.name == "_delta_log" else 0
                    copy.write_bytes(self._data.get(path.stat().st_ino, path.read_bytes()[:size]))
        else:
            self._restore(self.folder.stat().st_ino, target)
        return target

    def _restore(self, number: int, target: Path) -> None:
        for name, child in self._names.get(number, {}).items():
            if child in self._data:
                (target / name).write_bytes(self._data[child])
            elif child in self._names:
                (target / name).mkdir()
                self._restore(child, target / name)
            # else it is a file of which nothing is there

    def close(self) -> None:
        for file in self._open.values():
            os.close(file)


def named_rows(folder: Path, table: str) -> pa.Table:
    """The rows of the files that the manifest names; others may have been given their names, which readers skip."""
    files = next(row["files"] for row in wf.lake.tables(folder).to_pylist() if row["table_name"] == table)
    return in_order(pa.concat_tables([pq.read_table(file) for file in files]))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    (tmp_path / "lake").mkdir()
    return Disk(tmp_path / "lake", monkeypatch)


def write(messages: list[bytes], folder: Path, format: str, state: str) -> None:
    keys = KEYS if state == "latest" else None
    capture_of(messages, threads=1).write(folder, format=format, state=state, keys=keys, durable=True)


@pytest.mark.parametrize("names_come_first", [False, True])
@pytest.mark.parametrize(("format", "state"), KINDS)
def test_what_was_written_is_there(format: str, state: str, names_come_first: bool, disk: Disk, tmp_path: Path) -> None:
    for end in (HALF, len(MESSAGES)):
        write(MESSAGES[:end], disk.folder, format, state)
        found = disk.after_power_cut(tmp_path / "found", names_come_first=names_come_first)
        assert wf.lake.position(found) == wf.lake.position(disk.folder)
        check(MESSAGES[:end], found, state)
    disk.close()


@pytest.mark.parametrize("names_come_first", [False, True])
def test_at_any_moment_a_parquet_lake_is_whole(names_come_first: bool, disk: Disk, tmp_path: Path) -> None:
    write(MESSAGES[:HALF], disk.folder, "parquet", "changes")
    before = wf.lake.position(disk.folder)
    seen = []

    def cut() -> None:
        found = disk.after_power_cut(tmp_path / "found", names_come_first=names_come_first)
        seen.append(wf.lake.position(found))
        messages = MESSAGES[:HALF] if seen[-1] == before else MESSAGES
        for table in TABLES:
            assert values(named_rows(found, table)) == expected(messages, table, "changes")

    disk.at_flush = cut
    write(MESSAGES, disk.folder, "parquet", "changes")
    assert before in seen
    assert seen[-1] == wf.lake.position(disk.folder) != before
    disk.close()


@pytest.mark.slow
@pytest.mark.parametrize("of_logs", [None, 0, 0.5, 1])
@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("begin", [0, HALF])
def test_at_any_moment_a_delta_lake_can_be_written_again(
    begin: int, state: str, of_logs: float | None, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if begin:
        write(MESSAGES[:begin], disk.folder, "delta", state)
    found: dict[frozenset[tuple[str, bytes]], Path] = {}

    def cut() -> None:
        target = tmp_path / f"found-{len(found)}"
        copy = disk.after_power_cut(target, names_come_first=of_logs is not None, of_logs=of_logs or 0)
        found.setdefault(contents(copy), copy)

    disk.at_flush = cut
    write(MESSAGES, disk.folder, "delta", state)
    disk.close()
    monkeypatch.undo()
    assert len(found) > 5
    for copy in found.values():
        write(MESSAGES, copy, "delta", state)
        check(MESSAGES, copy, state)


@pytest.mark.parametrize("ends_line", [False, True])
@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("begin", [0, HALF])
def test_a_commit_that_was_cut_at_the_end_of_a_line(begin: int, state: str, ends_line: bool, tmp_path: Path) -> None:
    """deltalake reads it as if it were whole: without rows, with rows twice, or without saying how far it goes."""
    given, cut = tmp_path / "given", tmp_path / "cut"
    if begin:
        write(MESSAGES[:begin], given, "delta", state)
        before = (given / "_wireformat.json").read_bytes()
    write(MESSAGES, given, "delta", state)
    log = sorted((given / "public" / "orders" / "_delta_log").glob("*.json"))[-1]
    lines = log.read_bytes().splitlines()
    assert b'"txn"' in lines[-1]
    for count in range(1, len(lines)):
        shutil.copytree(given, cut)
        (cut / log.relative_to(given)).write_bytes(b"\n".join(lines[:count]) + b"\n" * ends_line)
        (cut / ".wireformat-begun").write_bytes(b"")
        (cut / "_wireformat.json").unlink()
        if begin:
            (cut / "_wireformat.json").write_bytes(before)
        write(MESSAGES, cut, "delta", state)
        check(MESSAGES, cut, state)
        shutil.rmtree(cut)


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_commits_of_a_write_that_was_killed(
    state: str, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next write does not make them again, so it waits until they are on the disk."""

    def killed(folder: DeltaFolder) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(DeltaFolder, "flush", killed)
        with pytest.raises(Stopped):
            write(MESSAGES, disk.folder, "delta", state)
    write(MESSAGES, disk.folder, "delta", state)
    check(MESSAGES, disk.after_power_cut(tmp_path / "found", names_come_first=False), state)
    disk.close()


@pytest.mark.parametrize("damage", ["missing", "cut", "cut, with a checkpoint"])
def test_a_damaged_commit_below_others(damage: str, tmp_path: Path) -> None:
    """The disk may have had a later commit, or a checkpoint, before it."""
    folder = tmp_path / "lake"
    for end in (HALF, HALF + 20, len(MESSAGES)):
        write(MESSAGES[:end], folder, "delta", "changes")
        if end == HALF:
            before = (folder / "_wireformat.json").read_bytes()
    (folder / "_wireformat.json").write_bytes(before)
    (folder / ".wireformat-begun").write_bytes(b"")
    for log in folder.rglob("_delta_log"):
        _, commit, *_ = sorted(log.glob("*.json"))
        if damage == "missing":
            commit.unlink()
            continue
        if damage != "cut":
            deltalake.DeltaTable(log.parent).create_checkpoint()
            commit = sorted(log.glob("*.json"))[-1]
        commit.write_bytes(commit.read_bytes()[:50])
    write(MESSAGES, folder, "delta", "changes")
    check(MESSAGES, folder, "changes")


@pytest.mark.parametrize("damage", ["cut", "without its files"])
def test_several_damaged_commits_below_a_checkpoint(damage: str, tmp_path: Path) -> None:
    """As where a write adds a column, which is a commit of its own."""
    ends = (HALF, HALF + 20, len(MESSAGES))
    for end in ends:
        write(MESSAGES[:end], tmp_path, "delta", "changes")
        if end == HALF:
            before = (tmp_path / "_wireformat.json").read_bytes()
    (tmp_path / "_wireformat.json").write_bytes(before)
    (tmp_path / ".wireformat-begun").write_bytes(b"")
    for log in tmp_path.rglob("_delta_log"):
        deltalake.DeltaTable(log.parent).create_checkpoint()
        for commit in sorted(log.glob("*.json"))[1:]:
            if damage == "cut":
                commit.write_bytes(commit.read_bytes()[:50])
                continue
            for file in re.findall(rb'"add":{"path":"([^"]+)"', commit.read_bytes()):
                (log.parent / file.decode()).unlink()
    write(MESSAGES, tmp_path, "delta", "changes")
    check(MESSAGES, tmp_path, "changes")


def test_commits_in_an_object_store_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a write that was killed: they are whole there."""
    write(MESSAGES, tmp_path, "delta", "changes")
    monkeypatch.setattr(Store, "is_local", False)
    monkeypatch.setattr(Store, "read", Mock(side_effect=AssertionError))
    undo_damaged_commits(Store.of(tmp_path, None, None))


def contents(folder: Path) -> frozenset[tuple[str, bytes]]:
    """The names and bytes of all files."""
    return frozenset((str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file())
