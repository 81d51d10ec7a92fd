"""spark_udfs.capture(paths=…): the workers read the files, and say what wf.Capture says of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.chunks.files import FileMessages
from wireformat.chunks.file_ranges import file_ranges
from wireformat.options.table_names import written

from ..lake.reading import read, tables_of, values
from .raw_streams import assert_same, write
from .test_capture_partitions import with_another_identity

pytestmark = pytest.mark.spark


def parquet_files(folder: Path, messages: list[bytes], files: int = 3) -> Path:
    """Writes messages in order, with a null among them."""
    given = [*messages[:5], None, *messages[5:]]
    bounds = [0, *sorted(Random(files).sample(range(len(given)), files - 1)), len(given)]
    write([pa.table({"payload": pa.array(given[a:b], pa.binary())}) for a, b in pairwise(bounds)], folder)
    return folder


def files_of_messages(folder: Path, messages: list[bytes]) -> Path:
    folder.mkdir()
    for number, start in enumerate(range(0, len(messages), 40)):
        (folder / f"{number}.bin").write_bytes(b"".join(messages[start : start + 40]))
    return folder


def stream_of(format: str) -> list[bytes]:
    return [*map(bytes, wf.encode(wf.testing.stream(3, 60, seed=4, format=format), format))]


@pytest.fixture(scope="module", params=["pgoutput", "gaussdb-binary", "files of messages", "small files"])
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("raw") / "files"
    if request.param == "files of messages":
        return files_of_messages(folder, stream_of("gaussdb-binary")), "gaussdb-binary"
    if request.param == "small files":
        return parquet_files(folder, stream_of("pgoutput"), files=20), "pgoutput"
    return parquet_files(folder, stream_of(request.param)), request.param


@pytest.fixture(scope="module")
def capture(given: tuple[Path, str], spark: SparkSession) -> spark_udfs.Capture:
    """Large files have several chunks, small ones are a chunk together."""
    path, format = given
    has_small = len([*path.glob("*.parquet")]) > 10
    range_bytes = 1 << 20 if has_small else 8_000
    with patch("wireformat.chunks.file_ranges.file_ranges", lambda *args: file_ranges(*args, range_bytes=range_bytes)):
        found = spark_udfs.capture(paths=path, format=format)
    chunks = found._messages.chunks
    assert len(chunks) > 2
    assert any(len(files) > 1 for files in chunks) == has_small
    return found


def test_answers(capture: spark_udfs.Capture, given: tuple[Path, str]) -> None:
    one = wf.Capture(*given)
    assert_same(capture.changes().toArrow(), one.changes().read_all())
    assert_same(capture.committed().toArrow(), one.committed().read_all().drop_columns(["message"]))
    assert_same(capture.open().toArrow(), one.open().drop_columns(["message"]))
    assert_same(capture.messages().toArrow(), one.messages().read_all())
    names = one.tables().column_names if given[1] == "pgoutput" else ["table_schema", "table_name", "columns", "types"]
    assert_same(capture.tables().toArrow().select(names), one.tables().select(names))
    assert capture.dropped == 0


def test_the_first_table(capture: spark_udfs.Capture, given: tuple[Path, str]) -> None:
    one = wf.Capture(*given)
    row = one.tables().to_pylist()[0]
    table = written((row["table_schema"], row["table_name"]))
    wanted = one.typed(table).read_all()
    found = capture.typed(table).toArrow()
    assert len(found) == len(wanted) > 0
    assert_same(found, wanted)


def test_going_on(capture: spark_udfs.Capture, given: tuple[Path, str], spark: SparkSession) -> None:
    one = wf.Capture(*given)
    one.committed().read_all()
    position = capture.position
    assert position.delivered == one.position.delivered
    assert {*position.open} == {*one.position.open}
    assert {*position.relations} == {*one.position.relations}
    more = spark_udfs.capture(paths=given[0], format=given[1], after=position)
    assert more.committed().count() == 0


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_write(capture: spark_udfs.Capture, given: tuple[Path, str], tmp_path: Path, state: str) -> None:
    options: dict[str, Any] = {"state": state, "keys": ["id"] if state == "latest" else None}
    found = capture.write(tmp_path / "lake", **options).collect()
    wanted = wf.Capture(*given).write(tmp_path / "one", **options)
    counts = [(row["table_name"], row["rows"], row["open"]) for row in found]
    assert counts == [(row["table_name"], row["rows"], row["open"]) for row in wanted.to_pylist()]
    for table in tables_of(tmp_path / "one"):
        there, other = (sorted(map(repr, values(read(tmp_path / name, table)))) for name in ("lake", "one"))
        assert there == other


def test_messages_in_views(spark: SparkSession, tmp_path: Path) -> None:
    """Arrow's functions of bytes do not take them."""
    messages = pa.array(stream_of("pgoutput"), pa.binary_view())
    pq.write_table(pa.table({"payload": messages}), tmp_path / "0.parquet")
    found = spark_udfs.capture(paths=tmp_path, format="pgoutput")
    assert_same(found.changes().toArrow(), wf.Capture(tmp_path, "pgoutput").changes().read_all())
    assert_same(found.tables().toArrow(), wf.Capture(tmp_path, "pgoutput").tables())


