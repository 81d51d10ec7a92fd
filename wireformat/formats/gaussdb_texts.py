"""The text formats of GaussDB and openGauss: of the serial plugins, and `gaussdb-json` and `gaussdb-text`.

Rows are JSON, SQL statements, or those of PostgreSQL's plugin test_decoding; all other records are lines. In
`gaussdb-text`, schema and name of the table stand without quotes, with a blank between them.
Sources: GaussDB document "Logical Decoding Options"; openGauss's mppdb_decoding, sql_decoding and test_decoding, and
its parallel decoding, decode-style=j and t.
"""

from __future__ import annotations

from ..events import ROW_CHANGES, Ddl, Event, RowChange, Truncate
from ..grammar import json_text, sql_text, table_text
from ..grammar.cursor import Cursor
from ..grammar.ddl_lines import MESSAGE_DDL, MPPDB_DDL, OBJECTS, DdlLine, read_ddl_line, read_ddl_object, write_ddl_line
from ..grammar.lines import MPPDB, PARALLEL, SQL, TEST_DECODING
from ..grammar.names import OPENGAUSS, read_relation
from ..grammar.tuple_text import MARK_OF_CHANGE, TABLE, read_images, read_unquoted, write_images, write_unquoted
from ..options import ReadOptions
from .direct.text_rows import json_rows, quoted_rows, sql_rows, unquoted_rows
from .registry import ROWS
from .text_format import TEXT_PACKING, RecordReader, RecordWriter, TextFormat, reader


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


GAUSSDB_JSON = TextFormat(
    row=ROWS["gaussdb-json"],
    lines=PARALLEL,
    records=((b"{", reader(json_text.read_change)),),
    writers=dict.fromkeys(ROW_CHANGES.values(), json_text.write_change),
    packing=TEXT_PACKING,
    row_parts=json_rows,
    new_first=True,
)


def _change(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    def read(event: type[RowChange], schema: str, table: str) -> RowChange:
        return event(lsn=lsn, table_schema=schema, table_name=table, **read_images(cursor, event))

    cursor.expect(TABLE, "record")
    return read_unquoted(cursor, options.known_tables, options.keeps_table, read)


def _written(event: RowChange, encoding: str) -> bytes:
    table = write_unquoted(event.table_schema, event.table_name, encoding)
    return TABLE + table + MARK_OF_CHANGE[type(event)] + write_images(event, encoding)


GAUSSDB_TEXT = TextFormat(
    row=ROWS["gaussdb-text"],
    lines=PARALLEL,
    records=((TABLE, _change),),
    writers=dict.fromkeys(ROW_CHANGES.values(), _written),
    packing=TEXT_PACKING,
    row_parts=unquoted_rows(),
)
