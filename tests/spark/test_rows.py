"""Every way gives the rows of wf.arrow.changes: all captures, all modes, batch and streaming, any session time zone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from ..engines import FORMAT
from ..formats.test_corpora import FORMATS as CORPORA
from ..formats.test_corpora import lines
from ..golden_cases import BINARY, CASES, find_case
from .ways import WAYS, Way, assert_same_rows, found_rows, write_messages

pytestmark = pytest.mark.spark

Messages = list["bytes | None"]


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    assert isinstance(request.param, Way)
    return request.param


def read(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.parquet(folder)


def read_stream(spark: SparkSession, folder: str) -> DataFrame:
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def run_stream(rows: DataFrame, folder: Path) -> DataFrame:
    """Everything that a streaming DataFrame gives until its source has no more.

    It goes through files: the memory sink takes java.sql.Timestamp, which the latest times of the captures do not fit.
    """
    sink = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(folder / "rows"))
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return rows.sparkSession.read.parquet(str(folder / "rows"))


@pytest.fixture(scope="module")
def good() -> Messages:
    """The messages of every capture in UTF-8, with nulls between them."""
    found: Messages = []
    for case in BINARY:
        if case.encoding == "utf-8" and not case.has_bad_text:
            found += [*case.messages, None]
    return found


@pytest.fixture(scope="module")
def bad() -> Messages:
    """Good messages between others that end early, have bytes too many, or hold text that is none."""
    many = find_case("b_many_batch").messages[:3]
    return [many[0], many[1][:-7], None, b"", many[2] + b"x", *find_case("b_badutf8_single").messages, many[0][:1000]]


class TestGolden:
    def test_batch(self, spark: SparkSession, tmp_path: Path, way: Way, good: Messages) -> None:
        rows = way.run(read(spark, write_messages(tmp_path, good)))
        assert_same_rows(found_rows(rows), way.wanted(good))

    @pytest.mark.parametrize("format", sorted({case.format for case in CASES} - {FORMAT}))
    def test_other_formats(self, spark: SparkSession, tmp_path: Path, way: Way, format: str) -> None:
        cases = [case for case in CASES if case.format == format and not case.has_bad_text]
        for encoding in sorted({case.encoding for case in cases}):
            some = [case for case in cases if case.encoding == encoding]
            messages = [message for case in some for message in [*case.messages, None]]
            options = {"encoding": encoding}
            known = [name for case in some for name in case.known_tables or ()]
            options |= {"known_tables": known} if known else {}
            rows = way.run(read(spark, write_messages(tmp_path / encoding, messages)), format, **options)
            assert_same_rows(found_rows(rows), way.wanted(messages, format, **options))

    @pytest.mark.parametrize("name", [name for name in CORPORA if name.startswith("postgres_")])
    def test_printed_lines(self, spark: SparkSession, tmp_path: Path, way: Way, name: str) -> None:
        messages, (format, _) = lines(name), CORPORA[name]
        rows = way.run(read(spark, write_messages(tmp_path, [*messages])), format)
        assert_same_rows(found_rows(rows), way.wanted([*messages], format))

    @pytest.mark.parametrize("options", [{"mode": "PERMISSIVE"}, {"encoding_errors": "replace"}], ids=str)
    @pytest.mark.parametrize("name", ["j_badutf8_single", "t_badutf8_single"])
    def test_text_that_is_none(self, spark: SparkSession, way: Way, name: str, options: dict[str, str]) -> None:
        case = find_case(name)
        rows = way.run(read(spark, str(case.path)), case.format, **options)
        assert_same_rows(found_rows(rows), way.wanted(case.array, case.format, **options))

    def test_stream(self, spark: SparkSession, tmp_path: Path, way: Way, good: Messages) -> None:
        rows = run_stream(way.run(read_stream(spark, write_messages(tmp_path / "in", good))), tmp_path)
        assert_same_rows(found_rows(rows), way.wanted(good))

    def test_other_encoding(self, spark: SparkSession, way: Way) -> None:
        case = find_case("b_gbk_single")
        rows = way.run(read(spark, str(case.path)), encoding="gbk")
        assert_same_rows(found_rows(rows), way.wanted(case.array, encoding="gbk"))

    def test_replaced_text(self, spark: SparkSession, way: Way) -> None:
        case = find_case("b_badutf8_single")
        rows = way.run(read(spark, str(case.path)), encoding_errors="replace")
        assert_same_rows(found_rows(rows), way.wanted(case.array, encoding_errors="replace"))

    def test_filters(self, spark: SparkSession, tmp_path: Path, way: Way, good: Messages) -> None:
        options = {"tables": ["public.*"], "kinds": ["INSERT", "COMMIT"]}
        rows = way.run(read(spark, write_messages(tmp_path, good)), **options)
        assert_same_rows(found_rows(rows), way.wanted(good, **options))


class TestBadInput:
    @pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
    def test_batch(self, spark: SparkSession, tmp_path: Path, way: Way, bad: Messages, mode: str) -> None:
        rows = way.run(read(spark, write_messages(tmp_path, bad)), mode=mode)
        assert_same_rows(found_rows(rows), way.wanted(bad, mode=mode))

    @pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
    def test_stream(self, spark: SparkSession, tmp_path: Path, way: Way, bad: Messages, mode: str) -> None:
        messages = read_stream(spark, write_messages(tmp_path / "in", bad))
        rows = run_stream(way.run(messages, mode=mode), tmp_path)
        assert_same_rows(found_rows(rows), way.wanted(bad, mode=mode))
