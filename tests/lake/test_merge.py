"""Changes that are merged into a Delta table: what of it they need."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.events import UNCHANGED, Unchanged
from wireformat.lake import table_writer
from wireformat.lake.delta.folder import DeltaFolder

from ..examples import at_most
from ..full_tables import table_after
from .reading import read

RELATION = wf.Relation(
    relation_id=16400,
    table_schema="public",
    table_name="t",
    replica_identity="default",
    columns=("id", "small", "large"),
    type_oids=(23, 25, 25),
    typmods=(-1, -1, -1),
    key_columns=("id",),
)


def update(lsn: int, id: int, small: str, large: str | Unchanged) -> list[wf.Event]:
    """A transaction."""
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time="2026-01-01 00:00:00+00")
    new = wf.TupleData(RELATION.columns, (str(id), small, large), ("integer", "text", "text"))
    change = wf.Update(table_schema="public", table_name="t", relation_id=16400, new=new)
    commit = wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time="2026-01-01 00:00:00+00")
    return [begin, RELATION, change, commit]


def test_only_values_that_were_not_sent_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table may be large, and the changes few."""
    reads, delta_rows = [], table_writer.delta_rows

    def read_rows(*given: Any) -> Any:
        reads.append(given)
        return delta_rows(*given)

    monkeypatch.setattr(table_writer, "delta_rows", read_rows)
    for transaction, count in (
        (update(100, 1, "a", "A"), 0),
        (update(200, 2, "b", "B"), 0),
        (update(300, 1, "c", "C"), 0),
        (update(400, 2, "d", UNCHANGED), 1),
    ):
        capture = wf.Capture([*wf.encode(transaction, "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest")
        assert len(reads) == count
    rows = read(tmp_path, ("public", "t")).select(["id", "small", "large"]).to_pylist()
    assert rows == [{"id": 1, "small": "c", "large": "C"}, {"id": 2, "small": "d", "large": "B"}]


def added(lsn: int, *rows: str, removed: str | None = None) -> list[wf.Event]:
    """A transaction on a table without a key."""
    relation = replace(RELATION, replica_identity="full", key_columns=RELATION.columns)
    table: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}

    def row(text: str) -> wf.TupleData:
        return wf.TupleData(RELATION.columns, ("1", text, text), ("integer", "text", "text"))

    begin, _, _, commit = update(lsn, 1, "a", "A")
    changes: list[wf.Event] = [wf.Insert(**table, new=row(text)) for text in rows]
    if removed is not None:
        changes.append(wf.Delete(**table, old=row(removed), old_kind="full"))
    return [begin, relation, *changes, commit]


def test_rows_are_added_to_a_table_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at those that are there, until one is deleted."""
    reads, delta_rows = [], table_writer.delta_rows
    monkeypatch.setattr(table_writer, "delta_rows", lambda *given: reads.append(given) or delta_rows(*given))
    for transaction, count in (
        (added(100, "a", "b"), 0),
        (added(200, "a", "a"), 0),
        (added(300, "c"), 0),
        (added(400, "d", removed="a"), 1),
    ):
        capture = wf.Capture([*wf.encode(transaction, "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest")
        assert len(reads) == count
    assert sorted(read(tmp_path, ("public", "t"))["small"].to_pylist()) == ["a", "a", "b", "c", "d"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "delete", "update", "update", "add", "drop"]),
        st.integers(0, 5),
        st.sampled_from("xy"),
    ),
    max_size=14,
)


@at_most(60)
@example(steps=[("delete", 0, "x"), ("add", 0, "x")], splits=[2], keys=None)
@given(steps=STEPS, splits=st.lists(st.integers(0, 18), max_size=3), keys=st.sampled_from([None, []]))
def test_rows_are_found_by_their_values_while_columns_come_and_go(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], splits: list[int], keys: Any
) -> None:
    """An old row has the default of an added column, which was not sent before, and lacks a column that was dropped."""
    folder, table = tmp_path_factory.mktemp("lake"), table_after(steps)
    whole = wf.Capture(table.messages, "pgoutput")
    assert table.shown(whole.latest("public.t", keys=keys)) == table.wanted()
    whole.write(folder / "new", state="latest", keys=keys)
    assert table.shown(read(folder / "new", ("public", "t"))) == table.wanted()
    for end in sorted({*splits, len(table.events)}):
        messages = [*wf.encode([event for events in table.events[:end] for event in events], "pgoutput")]
        if messages:
            wf.Capture(messages, "pgoutput").write(folder / "later", format="delta", state="latest", keys=keys)
    assert table.shown(read(folder / "later", ("public", "t"))) == table.wanted()


def test_a_row_that_cannot_be_told_from_others(tmp_path: Path) -> None:
    """GaussDB omits an unchanged value from the new row of an UPDATE; an old row without it has it nowhere."""

    def capture(*changes: wf.Event) -> wf.Capture:
        events = [wf.Begin(lsn=16, csn=1, first_lsn=16), *changes, wf.Commit(lsn=24, xid=1)]
        return wf.Capture([*wf.encode(events, "gaussdb-binary")], "gaussdb-binary")

    def image(*values: str) -> wf.TupleData:
        return wf.TupleData(("id", "small", "large")[: len(values)], values, ("integer", "text", "text")[: len(values)])

    of_table: dict[str, Any] = {"lsn": 17, "table_schema": "public", "table_name": "t"}
    inserts = [wf.Insert(**of_table, new=image("1", "a", large)) for large in ("A", "B")]
    changed = wf.Update(**of_table, old=image("1", "a"), new=image("1", "b"))
    for format in ("parquet", "delta"):
        with pytest.raises(wf.BadRows, match=r"rows differ \[table public.t\]; pass keys"):
            capture(*inserts, changed).write(tmp_path / format, format=format, state="latest", keys=[])
    with pytest.raises(wf.BadRows, match="one that lacks values in which rows differ; pass keys"):
        capture(*inserts, changed).latest("public.t", keys=[])
    found = capture(inserts[0], changed).latest("public.t", keys=["id"])
    assert found.select(["id", "small", "large"]).to_pylist() == [{"id": 1, "small": "b", "large": "A"}]


def test_a_key_that_contains_an_array(tmp_path: Path) -> None:
    relation = replace(RELATION, type_oids=(23, 1009, 25), key_columns=("id", "small"))
    types = ("integer", "text[]", "text")
    table: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}

    def image(*values: str | Unchanged) -> wf.TupleData:
        return wf.TupleData(RELATION.columns[: len(values)], values, types[: len(values)])

    inserts = [wf.Insert(**table, new=image("1", key, "A")) for key in ("{a,b}", "{a,NULL}", "{}", "{c}")]
    changed = wf.Update(**table, new=image("1", "{a,b}", "B"))
    moved = wf.Update(**table, old=image("1", "{a,NULL}"), old_kind="key", new=image("1", "{d}", UNCHANGED))
    deleted = wf.Delete(**table, old=image("1", "{}"), old_kind="key")
    for lsn, changes in ((100, inserts), (200, [changed, moved, deleted])):
        begin, _, _, commit = update(lsn, 1, "a", "A")
        capture = wf.Capture([*wf.encode([begin, relation, *changes, commit], "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest")
    rows = read(tmp_path, ("public", "t"))
    assert sorted(zip(rows["small"].to_pylist(), rows["large"].to_pylist(), strict=True)) == [
        (["a", "b"], "B"),
        (["c"], "A"),
        (["d"], "A"),
    ]


KEYS_OF_ZERO = replace(
    RELATION,
    relation_id=16401,
    table_name="z",
    columns=("key", "v"),
    type_oids=(701, 25),
    typmods=(-1, -1),
    key_columns=("key",),
)


@pytest.mark.parametrize("split", [True, False])
def test_zero_and_minus_zero_are_one_key(split: bool, tmp_path: Path) -> None:
    """PostgreSQL takes them as equal; a MERGE of some versions of deltalake does not."""

    def image(*values: str) -> wf.TupleData:
        return wf.TupleData(KEYS_OF_ZERO.columns[: len(values)], values, ("double precision", "text")[: len(values)])

    def write(lsn: int, *changes: wf.Event) -> None:
        begin, _, _, commit = update(lsn, 1, "a", "A")
        messages = [*wf.encode([begin, KEYS_OF_ZERO, *changes, commit], "pgoutput")]
        wf.Capture(messages, "pgoutput").write(tmp_path, format="delta", state="latest")

    of_table: dict[str, Any] = {"table_schema": "public", "table_name": "z", "relation_id": 16401}
    write(8, wf.Insert(**of_table, new=image("-0", "a")))
    if split:
        write(16, wf.Delete(**of_table, old=image("-0"), old_kind="key"), wf.Insert(**of_table, new=image("0", "b")))
    else:
        write(16, wf.Update(**of_table, new=image("0", "b"), old=image("-0"), old_kind="key"))
    assert read(tmp_path, ("public", "z")).select(["key", "v"]).to_pylist() == [{"key": 0.0, "v": "b"}]


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("keys", [["id"], {"public.o": ["id"], "public.t": ["id"]}])
def test_a_table_that_has_only_been_truncated(keys: Any, format: str, tmp_path: Path) -> None:
    """Its columns are not known, so its key cannot be looked for; the other tables are written."""
    inserted = [b"BEGIN 1", b"table public.o: INSERT: id[integer]:1", b"COMMIT 1"]
    truncated = [b"BEGIN 2", b"table public.t: TRUNCATE: (no-flags)", b"COMMIT 2"]
    capture = wf.Capture([*inserted, *truncated], "test-decoding")
    found = capture.write(tmp_path, format=format, state="latest", keys=keys)
    assert dict(zip(found["table_name"].to_pylist(), found["rows"].to_pylist(), strict=True)) == {"o": 1, "t": 0}


def test_the_rows_of_a_merge_are_those_that_it_touches(tmp_path: Path) -> None:
    """Not the changes: of three of one row, one row is written."""
    first = [*update(100, 1, "a", "A"), *update(200, 2, "b", "B")]
    second = [event for lsn in (300, 400, 500) for event in update(lsn, 1, "c", "C")]
    for events, rows in ((first, 2), (second, 1)):
        found = wf.Capture([*wf.encode(events, "pgoutput")], "pgoutput").write(tmp_path, format="delta", state="latest")
        assert found["rows"].to_pylist() == [rows]


@pytest.mark.parametrize("removed", [None, "a"])
def test_files_that_a_log_names_stay_if_the_write_fails_after_its_commit(
    removed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the answer of an object store is lost. They are added to a table without a key, or replace its rows."""

    def write(lsn: int, *rows: str, removed: str | None = None) -> None:
        messages = [*wf.encode(added(lsn, *rows, removed=removed), "pgoutput")]
        wf.Capture(messages, "pgoutput").write(tmp_path, format="delta", state="latest")

    def lost(folder: DeltaFolder, *given: Any) -> None:
        add(folder, *given)
        raise OSError(errno.EIO, "the network")

    write(100, "a", "b")
    add = DeltaFolder._add
    with monkeypatch.context() as patched:
        patched.setattr(DeltaFolder, "_add", lost)
        with pytest.raises(OSError, match="the network"):
            write(200, "c", removed=removed)
    for _ in range(2):
        there = sorted(read(tmp_path, ("public", "t"))["small"].to_pylist())
        assert there == ["a", "b", "c"][removed is not None :]
        write(200, "c", removed=removed)


FULL = replace(RELATION, replica_identity="full", key_columns=RELATION.columns)


def transaction(lsn: int, *changes: tuple[int | None, int | None], relation: wf.Relation = FULL) -> list[bytes]:
    """Changes of the keys of rows, which keep their values: from one to another, or None, where there is no row."""
    old_kind = "full" if relation is FULL else "key"

    def row(key: int | None) -> wf.TupleData | None:
        return (
            None if key is None else wf.TupleData(RELATION.columns, (str(key), "a", "A"), ("integer", "text", "text"))
        )

    def old_row(key: int) -> wf.TupleData | None:
        return row(key) if relation is FULL else wf.TupleData(("id",), (str(key),), ("integer",))

    table: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}
    begin, _, _, commit = update(lsn, 1, "a", "A")
    events = [begin, relation]
    for old, new in changes:
        if old is None:
            events.append(wf.Insert(**table, new=row(new)))
        elif new is None:
            events.append(wf.Delete(**table, old=old_row(old), old_kind=old_kind))
        else:
            events.append(wf.Update(**table, new=row(new), old=old_row(old), old_kind=old_kind))
    return [*wf.encode([*events, commit], "pgoutput")]


