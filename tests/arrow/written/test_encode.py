"""wf.arrow.encode: the same messages as wf.encode writes for the events of the rows, by compiled code and by events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.columns.rows_from_events import build
from wireformat.arrow.written import compiled_writer, encode, heads
from wireformat.arrow.written.events import rows_of
from wireformat.formats.adapt import adapted
from wireformat.stream.reader import Located
from wireformat.testing import stream

from ... import pgoutput_strategies, strategies
from ...golden_cases import CASES
from ...handmade_pgoutput import ALL, DESCRIBED

COMPILED = ("gaussdb-binary", "pgoutput")
BATCHED = {"sending-batch": 1, "include-timestamp": True, "include-originid": True, "include-user": True}
OPTIONS: dict[str, list[dict[str, Any]]] = {"gaussdb-binary": [{}, BATCHED], "pgoutput": [{}]}

INSERT = wf.Insert(
    lsn=7, table_schema="s", table_name="t", new=wf.TupleData(("a", "B"), ("1", None), ("integer", "text"))
)

RELATION = wf.Relation(
    relation_id=5,
    table_schema="s",
    table_name="t",
    replica_identity="default",
    columns=("a", "B"),
    type_oids=(23, 25),
    typmods=(-1, -1),
    key_columns=("a",),
)


def table(events: Sequence[wf.Event]) -> pa.Table:
    """The row changes of the events, each a message of its own."""
    located = [Located(message, 0, event) for message, event in enumerate(events)]
    return pa.Table.from_batches(build(located, wf.arrow.CHANGES, 0))


def outcome(work: Any, *arguments: Any, **options: Any) -> list[Any]:
    """The messages, or the words of the error after the format's name."""
    try:
        found = work(*arguments, **options)
        return found.to_pylist() if isinstance(found, pa.ChunkedArray) else list(found)
    except wf.EncodeError as error:
        return [str(error)]


def check(rows: pa.Table, events: Sequence[wf.Event], format: str, **options: Any) -> list[Any]:
    """Both engines give what wf.encode gives for the events."""
    expected = outcome(wf.encode, events, format, **options)
    by_events = outcome(wf.arrow.encode, rows, format, engine="declaration", **options)
    if by_events and "a column has none" in str(by_events[-1]):
        expected = by_events  # the table does not tell what the events did
    for engine in ("scan", "declaration"):
        assert outcome(wf.arrow.encode, rows, format, engine=engine, **options) == expected, engine
    return expected


@pytest.mark.parametrize("case", [case.name for case in CASES])
def test_golden_captures(case: str) -> None:
    """The rows of every capture in its own format, and where they are not compiled ones, in the compiled formats."""
    (found,) = (one for one in CASES if one.name == case)
    messages = found.messages
    events = list(wf.decode(messages, found.format, mode="DROPMALFORMED", **found.reading))
    rows = wf.arrow.changes(messages, found.format, mode="DROPMALFORMED", **found.reading)
    if found.format == "sql-decoding":
        assert "types" in outcome(wf.arrow.encode, rows, found.format)[0]
        return
    check(rows, events, found.format, encoding=found.encoding)
    for format in COMPILED:
        said = [adapted(event, format)[0] for event in events]
        for options in OPTIONS[format]:
            direct, by_events = (
                outcome(wf.arrow.encode, rows, format, options=options, adapt=True, engine=engine)
                for engine in ("scan", "declaration")
            )
            assert direct == by_events
            if found.format in COMPILED:
                assert direct == outcome(wf.encode, said, format, options=options)


@pytest.mark.parametrize("batch_bytes", [0, 100, 1000, 1 << 20])
@given(events=st.lists(strategies.events(), max_size=8))
def test_generated_rows(batch_bytes: int, events: list[wf.Event]) -> None:
    """Rows of any names and values, several times, so that their layouts are known; batches of every size."""
    events = [event for event in events if not isinstance(event, wf.RowChange) or _has_types(event)] * 2
    for options in OPTIONS["gaussdb-binary"]:
        check(table(events), events, "gaussdb-binary", options=options, batch_bytes=batch_bytes)


def _has_types(event: wf.RowChange) -> bool:
    """Whether the row-change table says the types of all columns: those of `old` are found by their names in `new`."""
    if event.new is None or event.old is None:
        return True
    types = dict(reversed([*zip(event.new.names, event.new.types, strict=True)]))
    return all(types.get(name) == type for name, type in zip(event.old.names, event.old.types, strict=True))


