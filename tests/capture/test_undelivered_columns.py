"""Columns that only streamed transactions gave a table that were rolled back, or are open: no result has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.chunks.files import survey

from ..lake.reading import read
from ..undelivered import Part, Step, Transaction, columns_of, in_turns, messages_of

TABLE = "public.t"
OWN = frozenset("bcdef")
PLAIN = Transaction("plain", "commit", (Part("b"),))

PARTS = st.builds(Part, st.sampled_from(sorted(OWN)), st.booleans())
TRANSACTIONS = st.builds(
    Transaction,
    st.sampled_from(["plain", "streamed", "prepared", "both"]),
    st.sampled_from(["commit", "abort", "open"]),
    st.lists(PARTS, min_size=1, max_size=3).map(tuple),
)
HISTORIES = st.builds(
    in_turns,
    st.lists(TRANSACTIONS, min_size=1, max_size=6).map(lambda found: [PLAIN, *found]),
    st.lists(st.integers(0, 5), max_size=20).map(lambda turns: [0, *turns]),
)


def own(names: list[str]) -> set[str]:
    return {*names} & OWN


def transactions(kind: str, end: str) -> list[Transaction]:
    return [PLAIN, Transaction(kind, end, (Part("c"), Part("d", is_undone=True))), PLAIN]


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("end", ["commit", "abort", "open"])
@pytest.mark.parametrize("kind", ["streamed", "prepared", "both"])
def test_every_verb(tmp_path: Path, kind: str, end: str, engine: str) -> None:
    steps = in_turns(transactions(kind, end), [])
    wanted = {"b"} if (kind, end) in (("streamed", "abort"), ("streamed", "open")) else {"b", "c"}
    assert columns_of(steps) == wanted
    messages = messages_of(steps)

    def capture() -> wf.Capture:
        return wf.Capture(messages, "pgoutput", engine=engine)

    assert own(capture().typed(TABLE).schema.names) == wanted
    assert own(capture().latest(TABLE).schema.names) == wanted
    assert all(own(batch.schema.names) == wanted for _, batch in capture().typed_all())
    listed = capture()
    assert sum(listed.tables()["changes"].to_pylist()) == len(wf.arrow.changes(messages, "pgoutput", kinds=["INSERT"]))
    assert own(listed.typed(TABLE).schema.names) == wanted
    for format in ("parquet", "delta"):
        capture().write(tmp_path / format, format=format)
        assert own(read(tmp_path / format, ("public", "t")).schema.names) == wanted


@given(HISTORIES, st.data())
def test_any_history(steps: list[Step], data: st.DataObject) -> None:
    """Wherever it ends: the table has the columns of what was delivered."""
    steps = steps[: data.draw(st.integers(1, len(steps)))]
    capture = wf.Capture(messages_of(steps), "pgoutput")
    assert own(capture.typed(TABLE).schema.names) == columns_of(steps)


@given(HISTORIES)
def test_prepared_transactions_that_are_delivered_at_once(steps: list[Step]) -> None:
    capture = wf.Capture(messages_of(steps), "pgoutput", two_phase="prepare")
    found = capture.committed().read_all()
    names = {name for row in found["new"].to_pylist() for name, _ in row}
    assert own(capture.typed(TABLE).schema.names) == names & OWN


@given(HISTORIES, st.data())
def test_two_captures(steps: list[Step], data: st.DataObject) -> None:
    """The second one goes on after the first, and is sent again what was open there."""
    cut = data.draw(st.integers(1, len(steps)))
    first = wf.Capture(messages_of(steps[:cut]), "pgoutput")
    first.committed().read_all()
    second = wf.Capture(messages_of(steps), "pgoutput", after=first.position)
    rows = second.committed().read_all()["new"].to_pylist()
    found = own(second.typed(TABLE).schema.names)
    assert {name for row in rows for name, _ in row} & OWN <= found <= columns_of(steps)


@given(HISTORIES, st.integers(1, 9))
def test_chunks(tmp_path_factory: pytest.TempPathFactory, steps: list[Step], groups: int) -> None:
    path = tmp_path_factory.mktemp("chunks") / "stream.parquet"
    pq.write_table(pa.table({"payload": pa.array(messages_of(steps), pa.binary())}), path, row_group_size=groups)
    found = survey(path, "pgoutput", range_bytes=1)
    one = wf.Capture(path, "pgoutput")
    assert found.listed.equals(one.tables())
    assert found.listed.schema.metadata == one.tables().schema.metadata


def test_a_write_with_little_memory(tmp_path: Path) -> None:
    """Rows are written before all tables are known."""
    rows = [Transaction("plain", "commit", (Part("b"),) * 300) for _ in range(20)]
    steps = in_turns([*rows, *transactions("streamed", "abort")], [])
    wf.Capture(messages_of(steps), "pgoutput", memory_limit=1 << 16).write(tmp_path)
    found = read(tmp_path, ("public", "t"))
    assert own(found.schema.names) == {"b"}
    assert len(found) == 20 * 300 + 2


def test_a_lake_of_several_writes(tmp_path: Path) -> None:
    """Each write ends at another step of a transaction, which is rolled back: the lake never gets its columns."""
    steps = in_turns(transactions("streamed", "abort"), [])
    for end in range(1, len(steps) + 1):
        wf.Capture(messages_of(steps[:end]), "pgoutput").write(tmp_path, format="delta", state="latest")
        assert own(read(tmp_path, ("public", "t")).schema.names) == {"b"}


def test_a_connection_that_breaks_in_a_block() -> None:
    """The server sends the transaction again, and it is rolled back."""
    (first, *_), plain = in_turns([transactions("streamed", "abort")[1]], []), in_turns([PLAIN], [])
    broken = Step(first.events[:-1])
    messages = messages_of([*plain, broken, *plain[:1], *in_turns(transactions("streamed", "abort")[1:2], [])])
    assert own(wf.Capture(messages, "pgoutput").typed(TABLE).schema.names) == {"b"}


@pytest.mark.parametrize("verb", ["typed", "latest", "write"])
def test_a_row_of_a_column_that_was_undone(tmp_path: Path, verb: str) -> None:
    """No server sends it: it describes a table again after such a subtransaction. No value is lost."""
    start, relation, row, stop = in_turns([Transaction("streamed", "open", (Part("c"),))], [])[0].events
    begin, xid = wf.StreamStart(xid=700, first_segment=False), 700
    assert isinstance(relation, wf.Relation)
    assert isinstance(row, wf.Insert)
    undone = [start, replace(relation, xid=701), replace(row, xid=701), stop, wf.StreamAbort(xid=xid, subxid=701)]
    commit = wf.StreamCommit(xid=xid, commit_lsn=900, end_lsn=908, commit_time="2026-01-01 00:00:00+00")
    steps = [*in_turns([PLAIN], []), Step([*undone, begin, row, stop, commit])]
    capture = wf.Capture(messages_of(steps), "pgoutput")
    ask: dict[str, Callable[[], object]] = {
        "typed": lambda: capture.typed(TABLE).read_all(),
        "latest": lambda: capture.latest(TABLE),
        "write": lambda: capture.write(tmp_path),
    }
    with pytest.raises(wf.BadRows, match="one with others, which only a streamed transaction describes"):
        ask[verb]()
    found = capture.typed(TABLE, schema={"a": "text", "c": "text"}).read_all()
    assert found["c"].to_pylist() == [None, "v"]


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("verb", ["typed", "latest", "written"])
def test_rows_after_a_prepared_transaction(tmp_path: Path, ends: bool, verb: str) -> None:
    """The server does not describe the table to them again, whether it is rolled back or not."""
    before, prepared, undone, plain = in_turns([PLAIN, Transaction("prepared", "abort", (Part("c"),)), PLAIN], [])
    begin, _, _, commit = plain.events
    (insert,) = [event for event in prepared.events if isinstance(event, wf.Insert)]
    after = Step([begin, replace(insert, new=replace(insert.new, values=("w", "kept"))), commit])
    capture = wf.Capture(messages_of([before, prepared, *([undone] if ends else []), after]), "pgoutput")
    if verb == "written":
        capture.write(tmp_path, format="delta")
        found = read(tmp_path, ("public", "t"))
    else:
        found = capture.typed(TABLE).read_all() if verb == "typed" else capture.latest(TABLE, keys=["a"])
    assert found["c"].to_pylist() == [None, "kept"]


def test_one_definition_is_no_evolution() -> None:
    messages = messages_of(in_turns(transactions("streamed", "abort"), []))
    found = wf.Capture(messages, "pgoutput").typed(TABLE, evolution="error").read_all()
    assert own(found.schema.names) == {"b"}


def test_a_table_that_was_never_delivered() -> None:
    """It has no rows, but the stream says its columns."""
    messages = messages_of(in_turns([Transaction("streamed", "abort", (Part("c"),))], []))
    found = wf.Capture(messages, "pgoutput").typed(TABLE).read_all()
    assert (len(found), own(found.schema.names)) == (0, {"c"})


def test_a_type_that_was_rolled_back(tmp_path: Path) -> None:
    """A Delta table of integers cannot have texts; nor does it get any."""
    before = of_type(in_turns([PLAIN], []), 23, "integer", "1")
    undone = in_turns([PLAIN, Transaction("streamed", "abort", (Part("b"),))], [])[1:]
    after = of_type(in_turns([PLAIN, PLAIN], [])[1:], 23, "integer", "2")
    wf.Capture(messages_of(before), "pgoutput").write(tmp_path, format="delta")
    wf.Capture(messages_of([*before, *undone, *after]), "pgoutput").write(tmp_path, format="delta")
    assert read(tmp_path, ("public", "t"))["b"].to_pylist() == [1, 2]


def of_type(steps: list[Step], oid: int, name: str, value: str) -> list[Step]:
    """The same steps with another type of the table's second column, and this value in each row."""
    found = []
    for step in steps:
        events: list[wf.Event] = []
        for event in step.events:
            if isinstance(event, wf.Relation):
                event = replace(event, type_oids=(25, oid))
            elif isinstance(event, wf.Insert):
                event = replace(event, new=wf.TupleData(event.new.names, ("v", value), ("text", name)))
            events.append(event)
        found.append(step._replace(events=events))
    return found
