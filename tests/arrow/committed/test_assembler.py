"""Committed rows in Arrow: agreement with the reference, splits, the store and its files, captures of real servers."""

from __future__ import annotations

import gc
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.committed.spill import RowSpill
from wireformat.lsn import unsigned
from wireformat.times import parse_commit_time

from ...examples import at_most
from ...golden_cases import CASES, find_case
from ...histories import histories, table
from ...servers.captures import capture_names, read_capture
from ...servers.replica import committed
from ...stream.reference import OutOfOrder, names, reference

TWO_PHASE = st.sampled_from(["commit", "prepare"])


def number(cell: int | None) -> int | None:
    return None if cell is None else unsigned(cell)


def told(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Committed rows as the reference says them, times as microseconds."""
    times = rows["commit_time"].cast(pa.int64()).to_pylist()
    return [
        (
            (number(row["sequence"]["commit_lsn"]), row["sequence"]["ordinal"]),
            *(number(row[name]) for name in ("xid", "csn", "commit_lsn")),
            time,
            row["username"],
            row["origin"],
            row["kind"],
            row["table_name"] or dict(row["detail"]).get("prefix") or dict(row["detail"])["content"],
        )
        for row, time in zip(rows.to_pylist(), times, strict=True)
    ]


def said(delivered: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What the reference says, times as microseconds."""
    return [(*row[:4], parse_commit_time(row[4] or ""), *row[5:]) for row in delivered]


def cut(rows: pa.Table, places: list[int]) -> list[pa.Table]:
    """The rows in pieces, that do not share memory."""
    ends = [*sorted({min(place, len(rows)) for place in places}), len(rows)]
    return [rows.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]


@given(histories(), TWO_PHASE, st.booleans(), st.lists(st.integers(0, 60), max_size=6), st.sampled_from([0, 1 << 20]))
def test_agrees_with_the_reference(
    events: list[wf.Event], two_phase: str, drop_resent: bool, places: list[int], memory_limit: int
) -> None:
    options: dict[str, Any] = {"two_phase": two_phase, "drop_resent": drop_resent, "memory_limit": memory_limit}
    delivered, open = reference(events, two_phase, drop_resent)
    pieces = cut(table(events), places)
    assert told(wf.arrow.transactions(pieces, **options)) == said(delivered)
    left = wf.arrow.open_transactions(pieces, **options)
    assert left.drop_columns("message").equals(table(open).drop_columns("message"))


@given(histories(losses=True), TWO_PHASE, st.booleans(), st.lists(st.integers(0, 60), max_size=3))
def test_what_is_out_of_order_is_an_error(
    events: list[wf.Event], two_phase: str, drop_resent: bool, places: list[int]
) -> None:
    pieces = cut(table(events), places)
    try:
        delivered, _ = reference(events, two_phase, drop_resent)
    except OutOfOrder:
        with pytest.raises(wf.OrderError, match=r"message \d+, record 0"):
            wf.arrow.transactions(pieces, two_phase=two_phase, drop_resent=drop_resent)
    else:
        assert told(wf.arrow.transactions(pieces, two_phase=two_phase, drop_resent=drop_resent)) == said(delivered)


@given(histories(), st.integers(0, 60), TWO_PHASE)
def test_open_rows_and_the_rest_give_what_is_missing(events: list[wf.Event], place: int, two_phase: str) -> None:
    """Positions are in the metadata, so that nothing else has to be kept; through concat_tables too."""
    rows = table(events)
    first, rest = rows.slice(0, place), rows.slice(place)
    before = wf.arrow.transactions(first, two_phase=two_phase)
    open = wf.arrow.open_transactions(first, two_phase=two_phase)
    whole = wf.arrow.transactions(rows, two_phase=two_phase)
    for going_on in ([open, rest], pa.concat_tables([open, rest])):
        after = wf.arrow.transactions(going_on, two_phase=two_phase)
        assert pa.concat_tables([before, after]).equals(whole)


@given(histories(), st.lists(st.integers(0, 60), max_size=4))
def test_state_and_store_go_on(events: list[wf.Event], places: list[int]) -> None:
    """Another object with the state and the store goes on where one stopped."""
    store, state, found = RowSpill(1 << 20), None, []
    for piece in cut(table(events), places):
        for batch in piece.to_batches():
            machine = wf.arrow.Transactions(store=store, state=state)
            found += list(machine.take(batch))
            state = pickle.loads(pickle.dumps(machine.state))
    whole = wf.arrow.transactions(table(events))
    assert pa.Table.from_batches(found, whole.schema).equals(whole)


def test_a_state_knows_its_rows() -> None:
    """Also before there was another batch, and with kept columns."""
    rows = table([wf.StreamStart(xid=1), wf.Insert(table_schema="s", table_name="t", xid=1)])
    rows = rows.append_column("offset", pa.array([7, 8]))
    store = RowSpill(0)
    first = wf.arrow.Transactions(store=store)
    assert [list(first.take(batch)) for batch in rows.to_batches()] == [[]]
    second = wf.arrow.Transactions(store=store, state=first.state)
    assert second.open.equals(rows)
    first.close()
    with pytest.raises(wf.StateError, match="open: expected open transactions, but they were closed"):
        _ = first.open
    assert second.open.equals(rows)


def test_state_is_small() -> None:
    """Pieces stay apart, and a state does not grow with rows."""
    begin = table([wf.Begin(xid=1)])
    rows = table([wf.Insert(table_schema="s", table_name="t")] * 1000).to_batches()
    with wf.arrow.Transactions() as machine:
        for batch in [*begin.to_batches(), *rows * 50]:
            assert list(machine.take(batch)) == []
        assert len(machine.open) == 50_001
        assert len(machine.state) < 5000


@pytest.mark.parametrize(
    "name", [name for name in capture_names() if not name.endswith(("decoding-all", "ing-streaming"))]
)
def test_captures(name: str) -> None:
    """The same rows in the same order as the plain replica takes them."""
    capture = read_capture(name)
    format = "pgoutput" if "pgoutput" in name else "test-decoding"
    rows = wf.arrow.changes(capture.messages, format)
    found = wf.arrow.transactions(rows)
    events = [
        (transaction, event.kind, table)
        for transaction, events in enumerate(committed(wf.decode(capture.messages, format)))
        for event in events
        if not isinstance(event, wf.Relation)
        for table in names(event)
    ]
    assert [(row[-2], row[-1]) for row in told(found)] == [event[1:] for event in events]
    sequences = [(row["commit_lsn"], row["ordinal"]) for row in found["sequence"].to_pylist()]
    assert sequences == sorted(set(sequences))
    starts = [place for place, (_, ordinal) in enumerate(sequences) if ordinal == 0]
    assert {events[place][0] for place in starts} <= {event[0] for event in events}
    assert found.equals(wf.arrow.transactions(cut(rows, [100, 200, 1200, 1210, 2000]), memory_limit=0))
    assert len(wf.arrow.open_transactions(rows)) == 0


@pytest.mark.parametrize("name", ["15-pgoutput-3-streaming", "18-pgoutput-4-two-phase"])
@pytest.mark.parametrize("two_phase", ["commit", "prepare"])
def test_captures_that_are_sent_again(name: str, two_phase: str) -> None:
    """The connection breaks somewhere, and the server sends all from the beginning."""
    rows = wf.arrow.changes(read_capture(name).messages, "pgoutput")
    expected = wf.arrow.transactions(rows, two_phase=two_phase).drop_columns("message")
    for place in range(50, len(rows) + 1, 397):
        found = wf.arrow.transactions([rows.slice(0, place), rows], two_phase=two_phase)
        assert found.drop_columns("message").equals(expected)
    assert len(wf.arrow.open_transactions([rows, rows], two_phase=two_phase)) == 0


@pytest.mark.parametrize("case", [case for case in CASES if "area" not in case.name], ids=lambda case: case.name)
def test_golden(case: Any) -> None:
    errors = "replace" if case.has_bad_text else "strict"
    rows = wf.arrow.changes(case.messages, case.format, encoding_errors=errors, **case.reading)
    found = wf.arrow.transactions(rows)
    kinds = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "DDL")
    assert found["kind"].to_pylist() == [kind for kind in rows["kind"].to_pylist() if kind in kinds]
    for name in ("new", "old", "types", "table_name", "message", "record"):
        wanted = rows.filter(pa.array([kind in kinds for kind in rows["kind"].to_pylist()]))
        assert found[name].equals(wanted[name])
    assert found["sequence"].null_count == 0


