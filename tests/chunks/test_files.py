"""Files of a stream as chunks: row groups of Parquet files, and files of messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.chunks import file_ranges as ranges_of_files
from wireformat.chunks.file_ranges import FileRange, file_ranges, first_messages, packed
from wireformat.chunks.files import survey
from wireformat.chunks.relations import NEEDED_TAGS, of_needed_kinds
from wireformat.chunks.summary import counted_from

from ..examples import at_most
from ..servers.captures import read_capture
from .reading import in_order

DEFINITION = ["table_schema", "table_name", "version", "columns", "types"]
"""Changes that name few columns may be counted with another version where chunks are read alone."""

CUTS = st.lists(st.integers(0, 10_000), max_size=3)


@lru_cache(maxsize=4)
def messages_of(format: str) -> list[bytes | None]:
    """Returns the messages of a stream of which some are null, as in a column of a table."""
    if format == "pgoutput":
        found = [*map(bytes, read_capture("18-pgoutput-4").messages)]
    else:
        found = [*map(bytes, wf.encode(wf.testing.stream(3, 30, seed=2, format=format), format))]
    return [*found[:5], None, *found[5:]]


def write_files(messages: Sequence[bytes | None], cuts: Sequence[int], folder: Path, group: int) -> Path:
    bounds = [0, *sorted(cut % len(messages) for cut in cuts), len(messages)]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        table = pa.table({"payload": pa.array(messages[start:stop], pa.binary())})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group)
    return folder


@pytest.mark.parametrize("format", ["pgoutput", "gaussdb-binary"])
@at_most(8)
@given(
    cuts=CUTS,
    group=st.integers(20, 300),
    range_bytes=st.sampled_from([1, 5_000, 1 << 20]),
    chunks=st.sampled_from([1, 2, 1000]),
)
def test_ranges_of_files_give_what_the_whole_gives(
    format: str, cuts: list[int], group: int, range_bytes: int, chunks: int
) -> None:
    messages = messages_of(format)
    with TemporaryDirectory() as name, patch.object(ranges_of_files, "LEAST_CHUNKS", chunks):
        folder = write_files(messages, cuts, Path(name), group)
        whole = wf.Capture(folder, format)
        found = survey(folder, format, range_bytes=range_bytes)
        names = whole.tables().column_names if format == "pgoutput" else DEFINITION
        assert found.listed.select(names).equals(whole.tables().select(names))
        wanted = in_order(whole.committed().read_all())
        rows = []
        for chunk in found.chunks:
            of_chunk = chunk.capture(format).committed().read_all()
            index = of_chunk.column_names.index("message")
            rows.append(of_chunk.set_column(index, "message", pc.add(of_chunk["message"], chunk.first)))
        assert in_order(pa.concat_tables(rows)).to_pylist() == wanted.to_pylist()


def test_small_row_groups_are_read_together(tmp_path: Path) -> None:
    messages = messages_of("pgoutput")
    write_files(messages, [100], tmp_path, 10)
    for most, ranges in ((1, len(messages) // 10), (1 << 30, 2), (None, 2)):
        found = file_ranges(tmp_path, "pgoutput", range_bytes=most)
        assert len(found) in (ranges, ranges + 1, ranges + 2)
        assert sum(one.messages or 0 for one in found) == len(messages)
        assert found[0].groups == (0, 1 if most == 1 else 10)


def test_the_number_of_ranges_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(messages_of("pgoutput"), [], tmp_path, 5)
    monkeypatch.setattr("wireformat.chunks.file_ranges.MOST_RANGES", 3)
    assert 3 <= len(file_ranges(tmp_path, "pgoutput", range_bytes=1)) < 8


@pytest.mark.parametrize(
    ("packed_bytes", "least", "together"), [(0, 1, 1), (14_000, 1, 2), (1 << 24, 1, 4), (1 << 24, 1000, 1)]
)
def test_small_files_are_a_chunk_together(packed_bytes: int, least: int, together: int, tmp_path: Path) -> None:
    """Up to a number of bytes, if enough chunks are left; a file that has several ranges is no part of such a chunk."""
    write_files(messages_of("pgoutput"), [20, 40, 60, 80], tmp_path, 20)
    ranges = [*file_ranges(tmp_path, "pgoutput", range_bytes=5_000), FileRange(tmp_path / "empty")]
    with patch.multiple(ranges_of_files, PACKED_BYTES=packed_bytes, LEAST_CHUNKS=least):
        found = packed(ranges)
    assert [one for files in found for one in files] == ranges
    last = [files for files in found if files[0].path.name == "4.parquet"]
    assert len(last) > 1
    assert all(len(files) == 1 for files in last)
    assert len(found[-1]) == 1
    assert max(len(files) for files in found if files not in last) == together


def test_files_without_bytes_are_a_chunk_together(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.bin").touch()
    assert len(packed(file_ranges(tmp_path, "gaussdb-binary"))) == 1
    assert packed([]) == []


@pytest.mark.parametrize("least", [1, 1000])
def test_files_of_messages(least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not say how many messages they have, and each is one range."""
    monkeypatch.setattr(ranges_of_files, "LEAST_CHUNKS", least)
    messages = [message for message in messages_of("gaussdb-binary") if message is not None]
    for number, start in enumerate(range(0, len(messages), 20)):
        (tmp_path / f"{number}.bin").write_bytes(b"".join(messages[start : start + 20]))
    files = file_ranges(tmp_path, "gaussdb-binary")
    assert {file.groups for file in files} == {None}
    assert first_messages(file.messages for file in files) is None
    found = survey(tmp_path, "gaussdb-binary")
    assert [chunk.first for chunk in found.chunks] == ([0] if least == 1 else [*range(0, len(messages), 20)])
    assert found.listed.select(DEFINITION).equals(wf.Capture(tmp_path, "gaussdb-binary").tables().select(DEFINITION))


