"""A write goes on where the lake is, whatever the input overlaps; a gap is an error that leaves it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import wireformat as wf

from .reading import read
from .writing import KEYS, KINDS, MESSAGES, capture_of, check, files_of, write

TIME = "2026-11-22 10:00:00+00"


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_writes_that_follow_each_other(format: str, state: str, tmp_path: Path) -> None:
    """With overlaps, from the beginning, and the same twice."""
    write(MESSAGES[:20], tmp_path, format, state)
    write(MESSAGES[10:33], tmp_path, format, state)
    check(MESSAGES[:33], tmp_path, state)
    write(MESSAGES[33:], tmp_path, format, state, after=wf.lake.position(tmp_path))
    check(MESSAGES, tmp_path, state)
    again = write(MESSAGES, tmp_path, format, state)
    assert sum(again["rows"].to_pylist()) == 0
    check(MESSAGES, tmp_path, state)


def test_an_older_file_that_is_written_again_leaves_the_lake_where_it_is(tmp_path: Path) -> None:
    row = wf.TupleData(("id",), ("1",), ("text",))
    table = wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity="default",
        columns=("id",),
        type_oids=(25,),
        typmods=(-1,),
        key_columns=("id",),
    )

    def committed(lsn: int) -> list[wf.Event]:
        insert = wf.Insert(table_schema="public", table_name="t", new=row)
        begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=TIME)
        return [begin, table, insert, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]

    monday, tuesday, wednesday = [*committed(10), *committed(20)[:-1]], committed(20), committed(30)
    positions, written = [], []
    for events in (monday, tuesday, monday, wednesday):
        capture = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput")
        written.append(sum(capture.write(tmp_path)["rows"].to_pylist()))
        positions.append(wf.lake.position(tmp_path))
    assert written == [1, 1, 0, 1]
    assert positions[2] == positions[1]


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_gap_is_an_error(format: str, state: str, tmp_path: Path) -> None:
    first, second = capture_of(MESSAGES[:20]), capture_of(MESSAGES[:30])
    first.write(tmp_path, format=format, state=state, **({"keys": KEYS} if state == "latest" else {}))
    list(second.committed())
    before = files_of(tmp_path)
    with pytest.raises(wf.OptionError, match=r"pass after=wireformat\.lake\.position"):
        write(MESSAGES[30:], tmp_path, format, state, after=second.position)
    assert files_of(tmp_path) == before


def test_a_stream_without_lsns_needs_its_position(tmp_path: Path) -> None:
    lines = [b"BEGIN 5", b"table a.b: INSERT: id[integer]:1", b"COMMIT 5"]
    wf.Capture(lines, "test-decoding").write(tmp_path)
    with pytest.raises(wf.OptionError, match="without LSNs"):
        wf.Capture(lines, "test-decoding").write(tmp_path)
    wf.Capture(lines, "test-decoding", after=wf.lake.position(tmp_path)).write(tmp_path)
    assert read(tmp_path, ("a", "b"))["id"].to_pylist() == [1, 1]


def test_current_rows_in_parquet_are_written_once(tmp_path: Path) -> None:
    write(MESSAGES[:20], tmp_path, "parquet", "latest")
    check(MESSAGES[:20], tmp_path, "latest")
    with pytest.raises(wf.OptionError, match="format='delta'"):
        write(MESSAGES, tmp_path, "parquet", "latest")
    check(MESSAGES[:20], tmp_path, "latest")


def test_open_changes_are_those_of_their_tables(tmp_path: Path) -> None:
    """Also of a table that has no other changes; those of tables that are not written are in the last row."""

    def transaction(number: int, *tables: str) -> list[wf.Event]:
        row = wf.TupleData(names=("id",), values=(str(number),), types=("integer",))
        found: list[wf.Event] = [wf.Begin(lsn=number, csn=number, first_lsn=number)]
        found += [wf.Insert(lsn=number, table_schema="a", table_name=name, new=row) for name in tables]
        return [*found, wf.Commit(lsn=number, xid=number)]

    sent = [*transaction(1, "t", "v"), *transaction(2, "t", "t", "u", "v")[:-1]]
    written = capture_of([*wf.encode(sent, "gaussdb-binary")]).write(tmp_path, tables=["a.t", "a.u"])
    counts = [(row["table_name"], row["rows"], row["open"]) for row in written.to_pylist()]
    assert counts == [("t", 1, 2), ("u", 0, 1), (None, 0, 1)]
