"""Lakes go on where they are, whatever stopped a write; what cannot be written is an error that leaves them alone."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake import lake as lake_module

from .histories import TABLES, messages_of, transactions
from .reading import manifest_of, read, values

ALL = [*transactions(60)]
MESSAGES = messages_of(ALL)
TIME = "2026-11-22 10:00:00+00"
KEYS = ["id"]
KINDS = [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")]
"""Lakes that go on."""


def capture_of(messages: list[bytes], **options: Any) -> wf.Capture:
    return wf.Capture(messages, "gaussdb-binary", **options)


def write(messages: list[bytes], folder: Path, format: str, state: str, **options: Any) -> pa.Table:
    given = {"keys": KEYS} if state == "latest" else {}
    return capture_of(messages, **options).write(folder, format=format, state=state, **given)


def expected(messages: list[bytes], table: str, state: str) -> list[str]:
    return _expected(tuple(messages), table, state)


@cache
def _expected(messages: tuple[bytes, ...], table: str, state: str) -> list[str]:
    """Many tests compare with the same few streams."""
    capture, name = capture_of([*messages]), f"public.{table}"
    return values(capture.latest(name, keys=KEYS) if state == "latest" else capture.typed(name).read_all())


def check(messages: list[bytes], folder: Path, state: str) -> None:
    for table in TABLES:
        assert values(read(folder, ("public", table))) == expected(messages, table, state), table


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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


OTHER_KINDS = {
    "format": {"format": "delta"},
    "state": {"state": "latest", "keys": KEYS},
    "partition_by": {"partition_by": "commit_date"},
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_a_lake_stays_what_it_is(name: str, tmp_path: Path) -> None:
    write(MESSAGES[:20], tmp_path, "parquet", "changes")
    with pytest.raises(wf.OptionError, match=f"lake with {name}="):
        capture_of(MESSAGES).write(tmp_path, **OTHER_KINDS[name])


CHOICES: list[tuple[list[str] | None, list[str] | None]] = [
    (["public.orders"], ["public.lines"]),
    (["public.orders"], None),
    (None, ["public.orders"]),
    (["public.orders", "public.lines"], ["public.orders"]),
]


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize(("first", "then"), CHOICES)
def test_a_lake_keeps_its_tables(format: str, first: list[str] | None, then: list[str] | None, tmp_path: Path) -> None:
    """Its position covers the changes of all tables, so those of other tables would be left out without a word."""
    capture_of(MESSAGES[:30]).write(tmp_path, format=format, tables=first)
    before = files_of(tmp_path)
    with pytest.raises(wf.OptionError, match=rf"option tables: .*{re.escape(repr(first and sorted(first)))}, got "):
        capture_of(MESSAGES).write(tmp_path, format=format, tables=then)
    assert files_of(tmp_path) == before
    capture_of(MESSAGES).write(tmp_path, format=format, tables=first)
    assert values(read(tmp_path, ("public", "orders"))) == expected(MESSAGES, "orders", "changes")


def test_equal_patterns_are_the_same_tables(tmp_path: Path) -> None:
    for tables in (["public.orders", "a.*"], ["a.*", "public.orders", '"public"."orders"']):
        capture_of(MESSAGES).write(tmp_path / "some", tables=tables)
    for every in (None, ["*.*"], ["*.*", "public.orders"]):
        capture_of(MESSAGES).write(tmp_path / "all", tables=every)


def test_a_lake_of_an_earlier_release_does_not_say_its_tables(tmp_path: Path) -> None:
    """It gets those of the next write."""
    capture_of(MESSAGES[:30]).write(tmp_path, tables=["public.orders"])
    fields = manifest_of(tmp_path)
    assert fields.pop("patterns") == ["public.orders"]
    (tmp_path / "_wireformat.json").write_text(json.dumps(fields))
    capture_of(MESSAGES).write(tmp_path, tables=["public.orders"])
    assert manifest_of(tmp_path)["patterns"] == ["public.orders"]


def test_current_rows_in_parquet_are_written_once(tmp_path: Path) -> None:
    write(MESSAGES[:20], tmp_path, "parquet", "latest")
    check(MESSAGES[:20], tmp_path, "latest")
    with pytest.raises(wf.OptionError, match="format='delta'"):
        write(MESSAGES, tmp_path, "parquet", "latest")
    check(MESSAGES[:20], tmp_path, "latest")


def test_a_foreign_delta_table_is_left_alone(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "public" / "orders"), pa.table({"id": [1]}))
    with pytest.raises(wf.OptionError, match="has not made"):
        write(MESSAGES, tmp_path, "delta", "changes")


class Stopped(BaseException):
    pass


@pytest.mark.parametrize(("format", "state"), [*KINDS, ("parquet", "latest")])
@pytest.mark.parametrize("moment", range(3))
def test_a_write_that_stops_between_tables(
    format: str, state: str, moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word, as a process that is killed. The next write has less, as much or more, and adds nothing twice."""
    first = [] if state == "latest" and format == "parquet" else MESSAGES[:20]
    if first:
        write(first, tmp_path, format, state)
    publish = lake_module.TableFolder.publish
    calls = iter(range(100))

    def stopping(target: Any) -> None:
        if next(calls) == moment:
            raise Stopped
        publish(target)

    with monkeypatch.context() as patched:
        patched.setattr(lake_module.TableFolder, "publish", stopping)
        patched.setattr(lake_module.Lake, "discard", lambda lake: None)
        with pytest.raises(Stopped):
            write(MESSAGES[:40], tmp_path, format, state, threads=1)
    end = (30, 40, 50)[moment]
    write(MESSAGES[:end], tmp_path, format, state)
    if format == "parquet":
        check(MESSAGES[:end], tmp_path, state)
    if state == "changes" or format == "delta":
        write(MESSAGES, tmp_path, format, state)
        check(MESSAGES, tmp_path, state)
    assert list(tmp_path.rglob(".wireformat-*")) == []


