"""Lakes that Spark writes are those that one machine writes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.chunks.lakes import StreamLakes
from spark_udfs.chunks.light_pass import LightPass
from wireformat.lake.lake import Lake
from wireformat.lake.stored.store import Store
from wireformat.options.table_names import written

from ..lake.histories import messages_of
from ..lake.reading import manifest_of, read, tables_of, values
from ..lake.test_later_writes import INSERTED, transaction, update
from ..lake.writing import files_of
from ..servers.captures import read_capture
from .capture_streams import LAYOUTS, READ_BY_WORKERS, are_read_by_workers, as_in, streams_of
from .raw_streams import (
    OFFSET,
    PLACE,
    STREAM,
    write_in_order,
    write_shuffled,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("parquet", "in order"),
        ("delta", "many chunks"),
        ("delta", READ_BY_WORKERS),
        ("delta", "in order"),
        ("parquet", READ_BY_WORKERS),
    ],
)
def test_write(spark: SparkSession, tmp_path: Path, kind: str, layout: str) -> None:
    """In two parts; a write that is repeated adds nothing."""
    messages = [*map(bytes, read_capture("18-pgoutput-4").messages)]
    write, chunks = LAYOUTS.get(layout, LAYOUTS["in order"])
    for share in (0.5, 1.0, 1.0):
        some = messages[: int(len(messages) * share)]
        path = write({"one": some}, tmp_path / f"raw {share}{len(list(tmp_path.iterdir()))}", Random(3))
        df = spark.read.parquet(path)
        options = {"order_by": [OFFSET], "chunks": chunks, "mode": "PERMISSIVE"}
        with as_in(layout):
            capture = spark_udfs.capture(df, "value", "pgoutput", **options)
        done = capture.write(str(tmp_path / "lake"), format=kind).collect()
        assert are_read_by_workers(capture) is (layout == READ_BY_WORKERS)
    assert sum(row["rows"] for row in done) == 0
    wf.Capture(messages, "pgoutput", mode="PERMISSIVE").write(tmp_path / "one machine", format=kind)
    assert {*tables_of(tmp_path / "lake")} == {*tables_of(tmp_path / "one machine")} != set()
    for table in tables_of(tmp_path / "lake"):
        found, wanted = (sorted(map(repr, values(read(tmp_path / name, table)))) for name in ("lake", "one machine"))
        assert found == wanted, table
    position = wf.lake.position(tmp_path / "lake")
    assert position is not None
    assert position.delivered.lsn == wf.lake.position(tmp_path / "one machine").delivered.lsn


@pytest.mark.parametrize("write", [write_in_order, write_shuffled])
def test_write_the_tables_as_they_stand(spark: SparkSession, tmp_path: Path, write: Callable[..., str]) -> None:
    messages = streams_of("pgoutput")["generated 2"]
    for share in (0.5, 1.0):
        some = messages[: int(len(messages) * share)]
        path = write({"one": some}, tmp_path / f"raw {share}", Random(3))
        capture = spark_udfs.capture(spark.read.parquet(path), "value", "pgoutput", order_by=[OFFSET])
        capture.write(str(tmp_path / "lake"), format="delta", state="latest")
    one = wf.Capture(messages, "pgoutput")
    assert len(tables_of(tmp_path / "lake")) == 3
    for table in tables_of(tmp_path / "lake"):
        assert sorted(map(repr, values(read(tmp_path / "lake", table)))) == sorted(
            map(repr, values(one.latest(written(table))))
        )


@pytest.mark.parametrize(("kind", "state"), [("parquet", "changes"), ("delta", "latest")])
def test_a_later_write_knows_the_columns_of_the_lake(
    spark: SparkSession, tmp_path: Path, kind: str, state: str
) -> None:
    """GaussDB omits a value that was not sent, and no change of the second write has the column."""
    parts = [[INSERTED], [update("1", id="2", name="b")]]
    keys = {"keys": ["id"]} if state == "latest" else {}
    after = None
    for number, changes in enumerate(parts, 1):
        path = write_in_order({"one": messages_of([transaction(number, *changes)])}, tmp_path / str(number), Random(3))
        capture = spark_udfs.capture(
            spark.read.parquet(path), "value", "gaussdb-binary", order_by=[OFFSET], after=after
        )
        capture.write(str(tmp_path / "lake"), format=kind, state=state, **keys)
        after = wf.lake.position(tmp_path / "lake")
    last = read(tmp_path / "lake", ("public", "t")).to_pylist()[-1]
    wanted = ("TEXT", None) if state == "latest" else (None, ["body"])
    assert (last["id"], last["body"], last["_unchanged"]) == (2, *wanted)


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_table_that_was_restored(spark: SparkSession, tmp_path: Path, state: str) -> None:
    """The next write says so, and what it says to do works. The manifest knows how far the table was."""
    folder = tmp_path / "lake"
    keys = {"keys": ["id"]} if state == "latest" else {}

    def write(number: int, *changes: Any) -> None:
        messages = messages_of([transaction(number, *changes)])
        path = write_in_order({"one": messages}, tmp_path / f"{number}{len([*tmp_path.iterdir()])}", Random(3))
        after = wf.lake.position(folder) if folder.exists() else None
        frame = spark.read.parquet(path)
        capture = spark_udfs.capture(frame, "value", "gaussdb-binary", order_by=[OFFSET], after=after)
        capture.write(str(folder), format="delta", state=state, **keys)

    write(1, INSERTED)
    write(2, update("1", id="2", name="b"))
    (table,) = manifest_of(folder)["tables"]
    assert table["reached"] == [*wf.lake.position(folder).delivered[:3]]
    deltalake.DeltaTable(folder / "public" / "t").restore(0)
    with pytest.raises((PythonException, wf.LakeError), match=r"restore\(1\)"):
        write(3, update("2", id="3", name="c"))
    deltalake.DeltaTable(folder / "public" / "t").restore(1)
    write(3, update("2", id="3", name="c"))
    rows = read(folder, ("public", "t")).to_pylist()
    assert [row["id"] for row in rows] == ([3] if state == "latest" else [1, 2, 3])


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    messages = [*streams_of("pgoutput")["generated 1"]]
    commit = max(offset for offset, message in enumerate(messages) if message[0] == ord("I"))
    messages[commit] = messages[commit][:-1]
    path = write_in_order({"one": messages}, tmp_path / "raw", Random(3))
    capture = spark_udfs.capture(
        spark.read.parquet(path), "value", "pgoutput", order_by=[OFFSET], mode="PERMISSIVE", chunks=3
    )
    with pytest.raises((PythonException, wf.WireformatError)):
        capture.write(str(tmp_path / "lake"))
    with pytest.raises(wf.OptionError, match="expected a lake"):
        wf.lake.position(tmp_path / "lake")
    assert not [*(tmp_path / "lake").rglob("*.parquet")]


@pytest.mark.parametrize(
    ("state", "layout"), [("changes", "in order"), ("changes", "many chunks"), ("latest", "shuffled")]
)
def test_write_several_streams(
    spark: SparkSession, tmp_path: Path, state: str, layout: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has a lake of its own, which goes on by itself; the second stream begins later."""
    streams = {name: streams_of("pgoutput")[f"generated {number}"] for number, name in enumerate(("a", "B/../ü"))}
    kind = "delta" if state == "latest" else "parquet"
    folders = {"a": "a", "B/../ü": "~42~2F~2E~2E~2F~C3~BC"}
    write, chunks = LAYOUTS[layout]
    caplog.set_level("INFO", "spark_udfs")
    for number, share in enumerate((0.5, 1.0, 1.0)):
        some = {name: given[: int(len(given) * share)] for name, given in streams.items() if number or name == "a"}
        df = spark.read.parquet(write(some, tmp_path / f"raw {number}", Random(3)))
        capture = spark_udfs.capture(df, "value", "pgoutput", chunks=chunks, **PLACE)
        done = capture.write(tmp_path / "lakes", format=kind, state=state)
        assert done.columns[:3] == [STREAM, "table_schema", "table_name"]
        assert {row[STREAM] for row in done.collect()} <= {*some}
        read_messages = [f'stream ["{name}"]: read {len(given)} messages' for name, given in some.items()]
        assert all(words in caplog.text for words in read_messages)
    assert state == "latest" or done.where("rows > 0").count() == 0
    for name, messages in streams.items():
        one = wf.Capture(messages, "pgoutput")
        one.write(tmp_path / "one" / folders[name], format=kind, state=state)
        lake, wanted = tmp_path / "lakes" / folders[name], tmp_path / "one" / folders[name]
        assert wf.lake.position(lake).delivered.lsn == wf.lake.position(wanted).delivered.lsn
        assert {*tables_of(lake)} == {*tables_of(wanted)} != set()
        for table in tables_of(wanted):
            assert sorted(map(repr, values(read(lake, table)))) == sorted(map(repr, values(read(wanted, table))))


