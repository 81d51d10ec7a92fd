"""latest: made-up histories lead to the rows that a plain replica has; what it refuses; what it says of gaps.

The rows and the errors are those of `wf.arrow.latest`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import wireformat as wf
from spark_udfs.tables.latest import latest

from ..typed_histories import COLUMNS, KEYS, Replica, Row, Values, history, typed_table, with_own_relation_id

pytestmark = pytest.mark.spark


def frame(spark: SparkSession, rows: list[Row], partitions: int = 3) -> DataFrame:
    """The changes in any order, in some partitions."""
    shuffled = Random(len(rows)).sample(rows, len(rows))
    return spark.createDataFrame(typed_table(shuffled)).repartition(partitions)


def found(spark: SparkSession, rows: list[Row], keys: Sequence[str] = KEYS) -> list[dict[str, Any]]:
    found = latest(frame(spark, rows), keys).toArrow()
    assert_same(found, wf.arrow.latest(typed_table(rows), keys))
    return found.to_pylist()


def found_in(
    spark: SparkSession, typed: pa.Table, keys: Sequence[str], stream_by: Sequence[str] = (), partitions: int = 2
) -> pa.Table:
    found = latest(spark.createDataFrame(typed).repartition(partitions), keys, stream_by=stream_by).toArrow()
    assert_same(found, wf.arrow.latest(typed, keys, stream_by=stream_by))
    return found


def assert_same(found: pa.Table, by_arrow: pa.Table) -> None:
    assert found.column_names == by_arrow.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, by_arrow.to_pylist()))


def ordered(rows: list[Values]) -> list[str]:
    return sorted(repr([row.get(name) for name in COLUMNS.names]) for row in rows)


def replicated(rows: list[Row]) -> list[Values]:
    replica = Replica()
    for row in rows:
        replica.apply(row)
    return replica.rows


def split(rows: list[Row]) -> list[Row]:
    """Updates that change the key as a delete and an insert, as `split_key_changes` makes them."""
    found = []
    for row in rows:
        if row.change == "update" and row.old and row.old["id"] != row.new["id"]:
            sequence, filled = row.sequence, {**row.new, **{name: row.old.get(name) for name in row.unchanged}}
            unsent = tuple(name for name in row.unchanged if filled[name] is None)
            found += [Row("delete", {}, row.old, (), sequence), Row("insert", filled, None, unsent, sequence)]
        else:
            found.append(row)
    return found


@pytest.mark.parametrize(("seed", "truncate", "is_split"), [(1, 0.0, False), (2, 0.1, False), (3, 0.0, True)])
def test_histories(spark: SparkSession, seed: int, truncate: float, is_split: bool) -> None:
    """Hundreds of them in one table; the reference agrees with the server that made them."""
    changes, held = history(200, 30, seed, truncate)
    assert ordered(replicated(changes)) == ordered(held)
    rows = found(spark, split(changes) if is_split else changes)
    assert ordered(rows) == ordered(held)
    assert all(row["_unchanged"] is None for row in rows)
    places = [tuple(row["_sequence"].values()) for row in rows]
    assert set(places) <= {row.sequence for row in changes}
    assert len(set(places)) == len(places)


@pytest.mark.slow
def test_histories_that_begin_in_the_middle(spark: SparkSession) -> None:
    """Columns that no change has sent are null and named."""
    changes, _ = history(60, 30, 4)
    later = [row for row in changes if row.sequence[0] > 1000 and row.new.get("part", 1) % 3]
    later = [row for row in later if row.old is None or row.old["part"] % 3]
    rows = found(spark, later)
    wanted = replicated(later)
    assert ordered(rows) == ordered(wanted)
    named = {tuple(row[key] for key in KEYS): row["_unchanged"] or [] for row in rows}
    for row in wanted:
        assert set(named[tuple(row[key] for key in KEYS)]) == set(COLUMNS.names) - row.keys()
    assert sum(map(len, named.values())) > 5


@pytest.mark.slow
def test_a_long_way_of_keys(spark: SparkSession) -> None:
    """More key changes without the value than are looked at in one go."""
    row = {"part": 1, "id": 0, "step_0": "x", "Long a.b": "long", "raw": None}
    changes = [Row("insert", row, sequence=(1, 0))]
    for id in range(1, 41):
        new = {"part": 1, "id": id, "step_0": str(id), "raw": [id]}
        changes.append(Row("update", new, {"part": 1, "id": id - 1}, ("Long a.b",), (1 + id, 0)))
    (last,) = found(spark, changes)
    assert [last[name] for name in COLUMNS.names] == [1, 40, "40", "long", [40]]
    assert last["_sequence"] == {"commit_lsn": 41, "ordinal": 0}


def test_rows_without_a_key(spark: SparkSession) -> None:
    """Histories with whole old rows, with twins of each: counted, also where they begin in the middle."""
    changes, held = history(30, 20, 5)
    whole = [row for row in changes if (row.old or row.new)["part"] % 3 == 0]
    twice = [replace(row, sequence=(row.sequence[0], row.sequence[1] + add)) for row in whole for add in (0, 1)]
    wanted = [row for row in held if row["part"] % 3 == 0]
    assert ordered(found(spark, twice, ())) == ordered(wanted * 2)
    row = {"part": 1, "id": 1, "step_0": "x", "Long a.b": None, "raw": None}
    before = [Row("delete", {}, row), Row("insert", row), Row("insert", row), Row("update", row, row)]
    placed = [replace(one, sequence=(place, 0)) for place, one in enumerate(before)]
    assert ordered(found(spark, placed, ())) == ordered([row, row])
    assert found(spark, placed[:1], ()) == []


def test_a_key_that_is_an_array(spark: SparkSession) -> None:
    def row(raw: list[int | None], text: str) -> Values:
        return {"part": 1, "id": 1, "step_0": text, "Long a.b": None, "raw": raw}

    changes = [
        Row("insert", row([1, None], "a")),
        Row("insert", row([2], "b")),
        Row("insert", row([], "c")),
        Row("update", row([3], "d"), row([1, None], "a")),
        Row("update", row([2], "e")),
        Row("delete", {}, row([], "c")),
    ]
    placed = [replace(one, sequence=(place, 0)) for place, one in enumerate(changes)]
    assert ordered(found(spark, placed, ["raw"])) == ordered([row([3], "d"), row([2], "e")])


STREAM = "stream_0"
"""A name that `latest` likes too."""


def numbered(rows: list[tuple[Row, int | None]]) -> pa.Table:
    """Changes with the OID of their table, in their order."""
    placed = [replace(row, sequence=(1000 + place, 0)) for place, (row, _) in enumerate(rows)]
    return typed_table(placed).append_column("_relation_id", pa.array([oid for _, oid in rows], pa.int64()))


def inserted(id: int, text: str) -> Row:
    return Row("insert", {"part": 1, "id": id, "step_0": text, "Long a.b": None, "raw": None})


DROPPED = [(inserted(1, "old"), 16385), (inserted(2, "old"), 16385), (inserted(1, "new"), 16400)]
COPIED = [(inserted(1, "copied"), None), (Row("delete", {}, inserted(1, "copied").new), 5), (inserted(2, "new"), 6)]
OTHER_NAMES = [
    (inserted(3, "copied"), None),
    (inserted(1, "first"), 16385),
    (inserted(1, "while renamed"), 16400),
    (Row("truncate", {}), 16400),
    (inserted(2, "first again"), 16385),
]
"""A table that had another name for a while, when another table had its name; it begins with a row of a copy."""


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["by key", "by row"])
@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (DROPPED, ["new"]),
        (OTHER_NAMES, ["copied", "first", "first again"]),
        (DROPPED[:2], ["old", "old"]),
        (COPIED, ["new"]),
    ],
    ids=["dropped", "renamed", "one table", "copied"],
)
def test_another_oid_is_another_table(
    spark: SparkSession, changes: Any, wanted: list[str], keys: Sequence[str]
) -> None:
    rows = found_in(spark, numbered(changes), keys)
    assert sorted(rows["step_0"].to_pylist()) == wanted
    assert "_relation_id" not in rows.column_names


def test_a_table_with_a_column_like_that_of_oids(spark: SparkSession) -> None:
    changes = [replace(inserted(id, text), sequence=(id, 0)) for id, text in ((1, "a"), (2, "b"))]
    rows = found_in(spark, with_own_relation_id(typed_table(changes)), KEYS)
    assert sorted(rows["_relation_id"].to_pylist()) == ["a", "b"]


def test_changes_of_an_earlier_table_are_checked_too(spark: SparkSession) -> None:
    rows = [(replace(inserted(1, "old"), change="upsert"), 16385), (inserted(2, "new"), 16400)]
    for call in (lambda typed: latest(spark.createDataFrame(typed), KEYS), lambda typed: wf.arrow.latest(typed, KEYS)):
        with pytest.raises(wf.BadRows, match="1 change that has a _change_type other than"):
            call(numbered(rows))


def test_each_stream_has_its_own_oids(spark: SparkSession) -> None:
    streams = {"a": DROPPED, "b": OTHER_NAMES, "c": [(inserted(1, "alone"), 16400)]}
    tables = [
        numbered(changes).append_column(STREAM, pa.array([name] * len(changes))) for name, changes in streams.items()
    ]
    rows = found_in(spark, pa.concat_tables(tables), KEYS, [STREAM]).to_pylist()
    assert sorted((row[STREAM], row["step_0"]) for row in rows) == [
        *(("a", "new"), ("b", "copied"), ("b", "first"), ("b", "first again"), ("c", "alone"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [KEYS, ()], ids=["by key", "by row"])
def test_several_streams(spark: SparkSession, keys: Sequence[str]) -> None:
    """With the same keys and the same sequences; a TRUNCATE empties the table of its stream."""
    streams: dict[str, list[Row]] = {}
    wanted: list[str] = []
    for number, (seed, truncate) in enumerate([(1, 0.0), (3, 0.1), (8, 0.05)]):
        changes, held = history(9, 20, seed, truncate)
        own = changes if keys else [row for row in changes if row.change == "truncate" or is_whole(row.old or row.new)]
        streams[f"{number}"] = own
        wanted += [f"{number} {row}" for row in ordered([row for row in held if keys or is_whole(row)])]
    tables = [
        typed_table(rows)
        .append_column(STREAM, pa.array([name] * len(rows)))
        .append_column("also kept", pa.array(range(len(rows))))
        for name, rows in streams.items()
    ]
    rows = found_in(spark, pa.concat_tables(tables), keys, [STREAM], partitions=3)
    assert rows.column_names == [STREAM, *COLUMNS.names, "_sequence", "_unchanged"]
    assert sorted(f"{row[STREAM]} {ordered([row])[0]}" for row in rows.to_pylist()) == sorted(wanted)
    assert len({row[:1] for row in wanted}) == 3


def is_whole(row: Values) -> bool:
    """Whether the row's history sends whole old rows."""
    return bool(row["part"] % 3 == 0)


