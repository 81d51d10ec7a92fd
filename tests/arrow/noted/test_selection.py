"""Rows of a record batch beside rows that were copied out of notes: typed tables read both as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.noted.changes import NotedChanges, rows_by_table
from wireformat.arrow.noted.selection import NotedSelection, change_rows, joined_selections, selection_of
from wireformat.arrow.row_changes import TABLE_DELETE
from wireformat.arrow.typed_tables.batch import TypedOptions
from wireformat.arrow.typed_tables.rows import rows_of_table
from wireformat.arrow.typed_tables.table import TypedPart, kept_fields

from ...lake.histories import TABLES, messages_of, transactions

KEEP = ("csn", "lsn")


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_a_batch(table: str) -> None:
    format = "gaussdb-binary"
    capture = wf.Capture(messages_of([*transactions(60, more="more")]), format)
    batch = capture.committed().read_all().combine_chunks().to_batches()[0]
    schema = batch.schema
    types = {name: schema.field(name).type for name in KEEP}
    (rows,) = rows_of_table(pa.Table.from_batches([batch]), "public", table, KEEP)
    assert (rows.kinds <= TABLE_DELETE).all()
    half = len(rows.kinds) // 2
    parts = [rows.chosen(np.arange(half)), rows.chosen(np.arange(half, len(rows.kinds)))]
    noted = [
        selection_of(one, part.kinds, [("public", table)], np.zeros(len(one), np.int64), types)
        for part in parts
        for one in part.selections  # a single one, since the rows are of one batch
    ]
    joined = change_rows(joined_selections(noted))
    name = f"public.{table}"
    found = []
    for given in (rows, joined):
        options = TypedOptions("FAILFAST", "new", False, False, None)
        part = TypedPart(
            name,
            schema=capture.tables(),
            options=options,
            evolution="union",
            kept=kept_fields(KEEP, schema),
            format=format,
        )
        found.append(part.read(given)[0])
    assert found[0].equals(found[1])
    assert [rows.position(index) for index in range(half)] == [joined.position(index) for index in range(half)]


def test_kept_columns_are_in_the_order_of_the_tables() -> None:
    """Rows that are copied out of the notes come table by table; columns that are kept beside them do, too."""
    capture = wf.Capture(messages_of([*transactions(60)]), "gaussdb-binary")
    noted = [rows for rows, _ in capture._committed(capture._options) if isinstance(rows, NotedChanges)]
    assert noted
    for rows in noted:
        of_notes, of_batch = (dict(rows_by_table(given, KEEP)) for given in (rows, rows.batch()))
        assert len(of_notes) == len(TABLES)
        for table, found in of_notes.items():
            for name in ("message", "record", "sequence", "xid", "commit_time", *KEEP):
                type = rows.batch().schema.field(name).type
                assert column(found, name, type).equals(column(of_batch[table], name, type)), name


def column(rows: pa.RecordBatch | NotedSelection, name: str, type: pa.DataType) -> pa.Array:
    assert isinstance(rows, NotedSelection)
    return rows.column(name, type)


def test_the_rows_of_a_table_alone() -> None:
    format = "gaussdb-binary"
    capture = wf.Capture(messages_of([*transactions(60, more="more")]), format)
    batch = capture.committed().read_all().combine_chunks().to_batches()[0]
    of_tables = [*rows_by_table(batch, ())]
    selections = {table: rows for table, rows in of_tables if isinstance(rows, NotedSelection)}
    assert len(selections) > 1
    assert len({id(rows.values.source) for rows in selections.values()}) == 1
    for (_, table), rows in selections.items():
        alone = rows.alone()
        assert alone.nbytes == rows.nbytes
        assert alone.alone() is alone
        assert alone.layouts == rows.layouts
        assert {layout.table for layout in rows.layouts} == {("public", table)}
        found = []
        for given in (
            rows,
            alone,
            joined_selections([rows.chosen(np.arange(1)), rows.chosen(np.arange(1, len(rows)))]),
        ):
            options = TypedOptions("FAILFAST", "new", False, False, None)
            part = TypedPart(
                f"public.{table}",
                schema=capture.tables(),
                options=options,
                evolution="union",
                kept=(),
                format=format,
            )
            found.append(part.read(change_rows(given))[0])
        assert found[0].equals(found[1])
        assert found[0].equals(found[2])