@given(events=pgoutput_strategies.streams())
def test_generated_streams(events: list[wf.Event]) -> None:
    """Relations that change, blocks, and values that were not sent; each event as the table tells it."""
    read = [*wf.decode([*wf.encode(events, "pgoutput")], "pgoutput")]
    assume(not any(wf.UNCHANGED in event.old.values for event in read if isinstance(event, wf.RowChange) and event.old))
    check(table(read), read, "pgoutput")  # the table does not tell which old values were not sent


CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*pgoutput*.parquet"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_of_servers(path: Path) -> None:
    messages = pq.read_table(path)["payload"]
    events, rows = [*wf.decode(messages, "pgoutput")], wf.arrow.changes(messages, "pgoutput")
    check(rows, events, "pgoutput")


@pytest.mark.parametrize("format", COMPILED)
def test_made_up_streams(format: str) -> None:
    """Tables that change, streamed and prepared transactions, values that were not sent."""
    messages = list(wf.encode(stream(6, 300, seed=4, format=format), format))
    check(wf.arrow.changes(messages, format), list(wf.decode(messages, format)), format)


def test_handmade_messages() -> None:
    messages = [DESCRIBED, *(message for message, _ in ALL.values())]
    check(wf.arrow.changes(messages, "pgoutput"), [*wf.decode(messages, "pgoutput")], "pgoutput")


def rows_without_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the events that are made while rows are written."""
    kinds: list[str] = []
    write = compiled_writer.write_event

    def watched(writer: Any, event: wf.Event, adapt_to: str | None) -> list[bytes]:
        kinds.append(event.kind)
        return write(writer, event, adapt_to)

    monkeypatch.setattr(compiled_writer, "write_event", watched)
    return kinds


@pytest.mark.parametrize("format", COMPILED)
def test_rows_of_a_layout_are_written_by_compiled_code(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sees the first row of each layout."""
    rows = [replace(INSERT, lsn=lsn, new=replace(INSERT.new, values=(str(lsn), None))) for lsn in range(100)]
    deletes = [wf.Delete(lsn=1, table_schema="s", table_name="t", old=replace(INSERT.new, values=("1", "x")))] * 50
    kinds = rows_without_python(monkeypatch)
    check(table([*rows, *deletes, *rows]), [*rows, *deletes, *rows], format)
    assert kinds == ["INSERT", "DELETE"]


WIDE = replace(RELATION, columns=("a", "B", "c"), type_oids=(23, 25, 25), typmods=(-1,) * 3)
"""A relation of which a column may be long."""


def update(*values: Any, types: tuple[str, ...] = ("integer", "text", "text")) -> wf.Update:
    return wf.Update(table_schema="s", table_name="t", new=wf.TupleData(("a", "B", "c"), values, types))


def test_rows_without_values_that_were_not_sent_are_written_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sees the first row of each set of columns, and of each description of the table."""
    kinds = rows_without_python(monkeypatch)
    old = replace(update("0", "x", "y").new, values=("1", None, "z"))
    some = [
        event
        for number in map(str, range(50))
        for event in (
            update(number, "b" * int(number), wf.UNCHANGED),
            update(number, wf.UNCHANGED, None),
            update(number, "b", "c"),
            replace(update(number, wf.UNCHANGED, "c"), old=old, old_kind="full"),
        )
    ]
    events = [WIDE, *some, WIDE, *some, replace(WIDE, replica_identity="full"), *some]
    check(table(events), events, "pgoutput")
    assert kinds.count("UPDATE") == 8


def test_rows_of_binary_values_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes them, but does not take them out of the batch one by one."""
    taken = []

    def watched(batch: pa.RecordBatch) -> list[dict[str, Any]]:
        taken.append(batch.num_rows)
        return rows_of(batch)

    monkeypatch.setattr(compiled_writer, "rows_of", watched)
    sent, unsent = (replace(update("1", value, "\\x01"), binary=("c",)) for value in ("x", wf.UNCHANGED))
    described = replace(WIDE, type_oids=(23, 25, 600))
    types = ("integer", "text", "point")
    rows = [replace(row, new=replace(row.new, types=types)) for row in (sent, unsent)]
    events = [described, *rows * 50, replace(described, relation_id=6), *rows * 50]
    assert len(check(table(events), events, "pgoutput")) == len(events)
    assert sum(taken) <= len(events)
    assert len(taken) < 10


def test_values_that_were_not_sent_after_another_type() -> None:
    other = replace(WIDE, type_oids=(23, 25, 1043))
    types = ("integer", "text", "character varying")
    unsent, unsent_other = (update("1", "x", wf.UNCHANGED, types=one) for one in (("integer", "text", "text"), types))
    events = [WIDE, unsent, unsent, other, unsent_other, unsent_other, WIDE, unsent, unsent]
    check(table(events), events, "pgoutput")
    events = [update("1", "x", "y"), unsent, unsent, update("1", "x", "y", types=types), unsent_other, unsent_other]
    check(table(events), events, "pgoutput")