@pytest.mark.parametrize("name", ["mppdb_area", "sql_area", "testdec_area"])
def test_an_area_of_the_log_has_no_transactions(name: str) -> None:
    case = find_case(name)
    with pytest.raises(wf.OrderError, match=r"got rows outside a transaction.*pg_logical_get_area_changes"):
        wf.arrow.transactions(wf.arrow.changes(case.messages, case.format, **case.reading))


def test_kept_columns_pass_through() -> None:
    """As Spark gives them: no message, other columns before it; an error names them."""
    rows = table([wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t"), wf.Commit(lsn=5)]).drop_columns(
        "message"
    )
    kept = rows.add_column(0, "offset", pa.array([7, 8, 9])).add_column(1, "blob", pa.array([b"", b"x", b""]))
    found = wf.arrow.transactions(kept)
    assert found.column_names == ["sequence", "offset", "blob", *rows.column_names, "username", "origin"]
    assert found.select(["offset", "blob"]).to_pylist() == [{"offset": 8, "blob": b"x"}]
    with pytest.raises(wf.OrderError, match=r"at offset=8\]"):
        wf.arrow.transactions(kept.slice(1))


def test_what_is_no_table_of_row_changes() -> None:
    rows = table([wf.Begin()])
    with pytest.raises(wf.OptionError, match="got none named detail"):
        wf.arrow.transactions(rows.drop_columns("detail"))
    with pytest.raises(wf.OptionError, match="are added, got columns named origin"):
        wf.arrow.transactions(rows.append_column("origin", pa.nulls(1)))
    with pytest.raises(wf.OptionError, match="the columns of the first batch"):
        wf.arrow.transactions([rows, rows.drop_columns("raw")])
    with pytest.raises(wf.BadRows, match=r"one of the kinds .* got 'X' \[message 0, record 0\]"):
        wf.arrow.transactions(rows.set_column(2, "kind", pa.array(["X"])))
    with pytest.raises(TypeError, match="got int"):
        wf.arrow.transactions(5)
    with pytest.raises(
        wf.OrderError,
        match=r"got CORRUPT \[row changes: message 1, record 0.*a transaction with an unreadable record is not",
    ):
        wf.arrow.transactions(table([wf.Begin(), wf.Corrupt(error="e", raw=b"")]))


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("xid", pa.float64()),  # as pandas makes of a column with nulls
        ("lsn", pa.uint64()),
        ("csn", pa.int32()),
        ("commit_lsn", pa.decimal128(20, 0)),
        ("commit_time", pa.timestamp("ns", "UTC")),
        ("commit_time", pa.string()),
        ("detail", pa.string()),
        ("detail", pa.map_(pa.string(), pa.int32())),
        ("kind", pa.null()),
        ("new", pa.string_view()),
        ("types", pa.list_(pa.string_view())),
    ],
)
def test_columns_that_cannot_be_read(name: str, type: pa.DataType) -> None:
    rows = table([wf.Begin()])
    other = rows.set_column(rows.schema.get_field_index(name), name, pa.nulls(1, type))
    with pytest.raises(wf.OptionError, match=f"column {name}: expected .* got {re.escape(str(type))}"):
        wf.arrow.transactions(other)


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("kind", pa.large_string()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("detail", pa.map_(pa.large_string(), pa.large_string())),
        ("commit_time", pa.timestamp("us", "Europe/Berlin")),
        ("commit_time", pa.timestamp("us")),
    ],
)
def test_columns_that_others_write_so(name: str, type: pa.DataType) -> None:
    events = [wf.Begin(xid=1, username="u"), wf.Insert(table_schema="s", table_name="t"), wf.Commit(lsn=5)]
    rows = table([*events, events[0]])
    other = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(type))
    for pieces in (other, [other.slice(0, 1), other.slice(1)]):
        found = wf.arrow.transactions(pieces)
        assert found.schema.field(name).type == type
        assert told(found.cast(wf.arrow.committed_schema(rows.schema))) == told(wf.arrow.transactions(rows))
        assert wf.arrow.open_transactions(pieces).equals(other.slice(3))


