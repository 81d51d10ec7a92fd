"""A disk that is full at any moment of a write: nothing stays on it that nobody reads."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import deltalake
import pytest

from wireformat.lake import lake as lake_module
from wireformat.lake.store import Store

from .test_write import KINDS, MESSAGES, check, write


class Disk:
    """Counts what is written to files, and has no more room from a moment on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        self.full_at: int | None = None
        append = Store.append

        def write(store: Store, path: str, data: bytes) -> None:
            self.writes += bool(data)
            if data and self.full_at is not None and self.writes >= self.full_at:
                append(store, path, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            append(store, path, data)

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
    monkeypatch.setattr(lake_module, "FILE_BYTES", file_bytes)
    disk = Disk(monkeypatch)
    options: dict[str, Any] = {"threads": 1, "memory_limit": 4 * file_bytes}
    write(MESSAGES, tmp_path / "whole", format, state, **options)
    for moment in range(1, disk.writes + 1):
        folder = tmp_path / str(moment)
        disk.fill(moment)
        with pytest.raises(OSError, match="No space left"):
            write(MESSAGES, folder, format, state, **options)
        assert {path.name for path in folder.rglob("*.parquet")} <= named(folder)
        disk.fill(None)
        write(MESSAGES, folder, format, state, **options)
        check(MESSAGES, folder, state)
