"""`Capture.latest`: by which columns it finds the rows, and what it gives without changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf

from .streams import AB, ABC, committed, insert, position_after, relation, rows_of


@pytest.mark.parametrize("keys", [None, ["id"]])
def test_a_table_without_committed_changes_has_no_rows(keys: list[str] | None) -> None:
    first = committed(10, *rows_of(None))
    messages = list(wf.encode(first, "pgoutput"))
    for capture in (
        wf.Capture(messages[:-1], "pgoutput"),
        wf.Capture([], "pgoutput", after=position_after(first)),
    ):
        found = capture.latest("public.t", keys=keys)
        assert found.schema == wf.Capture(messages, "pgoutput").latest("public.t", keys=keys).schema
        assert not len(found)
    found = wf.Capture(messages, "pgoutput").latest("public.nothing", keys=["id"], schema={"id": "integer"})
    assert (len(found), found.schema.field("id").type) == (0, pa.int32())


def test_latest_counts_equal_rows_if_the_whole_row_is_the_identity() -> None:
    before = committed(16, relation("a", keys=("a",), identity="full"), insert("a", values=("1",)))
    messages = list(wf.encode([*before, *committed(32, insert("a", values=("1",)))], "pgoutput"))
    assert wf.Capture(messages, "pgoutput").latest("public.t").num_rows == 2


def test_latest_loses_no_rows_if_a_column_is_added() -> None:
    """With REPLICA IDENTITY FULL, an older row has any value of the new column; a row that is equal goes first."""
    inserted = insert(*AB, values=("1", "x"))
    before = committed(16, relation(*AB, keys=AB, identity="full"), inserted, inserted)
    new = insert(*ABC, values=("1", "x", "p"))
    deleted = wf.Delete(table_schema="public", table_name="t", old=new.new, old_kind="full")
    after = committed(32, relation(*ABC, keys=ABC, identity="full"), new)
    for count, wanted in ((0, [None, None, "p"]), (1, [None, None]), (2, [None]), (3, [])):
        deletes = committed(48, *[deleted] * count)
        capture = wf.Capture(list(wf.encode([*before, *after, *deletes], "pgoutput")), "pgoutput")
        rows = capture.latest("public.t").to_pylist()
        assert [row["c"] for row in rows] == wanted
        assert [row["_unchanged"] for row in rows] == [["c"] if value is None else None for value in wanted]


@pytest.mark.parametrize("keys", [None, []])
def test_latest_takes_the_identity_that_the_stream_states(keys: list[str] | None) -> None:
    """A DELETE by a key has the key alone: the whole row would not find it."""
    described = relation(*AB, keys=("a",), identity="default")
    old = wf.TupleData(("a",), ("1",), ("text",))
    deleted = wf.Delete(table_schema="public", table_name="t", old=old, old_kind="key")
    events = committed(16, described, insert(*AB, values=("1", "x")), insert(*AB, values=("2", "x")), deleted)
    rows = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput").latest("public.t", keys=keys)
    assert rows["a"].to_pylist() == ["2"]


def test_latest_finds_rows_by_the_replica_identity_that_each_change_had() -> None:
    before = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x")))
    new = wf.TupleData(ABC, ("1", "y", "p"), ("text",) * 3)
    inserted = insert(*ABC, values=("1", "y", "o"))
    updated = wf.Update(table_schema="public", table_name="t", new=new)
    after = committed(32, relation(*ABC, keys=AB, identity="default"), inserted, updated)
    capture = wf.Capture(list(wf.encode([*before, *after], "pgoutput")), "pgoutput")
    for keys in (None, ["a", "b"]):
        rows = capture.latest("public.t", keys=keys).to_pylist()
        assert [(row["a"], row["b"], row["c"]) for row in rows] == [("1", "x", None), ("1", "y", "p")]


def test_values_that_do_not_fit_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Current rows have no `_error`."""
    schema = {"id": "integer", "day": "date"}
    described = relation("id", "day", keys=("id",), identity="default")
    messages = [
        *wf.encode(committed(16, described, insert("id", "day", values=("1", "2020-01-01"))), "pgoutput"),
        *wf.encode(committed(32, described, insert("id", "day", values=("2", "infinity"))), "pgoutput"),
    ]
    capture = wf.Capture(messages, "pgoutput", mode="PERMISSIVE")
    found = capture.latest("public.t", keys=["id"], schema=schema)
    assert [row["day"] is None for row in found.to_pylist()] == [False, True]
    (record,) = caplog.records
    assert "1 change of public.t had values that do not fit their types" in record.message
    caplog.clear()
    good = wf.Capture(messages, "pgoutput", mode="PERMISSIVE")
    assert good.latest("public.t", keys=["id"], schema={"id": "integer", "day": "text"}).num_rows == 2
    assert not caplog.records
