"""The files of a lake: their row groups, sizes, names and metadata."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake import table_folder
from wireformat.lake.chunks import LakePlan
from wireformat.lake.options import LakeOptions
from wireformat.lake.parquet import ParquetFile
from wireformat.lake.stored.store import Store
from wireformat.sources import groups, together

from .reading import manifest_of
from .writing import MESSAGES, check, files_of, write


def _in_two_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> wf.Capture:
    """A capture that is read in two batches."""
    monkeypatch.setattr(together, "MESSAGE_BATCH_BYTES", 0)
    for number, part in enumerate((MESSAGES[:20], MESSAGES[20:])):
        pq.write_table(pa.table({"payload": part}), folder / f"{number}.parquet")
    return wf.Capture(folder / "*.parquet", "gaussdb-binary")


def test_large_tables_have_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the messages are read once."""
    monkeypatch.setattr(groups, "GROUP_ROWS", 1)
    _in_two_files(tmp_path, monkeypatch).write(tmp_path / "lake")
    check(MESSAGES, tmp_path / "lake", "changes")
    (path,) = (tmp_path / "lake" / "public" / "orders").iterdir()
    assert pq.ParquetFile(path).num_row_groups == 2


def test_dictionaries(tmp_path: Path) -> None:
    """Only columns whose values repeat have one."""
    row = [("id", "integer", str), ("status", "text", lambda number: ("open", "paid")[number % 2])]
    names, types = [name for name, _, _ in row], [type for _, type, _ in row]
    events: list[wf.Event] = [wf.Begin(lsn=16, csn=1, first_lsn=16)]
    for number in range(1000):
        new = wf.TupleData(tuple(names), tuple(make(number) for _, _, make in row), tuple(types))
        events.append(wf.Insert(lsn=17 + number, table_schema="public", table_name="orders", new=new))
    messages = [*wf.encode([*events, wf.Commit(lsn=2000, xid=1)], "gaussdb-binary")]
    write(messages, tmp_path, "parquet", "changes")
    (path,) = (tmp_path / "public" / "orders").iterdir()
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    with_dictionary = {path for path, column in columns.items() if column.has_dictionary_page}
    assert {"status", "_change_type", "_sequence.commit_lsn", "_xid"} <= with_dictionary
    assert not {"id", "_sequence.ordinal"} & with_dictionary