def test_open_rows_of_several_batches_are_not_put_into_one_array() -> None:
    """Text of more than 2 GiB would not fit."""
    blocks: list[wf.Event] = []
    for xid in (1, 2, 1, 2):
        block: list[wf.Event] = [wf.Insert(table_schema="s", table_name="t", xid=xid)] * 2
        blocks += [wf.StreamStart(xid=xid), *block, wf.StreamStop()]
    rows = table(blocks)
    open = wf.arrow.open_transactions([rows] * 3)
    assert open["new"].num_chunks == 3
    assert open.equals(pa.concat_tables([rows] * 3))


def test_a_kept_column_of_any_name() -> None:
    rows = table([wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t")])
    rows = rows.append_column("_row", pa.array([9, 8]))
    assert wf.arrow.open_transactions(rows).equals(rows)
    with pytest.raises(wf.OptionError, match="with different names, got kind twice"):
        wf.arrow.transactions(rows.append_column("kind", rows["kind"]))


def test_no_rows() -> None:
    found = wf.arrow.transactions(table([]))
    assert len(found) == 0
    assert found.schema == wf.arrow.committed_schema(wf.arrow.CHANGES)
    assert wf.arrow.transactions([]).schema == found.schema
    assert wf.arrow.open_transactions([]).schema == wf.arrow.CHANGES


def test_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what they hold, at close, at an error and with the object."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    block: list[wf.Event] = [wf.StreamStart(xid=1), *[wf.Insert(table_schema="s", table_name="t", xid=1)] * 9]
    rows = table([*block, wf.StreamStop()])
    end = table([wf.StreamCommit(xid=1, commit_lsn=5)])
    machine = wf.arrow.Transactions(memory_limit=100)
    assert [list(machine.take(batch)) for batch in rows.to_batches() * 2] == [[], []]
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 2
    assert sum(len(batch) for batch in machine.take(*end.to_batches())) == 18
    assert list(folder.iterdir()) == []
    machine.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(wf.OrderError):
        wf.arrow.transactions([rows, table([wf.Commit()])], memory_limit=100)
    assert list(tmp_path.iterdir()) == []
    other = wf.arrow.Transactions(memory_limit=100)
    assert [list(other.take(batch)) for batch in rows.to_batches()] == [[]]
    assert list(tmp_path.iterdir()) != []
    del other
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("batches_held", [0, 2, 9])
def test_kept_columns_of_any_type_are_held(batches_held: int) -> None:
    """In files too: there every batch has its own dictionary."""
    block: list[wf.Event] = [wf.StreamStart(xid=1), *[wf.Insert(table_schema="s", table_name="t", xid=1)] * 2]
    rows = table([*block, wf.StreamStop()])
    types = {
        "code": pa.dictionary(pa.int32(), pa.string()),
        "codes": pa.list_(pa.dictionary(pa.int8(), pa.string())),
        "nested": pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32()))), ("b", pa.large_binary())]),
        "fixed": pa.list_(pa.float32(), 2),
        "nothing": pa.null(),
    }
    pieces = []
    for number in range(6):
        piece = rows
        for name, type in types.items():
            cell: dict[str, Any] = {
                "code": f"{number}",
                "codes": [f"{number}", None],
                "nested": {"m": [("k", [number])], "b": b"x"},
                "fixed": [1.5, None],
                "nothing": None,
            }
            piece = piece.append_column(name, pa.array([cell[name]] * len(rows), type))
        pieces.append(piece)
    end = table([wf.StreamCommit(xid=1, commit_lsn=5)])
    for name, type in types.items():
        end = end.append_column(name, pa.nulls(1, type))
    limit = batches_held * pieces[0].nbytes
    found = wf.arrow.transactions([*pieces, end], memory_limit=limit)
    expected = [row for piece in pieces for row in piece.select(list(types)).slice(1, 2).to_pylist()]
    assert found.select(list(types)).to_pylist() == expected
    assert len(wf.arrow.open_transactions(pieces, memory_limit=limit)) == 6 * len(rows)


@at_most(20)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=30), st.booleans())
def test_unsigned_numbers(steps: list[int], falls: bool) -> None:
    """Positions around 2**63 are compared as what they are."""
    lsns = [2**63 - 20 + sum(steps[: n + 1]) for n in range(len(steps))]
    events: list[wf.Event] = []
    for lsn in [*lsns, *(lsns[-2:] if falls else [])]:
        events += [wf.Begin(), wf.Insert(table_schema="s", table_name=str(lsn)), wf.Commit(lsn=lsn)]
    found = told(wf.arrow.transactions(table(events)))
    assert [row[0][0] for row in found] == lsns