def test_errors_are_those_of_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    messages = stream_of("pgoutput")
    row = max(index for index, message in enumerate(messages) if message[:1] == b"I")
    messages[row] = b"I\0"
    folder = parquet_files(tmp_path / "raw", messages)
    with pytest.raises(wf.DecodeError) as one:
        wf.Capture(folder, "pgoutput").tables()
    reverse = sorted(folder.iterdir(), reverse=True)
    for ask in (spark_udfs.Capture.tables, spark_udfs.Capture.changes):
        with pytest.raises(wf.DecodeError) as other:
            ask(spark_udfs.capture(paths=folder, format="pgoutput"))
        assert str(other.value) == str(one.value)
        with pytest.raises(wf.OrderError, match="in the order of the stream"):
            ask(spark_udfs.capture(paths=reverse, format="pgoutput", mode="PERMISSIVE"))
    with pytest.raises(wf.WireformatError, match="pgoutput"):
        spark_udfs.capture(paths=folder, format="gaussdb-binary", mode="PERMISSIVE").tables()


def test_files_that_change_after_the_first_question(spark: SparkSession, tmp_path: Path) -> None:
    folder = parquet_files(tmp_path / "raw", stream_of("pgoutput"), files=2)
    capture = spark_udfs.capture(paths=folder, format="pgoutput")
    capture.tables()
    last = max(folder.iterdir())
    pq.write_table(pq.read_table(last).slice(0, 40), last)
    for size in (None, 1):
        with pytest.raises(PythonException, match="as it was when the capture was made"):
            capture.committed().collect()
        pq.write_table(pq.read_table(last), last, row_group_size=size)


def test_a_file_is_replaced_before_the_first_question(spark: SparkSession, tmp_path: Path) -> None:
    """By a longer one, of which the first row groups were read."""
    messages = stream_of("pgoutput")
    table = pa.table({"payload": pa.array(messages, pa.binary())})
    path = tmp_path / "0.parquet"
    pq.write_table(table.slice(0, 80), path, row_group_size=40)
    capture = spark_udfs.capture(paths=path, format="pgoutput")
    pq.write_table(table, path, row_group_size=40)
    with pytest.raises((wf.BadRows, PythonException), match="as it was when the capture was made"):
        capture.tables()


@pytest.mark.parametrize("state", ["latest", "write"])
def test_files_that_grow_before_one_task_reads_them(spark: SparkSession, tmp_path: Path, state: str) -> None:
    messages = with_another_identity()
    path = tmp_path / "0.parquet"
    for count in (len(messages) - 1, len(messages)):
        pq.write_table(pa.table({"payload": pa.array(messages[:count], pa.binary())}), path)
        if count < len(messages):
            capture = spark_udfs.capture(paths=path, format="pgoutput")
            current = capture.latest("shop.t")
            assert current.count() > 0
    ask = {"latest": lambda: current.collect(), "write": lambda: capture.write(tmp_path / "lake", state="latest")}
    with pytest.raises(PythonException, match="as it was when the capture was made"):
        ask[state]()
    assert not [*(tmp_path / "lake").rglob("*.parquet*")]


def test_no_messages(spark: SparkSession, tmp_path: Path) -> None:
    write([pa.table({"payload": pa.array([], pa.binary())})], tmp_path / "raw")
    capture = spark_udfs.capture(paths=tmp_path / "raw", format="pgoutput")
    assert capture.changes().count() == capture.tables().count() == 0
    assert capture.position.delivered.transactions == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either df or paths, got none"),
        ({"paths": "x", "order_by": ["offset"]}, "option order_by"),
        ({"paths": "x", "stream_by": ["offset"]}, "option stream_by"),
        ({"paths": "x", "chunks": 3}, "option chunks"),
        ({"paths": "nothing*.parquet"}, "no file matches"),
    ],
)
def test_wrong_options(spark: SparkSession, options: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError, match=words):
        spark_udfs.capture(**options)
    df = spark.createDataFrame([], "offset long, value binary")
    with pytest.raises(wf.OptionError, match="got both"):
        spark_udfs.capture(df, paths="x")
    with pytest.raises(wf.OptionError, match="option order_by"):
        spark_udfs.capture(df)


def test_the_interface_of_messages() -> None:
    """What a capture asks of a DataFrame's messages, files have too."""
    from spark_udfs.chunks.frames import Messages

    used = {name for name in vars(Messages) if not name.startswith("_")} - {"fields"}
    assert used <= {*dir(FileMessages), "session"}


def test_the_option_of_the_column_is_named_as_here(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [b"x"], "b": [b"y"]}), tmp_path / "0.parquet")
    with pytest.raises(wf.OptionError, match=r"^option payload: .*; pass the one with the messages as payload$"):
        spark_udfs.capture(paths=tmp_path)
    with pytest.raises(wf.OptionError, match=r"^option payload: .* no column 'c'"):
        spark_udfs.capture(paths=tmp_path, payload="c")
