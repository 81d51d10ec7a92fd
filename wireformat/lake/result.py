"""What a write has written: the files of each table, and the table that a write returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ..options.table_names import TableName
from .lake import Lake
from .parquet import WrittenFile
from .stored.manifest import StoredTable
from .stored.store import Store

RESULT = pa.schema(
    [
        pa.field("table_schema", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("folder", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("open", pa.int64()),
        pa.field("dropped", pa.int64()),
        pa.field("corrupt", pa.int64()),
    ]
)
"""What `write` returns; see `Capture.write`."""


class TableFiles(NamedTuple):
    """The files of a table that one chunk or several have written.

    name          schema and name of the table
    table         the table as the manifest has it, without these files
    schema        of the files; None if there are none
    rows          the number of rows that were written
    dropped       the number of rows that DROPMALFORMED left out
    corrupt       the number of rows with values that do not fit
    relation_id   the OID of the table in the last change; None if there is none
    """

    name: TableName
    table: StoredTable
    files: list[WrittenFile]
    schema: pa.Schema | None
    rows: int
    dropped: int
    corrupt: int
    relation_id: int | None

    def and_later(self, later: TableFiles) -> TableFiles:
        """Returns these files and those of a later chunk."""
        oid = self.relation_id if later.relation_id is None else later.relation_id
        schema = self.schema or later.schema
        return TableFiles(
            self.name,
            self.table,
            self.files + later.files,
            schema,
            self.rows + later.rows,
            self.dropped + later.dropped,
            self.corrupt + later.corrupt,
            oid,
        )


def result(lake: Lake, tables: Iterable[TableFiles], left_open: int, dropped: int, unread: int = 0) -> pa.Table:
    """Returns what `Capture.write` returns.

    left_open   the number of changes of transactions that have not ended
    dropped     the number of records that DROPMALFORMED left out
    unread      the number of records that could not be read, which rejects have taken
    """
    rows: list[dict[str, Any]] = [
        {
            "table_schema": table.name[0],
            "table_name": table.name[1],
            "folder": folder_path(lake.store, lake.format, lake.manifest.tables[table.name]),
            "rows": table.rows,
            "files": len(table.files),
            "open": 0,
            "dropped": table.dropped,
            "corrupt": table.corrupt,
        }
        for table in tables
    ]
    if left_open or dropped or unread:
        rows.append({"rows": 0, "files": 0, "open": left_open, "dropped": dropped, "corrupt": unread})
    return pa.Table.from_pylist(rows, RESULT)


def folder_path(store: Store, format: str, table: StoredTable) -> str | None:
    """Returns the path of the folder of a table; None if its Delta table does not exist, as no row was written."""
    return None if format == "delta" and not table.is_made else store.location(table.folder)


def with_open_changes(written: pa.Table, open: Mapping[TableName, int]) -> pa.Table:
    """Returns what a write returns, with the open changes of each table in its row.

    written   what the write returned; its last row counts the open changes of all tables
    open      the number of open changes of each table; a table without written rows gets a row

    The last row keeps the open changes of other tables, and those without a table.
    """
    rows: list[dict[str, Any]] = written.to_pylist()
    rest = rows.pop() if rows and rows[-1]["table_name"] is None else None
    if rest is None or not open:
        return written
    by_table = {(row["table_schema"], row["table_name"]): row for row in rows}
    for name, changes in open.items():
        nothing = dict.fromkeys(("rows", "files", "open", "dropped", "corrupt"), 0)
        row = by_table.setdefault(name, {"table_schema": name[0], "table_name": name[1], **nothing})
        row["open"] = changes
        rest["open"] -= changes
    found = [by_table[name] for name in sorted(by_table)]
    if rest["open"] or rest["dropped"] or rest["corrupt"]:
        found.append(rest)
    return pa.Table.from_pylist(found, RESULT)
