"""Each verb of a capture says what the function of `wf.arrow` says; one pass gives what a pass for each table gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.options.table_names import written

from ..golden_cases import CASES, Case
from ..servers.captures import capture_names
from .streams import TIME, stream

SERVER_CAPTURES = [name for name in capture_names() if "test-decoding" not in name or "streaming" not in name]


TABLES_CHECKED = 4
"""About how many tables of each capture are compared."""


def check(messages: list[bytes], format: str, **options: Any) -> None:
    """Compares all verbs with the functions for tables that exist."""
    capture = wf.Capture(messages, format, **options)
    changes = wf.arrow.changes(messages, format, **options)
    assert capture.changes().read_all() == changes
    assert capture.changes(columns=["kind", "lsn"], kinds=["INSERT"]).read_all() == wf.arrow.changes(
        messages, format, columns=["kind", "lsn"], kinds=["INSERT"], **options
    )
    committed = wf.arrow.transactions(changes)
    assert capture.committed().read_all() == committed
    assert capture.open() == wf.arrow.open_transactions(changes)
    listed = wf.arrow.tables(changes)
    assert capture.tables() == listed
    tables_of_rows, listed_tables = (
        [*zip(rows["table_schema"].to_pylist(), rows["table_name"].to_pylist(), strict=True)]
        for rows in (committed, listed)
    )
    untyped = {name for name, types in zip(listed_tables, listed["types"].to_pylist(), strict=True) if None in types}
    names = sorted({*listed_tables})
    for name in names[:: max(1, len(names) // TABLES_CHECKED)]:
        table = written(name)
        try:
            expected = wf.arrow.typed(committed, table, schema=listed)
        except wf.WireformatError as error:
            with pytest.raises(type(error)):
                capture.typed(table).read_all()
            continue
        if name in untyped:
            with pytest.raises(wf.BadRows, match="rows that name the types"):
                capture.typed(table)
            continue
        alone = wf.Capture(messages, format, **options)  # it reads the rows with the list, unless they are many
        found, of_two_readings = alone.typed(table).read_all(), capture.typed(table).read_all()
        assert (alone.position, alone.unknown_prepared) == (capture.position, capture.unknown_prepared)
        for rows_of_table in (found, of_two_readings):
            assert rows_of_table.schema == expected.schema.remove_metadata()
            assert repr(rows_of_table.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself
        of_table = capture.committed(tables=[table]).read_all()
        mask = [of_row in (name, (None, None)) for of_row in tables_of_rows]
        assert of_table == committed.filter(pa.array(mask, pa.bool_()))
    check_all_tables(capture)


def check_all_tables(capture: wf.Capture) -> None:
    """Compares the tables of one pass with those of a pass for each."""
    found: dict[str, list[pa.RecordBatch]] = {}
    try:
        for table, rows in capture.typed_all():
            found.setdefault(table, []).append(rows)
    except wf.WireformatError as error:
        names = {written((row["table_schema"], row["table_name"])) for row in capture.tables().to_pylist()}
        with pytest.raises(type(error)):
            [capture.typed(name).read_all() for name in names]
        return
    for table, batches in found.items():
        expected = capture.typed(table).read_all()
        rows = pa.Table.from_batches(batches)
        assert rows.schema == expected.schema
        assert repr(rows.to_pylist()) == repr(expected.to_pylist())
    empty = {written((row["table_schema"], row["table_name"])) for row in capture.tables().to_pylist()} - {*found}
    assert all(not capture.typed(table).read_all().num_rows for table in empty)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_of_gaussdb(case: Case) -> None:
    try:
        wf.arrow.transactions(wf.arrow.changes(case.messages, case.format, **case.reading))
    except wf.WireformatError as error:
        with pytest.raises(type(error)):
            wf.Capture(case.messages, case.format, **case.reading).committed().read_all()
        return
    check(case.messages, case.format, **case.reading)


@pytest.mark.parametrize("name", SERVER_CAPTURES)
def test_captures_of_servers(name: str) -> None:
    messages, format = stream(name)
    check(messages, format)


OUTBOX = {
    "pgoutput": [
        wf.Message(lsn=90, transactional=False, prefix="loose", content="now"),
        wf.Begin(xid=5, commit_lsn=100, commit_time=TIME),
        wf.Message(lsn=91, transactional=True, prefix="outbox", content="é"),
        wf.Message(lsn=92, transactional=True, prefix="outbox", content=b"\xff\x00"),
        wf.Commit(commit_lsn=100, end_lsn=101, commit_time=TIME),
    ],
    "test-decoding": [
        wf.Message(transactional=False, prefix="loose", content="now"),
        wf.Begin(xid=5),
        wf.Message(transactional=True, prefix="outbox", content="é"),
        wf.Commit(xid=5),
    ],
}


@pytest.mark.parametrize("format", OUTBOX)
def test_messages(format: str) -> None:
    capture = wf.Capture(list(wf.encode(OUTBOX[format], format)), format)
    found = capture.messages().read_all().to_pylist()
    sent = [event for event in OUTBOX[format] if isinstance(event, wf.Message)]
    contents = [event.content.encode() if isinstance(event.content, str) else event.content for event in sent]
    assert [row["content"] for row in found] == contents
    assert [(row["transactional"], row["prefix"]) for row in found] == [
        (event.transactional, event.prefix) for event in sent
    ]
    assert [row["_sequence"] is not None for row in found] == [event.transactional for event in sent]
    assert {row["_xid"] for row in found if row["transactional"]} == {5}
    assert capture.messages(prefix="outbox").read_all()["content"].to_pylist() == contents[1:]
    assert capture.messages(prefix="other").read_all().num_rows == 0


def test_a_message_whose_text_has_no_bytes_in_its_encoding() -> None:
    """Python decodes some bytes to characters that it cannot encode."""
    raw = bytes.fromhex("8fcdf7")
    message = b"message: transactional: 0 prefix: p, sz: 3 content:" + raw
    with pytest.raises(wf.EncodeError, match="content: character 0 has no bytes in euc_jisx0213"):
        wf.Capture([message], "test-decoding", encoding="euc_jisx0213").messages().read_all()


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_messages_outside_of_transactions_come_where_they_were_written(engine: str, is_streamed: bool) -> None:
    """However the input is cut, and with or without many transactions that are read together."""
    begin, commit = wf.Begin(xid=5, commit_lsn=100, commit_time=TIME), {"end_lsn": 101, "commit_time": TIME}
    events: list[wf.Event] = []
    for number in range(60):
        xid, lsn = number + 5, 100 + 2 * number
        inside = wf.Message(
            lsn=90, transactional=True, prefix="p", content=f"in {number}", xid=xid if is_streamed else None
        )
        if is_streamed:
            events += [wf.StreamStart(xid=xid, first_segment=True), inside, wf.StreamStop()]
        else:
            events += [replace(begin, xid=xid, commit_lsn=lsn), inside]
        if number % 20 == 19 or number > 50:
            events.append(wf.Message(lsn=90, transactional=False, prefix="p", content=f"before {number}"))
        if is_streamed:
            events.append(wf.StreamCommit(xid=xid, commit_lsn=lsn, **commit))
        else:
            events.append(wf.Commit(commit_lsn=lsn, **commit))
        events += [wf.Message(lsn=90, transactional=False, prefix="p", content=f"after {number}")] * (number % 3)
    wanted = []
    for number in range(60):
        wanted += [f"before {number}"] * (number % 20 == 19 or number > 50)
        wanted += [f"in {number}", *[f"after {number}"] * (number % 3)]
    messages = list(wf.encode(events, "pgoutput"))
    for size in (len(messages), 50, 7, 1):
        pieces = pa.chunked_array([messages[at : at + size] for at in range(0, len(messages), size)], pa.binary())
        for skip in (False, True):
            capture = wf.Capture(pieces, "pgoutput", engine=engine, skip_empty_xacts=skip)
            found = capture.messages().read_all()
            assert [content.decode() for content in found["content"].to_pylist()] == wanted
            assert found["_sequence"].null_count == found["transactional"].to_pylist().count(False)


def test_a_schema_without_the_key_of_a_delete() -> None:
    """INSERTs of sql-decoding name no columns, and the DELETE names its key, which would be lost."""
    messages = [
        b"BEGIN 5",
        b"insert into public.t values (1, 'x');",
        b"delete from public.t where id = 1;",
        b"COMMIT 5",
    ]
    capture = wf.Capture(messages, "sql-decoding")
    found = capture.typed("public.t", schema={"id": "integer", "size": "text"}).read_all()
    assert found["id"].to_pylist() == [1, 1]
    with pytest.raises(wf.OptionError, match="name a column 'id', which is not in the schema, did you mean 'idd'"):
        capture.typed("public.t", schema={"idd": "integer", "size": "text"}).read_all()


@pytest.mark.parametrize("memory", [0, 1 << 28])
@pytest.mark.parametrize("format", ["gaussdb-binary", "pgoutput", "sql-decoding"])
def test_all_tables_in_one_pass(format: str, memory: int) -> None:
    messages = [*wf.encode(wf.testing.stream(5, 60, seed=3, format=format), format)]
    capture = wf.Capture(messages, format, memory_limit=memory)
    if format == "sql-decoding":
        with pytest.raises(wf.BadRows, match="rows that name the types"):
            list(capture.typed_all())
        return
    check_all_tables(capture)
    names = [name for name, _ in capture.typed_all(tables=["shop.orders_1"])]
    assert {*names} == {"shop.orders_1"}
    position = capture.position
    list(capture.committed())
    assert capture.position == position
    assert not list(wf.Capture(messages, format, after=position).typed_all())


def test_all_tables_of_messages_that_can_be_read_once() -> None:
    with pytest.raises(wf.OptionError, match="this call may read them twice"):
        wf.Capture(iter([b""]), "gaussdb-binary").typed_all()
