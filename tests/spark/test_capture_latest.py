"""capture.latest of a table whose changes have whole rows: nothing but the light pass runs at the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from wireformat.stream.capture_position import SlotPosition

from ..capture.streams import AB, ABC, committed, insert, relation
from .raw_streams import OFFSET, PLACE, assert_same, expected, write_in_order, write_shuffled

pytestmark = pytest.mark.spark

TABLE = {"table_schema": "shop", "table_name": "orders"}
KEY = ("id", "part.no")
NAMES = (*KEY, "Name", "note")
TYPES = ("integer", "integer", "text", "text")
FORMAT = "gaussdb-binary"
WRITES = {"in order": (write_in_order, None), "many chunks": (write_shuffled, 5)}


def image(*values: str | None, names: tuple[str, ...] = NAMES) -> wf.TupleData:
    return wf.TupleData(names, values, TYPES[: len(names)])


def history(seed: int, transactions: int = 40) -> Iterator[wf.Event]:
    """Rows that come, change, move to other keys and go, also within one transaction."""
    chance = Random(seed)
    rows: dict[tuple[str, str], tuple[str | None, ...]] = {}
    lsn = 0
    for number in range(transactions):
        lsn += 100
        yield wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn, commit_time="2026-11-23 10:00:00+00")
        for _ in range(chance.randrange(1, 8)):
            lsn += 1
            key = str(chance.randrange(6)), str(chance.randrange(2))
            values = chance.choice((None, "x", "y")), chance.choice((None, "", "é"))
            if key not in rows:
                yield wf.Insert(lsn=lsn, **TABLE, new=image(*key, *values))
                rows[key] = values
            elif chance.random() < 0.3:
                yield wf.Delete(lsn=lsn, **TABLE, old=image(*key, names=KEY))
                del rows[key]
            else:
                target = str(chance.randrange(6)), str(chance.randrange(2))
                target = key if target in rows else target
                yield wf.Update(lsn=lsn, **TABLE, new=image(*target, *values), old=image(*key, names=KEY))
                del rows[key]
                rows[target] = values
        lsn += 1
        yield wf.Commit(lsn=lsn, xid=number + 10)


def messages_of(seed: int) -> list[bytes]:
    return [*map(bytes, wf.encode(history(seed), FORMAT))]


@pytest.mark.parametrize("way", WRITES)
def test_rows_of_several_streams(spark: SparkSession, tmp_path: Path, way: str) -> None:
    streams = {f"stream {seed}": messages_of(seed) for seed in range(4)}
    write, chunks = WRITES[way]
    df = spark.read.parquet(write(streams, tmp_path / "raw", Random(1)))
    capture = spark_udfs.capture(df, "value", FORMAT, chunks=chunks, **PLACE)
    assert sorted(row["stream"] for row in capture.tables().collect()) == sorted(streams)
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup(str(tmp_path), "latest")
    found = capture.latest("shop.orders", keys=KEY)
    assert tracker.getJobIdsForGroup(str(tmp_path)) == []
    rows = found.toArrow()
    assert len(tracker.getJobIdsForGroup(str(tmp_path))) > 0
    wanted = expected(streams, lambda _, messages: wf.Capture(messages, FORMAT).latest("shop.orders", keys=KEY))
    assert 4 < len(wanted) < 48
    assert_same(rows, wanted)


def test_a_change_without_a_key_ends_the_query(spark: SparkSession) -> None:
    events = [
        wf.Begin(lsn=16, csn=5, first_lsn=16, commit_time="2026-11-23 10:00:00+00"),
        wf.Insert(lsn=17, **TABLE, new=image("1", None, "x", "y")),
        wf.Commit(lsn=32, xid=9),
    ]
    messages = [*map(bytes, wf.encode(events, FORMAT))]
    with pytest.raises(wf.BadRows) as one:
        wf.Capture(messages, FORMAT).latest("shop.orders", keys=KEY)
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    found = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET]).latest("shop.orders", keys=KEY)
    with pytest.raises(PySparkException) as error:
        found.collect()
    uncounted = str(one.value).replace("1 change that has", "changes that have")  # a task sees only some of them
    assert uncounted in str(error.value)


def test_wrong_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame([*enumerate(messages_of(1))], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET])
    for keys, words in ((["ID"], "no column 'ID'"), (["id", "id"], "named twice"), (["_xid"], "not a column of the")):
        with pytest.raises(wf.OptionError, match=words):
            capture.latest("shop.orders", keys=keys)


def test_columns_that_differ_in_case_only(spark: SparkSession, set_conf: Callable[[str, Any], None]) -> None:
    row = wf.TupleData(("id", "Name", "name"), ("1", "a", "b"), ("integer", "text", "text"))
    insert = wf.Insert(lsn=17, table_schema="shop", table_name="t", new=row)
    messages = [
        *map(bytes, wf.encode([wf.Begin(lsn=16, csn=5, first_lsn=16), insert, wf.Commit(lsn=32, xid=9)], FORMAT))
    ]
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET])
    with pytest.raises(wf.OptionError, match=r"'Name' and 'name' .* differ in case only"):
        capture.latest("shop.t", keys=["id"])
    set_conf("spark.sql.caseSensitive", "true")
    wanted = wf.Capture(messages, FORMAT).latest("shop.t", keys=["id"])
    assert_same(capture.latest("shop.t", keys=["id"]).toArrow(), wanted)


def test_a_schema_with_fewer_columns(spark: SparkSession) -> None:
    """The others may have values that were not sent."""
    messages = messages_of(2)
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    schema = {"id": "integer", "part.no": "text", "note": "text"}
    found = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET]).latest("shop.orders", keys=KEY, schema=schema)
    wanted: pa.Table = wf.Capture(messages, FORMAT).latest("shop.orders", keys=KEY, schema=schema)
    assert_same(found.toArrow(), wanted)


@pytest.mark.parametrize("other", [("a",), ("b",)])
def test_a_schema_without_the_key(spark: SparkSession, other: tuple[str, ...]) -> None:
    """Also where the identity changed, of which a task would know only later."""
    first = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x")))
    then = committed(32, relation(*AB, keys=other, identity="default"), insert(*AB, values=("2", "y")))
    df = spark.createDataFrame([*enumerate(wf.encode([*first, *then], "pgoutput"))], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    words = r"option schema: no column 'a', which identifies the rows of public\.t; there is only b; add it to the"
    for keys in (None, ["a"]):
        with pytest.raises(wf.OptionError, match=words):
            capture.latest("public.t", keys=keys, schema={"b": "text"})
    with pytest.raises(wf.OptionError, match="option keys: no column 'c'; there are a, b"):
        capture.latest("public.t", keys=["c"])


def update(*values: str, old: tuple[str, ...] | None = None, old_kind: str = "key") -> wf.Update:
    types = ("text",) * len(values)
    before = None if old is None else wf.TupleData(AB, old, types)
    row = wf.TupleData(AB, values, types)
    kind = None if old is None else old_kind
    return wf.Update(table_schema="public", table_name="t", new=row, old=before, old_kind=kind)


@pytest.mark.parametrize("second", ["default", "full", "nothing"])
def test_all_columns_are_the_key(spark: SparkSession, tmp_path: Path, second: str) -> None:
    """As in a table that joins two others. An update that keeps the key has no old row then."""
    events = [
        *committed(16, relation(*AB, keys=AB, identity="default"), insert(*AB, values=("1", "x"))),
        *committed(32, update("1", "x")),
        *committed(48, update("2", "x", old=("1", "x")), insert(*AB, values=("3", "y"))),
    ]
    if second == "nothing":
        rows = [insert(*AB, values=("4", "x"))] * 2
        events += [*committed(64, relation(*AB, keys=(), identity="default"), *rows)]
    else:
        moved = update("4", "x", old=("2", "x"), old_kind="full" if second == "full" else "key")
        events += [*committed(64, relation(*AB, keys=AB, identity=second)), *committed(80, moved)]
    messages = [*map(bytes, wf.encode(events, "pgoutput"))]
    wanted = wf.Capture(messages, "pgoutput").latest("public.t")
    assert {tuple(row.values())[:2] for row in wanted.to_pylist()} >= {("3", "y"), ("4", "x")}
    assert len(wanted) == (4 if second == "nothing" else 2)
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    for keys in (None, []):
        assert_same(capture.latest("public.t", keys=keys).toArrow(), wanted)
    if second == "default":
        first, later = wf.Capture(messages[:4], "pgoutput"), messages[4:]
        first.committed().read_all()
        wanted = wf.Capture(later, "pgoutput", after=first.position).latest("public.t")
        df = spark.createDataFrame([*enumerate(later)], f"{OFFSET} long, value binary")
        resumed = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], after=first.position)
        assert_same(resumed.latest("public.t").toArrow(), wanted)
        with pytest.raises(wf.OptionError, match=r"option schema: no column 'a', which identifies the rows of public"):
            capture.latest("public.t", schema={"b": "text"})


def test_a_column_that_is_added_again_after_a_position(spark: SparkSession) -> None:
    first, then = (
        relation(*ABC, keys=("a",), identity="default"),
        relation("a", "c", "b", keys=("a",), identity="default"),
    )
    before = [*map(bytes, wf.encode(committed(16, first, insert(*ABC, values=("1", "x", "y"))), "pgoutput"))]
    capture = wf.Capture(before, "pgoutput")
    capture.committed().read_all()
    events = [
        *committed(16, first, insert(*ABC, values=("1", "x", "y"))),
        *committed(32, insert(*ABC, values=("2", "x", "y"))),
        *committed(48, then, insert("a", "c", "b", values=("3", "y", "z"))),
    ]
    later = [*map(bytes, wf.encode(events, "pgoutput"))][len(before) :]
    wanted = wf.Capture(later, "pgoutput", after=capture.position).latest("public.t")
    assert {row["a"]: row["b"] for row in wanted.to_pylist()} == {"2": None, "3": "z"}
    df = spark.createDataFrame([*enumerate(later)], f"{OFFSET} long, value binary")
    found = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], after=capture.position)
    for keys in (None, ["a"]):
        assert_same(found.latest("public.t", keys=keys).toArrow(), wanted)


def test_the_same_columns_are_added_in_two_streams(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream by itself says that no column was dropped."""
    events = [
        *committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x"))),
        *committed(32, relation(*ABC, keys=("a",), identity="default"), insert(*ABC, values=("2", "x", "y"))),
    ]
    messages = [*map(bytes, wf.encode(events, "pgoutput"))]
    rows = [(stream, *row) for stream in ("one", "two") for row in enumerate(messages)]
    df = spark.createDataFrame(rows, f"stream string, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", **PLACE)
    monkeypatch.setattr(type(capture), "_latest_in_order", None)
    found = capture.latest("public.t").toArrow()
    assert sorted(zip(*(found[name].to_pylist() for name in ("stream", "a", "c")), strict=True)) == [
        *(("one", "1", None), ("one", "2", "y")),
        *(("two", "1", None), ("two", "2", "y")),
    ]