def test_a_write_with_options_of_other_tables_is_an_error(
    one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path
) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    with pytest.raises(wf.OptionError, match=r"option schemas: .* no changes of shop\.order, did"):
        capture.write(tmp_path / "lake", schemas={"shop.order": {"id": "int"}})


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_lake_keeps_its_tables(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, state: str) -> None:
    """Also one that another machine goes on with."""
    df, messages = one_stream
    options: dict[str, Any] = {"format": "delta", "state": state}
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    capture.write(tmp_path, tables=["shop.orders_0"], **options)
    lsn = wf.lake.position(tmp_path).delivered.lsn
    for go_on in (capture, wf.Capture(messages, "pgoutput")):
        with pytest.raises(wf.OptionError, match=r"option tables: .*\['shop\.orders_0'\], got None"):
            go_on.write(tmp_path, **options)
    wf.Capture(messages, "pgoutput").write(tmp_path, tables=["shop.orders_0"], **options)
    assert wf.lake.position(tmp_path).delivered.lsn == lsn


def capture_of(df: DataFrame) -> spark_udfs.Capture:
    return spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])


def test_a_write_beside_another_one(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path) -> None:
    """Each refuses to begin while the other is under way, before it changes anything."""
    df, messages = one_stream
    one = wf.Capture(messages, "pgoutput")
    publish = StreamLakes.publish

    def meanwhile(lakes: StreamLakes, *given: Any) -> Any:
        with pytest.raises(wf.LakeConflict, match="another process is writing"):
            one.write(tmp_path / "lake")
        return publish(lakes, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StreamLakes, "publish", meanwhile)
        capture_of(df).write(tmp_path / "lake")
    before = files_of(tmp_path / "lake")
    assert before
    for state in ("changes", "latest"):
        with Store.of(tmp_path / "lake", None, None).locked(), pytest.raises(wf.LakeConflict, match="is writing"):
            capture_of(df).write(tmp_path / "lake", state=state)
    assert files_of(tmp_path / "lake") == before


