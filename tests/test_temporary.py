"""Temporary files: their folder, and what is said where it is full."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.live.messages import MessageFile
from wireformat.temporary import TemporaryFolder

from .cli.commands import run
from .disks import small_disk
from .golden_cases import find_case
from .lake.writing import MESSAGES, write

CASE = find_case("b_types_batch")


def hold_open_transactions(folder: Path) -> None:
    rows = wf.arrow.changes(CASE.array, CASE.format)
    wf.arrow.transactions(rows.slice(0, len(rows) - 1), memory_limit=0)


def hold_rows_of_a_lake(folder: Path) -> None:
    write(MESSAGES, folder, "parquet", "latest", memory_limit=1)


def hold_messages(folder: Path) -> None:
    file = MessageFile()
    try:
        for array in CASE.array.chunks:
            file.write(array)
        file.end()
    finally:
        file.close()


@pytest.mark.parametrize("work", [hold_open_transactions, hold_rows_of_a_lake, hold_messages])
def test_a_full_disk_names_the_folder(work: Callable[[Path], None], tmp_path: Path) -> None:
    with small_disk(), pytest.raises(OSError, match="set TMPDIR to another folder") as error:
        work(tmp_path)
    assert error.value.filename == tempfile.gettempdir()


@pytest.mark.parametrize("is_parquet", [False, True])
@pytest.mark.parametrize("command", [("decode", "-", "-o", "-", "--to", "jsonl"), ("tables", "-")])
def test_a_full_disk_is_not_one_of_standard_input(command: tuple[str, ...], is_parquet: bool, tmp_path: Path) -> None:
    """Parquet that comes through a pipe is copied; so is everything that is read more than once."""
    messages = tmp_path / "messages"
    if is_parquet:
        pq.write_table(pa.table({"payload": CASE.array}), messages)
    else:
        messages.write_bytes(b"".join(CASE.array.to_pylist()))
    with small_disk():
        result = run(*command, stdin=messages.read_bytes())
    is_copied = is_parquet or "tables" in command
    assert result.exit_code == (1 if is_copied else 0)
    assert (f"{tempfile.gettempdir()}: File too large: temporary files need" in result.stderr) == is_copied


def test_a_folder_is_removed_with_its_owner() -> None:
    folder = TemporaryFolder()
    path = folder.path
    assert path == folder.path
    assert path.is_dir()
    del folder
    assert not path.exists()