def test_names_of_the_stream(spark: SparkSession) -> None:
    """A column of the table has the name of a column that identifies the stream."""
    df = spark.createDataFrame(
        [("a", *row) for row in enumerate(messages_of(1))], f"id string, {OFFSET} long, value binary"
    )
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], stream_by=["id"])
    with pytest.raises(wf.OptionError, match="option stream_by: the result has a column 'id'"):
        capture.typed("shop.orders")
    with pytest.raises(wf.OptionError, match="option stream_by: the result has a column 'id'"):
        capture.latest("shop.orders", keys=KEY)
    assert capture.committed().count() > 0


@pytest.mark.parametrize(
    ("column", "words"),
    [("collate('x', 'UNICODE_CI')", "UTF8_BINARY"), ("1.5", "integers or strings"), ("X''", "integers or strings")],
)
def test_columns_that_do_not_order(spark: SparkSession, column: str, words: str) -> None:
    df = spark.sql(f"SELECT {column} AS at, 1L AS `RECORD`, X'' AS value")
    with pytest.raises(wf.OptionError, match=words):
        spark_udfs.capture(df, "value", FORMAT, order_by=["at"])
    with pytest.raises(wf.OptionError, match="rename the column"):
        spark_udfs.capture(df, "value", FORMAT, order_by=["RECORD"])


