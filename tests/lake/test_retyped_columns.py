"""A column that gets another type: where it identifies rows, changes find them only if its values stay the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.pgtypes import type_name

from ..full_tables import FULL, TEXT, FullTable
from .reading import read

CHARACTER = (1042, 5 + 4)
VARYING = (1043, 5 + 4)
TABLE = "public.t"
UNKNOWN = "the column a, which was dropped and added again, or got another type: its values in them are not known"


def retyped(identity: str, before: tuple[int, int], after: tuple[int, int], old: str, new: str) -> FullTable:
    """Two rows, of which the first one changes after the type of its first column; then it is deleted."""
    table = FullTable()
    table.identity, table.types = identity, {"a": before}
    table.insert(old, "x")
    table.insert("2", "x")
    table.types["a"] = after
    table.rows[0]["a"] = new
    return table


def change(table: FullTable) -> None:
    """An update of the first row, and its end."""
    if table.identity == "full":
        table.update(0, "changed")
        table.delete(0)
        return
    row = {**table.rows.pop(0), "b": "changed"}
    table.transaction(wf.Update(**FULL, new=table.image(row)))
    key = wf.TupleData(("a",), (row["a"],), (type_name(table.types["a"][0]),))
    table.transaction(wf.Delete(**FULL, old=key, old_kind="key"))


def write(folder: Path, table: FullTable, **options: Any) -> None:
    wf.Capture(table.messages, "pgoutput").write(folder, format="delta", state="latest", **options)


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("is_written_before", [False, True])
@pytest.mark.parametrize("keys", [None, "given"])
def test_equal_values(tmp_path: Path, identity: str, is_written_before: bool, keys: str | None) -> None:
    table = retyped(identity, VARYING, TEXT, "1", "1")
    if is_written_before:
        write(tmp_path, table)
    change(table)
    of_keys = None if keys is None or identity == "full" else ["a"]
    found = wf.Capture(table.messages, "pgoutput").latest(TABLE, keys=of_keys)
    assert found.select(["a", "b"]).to_pylist() == [{"a": "2", "b": "x"}]
    write(tmp_path, table, keys=of_keys)
    assert [(row["a"], row["b"]) for row in read(tmp_path, ("public", "t")).to_pylist()] == [("2", "x")]


def test_other_values_of_a_whole_row(tmp_path: Path) -> None:
    """They are not known in the rows that no change touches."""
    table = retyped("full", CHARACTER, TEXT, "1    ", "1")
    change(table)
    found = wf.Capture(table.messages, "pgoutput").latest(TABLE)
    assert found.select(["a", "b", "_unchanged"]).to_pylist() == [{"a": None, "b": "x", "_unchanged": ["a"]}]
    write(tmp_path, table)
    assert [(row["a"], row["b"]) for row in read(tmp_path, ("public", "t")).to_pylist()] == [(None, "x")]


@pytest.mark.parametrize("keys", [None, ["a"]])
def test_other_values_of_a_key(tmp_path: Path, keys: Any) -> None:
    table = retyped("default", CHARACTER, TEXT, "1    ", "1")
    change(table)
    fault = "no value in a column of keys: a; .* changes from before a key column was .* given another type have none"
    with pytest.raises(wf.BadRows, match=fault):
        wf.Capture(table.messages, "pgoutput").latest(TABLE, keys=keys)
    with pytest.raises(wf.BadRows, match=fault):
        write(tmp_path, table, keys=keys)


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("truncates", [False, True])
def test_a_lake_that_has_other_values(tmp_path: Path, identity: str, truncates: bool) -> None:
    table = retyped(identity, CHARACTER, TEXT, "1    ", "1")
    write(tmp_path, table)
    if truncates:
        table.rows.clear()
        table.transaction(wf.Truncate(relation_ids=(FULL["relation_id"],), tables=(("public", "t"),)))
        table.insert("1", "x")
    table.insert("3", "x")
    if truncates:
        write(tmp_path, table)
        assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
        return
    for _ in range(2):
        with pytest.raises(wf.BadRows, match=f"{UNKNOWN}.*; begin a new lake with a snapshot"):
            write(tmp_path, table)


def test_values_that_are_not_known_go_with_a_truncate(tmp_path: Path) -> None:
    table = retyped("default", CHARACTER, TEXT, "1    ", "1")
    table.insert("3", "x")
    table.rows.clear()
    table.transaction(wf.Truncate(relation_ids=(FULL["relation_id"],), tables=(("public", "t"),)))
    table.insert("4", "x")
    found = wf.Capture(table.messages, "pgoutput").latest(TABLE)
    assert table.shown(found) == table.wanted()
    write(tmp_path, table)
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()


@pytest.mark.parametrize("identity", ["default", "nothing"])
def test_a_column_that_does_not_identify_rows(tmp_path: Path, identity: str) -> None:
    """Its values are those that the stream has sent."""
    table = FullTable()
    table.identity, table.types = identity, {"b": CHARACTER}
    table.insert("1", "x    ")
    write(tmp_path, table)
    table.types["b"] = TEXT
    table.insert("2", "y")
    write(tmp_path, table)
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
    keys = [] if identity == "nothing" else None
    assert table.shown(wf.Capture(table.messages, "pgoutput").latest(TABLE, keys=keys)) == table.wanted()


def test_a_new_table_of_the_same_name() -> None:
    """Its rows are those of the new one alone."""
    table = FullTable()
    table.identity, table.types = "default", {"a": CHARACTER}
    table.insert("1    ", "x")
    before = table.messages
    table.types.clear()
    with_oid = {**FULL, "relation_id": 20000}
    relation = wf.Relation(
        **with_oid,
        replica_identity="default",
        columns=("a", "b"),
        key_columns=("a",),
        type_oids=(25, 25),
        typmods=(-1, -1),
    )
    begin = wf.Begin(xid=9, commit_lsn=900, commit_time="2026-01-01 00:00:00+00")
    insert = wf.Insert(**with_oid, new=table.image({"a": "1", "b": "new"}))
    end = wf.Commit(commit_lsn=900, end_lsn=908, commit_time=begin.commit_time)
    messages = [*before, *wf.encode([begin, relation, insert, end], "pgoutput")]
    found = wf.Capture(messages, "pgoutput").latest(TABLE)
    assert found.select(["a", "b"]).to_pylist() == [{"a": "1", "b": "new"}]


@pytest.mark.parametrize("identity", ["full", "default"])
def test_a_write_that_ends_within_the_transaction_that_alters_the_type(tmp_path: Path, identity: str) -> None:
    """The lake has rows of the old type alone, wherever it ends."""
    table = retyped(identity, CHARACTER, TEXT, "1    ", "1")
    begin = len(table.messages)
    change(table)
    messages, found = table.messages, []
    for cut in range(begin, len(messages)):
        folder = tmp_path / str(cut)
        try:
            for end in (cut, len(messages)):
                wf.Capture(messages[:end], "pgoutput").write(folder, format="delta", state="latest")
        except wf.BadRows as error:
            found.append(str(error))
        else:
            found.append(str(read(folder, ("public", "t")).select(["a", "b"]).to_pylist()))
    update_was_seen = str([{"a": None, "b": "x"}])
    assert len(found) > 5
    assert all(one == update_was_seen or re.search("(given|got) another type", one) for one in found)


@pytest.mark.parametrize("identity", ["full", "default"])
def test_a_type_that_is_rolled_back(tmp_path: Path, identity: str) -> None:
    """A streamed transaction had it: the lake goes on with the old one."""
    table = FullTable()
    table.identity, table.types = identity, {"a": CHARACTER}
    table.insert("1    ", "x")
    before = [event for events in table.events for event in events]
    xid = 900
    block: list[wf.Event] = [wf.StreamStart(xid=xid, first_segment=True)]
    table.types.clear()
    new = table.image({"a": "1", "b": "never"})
    block += [replace(table.relation, xid=xid), wf.Insert(**FULL, new=new, xid=xid), wf.StreamStop()]
    block.append(wf.StreamAbort(xid=xid, subxid=xid))
    table.types["a"] = CHARACTER
    table.insert("2    ", "x")
    after = table.events[-1]
    events = [*before, *block, *after]
    for end in range(len(before), len(events) + 1):
        folder = tmp_path / str(end)
        for part in (events[:end], events):
            wf.Capture([*wf.encode(part, "pgoutput")], "pgoutput").write(folder, format="delta", state="latest")
        assert table.shown(read(folder, ("public", "t"))) == table.wanted()


@pytest.mark.parametrize("first", ["nothing", "of another column"])
@pytest.mark.parametrize("is_written_between", [False, True])
def test_an_identity_that_gets_a_column_with_a_new_type(tmp_path: Path, first: str, is_written_between: bool) -> None:
    """Until then, its values do not matter; from then on, those of existing rows are not known."""
    table, name = FullTable(), "a" if first == "nothing" else "b"
    table.identity = "nothing" if first == "nothing" else "default"
    table.types = {name: CHARACTER}
    table.insert("1    " if name == "a" else "1", "x    " if name == "b" else "x")
    if is_written_between:
        write(tmp_path, table, keys=[] if first == "nothing" else None)
    table.types.clear()
    table.insert("2", "y")
    table.identity = "full"
    table.rows[0].update(a="1", b="x")
    table.update(0, "changed")
    table.delete(0)
    latest = wf.Capture(table.messages, "pgoutput").latest(TABLE)
    assert latest.num_rows == len(table.rows) == 1
    if is_written_between:
        with pytest.raises(wf.BadRows, match=f"the column {name}, which was dropped and added again, or got another"):
            write(tmp_path, table)
        return
    write(tmp_path, table)
    assert read(tmp_path, ("public", "t")).num_rows == 1


def test_a_lake_that_does_not_have_the_modifiers_of_types(tmp_path: Path) -> None:
    """As one of an earlier release: what is not known is no change."""
    table = FullTable()
    table.identity, table.types = "default", {"a": CHARACTER}
    table.insert("1    ", "x")
    write(tmp_path, table)
    (path,) = tmp_path.glob("*.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    (stored,) = manifest["tables"]
    for version in stored["versions"]:
        version["typmods"] = None
    path.write_text(json.dumps(manifest), encoding="utf-8")
    table.insert("2    ", "x")
    write(tmp_path, table)
    assert table.shown(read(tmp_path, ("public", "t"))) == table.wanted()
