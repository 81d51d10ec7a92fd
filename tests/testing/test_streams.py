"""The test double: its streams are consistent, always the same for a seed, and end in the tables that it says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

import wireformat as wf
from wireformat.formats.registry import ROWS
from wireformat.testing import Column, Stream, Table, Values, stream

OPTIONS: dict[str, dict[str, Any]] = {name: {"sending-batch": 1} for name in ROWS if name.startswith("gaussdb")}

Rows = dict[tuple[str, str], dict[tuple[Any, ...], Values]]


def messages(of: Stream) -> list[bytes]:
    return list(wf.encode(of, of.format, options=OPTIONS.get(of.format)))


def replica(changes: Iterable[wf.CommittedChange], keys: dict[tuple[str, str], tuple[str, ...]]) -> Rows:
    """The tables after these changes. Fails where a row that changes is not there, or one that comes is."""
    tables: Rows = {name: {} for name in keys}
    for change in changes:
        event = change.event
        if isinstance(event, wf.Truncate):
            for name in event.tables:
                tables[name].clear()
        if not isinstance(event, wf.RowChange):
            continue
        name = event.table_schema, event.table_name
        rows = tables[name]
        before: Values = {}
        if not isinstance(event, wf.Insert):
            shown = event.old or event.new
            assert shown is not None
            before = rows.pop(tuple(shown.as_dict()[column] for column in keys[name]))  # type: ignore[misc]
            full = {} if event.old is None or len(event.old.names) == len(keys[name]) else event.old.as_dict()
            assert full.items() <= {**dict.fromkeys(full), **before}.items()
        if event.new is not None:
            sent = {column: value for column, value in event.new.as_dict().items() if value is not wf.UNCHANGED}
            row = {**before, **sent}
            key = tuple(row[column] for column in keys[name])
            assert key not in rows
            rows[key] = row
    return tables


def as_rows(of: Stream, keys: dict[tuple[str, str], tuple[str, ...]]) -> Rows:
    return {
        name: {tuple(row[column] for column in keys[name]): row for row in rows} for name, rows in of.tables.items()
    }


def without_nulls(tables: Rows) -> Any:
    """A column that was added is NULL in rows that no change has sent since."""
    return {
        name: {key: {column: value for column, value in row.items() if value is not None} for key, row in rows.items()}
        for name, rows in tables.items()
    }


TABLES = (
    Table("a b", "T", (Column("part", "text", key=True), Column("Id", "integer", key=True), Column("v", "boolean"))),
    Table("s", "t", (Column("id", "numeric", key=True), Column("w", "smallint")), "full"),
    Table("s", "u", (Column("id", "bigint", key=True),)),
)


@pytest.mark.parametrize("format", [name for name in ROWS if name != "sql-decoding"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("tables", [4, TABLES], ids=["standard", "own"])
def test_what_is_read_is_what_the_tables_hold(format: str, seed: int, tables: Any) -> None:
    made = stream(tables, 200, seed=seed, format=format)
    keys = dict.fromkeys(made.tables, ("id",)) | {("a b", "T"): ("part", "Id")}
    keys = {name: keys[name] for name in made.tables}
    known = ['"a b"."T"'] if format == "gaussdb-text" else None
    read = list(wf.decode(messages(made), format, strict=True, known_tables=known))
    assert without_nulls(replica(wf.transactions(read), keys)) == without_nulls(as_rows(made, keys))
    assert any(made.tables.values())


@pytest.mark.parametrize("format", ["pgoutput", "gaussdb-binary", "test-decoding"])
def test_latest_gives_the_tables(format: str) -> None:
    made = stream(2, 200, seed=5, format=format)
    capture = wf.Capture(messages(made), format)
    for (schema, name), rows in made.tables.items():
        found = capture.latest(f"{schema}.{name}", keys=["id"]).to_pylist()
        assert sorted(str(row["id"]) for row in found) == [row["id"] for row in rows]
        notes = {str(row["id"]): row["note"] for row in found}
        assert notes == {row["id"]: row["note"] for row in rows}


@pytest.mark.parametrize("format", ROWS)
def test_the_same_seed_gives_the_same_stream(format: str) -> None:
    first, second, other = (stream(2, 50, seed=seed, format=format) for seed in (1, 1, 2))
    assert list(first) == list(first) == list(second)
    assert messages(first) == messages(second) != messages(other)
    assert first.tables == second.tables != other.tables


def test_what_a_stream_has() -> None:
    """Everything that the format can say with all facts comes about."""
    kinds = Counter(event.kind for event in stream(4, 1000, seed=3))
    wanted = "INSERT UPDATE DELETE TRUNCATE RELATION BEGIN COMMIT PREPARE COMMIT_PREPARED ROLLBACK_PREPARED"
    streamed = "STREAM_START STREAM_STOP STREAM_ABORT STREAM_COMMIT STREAM_PREPARE"
    assert kinds.keys() == {*wanted.split(), *streamed.split()}
    events = list(stream(4, 1000, seed=3))
    assert any(isinstance(event, wf.StreamAbort) and event.subxid != event.xid for event in events)
    rows = [event for event in events if isinstance(event, wf.RowChange)]
    assert any(wf.UNCHANGED in event.new.values for event in rows if event.new)
    assert {event.old_kind for event in rows} == {None, "key", "full"}
    assert {event.kind for event in stream(4, 200, format="gaussdb-json")} == {*wanted.split()[:3], "BEGIN", "COMMIT"}


@pytest.mark.parametrize("format", [name for name, row in ROWS.items() if row.order == "parallel"])
def test_positions_of_a_transaction_grow_from_its_begin_to_its_commit(format: str) -> None:
    end = 0
    for event in stream(2, 50, format=format):
        assert event.lsn is not None
        assert event.lsn > end
        end = event.lsn
        if isinstance(event, wf.Begin):
            assert event.first_lsn == event.lsn


def test_the_end_of_a_rolled_back_transaction_names_its_prepare() -> None:
    prepared: dict[str | None, tuple[int | None, str | None]] = {}
    ends = 0
    for event in stream(2, 400):
        if isinstance(event, (wf.Prepare, wf.StreamPrepare)):
            prepared[event.gid] = event.end_lsn, event.prepare_time
        elif isinstance(event, wf.RollbackPrepared):
            ends += 1
            assert (event.lsn, event.prepare_time) == prepared[event.gid]
            assert event.end_lsn is not None
            assert event.end_lsn > (event.lsn or 0)
    assert ends > 3


def test_old_rows_of_test_decoding_have_no_nulls() -> None:
    made = stream([TABLES[1]], 100, format="test-decoding")
    rows = [event for event in made if isinstance(event, (wf.Update, wf.Delete))]
    assert None not in [value for event in rows if event.old for value in event.old.values]
    assert {event.old.names for event in rows if event.old} >= {("id",), ("id", "w")}
    assert any(None in event.new.values for event in rows if event.new)


def test_tables_are_described_again_after_a_part_of_a_transaction_was_rolled_back() -> None:
    described: dict[int, set[int | None]] = defaultdict(set)
    block, parts = 0, 0
    for event in stream(transactions=300, format="pgoutput"):
        if isinstance(event, wf.StreamStart):
            block = event.xid or 0
        elif isinstance(event, (wf.StreamStop, wf.StreamCommit, wf.Begin)):
            block = 0
        elif isinstance(event, wf.StreamAbort) and event.xid != event.subxid:
            described[event.xid or 0].clear()
            parts += 1
        elif isinstance(event, wf.Relation):
            described[block].add(event.relation_id)
        elif block and isinstance(event, (wf.Insert, wf.Update, wf.Delete)):
            assert event.relation_id in described[block]
    assert parts


def test_schema_changes_can_be_left_out() -> None:
    without, changed = (
        {
            event.new.types
            for event in stream(1, 400, schema_changes=chosen)
            if isinstance(event, wf.Insert) and event.new
        }
        for chosen in (False, True)
    )
    assert len(without) == 1
    assert len(changed) > 3


def test_a_stream_of_nothing() -> None:
    made = stream(1, 0)
    assert list(made) == []
    assert made.tables == {("shop", "orders_0"): []}


def test_events_are_not_held() -> None:
    """The first events of a long stream come at once."""
    assert len(list(islice(stream(2, 10**12), 100))) == 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tables": 0}, "tables"),
        ({"tables": 1 << 80}, "option tables: expected a whole number from 1 to 1000000"),
        ({"tables": "x"}, "option tables: expected a number or a list of tables, got 'x'"),
        ({"tables": [("s", "t", (Column("a", key=True),))]}, r"expected wireformat\.testing\.Table"),
        ({"tables": [TABLES[0]._replace(name=5)]}, r"expected wireformat\.testing\.Table"),
        ({"tables": [TABLES[0]._replace(columns=5)]}, r"expected wireformat\.testing\.Table"),
        ({"tables": [TABLES[0]._replace(columns=[("a", "text", True)])]}, r"expected wireformat\.testing\.Table"),
        ({"tables": [TABLES[0]._replace(columns=[Column("a", [], True)])]}, r"expected wireformat\.testing\.Table"),
        ({"tables": [TABLES[0]._replace(replica_identity=[])]}, "replica_identity"),
        ({"seed": "x"}, "option seed: expected a whole number, got 'x'"),
        ({"schema_changes": "no"}, "option schema_changes: expected True or False"),
        ({"tables": []}, "at least one table"),
        ({"tables": [TABLES[0], TABLES[0]]}, "no two of the same name"),
        ({"tables": [Table("s", "t", (Column("a"),))]}, "key=True"),
        ({"tables": [Table("s", "t", (Column("a", "point"),))]}, "column a: expected one of the types .*; got 'point'"),
        ({"tables": [Table("s", "t", (Column("a", "boolean", key=True),))]}, "column a: expected one of the types"),
        ({"tables": [Table("s", "t", (Column("a", key=True), Column("a")))]}, "the same name"),
        ({"tables": [TABLES[1]._replace(replica_identity="index")]}, "replica_identity"),
        ({"transactions": -1}, "transactions"),
        ({"changes": 0}, "changes"),
        ({"changes": 1 << 80}, "option changes: expected a whole number from 1 to"),
        ({"format": "pgoutpu"}, "pgoutput"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError, match=words):
        stream(**arguments)


def test_events_are_as_they_are_read() -> None:
    events = [*stream(1, 60, format="pgoutput")]
    assert [*wf.decode(wf.encode(events, "pgoutput"), "pgoutput")] == events
