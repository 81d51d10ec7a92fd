"""Rows that are written before all tables are known: tables with other columns in the end are written once more."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from tests.arrow.scan.small_limits import shrink
from wireformat.lake.lake import Lake
from wireformat.lake.parquet import ParquetFile
from wireformat.testing import stream

from .histories import messages_of, transactions
from .reading import read_all, values

FORMATS = ("gaussdb-binary", "gaussdb-json", "test-decoding")
LITTLE, PLENTY = 0, 1 << 30


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few transactions are decoded together."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=1 << 11)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are written once more."""
    found: list[str] = []
    begin_again = Lake.begin_again

    def noting(lake: Lake, table: tuple[str, str]) -> None:
        found.append(table[1])
        begin_again(lake, table)

    monkeypatch.setattr(Lake, "begin_again", noting)
    return found


def write(messages: list[bytes], decoded: str, folder: Path, memory: int, **options: Any) -> tuple[list[Any], str]:
    """Returns what was written, without the numbers of files, which depend on memory; and the error."""
    of_capture = {name: options.pop(name) for name in ("mode",) if name in options}
    capture = wf.Capture(messages, decoded, memory_limit=memory, threads=2, **of_capture)
    try:
        done = capture.write(folder, **options)
    except wf.WireformatError as error:
        return [], str(error)
    names = ("table_name", "rows", "open", "dropped", "corrupt")
    return [*zip(*(done[name].to_pylist() for name in names), strict=True)], ""