@given(st.lists(st.tuples(st.lists(st.integers(1, 4), unique=True), st.randoms(use_true_random=False)), max_size=4))
@at_most(20)
def test_keys_that_rows_leave_and_come_to_in_one_transaction(ends: list[tuple[list[int], Random]]) -> None:
    """As under a deferred constraint. Whether a row came to a free key is known only from the rows before."""
    there, parts = [1], [transaction(50, (None, 1))]
    for number, (keys, random) in enumerate(ends, 1):
        left, come = [*there], [*keys]
        random.shuffle(left)
        moved = min(len(left), len(come), random.randrange(5))
        changes: list[tuple[int | None, int | None]] = [*zip(left[:moved], come[:moved], strict=True)]
        changes += [(key, None) for key in left[moved:]] + [(None, key) for key in come[moved:]]
        random.shuffle(changes)
        parts.append(transaction(100 * number, *changes))
        there = keys
    with TemporaryDirectory() as folder:
        for messages in parts:
            wf.Capture(messages, "pgoutput").write(folder, format="delta", state="latest", keys=["id"])
        found = read(Path(folder), ("public", "t"))["id"].to_pylist()
    assert sorted(found) == sorted(there)


@given(st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), max_size=6), max_size=4))
@at_most(20)
def test_keys_that_are_free_when_rows_come_to_them(ends: list[list[tuple[int, int]]]) -> None:
    """As under the identity that a stream states, which cannot be deferrable."""
    there: set[int] = set()
    with TemporaryDirectory() as folder:
        for number, pairs in enumerate([[(1, 1)], *ends], 1):
            changes: list[tuple[int | None, int | None]] = []
            for key, other in pairs:
                moves = key in there and other < 5 and other not in there
                changes.append((key if key in there else None, other if moves else None if key in there else key))
                there ^= {key, other} if moves else {key}
            messages = transaction(100 * number, *changes, relation=RELATION)
            wf.Capture(messages, "pgoutput").write(folder, format="delta", state="latest")
        found = read(Path(folder), ("public", "t"))["id"].to_pylist()
    assert sorted(found) == sorted(there)