def test_columns_with_the_names_of_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a Delta table has already are found without them."""
    messages = messages_of([*transactions(60, more="csn")])
    write(messages[:20], tmp_path, "delta", "changes")
    with monkeypatch.context() as patched:
        patched.setattr(lake_module.Lake, "commit", lambda lake, position: None)
        write(messages[:40], tmp_path, "delta", "changes")
    write(messages, tmp_path, "delta", "changes")
    for table in TABLES:
        wanted = capture_of(messages).typed(f"public.{table}").read_all().select(["id", "csn", "_sequence"])
        assert values(read(tmp_path, ("public", table)).select(wanted.column_names)) == values(wanted)


def test_a_write_that_stops_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes nothing that the manifest names."""
    commit = lake_module.Lake.commit

    def stopping(lake: Any, position: wf.CapturePosition) -> None:
        commit(lake, position)
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(lake_module.Lake, "commit", stopping)
        with pytest.raises(Stopped):
            write(MESSAGES, tmp_path, "parquet", "changes")
    check(MESSAGES, tmp_path, "changes")


PROGRAM = """
import os
import sys
from tests.lake.test_write import MESSAGES, expected, write

expected(MESSAGES, "orders", "latest")  # loads what the processes that write would load
for folder in iter(sys.stdin.readline, ""):
    writer = os.fork()
    if not writer:
        write(MESSAGES, folder.strip(), sys.argv[1], sys.argv[2])
        os._exit(0)
    print(writer, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]), flush=True)
"""
"""Writes to each folder that it reads, in a process of its own; prints the number of the process, then how it ended."""

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_process_that_is_killed(format: str, state: str, tmp_path: Path) -> None:
    """At 20 random moments. Each table is as it was or as it should be, and the next write adds nothing twice."""
    chance = random.Random(11)
    before, after = ({table: expected(part, table, state) for table in TABLES} for part in (MESSAGES[:20], MESSAGES))
    write(MESSAGES[:20], tmp_path / "begun", format, state)
    command = [sys.executable, "-c", PROGRAM, format, state]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as program:
        assert _written(program, _copy(tmp_path, "whole")) == 0
        started = time.monotonic()
        assert _written(program, _copy(tmp_path, "timed")) == 0
        seconds = time.monotonic() - started
        ended = [_written(program, _copy(tmp_path, str(n)), chance.uniform(0, 1.2 * seconds)) for n in range(20)]
    assert -signal.SIGKILL in ended
    assert {*ended} <= {0, -signal.SIGKILL}
    for number in range(20):
        folder = tmp_path / str(number)
        for table in TABLES:
            assert values(_seen(folder, table)) in (before[table], after[table]), (number, table)
        write(MESSAGES, folder, format, state)
        for table in TABLES:
            assert values(read(folder, ("public", table))) == after[table], (number, table)


def _copy(folder: Path, name: str) -> Path:
    """A copy of the lake that holds the first part."""
    return Path(shutil.copytree(folder / "begun", folder / name, dirs_exist_ok=True))


