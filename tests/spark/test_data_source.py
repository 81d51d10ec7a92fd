"""The data source `wireformat`: files as tables in SQL alone."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import spark_udfs
import wireformat as wf
from spark_udfs.schemas import as_declared
from spark_udfs.source.data_source import WireformatSource
from spark_udfs.source.options import SlotOptions
from wireformat.chunks.files import survey

from ..servers.captures import read_capture
from .raw_streams import assert_same

pytestmark = pytest.mark.spark

NAME = "18-pgoutput-4-two-phase"
TABLE = "public.long_by_key"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in files that begin anywhere, also inside of transactions."""
    folder = tmp_path_factory.mktemp("files")
    messages = read_capture(NAME).messages
    chance = Random(5)
    cuts = sorted({0, *(chance.randint(0, len(messages)) for _ in range(5)), len(messages)})
    for number, (start, stop) in enumerate(pairwise(cuts)):
        pq.write_table(pa.table({"payload": pa.array(messages[start:stop], pa.binary())}), folder / f"{number}.parquet")
    return folder


def rows(spark: SparkSession, files: Path | str, **options: str) -> pa.Table:
    given = {"path": str(files), "format": "pgoutput", **options}
    text = ", ".join(f"{name} '{value}'" for name, value in given.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_files USING wireformat OPTIONS ({text})")
    return spark.table("of_files").toArrow()


def test_changes(spark: SparkSession, files: Path) -> None:
    wanted = wf.Capture(files, "pgoutput").changes().read_all().drop_columns(["message"])
    assert_same(rows(spark, files), wanted)


def test_typed_changes(spark: SparkSession, files: Path) -> None:
    wanted = wf.Capture(files, "pgoutput").typed(TABLE).read_all()
    assert len(wanted) > 10
    assert_same(rows(spark, files, table=TABLE), wanted)


def test_a_table_as_it_stands(spark: SparkSession, files: Path) -> None:
    wanted = wf.Capture(files, "pgoutput").latest(TABLE)
    assert_same(rows(spark, files, table=TABLE, state="latest"), wanted)
    assert_same(rows(spark, files, table=TABLE, state="latest", keys="id"), wanted)


def test_paths_and_words_as_in_other_sources(spark: SparkSession, files: Path) -> None:
    wanted = wf.Capture(files, "pgoutput").changes().read_all().drop_columns(["message"])
    assert_same(rows(spark, f"file:{files}/*.parquet", mode="permissive"), wanted)
    assert_same(rows(spark, f"FILE://localhost{files}", mode="FailFast", state="CHANGES"), wanted)
    for paths in (f"file://{files}", [f"file:{files}/*.parquet"]):
        assert_same(spark_udfs.capture(paths=paths, format="pgoutput").changes().drop("message").toArrow(), wanted)
    with pytest.raises(wf.OptionError, match="option paths: expected local files"):
        spark_udfs.capture(paths=["hdfs://host/captures"], format="pgoutput")


def test_the_mode_of_a_slot_in_any_case() -> None:
    given = {"service": "orders", "slot": "one", "publication": "all_tables"}
    assert SlotOptions.check({**given, "mode": "Permissive"}).mode == "PERMISSIVE"
    with pytest.raises(wf.OptionError, match="option mode: expected FAILFAST"):
        SlotOptions.check({**given, "mode": "ignore"})


def test_a_table_without_a_key(spark: SparkSession, tmp_path: Path) -> None:
    """Of a format that states no identity: keys '' is keys=[] of a capture."""
    row = wf.TupleData(("id", "note"), ("1", "x"), ("integer", "text"))
    insert = wf.Insert(lsn=17, table_schema="shop", table_name="t", new=row)
    begin, commit = wf.Begin(lsn=16, csn=5, first_lsn=16), wf.Commit(lsn=32, xid=9)
    messages = [*map(bytes, wf.encode([begin, insert, insert, commit], "gaussdb-binary"))]
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), tmp_path / "0.parquet")
    options = {"format": "gaussdb-binary", "table": "shop.t", "state": "latest"}
    wanted: pa.Table = wf.Capture(messages, "gaussdb-binary").latest("shop.t", keys=[])
    assert len(wanted) > 0
    for keys in ("", "[]"):
        assert_same(rows(spark, tmp_path, keys=keys, **options), wanted)
    with pytest.raises((AnalysisException, PySparkException), match="option keys: the stream does not state"):
        rows(spark, tmp_path, **options)


