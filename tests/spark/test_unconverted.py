"""What our pandas functions return goes through the installed Spark as Arrow data; the slow way gives the same rows."""

from __future__ import annotations

from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.conversion import PandasToArrowConversion
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

import wireformat as wf
from spark_udfs.decoding import unconverted
from spark_udfs.decoding.unconverted import Unconverted, is_open, series_of
from spark_udfs.schemas import rows_of_message, rows_of_table
from spark_udfs.sql.functions import wal_decode, wal_decode_pandas

from ..engines import FORMAT
from .messages import EARLY, transaction

MESSAGES = pa.array([transaction("a", "b", commit_time=EARLY), None, transaction(), transaction("c")], pa.binary())
FORMATS = pa.array([FORMAT] * len(MESSAGES))
NESTED = {
    "map": pa.array([[("a", "1"), ("b", None)], None, [], [("a", "1"), ("a", "2")]], pa.map_(pa.string(), pa.string())),
    "list": pa.array([["x", None], None, []], pa.list_(pa.string())),
    "struct": pa.array(
        [{"a": 1, "b": [[("k", 2)]]}, None],
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.map_(pa.string(), pa.int64())))]),
    ),
    "rows": wal_decode(MESSAGES, FORMATS),
    "slice": wal_decode(MESSAGES, FORMATS).slice(1, 2),
    "empty": wal_decode(MESSAGES[:0], FORMATS[:0]),
}


@pytest.fixture(params=["open", "closed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the installed Spark, and as if it did not let Arrow arrays through."""
    if request.param == "closed":
        monkeypatch.setattr(unconverted, "is_open", lambda: False)
    return str(request.param)


def converted(series: pd.Series, kind: Any, **options: Any) -> pa.Array:
    """What Spark makes of a series: its worker calls this function."""
    options = {"timezone": "UTC", "arrow_cast": True, **options}
    column = PandasToArrowConversion.convert([series], StructType([StructField("_0", kind)]), **options).column(0)
    column.validate(full=True)
    return column


def test_the_way_is_open() -> None:
    """If this fails with a new Spark or pandas, the functions still work, several times slower: find another way."""
    assert is_open()


@pytest.mark.parametrize("name", NESTED)
def test_same_values(name: str, way: str) -> None:
    column = NESTED[name]
    series = series_of(column)
    assert isinstance(series.array, Unconverted) == (way == "open" and len(column) > 0)
    if pa.types.is_struct(column.type):  # a column of structs is a frame for Spark; inside a list it is not
        column = pa.ListArray.from_arrays([0, 1, 2], column)
        series = series_of(column)
    assert converted(series, from_arrow_type(column.type)).to_pylist() == column.to_pylist()


@pytest.mark.parametrize("options", [{"timezone": "America/New_York"}, {"prefers_large_types": True}])
def test_types_that_spark_prefers(options: dict[str, Any], way: str) -> None:
    """Spark wants instants in the time zone of the session, and texts as it is set."""
    found = converted(wal_decode_pandas(MESSAGES.to_pandas(), FORMATS.to_pandas()), rows_of_message(), **options)
    assert found.cast(NESTED["rows"].type).to_pylist() == NESTED["rows"].to_pylist()


def test_no_objects_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of values, nor of the first one, at which pandas looks."""
    series = series_of(NESTED["rows"])
    for name in ("to_numpy", "__iter__"):
        monkeypatch.setattr(Unconverted, name, lambda *_, **__: pytest.fail("values become objects"))
    assert series.apply(lambda _: pytest.fail("a value was converted")).array is not None
    assert isinstance(series.array[0], pa.Scalar)


def test_a_column_in_pieces_becomes_one() -> None:
    column = NESTED["map"]
    pieces = pd.Series(Unconverted(pa.chunked_array([column, column])))
    assert converted(pieces, from_arrow_type(column.type)).to_pylist() == column.to_pylist() * 2


def test_flat_columns_are_plain_pandas() -> None:
    """A user may hold one: its map calls the function."""
    series = series_of(pa.array([1, 2**60], pa.int64()))
    assert not isinstance(series.array, Unconverted)
    assert series.map(lambda value: value + 1).tolist() == [2, 2**60 + 1]


def test_frames_of_rows(way: str) -> None:
    """Every column of the row-change table, as mapInPandas returns it."""
    rows = wf.arrow.changes(MESSAGES, FORMAT).rename_columns({"message": "seq"}).combine_chunks()
    frame = pd.DataFrame(
        {name: series_of(column.chunk(0)) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    )
    found = converted(frame, rows_of_table(), assign_cols_by_name=True)
    assert found.to_pylist() == rows.to_pylist()


@pytest.mark.spark
def test_the_way_is_open_in_workers(spark: SparkSession) -> None:
    opened = F.pandas_udf(lambda values: pd.Series([is_open()] * len(values)), "boolean")
    assert spark.range(1).select(opened("id")).collect() == [(True,)]
