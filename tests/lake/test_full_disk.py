"""A disk that is full at any moment of a write: nothing stays on it that nobody reads."""

from __future__ import annotations

import errno
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import deltalake
import pytest

import wireformat as wf
from wireformat.lake import table_folder
from wireformat.lake.chunks import LakePlan, joined, publish
from wireformat.lake.delta.folder import DeltaFolder
from wireformat.lake.lake import Lake
from wireformat.lake.options import Choice, LakeOptions
from wireformat.lake.result import TableFiles
from wireformat.lake.stored.manifest import Manifest
from wireformat.lake.stored.store import Store
from wireformat.lake.write import LakeWriter
from wireformat.options import ReadOptions

from .histories import TABLES
from .writing import KINDS, MESSAGES, capture_of, check, write


class Disk:
    """Counts what is written to files, and has no more room from a moment on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        self.full_at: int | None = None
        append = Store.append

        def write(store: Store, path: str, data: bytes, size: int = 0) -> None:
            self.writes += bool(data)
            if data and self.full_at is not None and self.writes >= self.full_at:
                append(store, path, data[: len(data) // 2], size)
                raise OSError(errno.ENOSPC, "No space left on device")
            append(store, path, data, size)

        monkeypatch.setattr(Store, "append", write)

    def fill(self, at: int | None) -> None:
        self.writes, self.full_at = 0, at


def named(folder: Path) -> set[str]:
    """The files that the logs of Delta tables name."""
    return {
        Path(file).name for log in folder.rglob("_delta_log") for file in deltalake.DeltaTable(log.parent).file_uris()
    }


@pytest.mark.parametrize("file_bytes", [1000, 1 << 20])
@pytest.mark.parametrize(("format", "state"), [*KINDS, ("parquet", "latest")])
def test_at_each_moment(
    format: str, state: str, file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write is repeated while the disk is full. If each attempt left its files, there would never be room again."""
    monkeypatch.setattr(table_folder, "FILE_BYTES", file_bytes)
    disk = Disk(monkeypatch)
    options: dict[str, Any] = {"threads": 1, "memory_limit": 4 * file_bytes}
    write(MESSAGES, tmp_path / "whole", format, state, **options)
    assert disk.writes
    for moment in range(1, disk.writes + 1):
        folder = tmp_path / str(moment)
        disk.fill(moment)
        with pytest.raises(OSError, match="No space left"):
            write(MESSAGES, folder, format, state, **options)
        assert {path.name for path in folder.rglob("*.parquet*")} <= named(folder)
        disk.fill(None)
        write(MESSAGES, folder, format, state, **options)
        check(MESSAGES, folder, state)


def chunks_of(folder: Path, format: str) -> tuple[Lake, list[TableFiles]]:
    """A lake, and the files that a task has written for it."""
    options = LakeOptions.check(
        tables=None,
        format=format,
        state="changes",
        partition_by=None,
        keys=None,
        schemas=None,
        rejects=None,
        filesystem=None,
        storage_options=None,
        mode="FAILFAST",
    )
    lake = options.opened(options.store(folder), "gaussdb-binary", "0f")
    lake.begin()
    of_chunk = LakePlan(folder, options, "gaussdb-binary", lake.manifest, lake.writer).lake_of_chunk(0)
    chosen = ReadOptions.check()
    stream = capture_of(MESSAGES).stream_of(chosen, "FAILFAST")
    return lake, joined([LakeWriter(stream, of_chunk, Choice(chosen, None, {}), None, 1 << 20).write_files()])


END = wf.CapturePosition("gaussdb-binary")


@pytest.mark.parametrize("at_once", [1, len(TABLES)])
def test_files_of_chunks_that_are_not_published(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit of the second table fails, and may have been done all the same; what was not begun has no files."""
    monkeypatch.setattr("wireformat.lake.chunks.PUBLISHED_AT_ONCE", at_once)
    lake, files = chunks_of(tmp_path, "delta")
    append, numbers, all_begun = DeltaFolder.append, count(1), Barrier(at_once)

    def full(folder: DeltaFolder, *given: Any) -> None:
        number = next(numbers)
        all_begun.wait(10)
        if number == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(folder, *given)

    monkeypatch.setattr(DeltaFolder, "append", full)
    with pytest.raises(OSError, match="No space left"):
        publish(lake, files, END)
    assert len(files) == len(TABLES)
    assert [path.parent.name for path in sorted(tmp_path.rglob("*.parquet"))] == sorted(
        Path(one.table.folder).name for one in files[: max(2, at_once)]
    )


@pytest.mark.parametrize("moves", [True, False])
def test_files_of_chunks_without_a_manifest(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have names that readers see then."""
    monkeypatch.setattr(Store, "moves", moves)
    lake, files = chunks_of(tmp_path, "parquet")

    def full(store: Store, manifest: Manifest) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("wireformat.lake.lake.write_manifest", full)
    with pytest.raises(OSError, match="No space left"):
        publish(lake, files, END)
    assert not [*tmp_path.rglob("*.parquet*")]


@pytest.mark.parametrize("moves", [True, False])
def test_files_of_chunks_whose_commit_fails_at_its_end(
    moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest names them, so they stay; in an object store, which renames nothing, they have their names early."""
    monkeypatch.setattr(Store, "moves", moves)
    lake, files = chunks_of(tmp_path, "parquet")

    def fails(lake: Lake) -> None:
        raise OSError(errno.EIO, "the network")

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "_end", fails)
        with pytest.raises(OSError, match="the network"):
            publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")