def written(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def check_same(folder: Path) -> None:
    """Checks that both lakes have the same tables, with the same schemas and rows, and no files that belong to none."""
    left, right = (read_all(folder / str(memory)) for memory in (PLENTY, LITTLE))
    assert left.keys() == right.keys()
    for table in left:
        assert left[table].schema.equals(right[table].schema), table
        assert values(left[table]) == values(right[table]), table
    named = [file for row in wf.lake.tables(folder / str(LITTLE)).to_pylist() for file in row["files"] or ()]
    if named:
        assert [path for path in written(folder / str(LITTLE)) if path.suffix == ".parquet"] == sorted(
            Path(file).relative_to(folder / str(LITTLE)) for file in named
        )


@pytest.mark.parametrize("lake", ["parquet", "delta"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_the_lake_is_the_same(tmp_path: Path, lake: str, format: str, seed: int) -> None:
    """Of tables whose columns change, in two writes where the stream has positions."""
    messages = [*wf.encode(stream(3, transactions=60, seed=seed, format=format), format)]
    parts = [messages] if format == "test-decoding" else [messages[: len(messages) // 2], messages]
    for part in parts:
        found = [write(part, format, tmp_path / str(memory), memory, format=lake) for memory in (PLENTY, LITTLE)]
        assert found[0] == found[1]
    check_same(tmp_path)


def test_a_table_whose_columns_stay_is_written_once(tmp_path: Path, again: list[str]) -> None:
    messages = messages_of([*transactions(60)])
    found = [write(messages, "gaussdb-binary", tmp_path / str(memory), memory) for memory in (PLENTY, LITTLE)]
    assert found[0] == found[1]
    assert not again
    check_same(tmp_path)


@pytest.mark.parametrize("lake", ["parquet", "delta"])
def test_tables_with_a_new_column_are_written_once_more(tmp_path: Path, again: list[str], lake: str) -> None:
    messages = messages_of([*transactions(60, more="amount")])
    found = [
        write(messages, "gaussdb-binary", tmp_path / str(memory), memory, format=lake) for memory in (PLENTY, LITTLE)
    ]
    assert found[0] == found[1]
    assert sorted(again) == ["Notes", "lines", "orders"]
    check_same(tmp_path)
    assert all("amount" in table.column_names for table in read_all(tmp_path / str(LITTLE)).values())


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("at", [1, 30, 55])
def test_a_value_that_does_not_fit(tmp_path: Path, mode: str, at: int) -> None:
    """It is told, kept or dropped as where all rows wait for the list of tables."""
    parts = [*transactions(60)]
    events = next(events for events in parts[at:] if any(isinstance(event, wf.Insert) for event in events))
    events[:] = [
        replace(event, new=replace(event.new, values=("x", *event.new.values[1:])))
        if isinstance(event, wf.Insert)
        else event
        for event in events
    ]
    messages = messages_of(parts)
    found = [
        write(messages, "gaussdb-binary", tmp_path / str(memory), memory, mode=mode) for memory in (PLENTY, LITTLE)
    ]
    assert found[0] == found[1]
    assert bool(found[0][1]) == (mode == "FAILFAST")
    if mode == "FAILFAST":
        assert written(tmp_path / str(PLENTY)) == written(tmp_path / str(LITTLE)) == []
    else:
        check_same(tmp_path)


def test_types_that_widen_to_text(tmp_path: Path, again: list[str]) -> None:
    """Texts of rows that were written before are not those that Arrow would make of their values."""
    rows = [f"table public.t: INSERT: id[integer]:{number} v[numeric]:{number}.50" for number in range(200)]
    rows += [
        f"table public.t: INSERT: id[integer]:{number} v[date]:'2026-11-{number % 28 + 1:02}'" for number in range(9)
    ]
    messages = [line.encode() for xid, row in enumerate(rows, 7) for line in (f"BEGIN {xid}", row, f"COMMIT {xid}")]
    for memory in (PLENTY, LITTLE):
        write(messages, "test-decoding", tmp_path / str(memory), memory)
    assert again == ["t"]
    check_same(tmp_path)
    assert "0.50" in read_all(tmp_path / str(LITTLE))["public", "t"]["v"].to_pylist()


def test_an_input_that_grows_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that is still being written. The rows that are written once more are those up to the position."""
    parts = [*transactions(60, more="amount")]
    messages, later = messages_of(parts[:40]), messages_of(parts[40:])
    given = [*messages]
    begin_again = Lake.begin_again

    def growing(lake: Lake, table: tuple[str, str]) -> None:
        given.extend(later if len(given) == len(messages) else ())
        begin_again(lake, table)

    monkeypatch.setattr(Lake, "begin_again", growing)
    found = write(given, "gaussdb-binary", tmp_path / str(LITTLE), LITTLE)
    assert len(given) == len(messages) + len(later)
    assert found == write(messages, "gaussdb-binary", tmp_path / str(PLENTY), PLENTY)
    check_same(tmp_path)
    found = write(given, "gaussdb-binary", tmp_path / str(LITTLE), LITTLE)
    assert found == write(given, "gaussdb-binary", tmp_path / str(PLENTY), PLENTY)
    check_same(tmp_path)


def test_an_input_that_shrinks_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = messages_of([*transactions(60, more="amount")])
    monkeypatch.setattr(Lake, "begin_again", lambda *_: given.clear())
    assert "files that stay as they are" in write(given, "gaussdb-binary", tmp_path, LITTLE)[1]
    assert written(tmp_path) == []


def test_what_was_dropped_is_that_of_all_tables(tmp_path: Path) -> None:
    """Tables that are written once more are read without the others, whose damage is not seen then."""
    parts = [*transactions(60, more="amount")]
    messages = messages_of(parts[:59])
    table = {"table_schema": "public", "table_name": "other"}
    events = [
        wf.Insert(lsn=9000 + row, **table, new=wf.TupleData(("t",), (f"{row}<#>",), ("text",))) for row in range(9)
    ]
    begin = wf.Begin(lsn=8999, csn=900, first_lsn=8999)
    damaged = messages_of([[begin, *events, wf.Commit(lsn=9100, xid=9999)]])
    messages += [message.replace(b"<#>", b"\xff\xff\xff") for message in damaged]
    found = [
        write(messages, "gaussdb-binary", tmp_path / str(memory), memory, mode="DROPMALFORMED")
        for memory in (PLENTY, LITTLE)
    ]
    assert found[0] == found[1]
    assert found[0][0][-1][3] == len(events)


def test_a_full_disk_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: list[str]) -> None:
    messages = messages_of([*transactions(60)])

    def fail(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ParquetFile, "write", fail)
    with pytest.raises(OSError, match="No space left"):
        write(messages, "gaussdb-binary", tmp_path, LITTLE)
    assert not again
    assert written(tmp_path) == []
