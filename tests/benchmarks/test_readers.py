"""The benchmark's own readers and data agree with the package: else its numbers would compare different things."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import wireformat as wf
from benchmarks import bench_text, generate, json_reader, pgoutput_reader, struct_reader, text_lexer
from benchmarks.contestants import Contestant, as_file
from benchmarks.generate import BINARY, FORMATS, JSON, JSON_LINES, PGOUTPUT, TEXT
from wireformat.framing.text_batch import frames

from ..golden_cases import CASES, Case

CHANGES = 6000  # more than one message
READABLE = [case for case in CASES if not (case.has_bad_text or case.known_tables or case.encoding != "utf-8")]
"""The captures that a reader by hand can read: text that is right, in UTF-8, and no names that leave room for doubt."""


@pytest.fixture(scope="module")
def part() -> dict[str, pa.Table]:
    return generate.make_part(0, CHANGES)


@pytest.fixture(scope="module")
def events(part: dict[str, pa.Table]) -> list[wf.Event]:
    return list(wf.decode(part[BINARY]["payload"], BINARY))


@pytest.mark.parametrize(("format", "reader"), [(BINARY, struct_reader), (TEXT, text_lexer)])
def test_the_readers_by_hand_give_the_rows_of_the_package(part, events, format, reader) -> None:
    rows = [row for message in part[format]["payload"].to_pylist() for row in reader.read_message(message)]
    assert rows == [_row(event) for event in events]


def test_the_reader_of_pgoutput_by_hand_gives_the_rows_of_the_package(part) -> None:
    messages = part[PGOUTPUT]["payload"].to_pylist()
    wanted = [_row(event) for event in wf.decode(messages, PGOUTPUT)]
    assert pgoutput_reader.read_messages(messages) == [(row[0], None, *row[2:]) for row in wanted]


def test_pgoutput_says_the_same_changes(part, events) -> None:
    read = [_row(event) for event in wf.decode(part[PGOUTPUT]["payload"], PGOUTPUT) if isinstance(event, wf.RowChange)]
    wanted = [_row(event) for event in events if isinstance(event, wf.RowChange)]
    assert [(kind, *rest) for kind, _, *rest in read] == [(kind, *rest) for kind, _, *rest in wanted]


def _row(event: wf.Event) -> tuple[object, ...]:
    if isinstance(event, wf.Relation):
        return (event.kind, event.lsn, event.table_schema, event.table_name, None, None)
    if not isinstance(event, wf.RowChange):
        return (event.kind, event.lsn, None, None, None, None)
    return (event.kind, event.lsn, event.table_schema, event.table_name, _dict(event.new), _dict(event.old))


def _dict(image: wf.TupleData | None) -> dict[str, str | None] | None:
    return image and {name: value for name, value in image.as_dict().items() if value is not wf.UNCHANGED}


def test_the_json_lines_say_the_row_changes(part, events) -> None:
    changes = [_row(event) for event in events if isinstance(event, wf.RowChange)]
    read = [json_reader.read_line(line) for line in part[JSON_LINES]["payload"].to_pylist()]
    assert read == [(kind, *change) for kind, _, *change in changes]


def test_the_json_lines_are_those_in_the_messages(part) -> None:
    lines = [text for message in part[JSON]["payload"].to_pylist() for text, _ in _texts(message) if text[:1] == b"{"]
    assert lines == part[JSON_LINES]["payload"].to_pylist()


def _texts(message: bytes) -> list[tuple[bytes, int | None]]:
    return [(message[frame.start : frame.stop], frame.lsn) for frame in frames(message)]


def captures(format: str) -> pytest.MarkDecorator:
    cases = [case for case in READABLE if case.format == format]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@captures(TEXT)
def test_the_lexer_by_hand_reads_what_servers_send(case: Case) -> None:
    rows = [text_lexer.read_record(text.decode(), lsn) for message in case.messages for text, lsn in _texts(message)]
    assert rows == [_row(event) for event in wf.decode(case.messages, TEXT)]


@captures(JSON)
def test_the_json_reader_by_hand_reads_what_servers_send(case: Case) -> None:
    texts = [text for message in case.messages for text, _ in _texts(message)]
    events = [_row(event) for event in wf.decode(case.messages, JSON)]
    changes = [(kind, *change) for kind, _, *change in events if kind in ("INSERT", "UPDATE", "DELETE")]
    assert [json_reader.read_line(text) for text in texts if text.startswith(b"{")] == changes


@pytest.mark.parametrize("contestant", bench_text.CONTESTANTS, ids=lambda contestant: contestant.name)
def test_the_contestants_deliver_all_rows(part, contestant: Contestant) -> None:
    source = part[contestant.source]
    answer = contestant.work(contestant.takes(source["payload"]))
    rows = answer if isinstance(answer, int) else answer.num_rows
    assert rows == pc.sum(source[contestant.delivers]).as_py()


def test_pyarrow_json_reads_what_the_reader_by_hand_reads(part) -> None:
    lines = part[JSON_LINES]["payload"]
    table = bench_text.split_json(as_file(lines))
    assert table.schema.equals(bench_text.LINE)
    names = (line["columns_name"] for line in table.to_pylist())
    changes = map(json_reader.read_line, lines.to_pylist())
    assert list(names) == [list(new or {}) for _, _, _, new, _ in changes]


def test_the_reader_of_binary_ends_at_both_ends_of_a_message() -> None:
    records = [wf.Commit(lsn=1), wf.Commit(lsn=2)]
    by_timeout = list(wf.encode(records, BINARY, options={"sending-batch": 1}))
    single = list(wf.encode(records, BINARY))
    assert [message[-1:] for message in single] == [b"F", b"F"]
    assert [message[-5:] for message in by_timeout] == [b"P\0\0\0\0"]
    assert [row[:2] for message in single + by_timeout for row in struct_reader.read_message(message)] == 2 * [
        ("COMMIT", 1),
        ("COMMIT", 2),
    ]


def test_the_reader_of_binary_undoes_quotes() -> None:
    image = wf.TupleData(("Order", 'a"b'), ("1", None), ("integer", "text"))
    (message,) = wf.encode([wf.Insert(lsn=7, table_schema="s", table_name="t", new=image)], BINARY)
    assert struct_reader.read_message(message) == [("INSERT", 7, "s", "t", {"Order": "1", 'a"b': None}, None)]


@pytest.mark.parametrize("format", FORMATS)
def test_the_counts_of_messages_are_right(part, format: str) -> None:
    messages = part[format]
    tables = [".".join(generate.ONE_TABLE)]
    assert messages.num_rows > 1
    for row in messages.to_pylist():
        payload = [row["payload"]]
        assert row["records"] == wf.arrow.changes(payload, format).num_rows
        kinds = ["INSERT", "UPDATE", "DELETE"]
        assert row["changes"] == wf.arrow.changes(payload, format, kinds=kinds).num_rows
        assert row["one_table"] == wf.arrow.changes(payload, format, tables=tables).num_rows
    assert 0 <= pc.sum(messages["changes"]).as_py() - CHANGES < generate.CHANGES_PER_TRANSACTION


def test_every_json_line_is_one_row_change(part) -> None:
    assert set(part[JSON_LINES]["changes"].to_pylist()) == {1}
    assert len(part[JSON_LINES]) == pc.sum(part[BINARY]["changes"]).as_py()


@pytest.mark.parametrize("format", [JSON, TEXT])
def test_all_styles_say_the_same(part, format: str) -> None:
    columns = ["kind", "lsn", "table_schema", "table_name", "new", "old"]
    rows = [wf.arrow.changes(part[name]["payload"], name, columns=columns) for name in (format, BINARY)]
    assert rows[0].equals(rows[1])


def test_the_data_are_as_large_as_planned(part) -> None:
    size = pc.sum(pc.binary_length(part[BINARY]["payload"])).as_py()
    assert size / CHANGES == pytest.approx(generate.BYTES_PER_CHANGE, rel=0.02)


def test_the_same_seed_gives_the_same_data(part) -> None:
    again = generate.make_part(0, 500)[JSON_LINES]
    assert again.equals(part[JSON_LINES].slice(0, len(again)))
    assert not generate.make_part(1, 500)[JSON_LINES].equals(again)