def test_streams_that_cannot_be(spark: SparkSession) -> None:
    row = {"part": 1, "id": 1, "step_0": "x", "Long a.b": None, "raw": None}
    typed = frame(spark, [Row("insert", row, sequence=(1, 0))]).withColumn("stream", F.lit(None).cast("string"))
    faults: list[tuple[Any, str]] = [
        ("stream", "expected a list of strings"),
        (["streams"], "no column 'streams', did you mean 'stream'"),
        (["stream", "stream"], "'stream' is named twice"),
        (["id"], "'id' is not a column that typed kept"),
        (["stream"], "1 change that has no value in a column of stream_by: stream"),
    ]
    for stream_by, words in faults:
        with pytest.raises(wf.BadRows if "1 change that" in words else wf.OptionError, match=words):
            latest(typed, KEYS, stream_by=stream_by)
    with pytest.raises(wf.OptionError, match="'stream' is not a column of the table"):
        latest(typed, ["stream"])


@pytest.mark.parametrize("streams", [[], [STREAM]], ids=["one stream", "streams"])
@pytest.mark.parametrize(
    ("keys", "bad"),
    [(KEYS, replace(inserted(1, "no key"), new={"part": None, "id": 1})), ((), Row("update", inserted(1, "x").new))],
    ids=["by key", "by row"],
)
def test_changes_before_a_truncate_need_not_be_known(
    spark: SparkSession, keys: Sequence[str], bad: Row, streams: list[str]
) -> None:
    changes = [
        replace(row, sequence=(place, 0)) for place, row in enumerate([bad, Row("truncate", {}), inserted(2, "y")])
    ]
    typed = typed_table(changes).append_column(STREAM, pa.array(["a"] * 3))
    assert found_in(spark, typed, keys, streams)["step_0"].to_pylist() == ["y"]
    assert wf.arrow.latest(typed, keys, stream_by=streams)["step_0"].to_pylist() == ["y"]
    late = pa.concat_tables(
        [typed, typed_table([replace(bad, sequence=(9, 0))]).append_column(STREAM, pa.array(["a"]))]
    )
    for call in (latest, wf.arrow.latest):
        with pytest.raises(wf.BadRows, match="1 change that"):
            call(spark.createDataFrame(late) if call is latest else late, keys, stream_by=streams)


