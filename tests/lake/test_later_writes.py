"""A later write knows the columns that a lake has: it says what one capture of the whole stream says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deltalake
import pytest

import wireformat as wf

from .histories import messages_of
from .reading import read, values

TYPES = {"id": "integer", "name": "text", "body": "text", "region": "text"}
KINDS = [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")]
TABLE = ("public", "t")


def row(**columns: str | None) -> wf.TupleData:
    return wf.TupleData(tuple(columns), tuple(columns.values()), tuple(TYPES[name] for name in columns))


def insert(**columns: str | None) -> dict[str, Any]:
    return {"new": row(**columns)}


def update(old: str, /, **columns: str | None) -> dict[str, Any]:
    return {"old": row(id=old), "new": row(**columns)}


def delete(old: str) -> dict[str, Any]:
    return {"old": row(id=old)}


def transaction(number: int, *changes: dict[str, Any]) -> list[wf.Event]:
    lsn = 100 * number
    events: list[wf.Event] = [wf.Begin(lsn=lsn, csn=number, first_lsn=lsn)]
    for ordinal, rows in enumerate(changes, 1):
        event = wf.Update if len(rows) == 2 else wf.Insert if "new" in rows else wf.Delete
        events.append(event(lsn=lsn + ordinal, table_schema=TABLE[0], table_name=TABLE[1], **rows))
    return [*events, wf.Commit(lsn=lsn + 50, xid=number)]


INSERTED = insert(id="1", name="a", body="TEXT")
DROPPED = insert(id="5", name="e")
STREAMS = {
    "not sent": [[INSERTED], [update("1", id="2", name="b")], [update("2", id="3", name="c")]],
    "dropped": [[INSERTED, insert(id="9", name="z", body="Z")], [DROPPED], [update("1", id="1", name="b")]],
    "dropped in a later write": [
        [INSERTED],
        [update("1", id="1", name="b"), DROPPED, update("5", id="6", name="f")],
        [update("6", id="7", name="g"), update("1", id="1", name="c")],
    ],
    "made again": [
        [INSERTED],
        [delete("1"), insert(id="1", region="x"), insert(id="2", region="y")],
        [update("1", id="1", region="z"), delete("2")],
    ],
    "added": [[insert(id="1", name="a")], [update("1", id="2", name="b")], [insert(id="3", name="c", body="C")]],
    "only changed": [[update("1", id="1", name="a", body="A")], [update("1", id="1", name="b")], [delete("4")]],
}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its nulls: a column that came later is null in rows before it."""
    return {
        name: plain(value) if isinstance(value, dict) else value for name, value in row.items() if value is not None
    }


def messages(changes: list[dict[str, Any]], number: int) -> list[bytes]:
    return messages_of([transaction(number, *changes)])


def write(parts: Sequence[list[bytes]], folder: Path, format: str, state: str, stream: str = "gaussdb-binary") -> None:
    """Each capture has only its own messages."""
    keys: dict[str, Any] = {"keys": ["id"]} if state == "latest" else {}
    after = None
    for part in parts:
        wf.Capture(part, stream, after=after).write(folder, format=format, state=state, **keys)
        after = wf.lake.position(folder)


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("stream", STREAMS)
def test_changes(stream: str, format: str, tmp_path: Path) -> None:
    """Each row is as in a capture of the stream up to there."""
    parts = [messages(changes, number) for number, changes in enumerate(STREAMS[stream], 1)]
    write(parts, tmp_path, format, "changes")
    wanted: list[dict[str, Any]] = []
    for count in range(1, len(parts) + 1):
        capture = wf.Capture([message for part in parts[:count] for message in part], "gaussdb-binary")
        wanted += capture.typed("public.t").read_all().to_pylist()[len(wanted) :]
    assert [*map(plain, read(tmp_path, TABLE).to_pylist())] == [*map(plain, wanted)]


@pytest.mark.parametrize("stream", STREAMS)
def test_current_rows(stream: str, tmp_path: Path) -> None:
    parts = [messages(changes, number) for number, changes in enumerate(STREAMS[stream], 1)]
    write(parts, tmp_path, "delta", "latest")
    wanted = wf.Capture([message for part in parts for message in part], "gaussdb-binary").latest(
        "public.t", keys=["id"]
    )
    names = [name for name in wanted.column_names if stream != "added" or name != "_unchanged"]
    assert values(read(tmp_path, TABLE).select(names)) == values(wanted.select(names))


