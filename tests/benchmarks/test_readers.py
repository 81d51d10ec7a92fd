"""The benchmark's own readers and data agree with the package: else its numbers would compare different things."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import wireformat as wf
from benchmarks import generate
from benchmarks.struct_reader import read_message

CHANGES = 6000  # more than one message


@pytest.fixture(scope="module")
def part() -> tuple[pa.Table, pa.Table]:
    return generate.make_part(0, CHANGES)


@pytest.fixture(scope="module")
def events(part: tuple[pa.Table, pa.Table]) -> list[wf.Event]:
    return list(wf.decode(part[0]["payload"], generate.FORMAT))


def test_the_reader_by_hand_gives_the_rows_of_the_package(part, events) -> None:
    rows = [row for message in part[0]["payload"].to_pylist() for row in read_message(message)]
    assert rows == [_row(event) for event in events]


def _row(event: wf.Event) -> tuple[object, ...]:
    if not isinstance(event, wf.RowChange):
        return (event.kind, event.lsn, None, None, None, None)
    new, old = (image and image.as_dict() for image in (event.new, event.old))
    return (event.kind, event.lsn, event.table_schema, event.table_name, new, old)


def test_the_reader_by_hand_ends_at_both_ends_of_a_message() -> None:
    records = [wf.Commit(lsn=1), wf.Commit(lsn=2)]
    by_timeout = list(wf.encode(records, generate.FORMAT, options={"sending-batch": 1}))
    single = list(wf.encode(records, generate.FORMAT))
    assert [message[-1:] for message in single] == [b"F", b"F"]
    assert [message[-5:] for message in by_timeout] == [b"P\0\0\0\0"]
    assert [row[:2] for message in single + by_timeout for row in read_message(message)] == 2 * [
        ("COMMIT", 1),
        ("COMMIT", 2),
    ]


def test_the_reader_by_hand_undoes_quotes() -> None:
    image = wf.TupleData(("Order", 'a"b'), ("1", None), ("integer", "text"))
    (message,) = wf.encode([wf.Insert(lsn=7, table_schema="s", table_name="t", new=image)], generate.FORMAT)
    assert read_message(message) == [("INSERT", 7, "s", "t", {"Order": "1", 'a"b': None}, None)]


def test_the_json_lines_say_the_row_changes(part, events) -> None:
    changes = [event for event in events if isinstance(event, wf.RowChange)]
    lines = [json.loads(line) for line in part[1]["line"].to_pylist()]
    assert [line["op_type"] for line in lines] == [change.kind for change in changes]
    assert [line["table_name"] for line in lines] == [f"{c.table_schema}.{c.table_name}" for c in changes]
    assert [_image(line, "columns") for line in lines] == [change.new for change in changes]
    assert [_image(line, "old_keys") for line in lines] == [change.old for change in changes]


def _image(line: dict[str, list[str]], prefix: str) -> wf.TupleData | None:
    names, types, literals = (tuple(line[f"{prefix}_{part}"]) for part in ("name", "type", "val"))
    values = tuple(_value(literal, type) for literal, type in zip(literals, types, strict=True))
    return wf.TupleData(names, values, types) if names else None


def _value(literal: str, type: str) -> str | None:
    if literal == "null":
        return None
    if type == "boolean":
        return {"true": "t", "false": "f"}[literal]
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def test_json_lines_are_spelled_as_the_servers_spell_them() -> None:
    image = wf.TupleData(
        ("id", "note", "gift", "gone"), ("3", 'it\'s "é"\n\x01', "t", None), ("integer", "text", "boolean", "text")
    )
    line = generate.json_line(wf.Insert(lsn=1, table_schema="shop", table_name="orders_1", new=image))
    assert line == (
        '{"table_name":"shop.orders_1","op_type":"INSERT","columns_name":["id","note","gift","gone"],'
        '"columns_type":["integer","text","boolean","text"],'
        '"columns_val":["3","\'it\'\'s \\"é\\"\\n\\u0001\'","true","null"],'
        '"old_keys_name":[],"old_keys_type":[],"old_keys_val":[]}'
    )


def test_the_counts_of_messages_are_right(part) -> None:
    messages, lines = part
    tables = [".".join(generate.ONE_TABLE)]
    assert messages.num_rows > 1
    for row in messages.to_pylist():
        payload = [row["payload"]]
        assert row["records"] == wf.arrow.changes(payload, generate.FORMAT).num_rows
        kinds = ["INSERT", "UPDATE", "DELETE"]
        assert row["changes"] == wf.arrow.changes(payload, generate.FORMAT, kinds=kinds).num_rows
        assert row["one_table"] == wf.arrow.changes(payload, generate.FORMAT, tables=tables).num_rows
    assert sum(messages["changes"].to_pylist()) == lines.num_rows == CHANGES


def test_the_data_are_as_large_as_planned(part) -> None:
    size = sum(len(payload) for payload in part[0]["payload"].to_pylist())
    assert size / CHANGES == pytest.approx(generate.BYTES_PER_CHANGE, rel=0.02)


def test_the_same_seed_gives_the_same_data(part) -> None:
    again = generate.make_part(0, 500)
    assert again[1].equals(part[1].slice(0, 500))
    assert not generate.make_part(1, 500)[1].equals(again[1])
