"""Readers for pandas functions: the rows of `wf.Capture`, however the messages are cut into Series."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.decoding.unconverted import Unconverted

from ..engines import FORMAT
from .messages import TORN, transaction

SAMPLE = Path(__file__).parents[2] / "examples" / "sample_capture.parquet"
LINES = {"order_id": "bigint", "line_no": "smallint", "sku": "nvarchar2", "price": "numeric(12,2)"}
CUSTOMERS = {"id": "bigint", "name": "varchar", "is_member": "boolean", "born_on": "date", "tags": "text[]"}
SCHEMA = {"id": "integer", "v": "text"}
TYPES = ("integer", "text")


@pytest.fixture(scope="module")
def sample() -> list[bytes]:
    messages: list[bytes] = pq.read_table(SAMPLE)["payload"].to_pylist()
    return messages


def rows_of(frames: list[pd.DataFrame], reader: spark_udfs.decoding.frame_readers.FrameReader) -> list[dict[str, Any]]:
    """The rows as Arrow, which has its own nulls; every column is of an ArrowDtype, and none is our own array."""
    found = []
    for frame in frames:
        assert all(type(column.array) is pd.arrays.ArrowExtensionArray for _, column in frame.items())
        assert list(frame.columns) == reader.schema.names
        columns = [pa.chunked_array(column.array.__arrow_array__()) for _, column in frame.items()]
        found += pa.Table.from_arrays(columns, list(frame.columns)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("table", "schema", "cut"),
    [("public.order_lines", LINES, 3), ("public.customers", CUSTOMERS, 1), ("public.customers", CUSTOMERS, 22)],
)
def test_typed_changes_of_a_stream_in_any_cut(
    sample: list[bytes], table: str, schema: dict[str, str], cut: int
) -> None:
    reader = spark_udfs.typed_reader(table, schema)
    series = [pd.Series(sample[start : start + cut]) for start in range(0, len(sample), cut)]
    wanted = wf.Capture(sample, FORMAT).typed(table, schema=schema).read_all().to_pylist()
    assert rows_of(list(reader.each(iter(series))), reader) == wanted


@pytest.mark.parametrize(("transactions", "rows"), [(1, 0), (1, 3), (15, 10_000)])
def test_columns_are_in_one_piece(transactions: int, rows: int) -> None:
    """Spark takes no others from a pandas function; a group may have no row of a table, or more than fit in a batch."""
    row = wf.Insert(lsn=17, table_schema="public", table_name="t", new=wf.TupleData(("id", "v"), ("1", "v"), TYPES))
    events: list[wf.Event] = []
    for xid in range(1, transactions + 1):
        events += [wf.Begin(lsn=xid, csn=xid, first_lsn=xid, xid=xid), *[row] * rows, wf.Commit(lsn=xid, xid=xid)]
    messages = pd.Series([*wf.encode(events, FORMAT)])
    frame = spark_udfs.typed_reader("public.t", SCHEMA)(messages)
    assert len(frame) == transactions * rows
    for column in (frame["id"], frame["v"], frame["id"].astype("float64") * 1.19):
        assert isinstance(pa.array(column), pa.Array)


def test_typed_changes_of_one_series(sample: list[bytes]) -> None:
    reader = spark_udfs.typed_reader("public.order_lines", LINES)
    wanted = wf.Capture(sample[:3], FORMAT).typed("public.order_lines", schema=LINES).read_all().to_pylist()
    assert rows_of([reader(pd.Series(sample[:3]))], reader) == wanted
    assert [field.simpleString() for field in reader.schema][:4] == [
        "order_id:bigint",
        "line_no:smallint",
        "sku:string",
        "price:decimal(12,2)",
    ]


def test_row_changes(sample: list[bytes]) -> None:
    messages = [None, *sample[:5]]
    reader = spark_udfs.change_reader(columns=["message", "record", "kind", "new"], tables=["public.*"])
    options = {"columns": ["message", "record", "kind", "new"], "tables": ["public.*"]}
    wanted = wf.arrow.changes(messages, FORMAT, **options).to_pylist()
    assert rows_of([reader(pd.Series(messages))], reader) == wanted
    assert wanted[0]["message"] == 1


@pytest.mark.parametrize("dtype", [object, pd.ArrowDtype(pa.binary())])
def test_no_messages(dtype: Any) -> None:
    """Pandas has no array at all where a filter leaves nothing of an Arrow column."""
    reader = spark_udfs.change_reader(FORMAT, columns=["kind"])
    messages = pd.Series([b"x"], dtype=dtype)
    for none in (messages.head(0), messages[messages.isna()]):
        assert rows_of([reader(none)], reader) == []


def test_pgoutput_knows_the_tables_of_its_call() -> None:
    image = wf.TupleData(("id", "v"), ("1", "x"), ("integer", "text"))
    events: list[wf.Event] = [
        wf.Begin(xid=7, commit_lsn=99, commit_time="2026-11-22 10:00:00+00"),
        wf.Insert(lsn=17, table_schema="public", table_name="t", new=image),
        wf.Commit(commit_lsn=99, end_lsn=100, commit_time="2026-11-22 10:00:00+00"),
    ]
    messages = list(wf.encode(events, "pgoutput"))
    reader = spark_udfs.typed_reader("public.t", SCHEMA, "pgoutput")
    for _ in range(2):  # a call begins anew
        assert reader(pd.Series(messages))[["id", "v"]].values.tolist() == [[1, "x"]]
    with pytest.raises(wf.UnknownRelation):
        reader(pd.Series(messages[2:]))


class TestCommitted:
    """A transaction that ends in another call."""

    MESSAGES = tuple(
        wf.encode(
            [
                wf.Begin(lsn=16, csn=1, first_lsn=16, xid=7),
                wf.Insert(
                    lsn=17,
                    table_schema="public",
                    table_name="t",
                    new=wf.TupleData(("id", "v"), ("1", "x"), ("integer", "text")),
                ),
            ],
            FORMAT,
        )
    )

    def test_waits(self) -> None:
        assert len(spark_udfs.typed_reader("public.t", SCHEMA)(pd.Series([*self.MESSAGES]))) == 0

    def test_or_does_not_matter(self) -> None:
        reader = spark_udfs.typed_reader("public.t", SCHEMA, committed=False)
        (row,) = rows_of([reader(pd.Series([*self.MESSAGES]))], reader)
        assert (row["id"], row["v"], row["_change_type"], row["_sequence"]) == (1, "x", "insert", None)
        both = list(reader.each([pd.Series([transaction("a", "b")]), pd.Series([], dtype=object)]))
        assert [row["v"] for row in rows_of(both, reader)] == ["a", "b"]


def test_it_travels() -> None:
    reader = pickle.loads(pickle.dumps(spark_udfs.typed_reader("public.t", SCHEMA)))
    assert reader(pd.Series([transaction("a")]))["v"].tolist() == ["a"]
    assert repr(reader).startswith("<spark_udfs.FrameReader of id, v, _change_type")


@pytest.mark.parametrize("name", ["typed", "untyped"])
def test_bad_input(name: str) -> None:
    def reader(**options: Any) -> spark_udfs.decoding.frame_readers.FrameReader:
        if name == "typed":
            return spark_udfs.typed_reader("public.t", SCHEMA, committed=False, **options)
        return spark_udfs.change_reader(columns=["kind"], **options)

    with pytest.raises(wf.DecodeError):
        reader()(pd.Series([TORN]))
    assert len(reader(mode="DROPMALFORMED")(pd.Series([TORN]))) < len(reader()(pd.Series([transaction("a")]))) + 1
    with pytest.raises(TypeError, match="messages: expected a pandas Series of bytes, got list"):
        reader()([TORN])
    for other in (["a"], [1], pd.array([1.5, None])):
        with pytest.raises(TypeError, match="messages: expected a pandas Series of bytes, got one of"):
            reader()(pd.Series(other))
    for mixed, types in (([5, TORN], "bytes, int"), ([TORN, 5], "bytes, int"), ([{"a": 1}, TORN], "bytes, dict")):
        with pytest.raises(TypeError) as caught:
            reader()(pd.Series(mixed))
        assert str(caught.value) == f"messages: expected a pandas Series of bytes, got one of {types}"
    with pytest.raises(TypeError, match="got str among them"):  # Arrow would encode it
        reader()(pd.Series([TORN, "BEGIN 1"]))
    for none in ([], [None], [float("nan")]):
        assert len(reader()(pd.Series(none))) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: spark_udfs.typed_reader("public.t", "id int"),
            "option schema: expected a mapping of column to SQL type",
        ),
        (lambda: spark_udfs.typed_reader("public.t", {"id": "no type"}), "no type"),
        (lambda: spark_udfs.typed_reader("t", SCHEMA), "t"),
        (lambda: spark_udfs.typed_reader("public.t", SCHEMA, committed="yes"), "option committed"),
        (lambda: spark_udfs.change_reader("gaussdb-binry"), "did you mean"),
        (lambda: spark_udfs.change_reader(columns=["kin"]), "kin"),
        (lambda: spark_udfs.change_reader(mode="LAX"), "option mode"),
        (lambda: spark_udfs.change_reader(threads=2), "unknown option 'threads'"),
        (lambda: spark_udfs.change_reader(colour=2), "colour"),
    ],
)
def test_options_are_checked_on_the_driver(make: Any, message: str) -> None:
    with pytest.raises(wf.OptionError, match=message):
        make()


class TestArrowResults:
    NESTED = pa.array([[("a", "1")], None], pa.map_(pa.string(), pa.string()))

    def test_pieces_and_maps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pyspark.TaskContext.get", lambda: "a task")
        column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([self.NESTED, self.NESTED])))
        numbers = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([[1, 2], [3, 4]])))
        frame = pd.DataFrame({"m": column, "n": numbers, "o": [1.5, 2.5, 3.5, 4.5]}).set_axis([3, 1, 0, 2])
        found = spark_udfs.arrow_results(lambda given: given)(frame)
        assert list(found.columns) == ["m", "n", "o"]
        assert isinstance(found["m"].array, Unconverted)
        assert found["n"].array.__arrow_array__().num_chunks == 1
        assert found["o"].tolist() == [1.5, 2.5, 3.5, 4.5]
        assert pa.array(found["m"].array).to_pylist() == self.NESTED.to_pylist() * 2

    def test_a_caller_that_is_not_spark(self) -> None:
        """It may go on with what the function returns: `map` calls the function that it is given."""
        column = pd.Series(pd.arrays.ArrowExtensionArray(self.NESTED))
        found = spark_udfs.arrow_results(lambda given: given)(column)
        assert found.map(lambda value: value if value is pd.NA else len(value)).tolist() == [1, pd.NA]

    def test_what_the_function_gets_and_is(self) -> None:
        """Spark looks at the number of parameters and at the type hints."""

        @spark_udfs.arrow_results
        def of_two(key: tuple[int], frame: pd.DataFrame) -> pd.DataFrame:
            """Says what it does."""
            return frame.assign(key=key[0])

        assert inspect.getfullargspec(of_two).args == ["key", "frame"]
        assert of_two.__doc__ == "Says what it does."
        assert of_two((7,), pd.DataFrame({"a": [1]})).values.tolist() == [[1, 7]]

    def test_iterators_stay_lazy(self) -> None:
        found = spark_udfs.arrow_results(lambda many: (one for one in many))(iter([pd.Series([1]), 5]))
        assert next(found).tolist() == [1]
        assert next(found) == 5  # what is neither is for Spark to refuse

    def test_names_that_occur_twice(self) -> None:
        frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
        assert list(spark_udfs.arrow_results(lambda: frame)().columns) == ["a", "a"]

    @pytest.mark.spark
    def test_maps_reach_spark(self, spark: SparkSession) -> None:
        """Which refuses them as they are."""
        reader = spark_udfs.change_reader(columns=["new"], kinds=["INSERT"])
        rows = spark_udfs.arrow_results(lambda frames: (reader(frame["value"]) for frame in frames))
        df = spark.createDataFrame([(transaction("a"),)], "value binary")
        assert [row["new"]["v"] for row in df.mapInPandas(rows, reader.schema).collect()] == ["a"]
