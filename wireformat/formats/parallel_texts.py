"""GaussDB's and openGauss's JSON and TEXT styles, `gaussdb-json` and `gaussdb-text`.

The rows of TEXT are those of test_decoding but for the table: schema and name stand without quotes, with a blank
between them. Source: GaussDB document "Logical Decoding Options"; openGauss's parallel decoding, decode-style=j and t.
"""

from __future__ import annotations

from ..events import ROW_CHANGES, Event, RowChange
from ..grammar import json_text
from ..grammar.cursor import Cursor
from ..grammar.lines import PARALLEL
from ..grammar.tuple_text import MARK_OF_CHANGE, TABLE, read_images, read_unquoted, write_images, write_unquoted
from ..options import ReadOptions
from .direct.text_rows import json_rows, unquoted_rows
from .registry import ROWS
from .text_format import TEXT_PACKING, TextFormat, reader

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