def _written(program: subprocess.Popen[bytes], folder: Path, seconds: float | None = None) -> int:
    """Lets the program write to a folder, and kills the writing process after these seconds; returns how it ended."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{folder}\n".encode())
    writer = int(program.stdout.readline())
    if not select.select([program.stdout], [], [], seconds)[0]:
        with suppress(ProcessLookupError):  # it ends just now
            os.kill(writer, signal.SIGKILL)
    return int(program.stdout.readline())


def _seen(folder: Path, table: str) -> pa.Table:
    """What a reader that does not know the manifest sees."""
    place = folder / "public" / table.replace("Notes", "~4Eotes")
    if (place / "_delta_log").exists():
        return deltalake.DeltaTable(str(place)).to_pyarrow_table()
    return pa.concat_tables([pq.read_table(file) for file in sorted(place.glob("[!.]*.parquet"))])


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_full_disk(format: str, state: str, tmp_path: Path) -> None:
    """An error, and the lake is as it was: the largest file that this process may write is small."""
    write(MESSAGES[:20], tmp_path, format, state)
    before = files_of(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"File too large|LIMIT"):
            write(MESSAGES, tmp_path, format, state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    gc.collect()
    left = {name: data for name, data in files_of(tmp_path).items() if state == "changes" or name in before}
    assert left == before
    write(MESSAGES, tmp_path, format, state)
    check(MESSAGES, tmp_path, state)


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_damaged_log(state: str, tmp_path: Path) -> None:
    """The error of deltalake becomes one of this package, which names the folder of the table."""
    write(MESSAGES[:20], tmp_path, "delta", state)
    log = max(tmp_path.rglob("_delta_log/*.json"))
    log.write_text(log.read_text()[:50])
    with pytest.raises(wf.LakeError, match=re.escape(str(log.parent.parent))) as error:
        write(MESSAGES, tmp_path, "delta", state)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_columns_that_come_later(format: str, tmp_path: Path) -> None:
    messages = messages_of([*transactions(60, more="total")])
    write(messages[:20], tmp_path, format, "changes")
    assert "total" not in read(tmp_path, ("public", "orders")).column_names
    write(messages, tmp_path, format, "changes")
    found = read(tmp_path, ("public", "orders"))
    assert found.schema.field("total").type == pa.int64()
    wanted = capture_of(messages).typed("public.orders").read_all()
    assert found["total"].to_pylist() == wanted["total"].to_pylist()


def rows(*kinds: tuple[str, str]) -> list[bytes]:
    """Transactions that insert a value of a type each."""
    parts: list[list[wf.Event]] = []
    for number, (value, sql_type) in enumerate(kinds):
        lsn = 100 + 50 * number
        row = wf.TupleData(("id", "v"), (str(number), value), ("integer", sql_type))
        insert = wf.Insert(lsn=lsn + 8, table_schema="a", table_name="t", new=row)
        parts.append([wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn), insert, wf.Commit(lsn=lsn + 16, xid=number)])
    return messages_of(parts)


def test_a_type_that_widens(tmp_path: Path) -> None:
    """In Delta tables it is an error: deltalake cannot widen a column. A narrower type fits."""
    messages = rows(("1", "integer"), ("2", "bigint"), ("3", "smallint"))
    for format in ("parquet", "delta"):
        write(messages[:1], tmp_path / format, format, "changes")
    write(messages, tmp_path / "parquet", "parquet", "changes")
    assert read(tmp_path / "parquet", ("a", "t"))["v"].to_pylist() == [1, 2, 3]
    with pytest.raises(wf.OptionError, match=r"table a\.t: column v is int32 in the lake and int64 in the stream"):
        write(messages, tmp_path / "delta", "delta", "changes")
    table = deltalake.DeltaTable(tmp_path / "delta" / "a" / "t")
    found = table.to_pyarrow_table()
    old = pa.struct([found.schema.field("id"), pa.field("v", pa.int64())])
    wide = found.set_column(1, "v", found["v"].cast(pa.int64()))
    wide = wide.set_column(wide.column_names.index("_old"), "_old", wide["_old"].cast(old))
    deltalake.write_deltalake(table, wide, mode="overwrite", schema_mode="overwrite")
    write(messages, tmp_path / "delta", "delta", "changes")
    assert read(tmp_path / "delta", ("a", "t"))["v"].to_pylist() == [1, 2, 3]
    narrow = rows(("1", "bigint"), ("2", "smallint"))
    write(narrow[:1], tmp_path / "narrow", "delta", "changes")
    write(narrow[1:], tmp_path / "narrow", "delta", "changes", after=wf.lake.position(tmp_path / "narrow"))
    assert read(tmp_path / "narrow", ("a", "t"))["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("column", ["id", "commit_date"])
def test_partitions(format: str, column: str, tmp_path: Path) -> None:
    capture_of(MESSAGES[:30]).write(tmp_path, format=format, partition_by=column)
    capture_of(MESSAGES).write(tmp_path, format=format, partition_by=column)
    for table in TABLES:
        folder = tmp_path / "public" / table.replace("Notes", "~4Eotes")
        if format == "delta":
            found = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
        else:
            found = pq.read_table(folder, partitioning="hive")
        wanted = capture_of(MESSAGES).typed(f"public.{table}").read_all()
        assert len(found) == len(wanted)
        if column == "id":
            names = [name for name in wanted.column_names if name != "_old"]
            found = found.set_column(found.column_names.index("id"), "id", found["id"].cast(pa.int32()))
            assert values(found.select(names)) == values(wanted.select(names))


@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("sql_type", ["text", "bytea"])
def test_an_empty_text_is_no_partition_of_a_delta_table(state: str, sql_type: str, tmp_path: Path) -> None:
    """Delta reads it as NULL, so that the row would have another key. Nothing is written, in any mode."""
    given: dict[str, Any] = {"partition_by": {"a.t": "v"}, "state": state}
    given |= {"keys": ["id", "v"]} if state == "latest" else {}
    empty = "\\x" if sql_type == "bytea" else ""
    full = "\\x61" if sql_type == "bytea" else "a"
    messages = rows((full, sql_type), (empty, sql_type))
    for before in ([], messages[:1]):
        if before:
            capture_of(before).write(tmp_path / "delta", format="delta", **given)
        there = files_of(tmp_path / "delta")
        for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
            with pytest.raises(wf.OptionError, match=r"option partition_by: table a\.t: column v is empty"):
                capture_of(messages, mode=mode).write(tmp_path / "delta", format="delta", **given)
            assert files_of(tmp_path / "delta") == there
    capture_of(messages).write(tmp_path / "parquet", **given)
    found = pq.read_table(tmp_path / "parquet" / "a" / "t", partitioning="hive")
    assert sorted(found["v"].cast(pa.string()).to_pylist()) == ["", "a"]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_rejects(mode: str, format: str, tmp_path: Path) -> None:
    """Nothing is lost: what cannot be read, and rows with values that do not fit, with their texts."""
    messages = [*rows(("1", "integer"), ("infinity", "date"), ("2026-11-22", "date")), MESSAGES[0][:-3]]
    path = tmp_path / "rejects.parquet"
    capture = capture_of(messages, mode=mode)
    result = capture.write(
        tmp_path / "lake", format=format, schemas={"a.t": {"id": "integer", "v": "date"}}, rejects=path
    )
    found = read(tmp_path / "lake", ("a", "t"))
    assert found["id"].to_pylist() == ([0, 1, 2] if mode == "PERMISSIVE" else [2])
    gc.collect()
    assert not [*tmp_path.glob(".*")]
    rejects = pq.read_table(path).to_pylist()
    by_kind = {kind: [row for row in rejects if row["kind"] == kind] for kind in ("INSERT", "CORRUPT")}
    assert [dict(row["new"])["v"] for row in by_kind["INSERT"]] == ["1", "infinity"]
    assert all("column v" in row["error"] and row["table_name"] == "t" for row in by_kind["INSERT"])
    assert [row["message"] for row in rejects if row["kind"] == "INSERT"] == [0, 1]
    (corrupt,) = by_kind["CORRUPT"]
    assert corrupt["raw"] in messages[-1]
    assert corrupt["error"]
    last = result.to_pylist()[-1]
    assert (last["table_name"], last["corrupt"]) == (None, 1)
    assert result.to_pylist()[0]["corrupt"] == 2
    assert result.to_pylist()[0]["dropped"] == (2 if mode == "DROPMALFORMED" else 0)


def test_a_repeated_write_keeps_the_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake has the transactions of their rows, so it does not see them again. No row comes twice."""
    path, messages = tmp_path / "r.parquet", [*rows(("1", "integer"), ("2026-11-22", "date")), MESSAGES[0][:-3]]

    def write_rejects(some: list[bytes]) -> list[dict[str, Any]]:
        capture = capture_of(some, mode="DROPMALFORMED")
        capture.write(tmp_path / "lake", schemas={"a.t": {"id": "integer", "v": "date"}}, rejects=path)
        return list(pq.read_table(path).to_pylist())

    with monkeypatch.context() as patched:
        patched.setattr(lake_module.Lake, "commit", lambda lake, position: None)
        first = write_rejects(messages)
    assert sorted(row["kind"] for row in first) == ["CORRUPT", "INSERT"]
    for _ in range(2):
        assert write_rejects(messages) == first
    more = [*messages, MESSAGES[1][:-3]]
    assert len(write_rejects(more)) == 3
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(wf.OptionError, match="is not a rejects file"):
        write_rejects(messages)
    assert pq.read_table(path).to_pylist() == [{"id": 1}]


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


