"""The serial plugin sql_decoding, `sql-decoding`: rows as SQL statements.

Source: GaussDB document "Logical Decoding Options"; openGauss's sql_decoding.
"""

from __future__ import annotations

from ...events import ROW_CHANGES, Event
from ...grammar.cursor import Cursor
from ...grammar.ddl_lines import MESSAGE_DDL
from ...grammar.lines import SQL
from ...grammar.sql_text import DELETE, INSERT, read_delete, read_insert, write_change
from ...grammar.tuple_text import TABLE
from ...options import ReadOptions
from ..direct.text_rows import sql_rows
from ..registry import ROWS
from ..text_format import TextFormat
from .records import ddl_records, read_table, serial_writers


def _insert(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    return read_insert(cursor, lsn)


def _delete(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    return read_delete(cursor, lsn)


SQL_DECODING = TextFormat(
    row=ROWS["sql-decoding"],
    lines=SQL,
    records=(*ddl_records(MESSAGE_DDL), (INSERT, _insert), (DELETE, _delete), (TABLE, read_table)),
    writers={**dict.fromkeys(ROW_CHANGES.values(), write_change), **serial_writers(MESSAGE_DDL)},
    row_parts=sql_rows,
)
