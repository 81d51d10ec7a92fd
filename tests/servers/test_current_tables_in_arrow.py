"""From the messages of servers to current tables in Arrow: each table ends as the server has it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables import latest as latest_module

from .captures import capture_names, read_capture, read_tables
from .current_tables import keys_of, lines, quoted, typed_rows
from .gaussdb_styles import STYLES, WITHOUT_COLUMNS, said_by_gaussdb
from .replica import Table

READINGS = [
    *capture_names("pgoutput"),
    *(
        name for name in capture_names("test-decoding") if not name.endswith(("-streaming", "-all"))
    ),  # those say no rows
    *STYLES,
]
PLAIN = "18-pgoutput-1"
"""What is said in GaussDB's styles."""


def messages_of(reading: str) -> tuple[str, list[bytes]]:
    """The format of a reading, and its messages."""
    if reading not in STYLES:
        return "pgoutput" if "pgoutput" in reading else "test-decoding", read_capture(reading).messages
    said = said_by_gaussdb(wf.decode(read_capture(PLAIN).messages, "pgoutput"), reading)
    return reading, list(wf.encode(said, reading, options={"include-timestamp": True, "sending-batch": 1}))


def binary_columns(rows: pa.Table) -> set[tuple[Table, str]]:
    """Columns that had values in a binary form that the package does not read."""
    return {
        ((row["table_schema"], row["table_name"]), name)
        for row in rows.select(["table_schema", "table_name", "detail"]).to_pylist()
        for key, names in row["detail"] or ()
        if key == "binary" and row["table_name"] is not None
        for name in json.loads(names)
    }


def in_batches(typed: pa.Table) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pylist([], typed.schema)
    yield from typed.to_batches(max_chunksize=7)


@pytest.mark.parametrize("name", READINGS)
def test_every_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In PERMISSIVE, for two tables have values that no type holds; whole, and compacted now and then."""
    monkeypatch.setattr(latest_module, "BATCH_ROWS", 30)
    monkeypatch.setattr(latest_module, "COMPACTED_ROWS", 100)
    format, messages = messages_of(name)
    rows = wf.arrow.changes(messages, format)
    listed, committed, unread = wf.arrow.tables(rows), wf.arrow.transactions(rows), binary_columns(rows)
    held = read_tables((PLAIN if name in STYLES else name).split("-")[0])
    if name == "gaussdb-json":
        del held[WITHOUT_COLUMNS]  # which JSON cannot say
    tables = {(row["table_schema"], row["table_name"]) for row in listed.to_pylist()}
    assert tables >= held.keys()
    assert len(tables) > 25
    for table in tables:
        typed = wf.arrow.typed(committed, quoted(table), schema=listed, mode="PERMISSIVE")
        found = wf.arrow.latest(typed, keys_of(table))
        by_batch = wf.arrow.latest(in_batches(typed), keys_of(table))
        assert repr(by_batch.to_pylist()) == repr(found.to_pylist())  # there are NaNs
        columns = pa.schema([field for field in found.schema if not field.name.startswith("_")])
        wanted = typed_rows(table, held.get(table, []), listed, columns)
        names = held[table][0] if held.get(table) else ()
        shown = [column for column in names if (table, column) not in unread]
        assert len(found) == len(wanted)
        assert lines(found, shown) == lines(wanted, shown), table
        unsent = [row[column] for row in found.to_pylist() for column in row["_unchanged"] or ()]
        assert unsent == [None] * len(unsent), table  # columns that the table got after the row
