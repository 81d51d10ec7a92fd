"""The workers read the files of a DataFrame that does nothing but read them; others are read by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from spark_udfs.chunks.frame_files import SMALL_BYTES
from spark_udfs.given_messages import messages_of_frame

from .capture_streams import READ_BY_WORKERS, are_read_by_workers, as_in, streams_of
from .raw_streams import OFFSET, assert_same, rows_of, write

pytestmark = pytest.mark.spark

MESSAGES = streams_of("pgoutput")["generated 0"]
ROWS = rows_of("one", MESSAGES, range(len(MESSAGES)))
HALF = len(ROWS) // 2
FILES = [ROWS.slice(0, HALF), ROWS.slice(HALF)]


@pytest.fixture(autouse=True)
def _small_files() -> Iterator[None]:
    with as_in(READ_BY_WORKERS):
        yield


def captured(df: DataFrame, **options: Any) -> spark_udfs.Capture:
    """Returns a capture of a DataFrame of these messages, whose answers are those of one machine."""
    capture = spark_udfs.capture(df, "value", "pgoutput", **{"order_by": [OFFSET], **options})
    wanted = wf.Capture(MESSAGES, "pgoutput").committed().read_all().drop_columns(["message"])
    assert_same(capture.committed().toArrow(), wanted)
    return capture


def of_type(type: pa.DataType) -> list[pa.Table]:
    """Returns the files with positions of this type."""
    return [file.set_column(1, OFFSET, pc.add(file[OFFSET], 100).cast(type)) for file in FILES]


@pytest.mark.parametrize(
    "files",
    [FILES, FILES[::-1], of_type(pa.int16()), of_type(pa.string()), [ROWS.slice(0, 0), *FILES]],
    ids=["in order", "names in another order", "small integers", "strings", "one without messages"],
)
def test_files_that_the_workers_read(spark: SparkSession, tmp_path: Path, files: list[pa.Table]) -> None:
    df = spark.read.parquet(write(files, tmp_path / "a folder, 100%"))
    capture = captured(df)
    assert are_read_by_workers(capture)
    assert "FileScan" not in str(capture.committed()._jdf.queryExecution().executedPlan())
    assert are_read_by_workers(captured(df.drop("stream").select("value", OFFSET)))
    row = capture.tables().collect()[0]
    assert row.first[OFFSET] == df.where(F.col(OFFSET) == F.lit(row.first[OFFSET])).collect()[0][OFFSET]


def test_a_position_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    """It needs the relations before the oldest open transaction, which some of the tasks find."""
    parts = [FILES[:1], FILES]
    frames = [spark.read.parquet(write(files, tmp_path / str(number))) for number, files in enumerate(parts)]
    first = spark_udfs.capture(frames[0], "value", "pgoutput", order_by=[OFFSET])
    rest = spark_udfs.capture(frames[1], "value", "pgoutput", order_by=[OFFSET], after=first.position)
    assert are_read_by_workers(first)
    assert are_read_by_workers(rest)
    found = pa.concat_tables([first.committed().toArrow(), rest.committed().toArrow()])
    one = wf.Capture(MESSAGES[:HALF], "pgoutput")
    wanted = [one.committed().read_all()]
    wanted.append(wf.Capture(MESSAGES, "pgoutput", after=one.position).committed().read_all())
    assert_same(found, pa.concat_tables(wanted).drop_columns(["message"]))


NOT_PLAIN: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": lambda df: df.where(F.col(OFFSET) >= 0),
    "new column": lambda df: df.withColumn(OFFSET, F.col(OFFSET) + 1),
    "new name": lambda df: df.withColumnRenamed(OFFSET, "other").withColumnRenamed("other", OFFSET.upper()),
    "partitions": lambda df: df.coalesce(1),
    "union": lambda df: df.where(F.col(OFFSET) < 5).unionAll(df.where(F.col(OFFSET) >= 5)),
    "limit": lambda df: df.limit(10_000),
}


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_frames_that_do_more(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    df = NOT_PLAIN[kind](spark.read.parquet(write(FILES, tmp_path / "files")))
    order = OFFSET if OFFSET in df.columns else OFFSET.upper()
    assert not are_read_by_workers(captured(df, order_by=[order]))


def test_cached_frame(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(write(FILES, tmp_path / "files")).cache()
    try:
        assert not are_read_by_workers(captured(df))
    finally:
        df.unpersist(blocking=True)


def test_setting_to_leave_out_what_cannot_be_read(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None]
) -> None:
    folder = write(FILES, tmp_path / "files")
    assert not are_read_by_workers(captured(spark.read.option("ignoreCorruptFiles", "true").parquet(folder)))
    set_conf("spark.sql.files.ignoreMissingFiles", "TRUE")
    assert not are_read_by_workers(captured(spark.read.parquet(folder)))
    set_conf("spark.sql.files.ignoreMissingFiles", "FALSE")
    assert are_read_by_workers(captured(spark.read.parquet(folder)))


def test_files_out_of_order(spark: SparkSession, tmp_path: Path) -> None:
    unsorted = [file.take(list(reversed(range(len(file))))) for file in FILES]
    overlapping = [ROWS.take(list(range(start, len(ROWS), 2))) for start in (0, 1)]
    for name, files in {"unsorted": unsorted, "overlapping": overlapping}.items():
        assert not are_read_by_workers(captured(spark.read.parquet(write(files, tmp_path / name))))


def test_columns_that_some_files_lack_or_have_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    narrow = FILES[1].set_column(1, OFFSET, FILES[1][OFFSET].cast(pa.int32()))
    folder = write([FILES[0], narrow], tmp_path / "types")
    assert not are_read_by_workers(
        captured(spark.read.schema(spark.read.parquet(f"{folder}/0000.parquet").schema).parquet(folder))
    )
    folder = write([FILES[0], FILES[1].drop_columns(["stream"])], tmp_path / "names")
    df = spark.read.schema(spark.read.parquet(f"{folder}/0000.parquet").schema).parquet(folder)
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], stream_by=["stream"])
    with pytest.raises(Exception, match="a row that has no stream"):
        capture.tables()
    assert are_read_by_workers(captured(df.drop("stream")))


def test_columns_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    """Their values are in no file, or are not those in the files."""
    for number, file in enumerate(FILES):
        write([file], tmp_path / "files" / f"{OFFSET}={number}")
        write([file], tmp_path / "others" / f"part={number}")
    overlaid = spark.read.parquet(str(tmp_path / "files"))
    assert not are_read_by_workers(spark_udfs.capture(overlaid, "value", "pgoutput", order_by=[OFFSET]))
    assert are_read_by_workers(captured(spark.read.parquet(str(tmp_path / "others"))))


def test_null_positions(spark: SparkSession, tmp_path: Path) -> None:
    rows = ROWS.set_column(1, OFFSET, pa.array([None, *range(1, len(ROWS))], pa.int64()))
    capture = spark_udfs.capture(
        spark.read.parquet(write([rows], tmp_path / "files")), "value", "pgoutput", order_by=[OFFSET]
    )
    with pytest.raises(PythonException, match=f"a row that has no {OFFSET}"):
        capture.tables()


def test_a_file_that_is_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(FILES, tmp_path / "files")
    df = spark.read.parquet(folder, f"{folder}/0001.parquet")
    assert df.count() > len(ROWS)
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    with pytest.raises(Exception, match="two messages at offset"):
        capture.tables()


def test_equal_positions(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.concat_tables([ROWS.slice(0, 5), ROWS.slice(4)])
    capture = spark_udfs.capture(
        spark.read.parquet(write([rows], tmp_path / "files")), "value", "pgoutput", order_by=[OFFSET]
    )
    with pytest.raises(Exception, match="two messages at offset=4"):
        capture.tables()


def test_files_that_change(spark: SparkSession, tmp_path: Path) -> None:
    """Also one that has more row groups than before."""
    folder = Path(write([FILES[0], FILES[1].slice(0, 90)], tmp_path / "files"))
    capture = spark_udfs.capture(spark.read.parquet(str(folder)), "value", "pgoutput", order_by=[OFFSET])
    capture.tables()
    pq.write_table(FILES[1], folder / "0001.parquet", row_group_size=50)
    for ask in (capture.committed, capture.changes):
        with pytest.raises(PythonException, match="gives other rows"):
            ask().collect()
    (folder / "0001.parquet").unlink()
    with pytest.raises(PythonException, match="No such file"):
        capture.committed().collect()


@pytest.mark.parametrize("rows", [FILES[1], FILES[1].slice(0, 20)], ids=["more", "fewer"])
def test_files_that_change_before_the_first_question(spark: SparkSession, tmp_path: Path, rows: pa.Table) -> None:
    """Spark reads them, as if the workers had not looked at them."""
    folder = Path(write([FILES[0], FILES[1].slice(0, 90)], tmp_path / "files"))
    df = spark.read.parquet(str(folder))
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    pq.write_table(rows, folder / "0001.parquet", row_group_size=50)
    assert not are_read_by_workers(capture)
    assert capture.changes().count() == len(df.collect())  # of a file that has grown, it may have a part


def test_columns_by_ids_or_in_two_cases(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None]
) -> None:
    cased = ROWS.append_column(OFFSET.upper(), ROWS[OFFSET])
    df = spark.read.schema(f"{OFFSET} long, value binary").parquet(write([cased], tmp_path / "cased"))
    assert not are_read_by_workers_of(df)
    set_conf("spark.sql.parquet.fieldId.read.enabled", "true")
    assert not are_read_by_workers_of(spark.read.parquet(write(FILES, tmp_path / "ids")))


def are_read_by_workers_of(df: DataFrame) -> bool:
    return messages_of_frame(df, "value", "pgoutput", [OFFSET], (), None)._files is not None


def test_small_files_go_into_common_tasks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_udfs.chunks.frame_files.SMALL_BYTES", SMALL_BYTES)
    folder = write([ROWS.slice(at, 30) for at in range(0, len(ROWS), 30)], tmp_path / "files")
    assert not are_read_by_workers(captured(spark.read.parquet(folder)))