def test_errors_of_later_files(tmp_path: Path) -> None:
    """Those of rows name messages as wf.Capture does: counted through all files."""
    lines = [b"BEGIN 5", b"table public.t: INSERT: id[integer]:1", b"COMMIT 5", b"table public.t: INSERT: id["] * 2
    for number, at in enumerate(range(0, len(lines), 3)):
        pq.write_table(pa.table({"payload": lines[at : at + 3]}), tmp_path / f"{number}.parquet")
    source = WireformatSource({"path": str(tmp_path), "format": "test-decoding", "mode": "PERMISSIVE"})
    reader = source.reader(source.schema())
    found = [error for part in reader.partitions() for rows in reader.read(part) for error in rows["error"].to_pylist()]
    wanted = wf.Capture(tmp_path, "test-decoding", mode="PERMISSIVE").changes(columns=["error"]).read_all()
    assert found == wanted["error"].to_pylist()
    assert "message 7," in found[-1]


def test_what_arrow_cannot_do_is_told(files: Path) -> None:
    """Spark takes a NotImplementedError, as Arrow's is one, for a reader without partitions."""
    source = WireformatSource({"path": str(files), "format": "pgoutput"})
    reader = source.reader(source.schema())
    fails = patch(
        "spark_udfs.source.data_source.SourceOptions.survey", side_effect=pa.ArrowNotImplementedError("no kernel")
    )
    with fails, pytest.raises(RuntimeError, match="no kernel") as raised:
        reader.partitions()
    assert not isinstance(raised.value, NotImplementedError)