def test_numbers_that_ascend_have_no_dictionary(tmp_path: Path) -> None:
    """Positions and times of transactions do not come again after their rows."""
    events: list[wf.Event] = []
    for number in range(500):
        lsn, time = 100 * number, f"2026-11-23 10:{number // 60:02}:{number % 60:02}+00"
        events.append(wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn, commit_time=time))
        for row in (1, 2):
            new = wf.TupleData(("id", "day"), (str(number % 7), str(number // 100)), ("integer", "bigint"))
            events.append(wf.Insert(lsn=lsn + row, table_schema="public", table_name="orders", new=new))
        events.append(wf.Commit(lsn=lsn + 3, xid=number + 7))
    messages = [*wf.encode(events, "gaussdb-binary", options={"include-timestamp": True})]
    write(messages, tmp_path, "parquet", "changes")
    (path,) = (tmp_path / "public" / "orders").iterdir()
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    with_dictionary = {column.path_in_schema for column in columns if column.has_dictionary_page}
    assert {"id", "day", "_change_type", "_sequence.ordinal"} <= with_dictionary
    assert not {"_sequence.commit_lsn", "_xid", "_commit_time"} & with_dictionary


def test_files(tmp_path: Path) -> None:
    write(MESSAGES, tmp_path, "parquet", "changes")
    (path,) = (tmp_path / "public" / "orders").iterdir()
    file = pq.ParquetFile(path)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.metadata.row_group(0).column(0).statistics.min == 1
    assert file.schema_arrow.field("id").metadata[b"wireformat.sql_type"] == b"integer"
    about = file.metadata.metadata
    assert about[b"wireformat.table"] == b"public.orders"
    assert about[b"wireformat.format"] == b"gaussdb-binary"
    position = wf.lake.position(tmp_path)
    assert position is not None
    assert wf.CapturePosition.from_json(about[b"wireformat.position"].decode()) == position.without_tables()
    manifest = manifest_of(tmp_path)
    assert manifest["writes"] == 1
    assert [table["files"][0]["path"] for table in manifest["tables"] if table["table_name"] == "orders"] == [
        "public/orders/wireformat-000001.parquet"
    ]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_file_that_becomes_large_ends(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next rows of the table begin another one; all are of the table."""
    monkeypatch.setattr(groups, "GROUP_ROWS", 1)
    monkeypatch.setattr(table_folder, "FILE_BYTES", 1)
    lake = tmp_path / "lake"
    written = _in_two_files(tmp_path, monkeypatch).write(lake, format=format)
    check(MESSAGES, lake, "changes")
    paths = sorted((lake / "public" / "orders").glob("*.parquet"))
    assert len(paths) == 2
    assert [row["files"] for row in written.to_pylist() if row["table_name"] == "orders"] == [2]
    about = [pq.ParquetFile(path).metadata.metadata for path in paths]
    assert {keys[b"wireformat.format"] for keys in about} == {b"gaussdb-binary"}
    if format == "parquet":
        (table,) = (table for table in manifest_of(lake)["tables"] if table["table_name"] == "orders")
        assert [Path(file["path"]).name for file in table["files"]] == [path.name for path in paths]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_files_that_ended_go_with_a_write_that_fails(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GROUP_ROWS", 1)
    monkeypatch.setattr(table_folder, "FILE_BYTES", 1)
    write(MESSAGES[:10], tmp_path / "lake", format, "changes")
    before = files_of(tmp_path / "lake")
    pq.write_table(pa.table({"payload": [b"no message"]}), tmp_path / "2.parquet")
    capture = _in_two_files(tmp_path, monkeypatch)
    with pytest.raises(wf.DecodeError):
        capture.write(tmp_path / "lake", format=format)
    assert files_of(tmp_path / "lake") == before


def test_names_of_files(tmp_path: Path) -> None:
    """Those of a write come in the order of their rows, and the next write knows what an earlier one left."""
    names = {"format": "parquet", "state": "changes", "partition_by": None, "keys": None, "schemas": None}
    options = LakeOptions.check(
        **names, tables=None, rejects=None, filesystem=None, storage_options=None, mode="FAILFAST"
    )
    lake = options.opened(options.store(tmp_path), "gaussdb-binary", "0f")
    chunk = LakePlan(tmp_path, options, "gaussdb-binary", lake.manifest, lake.writer).lake_of_chunk(9)
    paths = [one.new_path("a/t", index) for one in (lake, chunk) for index in (0, 1, 2)]
    assert paths[:3] == sorted(paths[:3])
    assert paths[3:] == sorted(paths[3:])
    assert len({*paths}) == len(paths)
    lake.begin()
    (tmp_path / "a" / "t").mkdir(parents=True)
    for path in paths:
        (tmp_path / path).write_bytes(b"left by a write that was killed")
    write(MESSAGES, tmp_path, "parquet", "changes")
    assert not any((tmp_path / path).exists() for path in paths)


@pytest.mark.parametrize("rows", [0, 1])
def test_nothing_is_written_to_a_file_that_was_given_up(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another write may have replaced it; pyarrow writes a footer when a writer goes that was not closed."""
    batch = pa.record_batch({"id": [1]})
    file = ParquetFile(Store.of(tmp_path, None, None), "f.parquet", batch.schema, {}, is_logged=True)
    file._writer_for(batch)
    for _ in range(rows):
        file.write(batch)
    (tmp_path / "f.parquet").write_bytes(b"of another write")
    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    del file
    gc.collect()
    assert (tmp_path / "f.parquet").read_bytes() == b"of another write"
    assert not errors
    assert capfd.readouterr().err == ""


def test_a_file_that_was_given_up_may_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    batch = pa.record_batch({"id": [1]})
    file = ParquetFile(Store.of(tmp_path, None, None), "f.parquet", batch.schema, {}, is_logged=True)
    file.write(batch)
    (tmp_path / "f.parquet").unlink()
    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    del file
    gc.collect()
    assert [*tmp_path.iterdir()] == []
    assert not errors
    assert capfd.readouterr().err == ""
