"""The columns of the row-change table: which there are, which are asked for, and what the Arrow buffers look like."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from ...engines import ENGINES, FORMAT, MODES, rows
from ...handmade import SAMPLES, cell, change, commit, message, new, row_bodies, time

MESSAGES = [*SAMPLES.values(), message(*row_bodies(30)), message(commit(b"?"))]
each_engine = pytest.mark.parametrize("engine", ENGINES)

COLUMNS = {
    "message": "int64",
    "record": "int32",
    "kind": "string",
    "lsn": "int64",
    "xid": "int64",
    "csn": "int64",
    "commit_lsn": "int64",
    "commit_time": "timestamp[us, tz=UTC]",
    "table_schema": "string",
    "table_name": "string",
    "new": "map<string, string>",
    "old": "map<string, string>",
    "unchanged": "list<element: string>",
    "types": "list<element: string>",
    "detail": "map<string, string>",
    "error": "string",
    "raw": "binary",
}


def test_the_schema_is_that_of_the_design() -> None:
    assert {field.name: str(field.type) for field in wf.arrow.CHANGES} == COLUMNS
    assert wf.arrow.change_schema() is wf.arrow.CHANGES


@each_engine
@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_alone(name: str, engine: str) -> None:
    table = wf.arrow.changes(MESSAGES, FORMAT, engine=engine, mode="PERMISSIVE", columns=[name])
    table.validate(full=True)
    assert table.column_names == [name]
    whole = wf.arrow.changes(MESSAGES, FORMAT, mode="PERMISSIVE")
    assert table[name].combine_chunks().equals(whole[name].combine_chunks())


TIMES = [
    *(b"2026-11-28 10:11:12.%06d+00" % number for number in range(0, 999_999, 1777)),
    *(b"2024-02-%d 23:59:59+08" % day for day in range(10, 32)),
    *(
        b"%s-01-01 00:00:00%s" % (year, zone)
        for year in (b"0001", b"0999", b"9999", b"10000")
        for zone in (b"+00", b"")
    ),
    *(b"1999-12-31 23:59:60%s" % zone for zone in (b"+00", b"-15:59", b"+15:59:59", b"+16", b"-08:30", b"Z")),
    *(b"infinity", b"-infinity", b"", b"?", b"2026-11-28", b"2026-11-28 10:11:12.1234567+00", b"2026-1-2 3:4:5+00"),
    *("2026-11-28 10:11:12+０１".encode(), b"2026-11-28T10:11:12+00", b"2026-11-28 10:11:12 BC", b" " * 30),
]
"""More than are read one by one, with all that only the declaration reads, and what is no time."""


@pytest.mark.parametrize("few", [0, 10_000])
def test_many_commit_times(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code reads them as the declaration does."""
    monkeypatch.setattr("wireformat.arrow.columns.gather.FEW_TEXTS", few)
    messages = [message(commit(time(text))) for text in TIMES]
    scanned, declared = (
        wf.arrow.changes(messages, FORMAT, engine=engine, columns=["commit_time", "detail"]) for engine in ENGINES
    )
    assert scanned == declared
    assert 0 < scanned["commit_time"].null_count < 40


@each_engine
def test_some_columns_come_in_the_order_of_the_table(engine: str) -> None:
    asked = ["raw", "kind", "new", "message"]
    table = wf.arrow.changes(MESSAGES, FORMAT, engine=engine, mode="PERMISSIVE", columns=asked)
    assert table.column_names == ["message", "kind", "new", "raw"]
    assert table.schema == wf.arrow.change_schema(asked)
    whole = rows(wf.arrow.changes(MESSAGES, FORMAT, mode="PERMISSIVE"))
    assert rows(table) == [{name: row[name] for name in table.column_names} for row in whole]


@each_engine
def test_no_columns(engine: str) -> None:
    """A table without columns has no rows either, so asking for none is an error."""
    with pytest.raises(wf.OptionError, match="expected at least one"):
        wf.arrow.changes(MESSAGES, FORMAT, engine=engine, mode="PERMISSIVE", columns=[])


@each_engine
@pytest.mark.parametrize("columns", [["news"], ["kind", "lsns"], "kind"])
def test_unknown_columns(columns: Any, engine: str) -> None:
    with pytest.raises(wf.OptionError, match="option columns: "):
        wf.arrow.changes([], FORMAT, engine=engine, columns=columns)


@each_engine
@pytest.mark.parametrize("mode", MODES)
def test_batches_and_changes_give_the_same(mode: str, engine: str) -> None:
    messages = MESSAGES if mode != "FAILFAST" else list(SAMPLES.values())
    table = wf.arrow.changes(messages, FORMAT, engine=engine, mode=mode)
    found = list(wf.arrow.batches(messages, FORMAT, engine=engine, mode=mode))
    schema = wf.arrow.CHANGES.with_metadata({"wireformat.format": FORMAT})
    assert all(batch.schema.equals(schema, check_metadata=True) for batch in found)
    assert rows(pa.Table.from_batches(found, wf.arrow.CHANGES)) == rows(table)
    dropped = {b"wireformat.dropped": b"4"} if mode == "DROPMALFORMED" else {}
    assert table.schema.metadata == {b"wireformat.format": FORMAT.encode(), **dropped}


def test_texts_of_every_length_at_every_place() -> None:
    """Short texts are copied in a hurry: no byte of a neighbour may stay, at the ends of the buffer neither."""
    chooser = random.Random(7)
    lengths = [*range(70), 127, 128, 129, 1000]
    bodies = []
    for number in range(300):
        texts = [bytes(chooser.choices(range(33, 127), k=chooser.choice(lengths))) for _ in range(number % 5)]
        cells = [cell(b"n" * chooser.choice(lengths), chooser.choice([23, 99999]), text) for text in texts]
        bodies.append(change(b"I", b"s" * chooser.choice(lengths), b"t", new(*cells)))
    messages = [message(*bodies), message(bodies[4]), message(commit(time(b"x" * 17)))]
    scan, declaration = (wf.arrow.changes(messages, FORMAT, engine=engine) for engine in ENGINES)
    scan.validate(full=True)
    assert scan.equals(declaration)


def test_nulls_are_counted_right() -> None:
    scan, declaration = (wf.arrow.changes(MESSAGES, FORMAT, engine=engine, mode="PERMISSIVE") for engine in ENGINES)
    for name in COLUMNS:
        column = scan[name].combine_chunks()
        assert column.null_count == declaration[name].combine_chunks().null_count
        assert column.null_count == sum(not valid for valid in column.is_valid().to_pylist())


@pytest.mark.parametrize("format", [FORMAT, "gaussdb-json", "pgoutput"])
def test_nulls_have_no_numbers_of_other_messages(format: str) -> None:
    """The memory of notes is used again, and the bytes under nulls reach files."""
    some, other = (
        [*wf.encode(wf.testing.stream(transactions=25, seed=seed, format=format), format)] for seed in (14, 3)
    )

    def numbers() -> list[bytes]:
        found = wf.arrow.changes(some, format, threads=1).combine_chunks().to_batches()[0]
        columns = [found[name] for name in ("lsn", "xid", "csn", "commit_lsn")]
        return [column.buffers()[1].to_pybytes()[: 8 * len(column)] for column in columns]

    before = numbers()
    wf.arrow.changes(other, format, threads=1)
    assert numbers() == before