def test_a_value_that_was_not_sent_stays(tmp_path: Path) -> None:
    """The UPDATE changes the key, so the old row goes."""
    write([messages([INSERTED], 1), messages([update("1", id="2", name="b")], 2)], tmp_path, "delta", "latest")
    (row,) = read(tmp_path, TABLE).select(["id", "name", "body", "_unchanged"]).to_pylist()
    assert row == {"id": 2, "name": "b", "body": "TEXT", "_unchanged": None}


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_partition_whose_column_is_not_sent(format: str, tmp_path: Path) -> None:
    after = None
    for number, change in enumerate((insert(id="1", region="north"), delete("1")), 1):
        capture = wf.Capture(messages([change], number), "gaussdb-binary", after=after)
        capture.write(tmp_path, format=format, partition_by="region")
        after = wf.lake.position(tmp_path)
    assert len(capture.tables()["columns"].to_pylist()) == 1, "the tables of the capture are those of its messages"
    assert read(tmp_path, TABLE)["_change_type"].to_pylist() == ["insert", "delete"]


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_lake_of_an_earlier_release(format: str, state: str, tmp_path: Path) -> None:
    """Its manifest has no versions."""
    write([messages([INSERTED], 1)], tmp_path, format, state)
    manifest = tmp_path / "_wireformat.json"
    fields = json.loads(manifest.read_text())
    for table in fields["tables"]:
        del table["versions"], table["current"]
    manifest.write_text(json.dumps(fields))
    part = messages([update("1", id="1", name="b")], 2)
    keys: dict[str, Any] = {"keys": ["id"]} if state == "latest" else {}
    wf.Capture(part, "gaussdb-binary", after=wf.lake.position(tmp_path)).write(
        tmp_path, format=format, state=state, **keys
    )
    last = read(tmp_path, TABLE).to_pylist()[-1]
    assert (last["body"], last["_unchanged"]) == (("TEXT", None) if state == "latest" else (None, ["body"]))


LINES = [
    [b"BEGIN 5", b"table a.b: INSERT: id[integer]:1", b"COMMIT 5"],
    [b"BEGIN 6", b"table a.b: TRUNCATE: (no-flags)", b"COMMIT 6"],
]


def test_a_write_that_has_only_a_truncate(tmp_path: Path) -> None:
    write(LINES, tmp_path, "delta", "latest", "test-decoding")
    found = deltalake.DeltaTable(tmp_path / "a" / "b").to_pyarrow_table()
    assert found.num_rows == 0
    assert "id" in found.column_names


VALUES = [
    ("boolean", "t"),
    ("timestamp without time zone", "2026-01-02 03:04:05"),
    ("bytea", r"\xff00"),
    ("integer[]", "{1,2}"),
]


def typed_value(number: int, sql_type: str, value: str) -> list[bytes]:
    rows = {"new": wf.TupleData(("id", "v"), (str(number), value), ("integer", sql_type))}
    return messages_of([transaction(number, rows)])


@pytest.mark.parametrize(("format", "state"), KINDS)
@pytest.mark.parametrize(("sql_type", "value"), VALUES)
def test_a_column_that_was_text_has_the_text_of_the_server(
    sql_type: str, value: str, format: str, state: str, tmp_path: Path
) -> None:
    """Also in a write that has only the other type."""
    parts = [typed_value(1, "text", "a"), typed_value(2, sql_type, value), typed_value(3, sql_type, value)]
    write(parts, tmp_path, format, state)
    assert read(tmp_path, TABLE)["v"].to_pylist() == ["a", value, value]


def test_the_last_relation_does_not_say_what_the_lake_has(tmp_path: Path) -> None:
    """The position has the relation of the second write, the lake the column of the first one."""
    after = None
    for number, (oid, value) in enumerate([(25, "a"), (16, "t"), (16, "f")], 1):
        relation = wf.Relation(
            relation_id=16400,
            table_schema="public",
            table_name="t",
            replica_identity="default",
            columns=("id", "v"),
            type_oids=(23, oid),
            typmods=(-1, -1),
            key_columns=("id",),
        )
        time = "2026-01-01 00:00:00+00"
        change = wf.Insert(
            table_schema="public",
            table_name="t",
            relation_id=16400,
            new=wf.TupleData(("id", "v"), (str(number), value), ("integer", "text" if oid == 25 else "boolean")),
        )
        events = [
            wf.Begin(xid=number, commit_lsn=number * 100, commit_time=time),
            relation,
            change,
            wf.Commit(commit_lsn=number * 100, end_lsn=number * 100 + 8, commit_time=time),
        ]
        wf.Capture([*wf.encode(events, "pgoutput")], "pgoutput", after=after).write(
            tmp_path, format="delta", state="latest"
        )
        after = wf.lake.position(tmp_path)
    assert read(tmp_path, TABLE)["v"].to_pylist() == ["a", "t", "f"]


def test_a_schema_with_another_type_than_the_text_of_the_lake(tmp_path: Path) -> None:
    write([typed_value(1, "text", "a")], tmp_path, "delta", "changes")
    capture = wf.Capture(typed_value(2, "boolean", "t"), "gaussdb-binary", after=wf.lake.position(tmp_path))
    with pytest.raises(wf.OptionError, match=r"table public\.t: column v is text in the lake and bool in this write"):
        capture.write(tmp_path, format="delta", schemas={"public.t": {"id": "integer", "v": "boolean"}})


def test_a_schema_without_the_key(tmp_path: Path) -> None:
    """The lake has the column, the rows of this write do not."""
    write([typed_value(1, "text", "a")], tmp_path, "delta", "latest")
    capture = wf.Capture(typed_value(2, "text", "b"), "gaussdb-binary", after=wf.lake.position(tmp_path))
    with pytest.raises(
        wf.OptionError, match=r"option schema: no column 'id', .* of public\.t; there is only v; add it"
    ):
        capture.write(tmp_path, format="delta", state="latest", keys=["id"], schemas={"public.t": {"v": "text"}})