def test_modes_without_a_rejects_file(tmp_path: Path) -> None:
    messages = rows(("1", "integer"), ("2026-11-22", "date"))
    schemas = {"a.t": {"id": "integer", "v": "date"}}
    with pytest.raises(wf.BadCell, match=r"a\.t.*column v"):
        capture_of(messages).write(tmp_path / "failfast", schemas=schemas)
    assert not (tmp_path / "failfast" / "a").exists() or not [*(tmp_path / "failfast").rglob("*.parquet")]
    capture_of(messages, mode="PERMISSIVE").write(tmp_path / "permissive", schemas=schemas)
    assert [bool(row) for row in read(tmp_path / "permissive", ("a", "t"))["_error"].to_pylist()] == [True, False]
    result = capture_of(messages, mode="DROPMALFORMED").write(tmp_path / "drop", schemas=schemas)
    assert result["dropped"].to_pylist() == [1]
    with pytest.raises(wf.OptionError, match="option rejects"):
        capture_of(messages).write(tmp_path / "none", rejects=tmp_path / "r.parquet")


def test_a_file_system_in_memory() -> None:
    filesystem = pafs._MockFileSystem()
    given = {"filesystem": filesystem}
    capture_of(MESSAGES[:30]).write("bucket/lake", **given)
    capture_of(MESSAGES[30:], after=wf.lake.position("bucket/lake", **given)).write("bucket/lake", **given)
    for row in wf.lake.tables("bucket/lake", **given).to_pylist():
        parts = [pq.read_table(file, filesystem=filesystem) for file in row["files"]]
        assert values(pa.concat_tables(parts)) == expected(MESSAGES, row["table_name"], "changes")


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_the_file_system_of_deltalake(format: str, state: str, tmp_path: Path) -> None:
    """As object stores are written to: files have their names at once."""
    given: dict[str, Any] = {"storage_options": {"allow_http": "true"}}
    keys = {"keys": KEYS} if state == "latest" else {}
    (tmp_path / "lake").mkdir()
    uri = (tmp_path / "lake").as_uri()
    for messages in (MESSAGES[:30], MESSAGES):
        capture_of(messages).write(uri, format=format, state=state, **given, **keys)
    assert wf.lake.position(uri, **given) == wf.lake.position(tmp_path / "lake")
    check(MESSAGES, tmp_path / "lake", state)