def test_a_write_that_another_one_overtakes(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path) -> None:
    """The task that writes the tables as they stand does not take it for an earlier attempt of its own."""
    df, messages = one_stream
    messages = messages[: len(messages) // 2]
    writes = StreamLakes.writes

    def meanwhile(lakes: StreamLakes, *given: Any) -> Any:
        wf.Capture(messages, "pgoutput").write(tmp_path / "lake", format="delta", state="latest")
        return writes(lakes, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StreamLakes, "writes", meanwhile)
        with pytest.raises(PythonException, match="LakeConflict"):
            capture_of(df).write(tmp_path / "lake", format="delta", state="latest")
    wf.Capture(messages, "pgoutput").write(tmp_path / "one machine", format="delta", state="latest")
    assert wf.lake.position(tmp_path / "lake") == wf.lake.position(tmp_path / "one machine")


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_write_that_fails_after_its_tasks(
    kind: str, one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of tasks that have succeeded do not stay either."""

    parts_of = LightPass.parts_of

    def fails(light: LightPass, rows: Any) -> Any:
        found = parts_of(light, rows)
        if [*(tmp_path / "lake").rglob("*.parquet*")]:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(LightPass, "parts_of", fails)
    with pytest.raises(KeyboardInterrupt):
        capture_of(one_stream[0]).write(tmp_path / "lake", format=kind)
    assert not [*(tmp_path / "lake").rglob("*.parquet*")]


def test_a_write_that_fails_after_one_that_was_stopped(
    one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs of Delta tables name files with the number of this write."""
    df, messages = one_stream

    def fails(*given: Any) -> Any:
        raise RuntimeError("stopped")

    for thing, name in ((Lake, "commit"), (import_module("spark_udfs.capture"), "file_batches")):
        monkeypatch.setattr(thing, name, fails)
        with pytest.raises((RuntimeError, PythonException), match="stopped"):
            capture_of(df).write(tmp_path / "lake", format="delta")
        monkeypatch.undo()
        logs = [*(tmp_path / "lake").rglob("_delta_log")]
        assert logs
        assert all(len(deltalake.DeltaTable(log.parent).to_pyarrow_table()) for log in logs)
    capture_of(df).write(tmp_path / "lake", format="delta")
    one = wf.Capture(messages, "pgoutput")
    for table in tables_of(tmp_path / "lake"):
        found = [repr(row) for row in values(read(tmp_path / "lake", table))]
        assert sorted(found) == sorted(map(repr, values(one.typed(written(table)).read_all())))


def test_tables_that_can_be_read_once(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path) -> None:
    capture_of(one_stream[0]).write(tmp_path / "all")
    capture_of(one_stream[0]).write(tmp_path / "lake", tables=iter(["shop.*"]))
    assert tables_of(tmp_path / "lake") == tables_of(tmp_path / "all") != []


@pytest.mark.parametrize("most", ["0", "-1"])
def test_record_batches_of_any_size(
    one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, set_conf: Callable[[str, Any], None], most: str
) -> None:
    """Spark's word for no limit. Arrow, to which it hands the number, takes none below 1."""
    capture = capture_of(one_stream[0])
    wanted = capture.tables().toArrow()
    set_conf("spark.sql.execution.arrow.maxRecordsPerBatch", most)
    assert capture.tables().toArrow() == wanted
    written = capture.write(str(tmp_path / "lake"))
    assert written.count() == wanted.group_by(["table_schema", "table_name"]).aggregate([]).num_rows
    assert capture_of(one_stream[0]).write(str(tmp_path / "lake")).where("rows > 0").count() == 0
