"""GaussDB's and openGauss's TEXT style, `gaussdb-text`.

Its rows are those of test_decoding but for the table: schema and name stand without quotes, with a blank between them.
Source: GaussDB document "Logical Decoding Options"; openGauss's parallel decoding, decode-style=t.
"""

from __future__ import annotations

from ..events import ROW_CHANGES, Event, RowChange
from ..grammar.cursor import Cursor
from ..grammar.lines import PARALLEL
from ..grammar.tuple_text import MARK_OF_CHANGE, TABLE, read_images, write_images
from ..grammar.unquoted import read_unquoted, write_unquoted
from ..options import ReadOptions
from .direct.text_rows import unquoted_rows
from .registry import ROWS
from .text_format import TEXT_PACKING, TextFormat


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
