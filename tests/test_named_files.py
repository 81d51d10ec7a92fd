"""Errors of captures in several files name the file, and the message in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.chunks.files import survey

FORMAT = "test-decoding"
LINES = [
    b"BEGIN 1",
    b"table public.t: INSERT: id[integer]:1",
    b"COMMIT 1",
    b"BEGIN 2",
    b"table public.t: INSERT: id[integer]:2",
    b"BEGIN 3",
]


def write(folder: Path, lines: list[bytes], *ends: int) -> Path:
    """Writes files that end before these messages, with row groups of one message."""
    folder.mkdir()
    for number, (start, stop) in enumerate(zip([0, *ends], [*ends, len(lines)], strict=True)):
        pq.write_table(
            pa.table({"payload": pa.array(lines[start:stop], pa.binary())}),
            folder / f"{number}.parquet",
            row_group_size=1,
        )
    return folder


VERBS: dict[str, Callable[[wf.Capture], Any]] = {
    "changes": lambda capture: capture.changes().read_all(),
    "committed": lambda capture: capture.committed().read_all(),
    "tables": lambda capture: capture.tables(),
    "latest": lambda capture: capture.latest("public.t", keys=["id"]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_out_of_order(verb: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "raw", LINES, 0, 2, 4)
    with pytest.raises(wf.OrderError) as found:
        VERBS[verb](wf.Capture(folder, FORMAT, strict=True))
    error = found.value
    assert (error.source, error.message, error.source_message) == (str(folder / "3.parquet"), 5, 1)
    assert f"source {error.source}, message 5, message in the source 1" in str(error)


def test_out_of_order_transactions(tmp_path: Path) -> None:
    """What `committed` finds, without strict."""
    folder = write(tmp_path / "raw", [*LINES[:3], LINES[4]], 1, 2)
    with pytest.raises(wf.OrderError) as found:
        wf.Capture(folder, FORMAT).committed().read_all()
    error = found.value
    assert (error.source, error.message, error.source_message) == (str(folder / "2.parquet"), 3, 1)


def test_unreadable(tmp_path: Path) -> None:
    lines = [*LINES[:4], b"table public.t: INSERT: id[integer"]
    folder = write(tmp_path / "raw", lines, 3)
    with pytest.raises(wf.DecodeError) as found:
        wf.Capture(folder, FORMAT).committed().read_all()
    assert (found.value.source, found.value.source_message) == (str(folder / "1.parquet"), 1)
    with pytest.raises(wf.DecodeError) as in_chunks:
        survey(folder, FORMAT, range_bytes=1)
    assert str(in_chunks.value) == str(found.value)


def test_one_file_has_one_index(tmp_path: Path) -> None:
    folder = write(tmp_path / "raw", LINES)
    for ask in (wf.Capture(folder, FORMAT, strict=True).tables, partial(survey, folder, FORMAT, strict=True)):
        with pytest.raises(wf.OrderError) as found:
            ask()
        assert (found.value.source, found.value.message, found.value.source_message) == (None, 5, None)