def test_streams_come_in_the_order_of_their_values(spark: SparkSession) -> None:
    """The versions of a table are those of stream 2 first, then those of stream 10."""

    def one(names: tuple[str, ...]) -> list[bytes]:
        begin = wf.Begin(lsn=16, csn=5, first_lsn=16, commit_time="2026-11-23 10:00:00+00")
        insert = wf.Insert(lsn=17, **TABLE, new=wf.TupleData(names, ("1", "2"), ("integer", "integer")))
        return [*map(bytes, wf.encode([begin, insert, wf.Commit(lsn=32, xid=9)], FORMAT))]

    rows = [(stream, *row) for stream, names in ((10, ("a", "c")), (2, ("a", "b"))) for row in enumerate(one(names))]
    df = spark.createDataFrame(rows, f"stream int, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], stream_by=["stream"])
    assert [row["columns"] for row in capture.tables().orderBy("version").collect()] == [["a", "b"], ["a", "c"]]


def test_a_stream_without_tables_hides_no_other(spark: SparkSession, tmp_path: Path) -> None:
    def one(changes: int) -> list[bytes]:
        insert = wf.Insert(lsn=17, **TABLE, new=wf.TupleData(("a",), ("1",), ("integer",)))
        begin, end = wf.Begin(lsn=16, csn=5, first_lsn=16), wf.Commit(lsn=32, xid=9)
        return [*map(bytes, wf.encode([begin, *[insert] * changes, end], FORMAT))]

    rows = [(stream, *row) for stream, changes in enumerate((1, 0, 2, 3)) for row in enumerate(one(changes))]
    df = spark.createDataFrame(rows, f"stream int, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], stream_by=["stream"])
    assert sorted((row["stream"], row["changes"]) for row in capture.tables().collect()) == [(0, 1), (2, 2), (3, 3)]
    written = capture.write(str(tmp_path)).collect()
    assert sorted((row["stream"], row["rows"]) for row in written) == [(0, 1), (2, 2), (3, 3)]


def test_what_was_known_at_the_position(spark: SparkSession) -> None:
    """The server describes a table once a connection: the next day's messages do not, and the slot stays known."""
    row, types = ("1", "12.50"), {"type_oids": (23, 1700), "typmods": (-1, (10 << 16) + 2 + 4)}
    relation = wf.Relation(
        relation_id=5, **TABLE, replica_identity="default", columns=("id", "total"), key_columns=("id",), **types
    )

    def day(lsn: int, *events: wf.Event) -> list[wf.Event]:
        insert = wf.Insert(**TABLE, relation_id=5, new=wf.TupleData(("id", "total"), row, ("integer", "numeric")))
        begin = wf.Begin(commit_lsn=lsn, xid=lsn, commit_time="2026-11-23 10:00:00+00")
        return [begin, *events, insert, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 1, commit_time=begin.commit_time)]

    messages = [*map(bytes, wf.encode([*day(16, relation), *day(32)], "pgoutput"))]
    begin = max(index for index, message in enumerate(messages) if message[:1] == b"B")
    first = wf.Capture(messages[:begin], "pgoutput")
    first.committed().read_all()
    after = first.position._replace(slot=SlotPosition("7", "slot", 24))
    one = wf.Capture(messages[begin:], "pgoutput", after=after)
    df = spark.createDataFrame([*enumerate(messages[begin:])], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], after=after)
    places = ["first", "last"]
    assert_same(capture.tables().drop(*places).toArrow(), one.tables().drop_columns(places))
    assert_same(capture.latest("shop.orders").toArrow(), one.latest("shop.orders"))
    assert capture.position.slot == after.slot == one.position.slot
