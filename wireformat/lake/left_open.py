"""How many changes of each table a write has left open, in what the write returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..options.table_names import TableName
from .write import RESULT


def with_open_changes(written: pa.Table, open: Mapping[TableName, int]) -> pa.Table:
    """Returns what was written, with the changes of open transactions in the rows of their tables.

    written   what a write returns; its last row has the changes of all tables
    open      the changes of each table; a table of which nothing was written gets a row

    The last row keeps the changes of other tables, and those that have no table.
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
