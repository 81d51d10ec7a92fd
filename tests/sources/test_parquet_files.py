"""Row groups of Parquet files are read together if they are small, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wireformat.sources import parquet_files
from wireformat.sources.parquet_files import ParquetSource, RowGroup


@pytest.mark.parametrize(
    ("most_bytes", "most_rows", "batches"),
    [
        pytest.param(1 << 24, 1 << 17, [24], id="all at once"),
        pytest.param(1 << 24, 7, [6, 6, 6, 6], id="no more rows than may be read at once"),
        pytest.param(1000, 1 << 17, [12, 1, 1, 10], id="a large one alone, in parts"),
    ],
)
def test_small_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int, most_rows: int, batches: list[int]
) -> None:
    messages = [b"%04d" % number for number in range(24)]
    messages[12] = messages[13] = bytes(900)
    path = tmp_path / "0.parquet"
    schema = pa.schema([("seq", pa.int64()), ("payload", pa.binary())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, 24, 2):
            rows = [{"seq": number, "payload": messages[number]} for number in (first, first + 1)]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    monkeypatch.setattr(parquet_files, "MESSAGE_BATCH_BYTES", most_bytes)
    monkeypatch.setattr(parquet_files, "MOST_ROWS", most_rows)
    source = ParquetSource("0.parquet", path, path.stat().st_size, "payload")
    found = [*source.rows(["seq", "payload"])]
    assert pa.Table.from_batches(found).to_pylist() == [
        {"seq": number, "payload": message} for number, message in enumerate(messages)
    ]
    assert [*map(len, found)] == batches
    source.groups = range(5, 7)
    assert pa.Table.from_batches([*source.rows(["payload"])])["payload"].to_pylist() == messages[10:14]


def test_the_time_is_that_of_the_number_of_groups() -> None:
    """Tens of thousands of groups with a message each, as of a writer that flushes each of them."""
    reads = 0

    class Group(RowGroup):
        def __iter__(self) -> Iterator[int]:
            nonlocal reads
            reads += 1
            return super().__iter__()

    (together,) = parquet_files._together({number: Group(1, 100) for number in range(5000)})
    assert len(together) == 5000
    assert reads <= 5000