@pytest.mark.parametrize("moves", [[(1, 2), (2, 3), (3, 4)], [(1, 3), (2, 1), (3, 2)], [(None, 3), (3, None)]])
def test_keys_that_are_taken_before_they_are_free(moves: list[tuple[int | None, int | None]], tmp_path: Path) -> None:
    for messages in (transaction(100, (None, 1), (None, 2), (None, 3)), transaction(200, *moves)):
        wf.Capture(messages, "pgoutput").write(tmp_path, format="delta", state="latest", keys=["id"])
    there = {1, 2, 3}.difference(old for old, _ in moves) | {new for _, new in moves if new is not None}
    assert {*read(tmp_path, ("public", "t"))["id"].to_pylist()} == there


@pytest.mark.parametrize(
    ("changes", "there"),
    [
        ([(None, 4), (4, None)], [1, 2, 3]),  # as in a queue
        ([(None, 4), (4, None), (None, 4)], [1, 2, 3, 4]),
        ([(3, 4), (2, 3), (1, 2)], [2, 3, 4]),  # UPDATE t SET id = id + 1
        ([(3, 4), (4, 3)], [1, 2, 3]),
        ([(1, None), (None, 1), (1, None)], [2, 3]),
        ([(1, None), (None, 1)], [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("keys", [None, ["id"]])
def test_rows_that_come_and_go_in_one_transaction(
    keys: list[str] | None,
    changes: list[tuple[int | None, int | None]],
    there: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is read for a key that the stream states: it is free if a row comes to it. Others may be deferrable."""
    reads, delta_rows = [], table_writer.delta_rows
    monkeypatch.setattr(table_writer, "delta_rows", lambda *given: reads.append(given) or delta_rows(*given))
    for messages in (
        transaction(100, (None, 1), (None, 2), (None, 3), relation=RELATION),
        transaction(200, *changes, relation=RELATION),
    ):
        wf.Capture(messages, "pgoutput").write(tmp_path, format="delta", state="latest", keys=keys)
    assert sorted(read(tmp_path, ("public", "t"))["id"].to_pylist()) == there
    assert not reads or keys


def test_keys_of_which_an_old_image_lacks_columns(tmp_path: Path) -> None:
    """The old row has the values of the new one there."""
    names, types = ("tenant", "id"), ("integer", "integer")
    relation = replace(RELATION, columns=names, type_oids=(23, 23), typmods=(-1, -1), key_columns=("id",))
    table: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}
    changes = (
        wf.Insert(**table, new=wf.TupleData(names, ("7", "1"), types)),
        wf.Update(
            **table,
            new=wf.TupleData(names, ("7", "2"), types),
            old=wf.TupleData(("id",), ("1",), ("integer",)),
            old_kind="key",
        ),
    )
    for lsn, change in enumerate(changes, 1):
        begin, _, _, commit = update(100 * lsn, 1, "a", "A")
        capture = wf.Capture([*wf.encode([begin, relation, change, commit], "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest", keys=["tenant", "id"])
    assert read(tmp_path, ("public", "t")).select(names).to_pylist() == [{"tenant": 7, "id": 2}]