def test_little_memory(tmp_path: Path) -> None:
    """Then row groups are small, and current rows wait in files."""
    for format, state in [*KINDS, ("parquet", "latest")]:
        write(MESSAGES, tmp_path / format / state, format, state, memory_limit=1000)
        check(MESSAGES, tmp_path / format / state, state)


@pytest.mark.parametrize(("memory", "readings"), [(1 << 28, 1), (1000, 2)])
@pytest.mark.parametrize("threads", [1, 2])
def test_messages_are_read_once_if_their_rows_fit_into_memory(
    memory: int, readings: int, threads: int, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"payload": MESSAGES}), tmp_path / "messages.parquet")
    read_bytes: list[int] = []
    path, done = tmp_path / "messages.parquet", read_bytes.append
    capture = wf.Capture(path, "gaussdb-binary", memory_limit=memory, threads=threads, progress=done)
    capture.write(tmp_path / "lake")
    check(MESSAGES, tmp_path / "lake", "changes")
    size = path.stat().st_size
    assert sum(read_bytes) == pytest.approx(readings * size, rel=0.01)
    assert capture.tables().equals(capture_of(MESSAGES).tables())
    assert sum(read_bytes) == pytest.approx(readings * size, rel=0.01)


def test_some_tables(tmp_path: Path) -> None:
    result = capture_of(MESSAGES).write(tmp_path, tables=["public.orders"])
    assert result["table_name"].to_pylist() == ["orders"]
    with pytest.raises(wf.OptionError, match=r"option keys: .*did you mean public\.orders"):
        capture_of(MESSAGES).write(tmp_path / "other", state="latest", keys={"public.order": ["id"]}, format="delta")


def test_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match="can be read only once"):
        wf.Capture(iter(MESSAGES), "gaussdb-binary").write(tmp_path)
    assert [*tmp_path.iterdir()] == []