def test_a_file_without_rows(tmp_path: Path) -> None:
    write_files([], [], tmp_path, 10)
    assert len(survey(tmp_path, "pgoutput").listed) == 0


def same_error(files: Any, format: str) -> wf.DecodeError | wf.OrderError:
    """Returns the error that a look through files raises, which is that of one reading."""
    with pytest.raises(wf.WireformatError) as one:
        wf.Capture(files, format).tables()
    for least, range_bytes in ((1, 1), (1, 1 << 30), (2, 1 << 30), (1000, 1)):
        with pytest.raises(wf.WireformatError) as other, patch.object(ranges_of_files, "LEAST_CHUNKS", least):
            survey(files, format, range_bytes=range_bytes)
        assert str(other.value) == str(one.value)
    assert isinstance(one.value, (wf.DecodeError, wf.OrderError))
    return one.value


def test_files_in_another_order_than_the_stream(tmp_path: Path) -> None:
    messages = messages_of("gaussdb-binary")
    write_files(messages, [len(messages) // 4, len(messages) // 2, len(messages) * 3 // 4], tmp_path, 1000)
    for order in ("1023", "0213", "0132", "3210", "1230", "2310"):
        error = same_error([tmp_path / f"{number}.parquet" for number in order], "gaussdb-binary")
        assert isinstance(error, wf.OrderError)


def test_errors_count_the_messages_of_all_files(tmp_path: Path) -> None:
    messages = [*messages_of("pgoutput")]
    row = max(index for index, message in enumerate(messages) if message is not None and message[:1] == b"I")
    messages[row] = b"I\0"
    write_files(messages, [50, 100], tmp_path, 30)
    error = same_error(tmp_path, "pgoutput")
    assert error.message == row
    assert counted_from(wf.DecodeError("a", "b"), 3).message is None


def test_another_format(tmp_path: Path) -> None:
    write_files(messages_of("pgoutput"), [50], tmp_path, 30)
    with pytest.raises(wf.WireformatError, match="pgoutput"):
        survey(tmp_path, "gaussdb-binary", mode="PERMISSIVE", range_bytes=1)


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(21)], ids=str)
def test_each_type_of_bytes(type: pa.DataType, tmp_path: Path) -> None:
    messages = [message for message in messages_of("pgoutput") if message is not None]
    if pa.types.is_fixed_size_binary(type):
        messages = [message for message in messages if len(message) == type.byte_width]
    pq.write_table(pa.table({"payload": pa.array(messages, type)}), tmp_path / "0.parquet")
    (one,) = file_ranges(tmp_path, "pgoutput")
    arrays = [*one.arrays("pgoutput")]
    assert [message for array in arrays for message in array.to_pylist()] == messages != []
    found = [message for array in arrays for message in of_needed_kinds(array)]
    assert found == [message for message in messages if message[0] in NEEDED_TAGS] != []
