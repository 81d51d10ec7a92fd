"""Columns of a lake: those that come later, types that widen, and partitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from .histories import TABLES, messages_of, transactions
from .reading import read, values
from .writing import MESSAGES, capture_of, files_of, inserts_of_types, write


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_columns_that_come_later(format: str, tmp_path: Path) -> None:
    messages = messages_of([*transactions(60, more="total")])
    write(messages[:20], tmp_path, format, "changes")
    assert "total" not in read(tmp_path, ("public", "orders")).column_names
    write(messages, tmp_path, format, "changes")
    found = read(tmp_path, ("public", "orders"))
    assert found.schema.field("total").type == pa.int64()
    wanted = capture_of(messages).typed("public.orders").read_all()
    assert found["total"].to_pylist() == wanted["total"].to_pylist()


def test_a_type_that_widens(tmp_path: Path) -> None:
    """In Delta tables it is an error: deltalake cannot widen a column. A narrower type fits."""
    messages = inserts_of_types(("1", "integer"), ("2", "bigint"), ("3", "smallint"))
    for format in ("parquet", "delta"):
        write(messages[:1], tmp_path / format, format, "changes")
    write(messages, tmp_path / "parquet", "parquet", "changes")
    assert read(tmp_path / "parquet", ("a", "t"))["v"].to_pylist() == [1, 2, 3]
    with pytest.raises(
        wf.BadRows, match=r"type int32 in column v, as in the lake, got int64 in the stream \[table a\.t\]; deltalake"
    ):
        write(messages, tmp_path / "delta", "delta", "changes")
    table = deltalake.DeltaTable(tmp_path / "delta" / "a" / "t")
    found = table.to_pyarrow_table()
    old = pa.struct([found.schema.field("id"), pa.field("v", pa.int64())])
    wide = found.set_column(1, "v", found["v"].cast(pa.int64()))
    wide = wide.set_column(wide.column_names.index("_old"), "_old", wide["_old"].cast(old))
    deltalake.write_deltalake(table, wide, mode="overwrite", schema_mode="overwrite")
    write(messages, tmp_path / "delta", "delta", "changes")
    assert read(tmp_path / "delta", ("a", "t"))["v"].to_pylist() == [1, 2, 3]
    narrow = inserts_of_types(("1", "bigint"), ("2", "smallint"))
    write(narrow[:1], tmp_path / "narrow", "delta", "changes")
    write(narrow[1:], tmp_path / "narrow", "delta", "changes", after=wf.lake.position(tmp_path / "narrow"))
    assert read(tmp_path / "narrow", ("a", "t"))["v"].to_pylist() == [1, 2]


def test_the_error_of_a_type_that_widens_says_nothing_of_where_the_input_begins(tmp_path: Path) -> None:
    """Though the input begins with transactions that the lake has."""
    events: list[wf.Event] = []
    for lsn, sql_type in ((10, "integer"), (20, "bigint")):
        row = wf.TupleData(("v",), ("1",), (sql_type,))
        insert = wf.Insert(table_schema="a", table_name="t", new=row, relation_id=1)
        time = "2026-11-22 10:00:00+00"
        events += [wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=time), insert]
        events += [wf.Commit(commit_lsn=lsn, end_lsn=lsn + 1, commit_time=time)]
    messages = list(wf.encode(events, "pgoutput"))
    half = next(count for count, one in enumerate(messages, 1) if one[:1] == b"C")
    wf.Capture(messages[:half], "pgoutput").write(tmp_path, format="delta")
    with pytest.raises(wf.BadRows, match=r"with the wider type$"):
        wf.Capture(messages, "pgoutput").write(tmp_path, format="delta")


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_type_that_changes_with_an_added_column(state: str, tmp_path: Path) -> None:
    """Both are text in the lake; the metadata of the column name its SQL type."""
    rows = [
        {"id": ("1", "integer")},
        {"id": ("2", "integer"), "v": ("a", "character varying")},
        {"id": ("3", "integer"), "v": ("b", "text"), "w": ("c", "text")},
    ]
    messages: list[bytes] = []
    for number, row in enumerate(rows, 1):
        image = wf.TupleData(tuple(row), *zip(*row.values(), strict=True))
        insert = wf.Insert(lsn=100 * number, table_schema="a", table_name="t", new=image)
        begin = wf.Begin(lsn=100 * number, csn=number, first_lsn=100 * number)
        messages += messages_of([[begin, insert, wf.Commit(lsn=100 * number + 10, xid=number)]])
        write(messages, tmp_path, "delta", state)
    assert read(tmp_path, ("a", "t")).select(["id", "v", "w"]).to_pylist() == [
        {"id": 1, "v": None, "w": None},
        {"id": 2, "v": "a", "w": None},
        {"id": 3, "v": "b", "w": "c"},
    ]


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("column", ["id", "commit_date"])
def test_partitions(format: str, column: str, tmp_path: Path) -> None:
    capture_of(MESSAGES[:30]).write(tmp_path, format=format, partition_by=column)
    capture_of(MESSAGES).write(tmp_path, format=format, partition_by=column)
    for table in TABLES:
        folder = tmp_path / "public" / table.replace("Notes", "~4Eotes")
        if format == "delta":
            found = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
        else:
            found = pq.read_table(folder, partitioning="hive")
        wanted = capture_of(MESSAGES).typed(f"public.{table}").read_all()
        assert len(found) == len(wanted)
        if column == "id":
            names = [name for name in wanted.column_names if name != "_old"]
            found = found.set_column(found.column_names.index("id"), "id", found["id"].cast(pa.int32()))
            assert values(found.select(names)) == values(wanted.select(names))


@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("sql_type", ["text", "bytea"])
def test_an_empty_text_is_no_partition_of_a_delta_table(state: str, sql_type: str, tmp_path: Path) -> None:
    """Delta reads it as NULL, so that the row would have another key. Nothing is written, in any mode."""
    given: dict[str, Any] = {"partition_by": {"a.t": "v"}, "state": state}
    given |= {"keys": ["id", "v"]} if state == "latest" else {}
    empty = "\\x" if sql_type == "bytea" else ""
    full = "\\x61" if sql_type == "bytea" else "a"
    messages = inserts_of_types((full, sql_type), (empty, sql_type))
    for before in ([], messages[:1]):
        if before:
            capture_of(before).write(tmp_path / "delta", format="delta", **given)
        there = files_of(tmp_path / "delta")
        for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
            with pytest.raises(wf.BadRows, match=r"no empty text in column v, .*, got one \[table a\.t\]; Delta reads"):
                capture_of(messages, mode=mode).write(tmp_path / "delta", format="delta", **given)
            assert files_of(tmp_path / "delta") == there
    capture_of(messages).write(tmp_path / "parquet", **given)
    found = pq.read_table(tmp_path / "parquet" / "a" / "t", partitioning="hive")
    assert sorted(found["v"].cast(pa.string()).to_pylist()) == ["", "a"]


def test_rows_of_a_partition_keep_their_bytes_in_a_merge(tmp_path: Path) -> None:
    """deltalake writes the bytes of a partition as escapes, which it reads as text."""
    messages = inserts_of_types(*[("\\x6162", "bytea")] * 3)
    for end in (1, 2, 3):
        capture = capture_of(messages[:end])
        capture.write(tmp_path, format="delta", state="latest", keys=["id"], partition_by="v")
    assert read(tmp_path, ("a", "t"))["v"].to_pylist() == [b"ab"] * 3


def test_values_that_no_partition_can_have(tmp_path: Path) -> None:
    """Each is an error that names the table, and nothing is written."""
    cases = [
        ("__HIVE_DEFAULT_PARTITION__", "text", "parquet", wf.BadRows, "no text __HIVE_DEFAULT_PARTITION__ in column v"),
        ("\\xff00", "bytea", "parquet", wf.BadRows, "text in UTF-8 in column v"),
        ("\\xff00", "bytea", "delta", wf.BadRows, "text in UTF-8 in column v"),
        ("{1,2}", "integer[]", "parquet", wf.OptionError, "column 'v' has arrays"),
        ("{1,2}", "integer[]", "delta", wf.OptionError, "column 'v' has arrays"),
    ]
    for value, sql_type, format, error, text in cases:
        capture = capture_of(inserts_of_types((value, sql_type)))
        with pytest.raises(error, match=text):
            capture.write(tmp_path, format=format, partition_by="v")
        assert files_of(tmp_path) == {}
    capture_of(inserts_of_types(("__HIVE_DEFAULT_PARTITION__", "text"))).write(
        tmp_path, format="delta", partition_by="v"
    )
    assert read(tmp_path, ("a", "t"))["v"].to_pylist() == ["__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_column_whose_name_is_that_of_the_partition_in_other_case(format: str, tmp_path: Path) -> None:
    row = wf.TupleData(("id", "Commit_Date"), ("1", "a"), ("integer", "text"))
    begin = wf.Begin(lsn=100, csn=1, first_lsn=100, commit_time="2026-11-22 10:00:00+00")
    events = [begin, wf.Insert(lsn=108, table_schema="a", table_name="t", new=row), wf.Commit(lsn=116, xid=1)]
    capture_of(messages_of([events])).write(tmp_path, format=format, partition_by="commit_date")
    assert read(tmp_path, ("a", "t"))["Commit_Date_2"].to_pylist() == ["a"]
    if format == "parquet":
        sql = f"SELECT Commit_Date_2, commit_date::text FROM '{tmp_path}/a/t/*/*.parquet'"
        assert duckdb.sql(sql).fetchall() == [("a", "2026-11-22")]


def test_a_long_text_is_no_name_of_a_folder(tmp_path: Path) -> None:
    """A Delta table has it in its log."""
    messages = inserts_of_types(("x" * 300, "text"))
    with pytest.raises(wf.BadRows, match="at most 255 characters") as error:
        wf.Capture(messages, "gaussdb-binary").write(tmp_path / "parquet", partition_by="v")
    assert "xxx" not in str(error.value)
    assert not (tmp_path / "parquet").exists()
    wf.Capture(messages, "gaussdb-binary").write(tmp_path / "delta", format="delta", partition_by="v")
    assert read(tmp_path / "delta", ("a", "t"))["v"].to_pylist() == ["x" * 300]


@pytest.mark.parametrize(("value", "sql_type"), [("x" * 300, "text"), ("1e+300", "double precision")])
def test_a_value_that_is_no_name_of_a_folder_is_not_merged(value: str, sql_type: str, tmp_path: Path) -> None:
    """deltalake makes folders of its own in a MERGE, so that such a row could be written once, and not changed."""
    messages = inserts_of_types(("1", sql_type), (value, sql_type))
    for end in (2, 1, 2):
        capture = capture_of(messages[:end])
        there = files_of(tmp_path)
        if end == 1:
            capture.write(tmp_path, format="delta", state="latest", keys=["id"], partition_by="v")
            continue
        with pytest.raises(wf.BadRows, match=r"at most 255 characters, .* or write state='changes'") as error:
            capture.write(tmp_path, format="delta", state="latest", keys=["id"], partition_by="v")
        assert value[:3] not in str(error.value)
        assert files_of(tmp_path) == there


def test_a_column_by_whose_name_deltalake_cannot_merge(tmp_path: Path) -> None:
    row = wf.TupleData(("id", "a\tb"), ("1", "x"), ("integer", "text"))
    insert = wf.Insert(lsn=108, table_schema="a", table_name="t", new=row)
    messages = messages_of([[wf.Begin(lsn=100, csn=1, first_lsn=100), insert, wf.Commit(lsn=116, xid=1)]])
    with pytest.raises(wf.OptionError, match=r"partition_by: table a\.t: .* not printed"):
        capture_of(messages).write(tmp_path, format="delta", state="latest", keys=["id"], partition_by="a\tb")
    capture_of(messages).write(tmp_path, format="delta", partition_by="a\tb")
    assert len(read(tmp_path, ("a", "t"))) == 1


def test_a_table_with_partitions_and_without_rows(tmp_path: Path) -> None:
    row = wf.TupleData(("id", "v"), ("1", "x"), ("integer", "text"))
    table = {"table_schema": "a", "table_name": "t"}
    changes = [wf.Insert(lsn=108, new=row, **table), wf.Delete(lsn=112, old=row, **table)]
    messages = messages_of([[wf.Begin(lsn=100, csn=1, first_lsn=100), *changes, wf.Commit(lsn=116, xid=1)]])
    given: dict[str, Any] = {"format": "delta", "state": "latest", "keys": ["id"], "partition_by": "v"}
    capture_of(messages).write(tmp_path, **given)
    found = read(tmp_path, ("a", "t"))
    assert (len(found), found.schema.field("v").type) == (0, pa.string())
    again = replace(changes[0], lsn=208)
    more = messages_of([[wf.Begin(lsn=200, csn=2, first_lsn=200), again, wf.Commit(lsn=216, xid=2)]])
    capture_of([*messages, *more]).write(tmp_path, **given)
    assert read(tmp_path, ("a", "t"))["v"].to_pylist() == ["x"]


def test_a_long_text_in_an_object_store() -> None:
    """Its keys have no such limit."""
    store = pafs._MockFileSystem()
    messages = inserts_of_types(("x" * 300, "text"))
    wf.Capture(messages, "gaussdb-binary").write("lake", partition_by="v", filesystem=store)
    files = store.get_file_info(pafs.FileSelector("lake/a/t", recursive=True))
    assert any(f"/v={'x' * 300}/" in file.path for file in files)


def test_partitions_that_differ_in_case(tmp_path: Path) -> None:
    """Where a file system ignores case, they share a folder: no file has the name of another one."""
    wf.Capture(inserts_of_types(("A", "text"), ("a", "text"), ("a.", "text")), "gaussdb-binary").write(
        tmp_path, partition_by="v"
    )
    paths = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet")]
    assert len(paths) == 3
    assert len({(str(path.parent).casefold().rstrip("."), path.name) for path in paths}) == 3


def test_an_error_does_not_show_the_value_of_a_partition(tmp_path: Path) -> None:
    (tmp_path / "a" / "t").mkdir(parents=True)
    (tmp_path / "a" / "t" / "v=secret").touch()
    with pytest.raises(wf.LakeError, match="move away what is in the way") as error:
        wf.Capture(inserts_of_types(("secret", "text")), "gaussdb-binary").write(tmp_path, partition_by="v")
    assert str(tmp_path / "a" / "t") in str(error.value)
    assert "secret" not in str(error.value)
