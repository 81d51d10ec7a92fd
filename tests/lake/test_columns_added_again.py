"""A column that was dropped and added again: its values from before are not those of the rows any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.lake import table_writer
from wireformat.lake.delta.folder import DeltaFolder
from wireformat.lake.lake import Lake

from ..examples import at_most
from ..full_tables import FULL, FullTable, table_after
from .reading import read
from .writing import Stopped


def readded(table: FullTable, name: str, default: str | None) -> None:
    """The server sends no description between the two, unless the table changes."""
    table.drop_column(name)
    table.add_column(name, default)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "delete", "update", "update", "add", "drop", "again"]),
        st.integers(0, 5),
        st.sampled_from("xy"),
    ),
    max_size=14,
)


@at_most(60)
@given(steps=STEPS, keys=st.sampled_from([None, []]))
def test_rows_are_found_while_columns_come_and_go_and_come_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], keys: Any
) -> None:
    folder, table = tmp_path_factory.mktemp("lake"), table_after(steps)
    capture = wf.Capture(table.messages, "pgoutput")
    assert table.shown(capture.latest("public.t", keys=keys)) == table.wanted()
    capture.write(folder, state="latest", keys=keys)
    assert table.shown(read(folder, ("public", "t"))) == table.wanted()


def of_key(table: FullTable, row: int, value: str) -> None:
    """An update of the last column, without an old row."""
    table.rows[row] = {**table.rows[row], table.columns[-1]: value}
    table.transaction(wf.Update(**FULL, new=table.image(table.rows[row])))


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("changes_between", [False, True])
@pytest.mark.parametrize("default", [None, "y"])
def test_rows_do_not_have_the_values_from_before(
    tmp_path: Path, identity: str, changes_between: bool, default: str | None
) -> None:
    table = FullTable()
    table.identity = identity
    table.columns = ["a", "b", "c"]
    for a in "1234":
        table.insert(a, "old", "x")
    table.drop_column("b")
    if changes_between:
        table.insert("5", "x")
    table.add_column("b", default)
    table.insert("6", "x", "new")
    if identity == "full":
        table.delete(0)
        table.update(0, "changed")
    else:
        row = wf.TupleData(("a",), (table.rows.pop(0)["a"],), ("text",))
        table.transaction(wf.Delete(**FULL, old=row, old_kind="key"))
        of_key(table, 0, "changed")
    capture = wf.Capture(table.messages, "pgoutput")
    for keys in (None, ["a"]) if identity == "default" else (None, []):
        found = capture.latest("public.t", keys=keys)
        assert table.shown(found) == table.wanted()
        assert {*found.filter(found["b"].is_null())["_unchanged"].combine_chunks().flatten().to_pylist()} == {"b"}
        capture.write(tmp_path / f"{keys}", format="delta", state="latest", keys=keys)
        assert table.shown(read(tmp_path / f"{keys}", ("public", "t"))) == table.wanted()


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("changes_between", [False, True])
@pytest.mark.parametrize("truncates", [False, True])
def test_a_lake_that_has_the_values_from_before(
    tmp_path: Path, identity: str, changes_between: bool, truncates: bool
) -> None:
    """Rows that no change touches have them, too."""
    table = FullTable()
    table.identity = identity
    table.columns = ["a", "b", "c"]
    table.insert("1", "old", "x")

    def write() -> Any:
        return wf.Capture(table.messages, "pgoutput").write(tmp_path, format="delta", state="latest")

    write()
    table.insert("2", "old", "x")
    write()
    table.drop_column("b")
    if truncates:
        table.rows.clear()
        table.transaction(wf.Truncate(relation_ids=(FULL["relation_id"],), tables=(("public", "t"),)))
    if changes_between:
        table.insert("3", "x")
    table.add_column("b", None)
    table.insert("4", "x", "new")
    if truncates:
        write()
        assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
        return
    with pytest.raises(wf.BadRows, match=r"b, which was dropped and added again.*; begin a new lake"):
        write()


def test_columns_of_a_lake_that_are_only_dropped_or_only_added(tmp_path: Path) -> None:
    """Also where each write begins with the first message again."""
    table = FullTable()
    table.columns = ["a", "b", "c"]
    table.insert("1", "old", "x")
    for change in (lambda: table.drop_column("b"), lambda: table.add_column("d", None), lambda: None):
        wf.Capture(table.messages, "pgoutput").write(tmp_path, format="delta", state="latest")
        change()
        table.insert("2", "x")
        table.delete(0)
    wf.Capture(table.messages, "pgoutput").write(tmp_path, format="delta", state="latest")
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("moment", ["a column was added", "the table was committed"])
def test_a_write_that_stops_when_a_column_is_new(
    tmp_path: Path, identity: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest does not have the column, and the Delta table has it, in its rows or not."""
    table = FullTable()
    table.identity = identity

    def write() -> Any:
        return wf.Capture(table.messages, "pgoutput").write(tmp_path, format="delta", state="latest")

    def delete() -> None:
        row = table.rows.pop(0)
        old = table.image(row) if identity == "full" else wf.TupleData(("a",), (row["a"],), ("text",))
        table.transaction(wf.Delete(**FULL, old=old, old_kind="full" if identity == "full" else "key"))

    def stop(*given: Any) -> None:
        raise Stopped

    for a in "12345":
        table.insert(a, "x")
    write()
    default = (
        "y" if identity == "full" else None
    )  # with a key, a row that no change touches does not say that it has one
    table.add_column("c", default)
    table.insert("6", "x", "z")
    delete()
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "discard", lambda lake: None)
        if moment == "a column was added":
            patched.setattr(table_writer, "merge", stop)
            patched.setattr(DeltaFolder, "replace", stop)
        else:
            patched.setattr(Lake, "commit", stop)
        with pytest.raises(Stopped):
            write()
    assert "c" in deltalake.DeltaTable(tmp_path / "public" / "t").to_pyarrow_table().column_names
    for a in "78":
        table.insert(a, "x", "z")
        delete()
        write()
        assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
    table.add_column("d", default)
    delete()
    write()
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()