def test_lsns_are_unsigned(spark: SparkSession) -> None:
    row = {"part": 1, "id": 1, "step_0": "early", "Long a.b": None, "raw": None}
    changes = [Row("insert", row, sequence=(5, 0)), Row("update", {**row, "step_0": "late"}, sequence=(-5, 0))]
    assert [one["step_0"] for one in found(spark, changes)] == ["late"]
    assert found(spark, [*changes, Row("truncate", {}, sequence=(-4, 0))]) == []
    assert found(spark, []) == []


@pytest.mark.slow
def test_images_of_both(spark: SparkSession) -> None:
    changes, held = history(12, 20, 6)
    rows = [row for row in changes if (row.old or row.new)["part"] % 3 == 0]
    both = [
        one
        for row in rows
        for one in (
            [Row("update_preimage", row.old or {}, sequence=row.sequence), replace(row, change="update_postimage")]
            if row.change == "update"
            else [row]
        )
    ]
    wanted = ordered([row for row in held if row["part"] % 3 == 0])
    for keys in (KEYS, ()):
        assert ordered(found(spark, both, keys)) == wanted


def test_what_cannot_be(spark: SparkSession) -> None:
    row = {"part": 1, "id": 1, "step_0": "x", "Long a.b": None, "raw": None}
    insert = Row("insert", row, sequence=(1, 0))
    faults: list[tuple[list[Row], Any, str]] = [
        ([insert], "id", "expected a list of strings"),
        ([insert], ["nothing"], "no column 'nothing'"),
        ([insert], ["_xid"], "is not a column of the table"),
        ([insert], ["id", "id"], "is named twice"),
        (
            [insert, replace(insert, new={**row, "id": None})],
            KEYS,
            "1 change that has no value in a column of keys: part, id",
        ),
        ([replace(insert, change="upsert")], KEYS, "1 change that has a _change_type"),
        ([insert, Row("update", row, sequence=(2, 0))], [], "1 change that does not contain the whole old row"),
    ]
    for rows, keys, words in faults:
        with pytest.raises(wf.BadRows if "1 change that" in words else wf.OptionError, match=words) as raised:
            latest(frame(spark, rows), keys)
        with pytest.raises(wf.WireformatError, match=re.escape(str(raised.value))):
            wf.arrow.latest(typed_table(rows), keys)
    typed = frame(spark, [insert])
    with pytest.raises(wf.BadRows, match="1 change that has no _sequence"):
        latest(typed.withColumn("_sequence", F.expr("if(false, _sequence, null)")), KEYS)
    with pytest.raises(wf.OptionError, match="option typed: no column '_old'"):
        latest(typed.drop("_old"), KEYS)
    with pytest.raises(wf.OptionError, match="streaming"):
        latest(spark.readStream.format("rate").load(), KEYS)