def test_a_file_without_messages(tmp_path: Path) -> None:
    """For no partitions, Spark calls `read` with None."""
    pq.ParquetWriter(tmp_path / "0.parquet", pa.schema({"payload": pa.binary()})).close()
    source = WireformatSource({"path": str(tmp_path), "format": "pgoutput"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    assert len(parts) == 1
    assert [*reader.read(parts[0])] == []


@pytest.mark.parametrize("options", [{}, {"table": TABLE}, {"table": TABLE, "state": "latest"}])
def test_columns_of_a_view(files: Path, options: dict[str, str]) -> None:
    """A wrong name is told before a task runs, also where no row is read."""
    source = WireformatSource({"path": str(files), "format": "pgoutput", **options})
    name = source.schema().names[0]
    assert source.reader(StructType([source.schema()[name]])).partitions()
    with pytest.raises(wf.OptionError, match=f"option schema: no column '{name.upper()}', did you mean '{name}'"):
        source.reader(StructType([StructField(name.upper(), StringType())])).partitions()


@pytest.mark.parametrize(
    ("name", "declared", "words"),
    [
        ("new", IntegerType(), "column 'new' is declared as int, but has values of type map<string,string>"),
        ("kind", IntegerType(), "column 'kind' is declared as int, but has values of type string"),
    ],
)
def test_types_of_a_view(files: Path, name: str, declared: DataType, words: str) -> None:
    """The error names the column and both types, and has no value of a cell."""
    source = WireformatSource({"path": str(files), "format": "pgoutput"})
    reader = source.reader(StructType([StructField(name, declared)]))
    with pytest.raises(wf.OptionError, match=f"option schema: {words}: declare it as") as raised:
        [rows for part in reader.partitions() for rows in reader.read(part)]
    assert "BEGIN" not in str(raised.value)


ZONED, PLAIN = TimestampType(), TimestampNTZType()


@pytest.mark.parametrize(
    ("type", "text", "declared"),
    [
        ("timestamp without time zone", "2026-01-01 10:00:00", ZONED),
        ("timestamp with time zone", "2026-01-01 10:00:00+00", PLAIN),
        ("timestamp with time zone[]", '{"2026-01-01 10:00:00+00"}', ArrayType(PLAIN)),
        ("date", "2026-01-01", ZONED),
        ("date", "2026-01-01", PLAIN),
        ("bigint", "1", ZONED),
        ("timestamp without time zone", "2026-01-01 10:00:00", LongType()),
        ("integer", "1", StringType()),
    ],
)
def test_a_declared_type_of_another_meaning(tmp_path: Path, type: str, text: str, declared: DataType) -> None:
    """Spark's cast of it depends on the session, or is another one than Arrow's."""
    source = source_of_column(tmp_path, type, text)
    with pytest.raises(wf.OptionError, match=r"option schema: column 'c' is declared as .*: declare it as"):
        source.reader(StructType([StructField("c", declared)])).partitions()


@pytest.mark.parametrize(
    ("type", "text", "declared", "value"),
    [
        ("smallint", "7", LongType(), 7),
        ("integer[]", "{7}", ArrayType(LongType()), [7]),
        ("bigint", "7", DecimalType(20, 0), Decimal(7)),
        ("real", "0.5", DoubleType(), 0.5),
    ],
)
def test_a_declared_type_that_is_wider(tmp_path: Path, type: str, text: str, declared: DataType, value: Any) -> None:
    reader = source_of_column(tmp_path, type, text).reader(StructType([StructField("c", declared)]))
    found = [rows["c"].to_pylist() for part in reader.partitions() for rows in reader.read(part)]
    assert found == [[value]]


def test_types_that_spark_hands_over_are_no_other_types() -> None:
    """With spark.sql.execution.arrow.useLargeVarTypes, they are large; and instants have the zone of the session."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    columns = {"t": ["x", None], "b": [b"x", None], "l": [["x"], None], "at": [at, None]}
    berlin, utc = (("at", pa.timestamp("us", zone)) for zone in ("Europe/Berlin", "UTC"))
    large_list = pa.large_list(pa.large_string())
    large = pa.schema([("t", pa.large_string()), ("b", pa.large_binary()), ("l", large_list), berlin])
    usual = pa.schema([("t", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.string())), utc])
    for own, declared in ((large, usual), (usual, large)):
        rows = as_declared(pa.RecordBatch.from_pydict(columns, own), declared)
        assert (rows.schema, rows.to_pydict()) == (declared, columns)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.int32(), [1, None]),
        (pa.struct([pa.field("x", pa.int32(), nullable=False)]), [None, {"x": 1}, {"x": None}]),
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), [[1], [None]]),
        (pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), [[("k", 1)], [("l", None)]]),
    ],
)
def test_nulls_where_none_are_declared(type: pa.DataType, values: list[Any]) -> None:
    """The JVM would fail there, without a word about the column."""
    own = pa.types.is_int32(type)
    declared = pa.schema([pa.field("c", type, nullable=not own)])
    loose = {
        "struct": pa.struct([("x", pa.int32())]),
        "list": pa.list_(pa.int32()),
        "map": pa.map_(pa.string(), pa.int32()),
    }
    rows = pa.RecordBatch.from_pydict({"c": pa.array(values, loose.get(str(type).partition("<")[0], type))})
    with pytest.raises(wf.OptionError, match="column 'c' is declared as NOT NULL, but has nulls"):
        as_declared(rows, declared)
    assert as_declared(rows[:1], declared)["c"].to_pylist() == rows["c"].to_pylist()[:1]


def test_a_column_is_declared_once() -> None:
    with pytest.raises(wf.OptionError, match="column 'c' is declared twice"):
        as_declared(pa.RecordBatch.from_pydict({"c": [1]}), pa.schema([("c", pa.int64()), ("c", pa.int64())]))


def source_of_column(folder: Path, type: str, text: str) -> WireformatSource:
    """A table with a column of this type and a row with this text."""
    row = wf.TupleData(("c",), (text,), (type,))
    events = [wf.Begin(lsn=16, csn=5, first_lsn=16), wf.Insert(lsn=17, table_schema="shop", table_name="t", new=row)]
    messages = [*map(bytes, wf.encode([*events, wf.Commit(lsn=32, xid=9)], "gaussdb-text"))]
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), folder / "0.parquet")
    return WireformatSource({"path": str(folder), "format": "gaussdb-text", "table": "shop.t"})


def test_names_with_commas(tmp_path: Path) -> None:
    """In lists, they are in double quotes, as on the command line."""
    row = wf.TupleData(("first, last", 'a"b'), ("1", "x"), ("integer", "text"))
    insert = wf.Insert(lsn=17, table_schema="shop", table_name="t", new=row)
    events = [wf.Begin(lsn=16, csn=5, first_lsn=16), insert, insert, wf.Commit(lsn=32, xid=9)]
    messages = [*map(bytes, wf.encode(events, "gaussdb-binary"))]
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), tmp_path / "0.parquet")
    options = {"path": str(tmp_path), "format": "gaussdb-binary", "table": "shop.t", "state": "latest"}
    source = WireformatSource({**options, "keys": '"first, last", "a""b"'})
    reader = source.reader(source.schema())
    found = [row for part in reader.partitions() for rows in reader.read(part) for row in rows.to_pylist()]
    wanted: pa.Table = wf.Capture(messages, "gaussdb-binary").latest("shop.t", keys=["first, last", 'a"b'])
    assert found == wanted.to_pylist()
    given = {"service": "orders", "slot": "one", "publication": 'shop,"a, b"'}
    assert SlotOptions.check(given).publications == ["shop", "a, b"]
    with pytest.raises(wf.OptionError, match="option publication: a double quote is not closed"):
        SlotOptions.check({**given, "publication": '"shop'})


def test_another_format(tmp_path: Path) -> None:
    """The rows are what was asked for in PERMISSIVE, and the error is that of one machine in FAILFAST."""
    messages = read_capture(NAME).messages[:20]
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), tmp_path / "0.parquet")
    options = {"path": str(tmp_path), "format": "gaussdb-json"}
    source = WireformatSource({**options, "mode": "PERMISSIVE"})
    reader = source.reader(source.schema())
    found = [row for part in reader.partitions() for rows in reader.read(part) for row in rows.to_pylist()]
    wanted = wf.Capture(tmp_path, "gaussdb-json", mode="PERMISSIVE").changes().read_all()
    assert found == wanted.drop_columns(["message"]).to_pylist()
    with pytest.raises(wf.BadRows, match="that could be read"):
        WireformatSource({**options, "mode": "PERMISSIVE", "table": TABLE}).schema()
    with pytest.raises(wf.WireformatError) as expected:
        wf.Capture(tmp_path, "gaussdb-json").changes().read_all()
    source = WireformatSource(options)
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        source.reader(source.schema()).partitions()


@pytest.mark.parametrize("columns", ["", "(id bigint)"])
def test_create_table(spark: SparkSession, files: Path, columns: str) -> None:
    """Spark keeps the table without its options, which an error says at once, or when the table is read."""
    create = f"CREATE TABLE of_options {columns} USING wireformat OPTIONS (path '{files}', format 'pgoutput')"
    try:
        with pytest.raises((AnalysisException, PySparkException), match="use CREATE TEMPORARY VIEW"):
            (spark.sql(create), spark.table("of_options").collect())
    finally:
        spark.sql("DROP TABLE IF EXISTS of_options")


def test_the_chunks_are_the_files(files: Path) -> None:
    found = survey(files, "pgoutput")
    assert [[file.path.name for file in chunk.files] for chunk in found.chunks] == [
        [f"{number}.parquet"] for number in range(len(found.chunks))
    ]
    assert len(found.chunks) > 4
    assert any(chunk.plan.fates for chunk in found.chunks)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"state": "latest"}, "option table"),
        ({"table": TABLE, "state": "last"}, "option state"),
        ({"table": TABLE, "keys": "id"}, "option keys"),
        ({"table": TABLE, "state": "latest", "keys": ","}, "or '' for the whole row"),
        ({"mode": "permisive"}, "option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED"),
        ({"path": "s3://bucket/captures"}, "option path: expected local files"),
        ({"path": "file://host/captures"}, "option path: expected local files"),
        ({"tabel": TABLE}, "did you mean"),
        ({"table": "public.nothing"}, "public.nothing"),
        ({"format": "gauss"}, "option format: unknown format 'gauss'"),
        ({"format": ""}, "option format: unknown format ''; known are gaussdb-binary"),
        ({"path": ""}, "option path: expected a path, a folder or a pattern, got ''"),
        (
            {"path": "/nothing"},
            "option path: expected a file, a folder or a pattern .*, got '/nothing', which does not",
        ),
        ({"path": "/nothing/*.bin"}, "option path: no file matches /nothing/"),
        ({"paths": "[]"}, "option path: expected one path, .*, got several"),
        ({"table": TABLE, "state": "latest", "keys": '"id'}, "option keys: a double quote is not closed"),
        ({"known_tables": '"a'}, "option known_tables: a double quote is not closed"),
    ],
)
def test_wrong_options(spark: SparkSession, files: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises((AnalysisException, PySparkException), match=words):
        rows(spark, files, **options)


def test_files_are_looked_through_once(tmp_path: Path) -> None:
    """Unless they have changed since; and the tasks do not get what the look has found of other files."""
    messages = pa.array(read_capture(NAME).messages, pa.binary())
    for number, (start, stop) in enumerate(pairwise([0, len(messages) // 2, len(messages)])):
        pq.write_table(pa.table({"payload": messages[start:stop]}), tmp_path / f"{number}.parquet")
    source = WireformatSource({"path": str(tmp_path), "format": "pgoutput", "table": TABLE})
    schema = source.schema()
    with patch("wireformat.chunks.files.survey", side_effect=survey) as look:
        reader = pickle.loads(pickle.dumps(source)).reader(schema)
        first, second = reader.partitions()
        assert look.call_count == 0
        task = pickle.loads(pickle.dumps(reader))
        assert task._surveyed is None
        assert sum(map(len, task.read(first))) > 0
        pq.write_table(pa.table({"payload": messages[:-1]}), tmp_path / "1.parquet")
        with pytest.raises(wf.BadRows, match=r"1\.parquet with .* bytes, as when the view was made, got one with"):
            [*task.read(second)]
        pickle.loads(pickle.dumps(source)).reader(schema).partitions()
        assert look.call_count == 1


@pytest.mark.parametrize("options", [{}, {"table": TABLE}, {"table": TABLE, "state": "latest"}])
def test_files_that_change_after_the_view_was_made(tmp_path: Path, options: dict[str, str]) -> None:
    """No state reads other rows than those of which the columns were found."""
    messages = read_capture(NAME).messages

    def parts(**given: str) -> Iterator[Callable[[], int]]:
        source = WireformatSource({"path": str(tmp_path), "format": "pgoutput", **options, **given})
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            yield partial(lambda part: sum(map(len, reader.read(part))), partition)

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), path)
    (read,) = parts()
    assert read() > 0
    pq.write_table(pa.table({"payload": pa.array(messages[:-9], pa.binary())}), path)
    with pytest.raises(wf.BadRows, match=r"as when the view was made, got one with .*; make the view again"):
        read()
    path.unlink()
    with pytest.raises(wf.BadRows, match="as when the view was made, got no such file; make the view again"):
        read()