def test_a_stopped_write_of_a_column_that_was_added_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows have no values from before: they were written after it."""
    table = FullTable()
    table.columns = ["a", "b", "c"]

    def write() -> Any:
        return wf.Capture(table.messages, "pgoutput").write(tmp_path, format="delta", state="latest")

    def stop(*given: Any) -> None:
        raise Stopped

    table.insert("1", "old", "x")
    write()
    table.rows.clear()
    table.transaction(wf.Truncate(relation_ids=(FULL["relation_id"],), tables=(("public", "t"),)))
    readded(table, "b", None)
    table.insert("2", "x", "new")
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "discard", lambda lake: None)
        patched.setattr(Lake, "commit", stop)
        with pytest.raises(Stopped):
            write()
    table.insert("3", "x", "new")
    write()
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
    readded(table, "c", None)
    table.insert("4", "new", "x")
    with pytest.raises(wf.BadRows, match="dropped and added again"):
        write()


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("columns", [("a", "b", "c"), ("a", "c"), ("a",)])
@pytest.mark.parametrize("is_sent_again", [False, True])
def test_a_capture_that_ends_within_the_transaction_that_alters_the_table(
    tmp_path: Path, identity: str, columns: tuple[str, ...], is_sent_again: bool
) -> None:
    """The next write reads the transaction again, or the whole stream; the lake is then that of a single write."""
    table = FullTable()
    table.identity = identity
    table.insert("1", "x")
    before = table.image(table.rows[0])
    old = {"old": before, "old_kind": "full"} if identity == "full" else {}
    table.transaction(wf.Update(**FULL, new=before, **old))
    table.columns, table.defaults = [*columns], {"c": None}
    new = {"a": "2", "b": "y", "c": "z"}
    table.events[-1][-1:-1] = [table.relation, wf.Insert(**FULL, new=table.image(new))]
    messages = table.messages
    begin, end = len(table.events[0]), len(messages)
    for folder, cuts in (("whole", [end]), ("parts", [end - 2, end]), ("again", [end - 1, end])):
        start = 0
        for cut in cuts:
            after = wf.lake.position(tmp_path / folder) if start else None
            capture = wf.Capture(messages[start:cut], "pgoutput", after=after)
            capture.write(tmp_path / folder, format="delta", state="latest")
            start = 0 if is_sent_again else begin
    whole, parts, again = (table.shown(read(tmp_path / name, ("public", "t"))) for name in ("whole", "parts", "again"))
    assert len(whole) == 2
    assert parts == again == whole


def relation_of(columns: int, xid: int | None = None) -> wf.Relation:
    """The description of a keyed table with the first so many of the columns a, b and c."""
    table = FullTable()
    table.identity = "default"
    table.columns = ["a", "b", "c"][:columns]
    return replace(table.relation, xid=xid)


def row(*values: str, xid: int | None = None) -> wf.Insert:
    return wf.Insert(**FULL, new=wf.TupleData(("a", "b", "c")[: len(values)], values, ("text",) * len(values)), xid=xid)


def transaction(number: int, *events: wf.Event) -> list[wf.Event]:
    at = {"commit_lsn": 100 * number, "commit_time": "2026-11-21 01:02:03+00"}
    return [wf.Begin(xid=number, **at), *events, wf.Commit(**at, end_lsn=100 * number + 1)]


FIRST = [*transaction(1, relation_of(2), row("1", "x"), row("2", "y")), *transaction(2, row("3", "z"))]
LATER = transaction(5, relation_of(3), row("5", "z", "7"))
UNDONE = [wf.StreamStart(xid=3, first_segment=True), relation_of(3, 3), row("4", "z", "7", xid=3), wf.StreamStop()]
UNDONE += [wf.StreamAbort(xid=3, subxid=3), *transaction(4, relation_of(2), row("4", "z"))]


@pytest.mark.parametrize(
    ("events", "cuts"),
    [
        ([*FIRST, *LATER], [5, 11]),
        ([*FIRST, *UNDONE, *LATER], [5, 12]),
        ([*FIRST, *UNDONE, *LATER], [5, 17]),
        ([*FIRST, *UNDONE, *LATER], [5, 12, 17]),
    ],
)
def test_a_column_that_earlier_writes_saw_in_no_committed_transaction(
    events: list[wf.Event], cuts: list[int], tmp_path: Path
) -> None:
    """It was open at the end of a write, or was rolled back after its server had sent it. It is added when it comes."""
    messages = list(wf.encode(events, "pgoutput"))
    for cut in [*cuts, len(messages)]:
        capture = wf.Capture(messages[:cut], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest", keys=["a"])
    rows = read(tmp_path, ("public", "t")).to_pylist()
    found = {found["a"]: found["c"] for found in rows}
    assert found == {"1": None, "2": None, "3": None, "5": "7"} | ({"4": None} if len(events) > 15 else {})