def test_values_in_another_order_beside_those_that_were_not_sent() -> None:
    """They are written in the order of the relation."""
    events = [WIDE, *[update(number, wf.UNCHANGED, "7") for number in "1237"]]
    rows = table(events).to_pylist()
    for row in rows[1:]:
        row |= {"new": row["new"][::-1], "types": row["types"][::-1]}
    check(pa.Table.from_pylist(rows, wf.arrow.CHANGES), events, "pgoutput")


def test_a_relation_changes_the_layouts_of_its_table_only(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(INSERT, table_name="u")
    renamed = replace(RELATION, table_name="v")
    events = [RELATION, INSERT, INSERT, other, other, replace(RELATION, relation_id=6), INSERT, INSERT, other, renamed]
    events += [
        replace(INSERT, table_name="v"),
        INSERT,
        INSERT,
        replace(RELATION, relation_id=6, table_name="w"),
        INSERT,
    ]
    kinds = rows_without_python(monkeypatch)
    check(table(events), events, "pgoutput")
    assert kinds.count("INSERT") == 6


@pytest.mark.parametrize("format", COMPILED)
def test_slices_of_any_size(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, ranges and slices do not show, nor do arrays with an offset."""
    rows = [replace(INSERT, new=replace(INSERT.new, values=(str(lsn), "x" * lsn))) for lsn in range(60)]
    events: list[wf.Event] = [wf.Heartbeat(wal_end=1, wal_flushed=2, time=3)] if format == "gaussdb-binary" else []
    events = [*rows[:30], *events, *rows[30:]]
    whole = table([*rows[:7], *events])
    monkeypatch.setattr(encode, "ROWS", 7)
    monkeypatch.setattr(compiled_writer, "RANGE_BYTES", 300)
    for options in OPTIONS[format]:
        check(whole.slice(7), events, format, options=options, batch_bytes=500)
        check([whole.slice(start, 5) for start in range(7, len(whole), 5)], events, format, options=options)  # type: ignore[arg-type]


def test_a_truncate_of_several_tables_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its rows lie in several batches; another TRUNCATE is another one."""
    truncate = wf.Truncate(tables=tuple(("s", f"t{number}") for number in range(5)), cascade=True)
    events = [INSERT, truncate, truncate, INSERT, truncate]
    for size in (1 << 16, 3, 1):
        monkeypatch.setattr(encode, "ROWS", size)
        check(table(events), events, "pgoutput")


def test_more_layouts_than_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.arrow.written.heads.MOST_CODES", 20)
    events = [replace(INSERT, table_name=f"t{number % 5}") for number in range(30)]
    check(table(events), events, "gaussdb-binary")


def test_what_python_must_judge() -> None:
    """Rows that compiled code does not write, and the words of the errors."""
    rows = table([INSERT] * 4)
    for name, value in (
        ("lsn", None),
        ("xid", 5),
        ("unchanged", ["c"]),
        ("types", None),
        ("kind", "ELSE"),
        ("table_name", None),
    ):
        changed = [{**row, name: value} if index == 2 else row for index, row in enumerate(rows.to_pylist())]
        odd = pa.Table.from_pylist(changed, wf.arrow.CHANGES)
        for format in COMPILED:
            found = [outcome(wf.arrow.encode, odd, format, engine=engine) for engine in ("scan", "declaration")]
            assert found[0] == found[1]
            assert isinstance(found[0][0], str) or (format, name) == ("pgoutput", "lsn")


def test_a_record_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.formats.message_writer.RECORD_BYTES", 200)
    long = replace(INSERT, new=replace(INSERT.new, values=("1", "x" * 200)))
    with pytest.raises(wf.LimitExceeded, match="RECORD_BYTES is 200"):
        wf.arrow.encode(table([long, INSERT]), "gaussdb-binary")


def test_rows_must_be_those_of_the_row_change_table() -> None:
    rows = table([INSERT])
    with pytest.raises(TypeError, match="missing are types"):
        wf.arrow.encode(rows.drop_columns(["types"]), "pgoutput")
    with pytest.raises(TypeError, match="lsn: expected int64"):
        wf.arrow.encode(rows.set_column(3, "lsn", pa.array([[1]])), "pgoutput")
    with pytest.raises(wf.OptionError, match="engine"):
        wf.arrow.encode(rows, "pgoutput", engine="other")
    assert len(wf.arrow.encode(rows.slice(0, 0), "pgoutput")) == 0
    large = rows.set_column(8, "table_schema", rows["table_schema"].cast(pa.large_string())).drop_columns(["detail"])
    assert wf.arrow.encode(large, "pgoutput").to_pylist() == [*wf.encode([INSERT], "pgoutput")]


def test_skipped_transactions_and_other_encodings() -> None:
    events = [wf.Begin(lsn=1, csn=1, first_lsn=1), wf.Commit(lsn=2, xid=3), replace(INSERT, table_name="表")]
    for options, encoding in (({"skip-empty-xacts": True}, "utf-8"), ({}, "gbk"), ({}, "UTF8")):
        check(table(events), events, "gaussdb-binary", options=options, encoding=encoding)


def test_a_long_hash_chain_ends() -> None:
    """There are more slots than numbers."""
    assert heads.SLOTS > heads.MOST_CODES


@pytest.mark.parametrize("format", COMPILED)
def test_layouts_stay_known_in_later_batches(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "ROWS", 7)
    kinds = rows_without_python(monkeypatch)
    check(table([INSERT] * 50), [INSERT] * 50, format)
    assert kinds == ["INSERT"]


def test_a_type_that_changes_back() -> None:
    """The type of an old column that is not in the new row is that of the last row, which compiled code wrote."""
    one, other = INSERT, replace(INSERT, new=replace(INSERT.new, types=("text", "text")))
    part = wf.TupleData(("B",), ("2",), ("text",))
    old = wf.TupleData(("a",), ("1",), ("integer",))
    update = wf.Update(lsn=7, table_schema="s", table_name="t", new=part, old=old)
    events = [one, other, one, one, update]
    check(table(events), events, "gaussdb-binary")


def test_rows_of_truncate_that_do_not_follow_each_other() -> None:
    """They are two, though both say that they are the same record."""
    rows = table([INSERT, wf.Truncate(tables=(("s", "t"),)), INSERT, wf.Truncate(tables=(("s", "t"),))]).to_pylist()
    same = pa.Table.from_pylist([{**row, "message": 0} for row in rows], wf.arrow.CHANGES)
    found = [outcome(wf.arrow.encode, same, "pgoutput", engine=engine) for engine in ("scan", "declaration")]
    assert found[0] == found[1]
    assert len(found[0]) == 5


def test_a_relation_that_says_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows after it need no Python; one that says something else does, also within a streamed block."""
    full = replace(RELATION, replica_identity="full", key_columns=("a", "B"))
    delete = wf.Delete(table_schema="s", table_name="t", old=replace(INSERT.new, values=("1", "2")), old_kind="full")
    kinds = rows_without_python(monkeypatch)
    events: list[wf.Event] = [RELATION, INSERT, RELATION, INSERT, replace(RELATION, relation_id=6), INSERT, INSERT]
    check(table(events), events, "pgoutput")
    assert kinds == ["RELATION", "INSERT", "RELATION", "INSERT"]
    block = [wf.StreamStart(xid=9, first_segment=True), replace(full, xid=9), wf.StreamStop()]
    events = [
        full,
        delete,
        RELATION,
        INSERT,
        *block,
        INSERT,
        full,
        delete,
        wf.StreamCommit(xid=9, commit_lsn=1, end_lsn=2, commit_time="2026-01-01 00:00:00+00"),
        RELATION,
        INSERT,
        full,
        delete,
    ]
    check(table(events), events, "pgoutput")


@pytest.mark.parametrize("engine", ["scan", "declaration"])
def test_a_fact_that_is_null_is_not_there(engine: str) -> None:
    facts = [[("first_lsn", "0/1"), ("username", None)], [("first_lsn", "0/1")]]
    rows = [{"kind": "BEGIN", "lsn": 1, "csn": 1, "detail": detail} for detail in facts]
    found, expected = (
        wf.arrow.encode(
            pa.Table.from_pylist([row], wf.arrow.CHANGES),
            "gaussdb-binary",
            options={"include-user": 1},
            engine=engine,
        )
        for row in rows
    )
    assert found == expected


@pytest.mark.parametrize("engine", ["scan", "declaration"])
def test_truncates_of_two_streams_are_not_one(engine: str) -> None:
    """They may have the same position."""
    at: dict[str, Any] = {"kind": "TRUNCATE", "message": 0, "record": 0, "table_schema": "s"}
    rows = [{**at, "table_name": "t"}, {**at, "table_name": "u", "detail": [("cascade", "true")]}]
    written = wf.arrow.encode(pa.Table.from_pylist(rows, wf.arrow.CHANGES), "test-decoding", engine=engine)
    assert written.to_pylist() == [b"table s.t: TRUNCATE: (no-flags)", b"table s.u: TRUNCATE: cascade"]
