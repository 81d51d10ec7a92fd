"""The formats of the serial plugins of GaussDB and openGauss: `mppdb-json`, `sql-decoding`, `opengauss-test-decoding`.

Rows are JSON, SQL statements, or those of PostgreSQL's plugin test_decoding; all other records are lines.
Sources: GaussDB document "Logical Decoding Options"; openGauss's mppdb_decoding, sql_decoding and test_decoding.
"""

from __future__ import annotations

from ..events import ROW_CHANGES, Ddl, Event, Truncate
from ..grammar import json_text, sql_text, table_text
from ..grammar.cursor import Cursor
from ..grammar.ddl_lines import MESSAGE_DDL, MPPDB_DDL, OBJECTS, DdlLine, read_ddl_line, read_ddl_object, write_ddl_line
from ..grammar.lines import MPPDB, SQL, TEST_DECODING
from ..grammar.names import OPENGAUSS, read_relation
from ..grammar.tuple_text import TABLE
from .direct.text_rows import json_rows, quoted_rows, sql_rows
from .registry import ROWS
from .text_format import RecordReader, RecordWriter, TextFormat, reader


def _ddl_records(line: DdlLine) -> tuple[tuple[bytes, RecordReader], ...]:
    """Readers of DDL: openGauss's line of this plugin, and GaussDB's objects."""
    read_line = reader(lambda cursor, lsn: read_ddl_line(cursor, line, lsn))
    return ((line.head, read_line), *((head, reader(read_ddl_object)) for head in OBJECTS))


def _read_truncate(cursor: Cursor, lsn: int | None) -> Event:
    """A record that begins with a table and can only be a TRUNCATE."""
    cursor.expect(TABLE, "record")
    return table_text.read_truncate(cursor, read_relation(cursor), lsn)


def _writers(change: RecordWriter, line: DdlLine) -> dict[type[Event], RecordWriter]:
    """Writers of row changes, TRUNCATE and DDL."""
    return {
        **dict.fromkeys(ROW_CHANGES.values(), change),
        Truncate: table_text.write_truncate,
        Ddl: lambda event, encoding: write_ddl_line(event, line, encoding),
    }


MPPDB_JSON = TextFormat(
    row=ROWS["mppdb-json"],
    lines=MPPDB,
    records=(*_ddl_records(MPPDB_DDL), (b"{", reader(json_text.read_change)), (TABLE, reader(_read_truncate))),
    writers=_writers(json_text.write_change, MPPDB_DDL),
    row_parts=json_rows,
    new_first=True,
)

SQL_DECODING = TextFormat(
    row=ROWS["sql-decoding"],
    lines=SQL,
    records=(
        *_ddl_records(MESSAGE_DDL),
        (sql_text.INSERT, reader(sql_text.read_insert)),
        (sql_text.DELETE, reader(sql_text.read_delete)),
        (TABLE, reader(_read_truncate)),
    ),
    writers=_writers(sql_text.write_change, MESSAGE_DDL),
    row_parts=sql_rows,
)

OPENGAUSS_TEST_DECODING = TextFormat(
    row=ROWS["opengauss-test-decoding"],
    lines=TEST_DECODING,
    records=(*_ddl_records(MESSAGE_DDL), (TABLE, reader(table_text.read_table))),
    writers=_writers(table_text.write_change, MESSAGE_DDL),
    row_parts=quoted_rows(OPENGAUSS),
)
