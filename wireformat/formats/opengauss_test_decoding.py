"""openGauss's serial plugin test_decoding, `opengauss-test-decoding`.

Source: openGauss's test_decoding, whose rows are those of PostgreSQL's plugin of this name.
"""

from __future__ import annotations

from ..errors import DecodeError
from ..events import Delete, Event, Insert, RowChange, Update
from ..framing import whole
from ..grammar.cursor import Cursor
from ..grammar.ddl_lines import MESSAGE_DDL
from ..grammar.lines import TEST_DECODING
from ..grammar.names import read_relation, write_relation
from ..grammar.truncate import read_truncate
from ..grammar.tuple_text import CHANGES, MARKS, read_images, write_images
from ..options import ReadOptions
from .serial import TABLE, ddl_records, serial_options, serial_writers
from .text_format import TextFormat


def _read_table(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    """A row change or a TRUNCATE: what stands behind the first table tells."""
    cursor.expect(TABLE, "record")
    schema, table = read_relation(cursor)
    for mark, event in CHANGES.items():
        if cursor.skip(b":" + mark):
            try:
                return event(lsn=lsn, table_schema=schema, table_name=table, **read_images(cursor, event))
            except DecodeError as error:
                raise error.add(table=f"{schema}.{table}") from None
    return read_truncate(cursor, (schema, table), lsn)


def _write_change(event: RowChange, encoding: str) -> bytes:
    table = write_relation(event.table_schema, event.table_name, encoding)
    return TABLE + table + b":" + MARKS[type(event)] + write_images(event, encoding)


OPENGAUSS_TEST_DECODING = TextFormat(
    name="opengauss-test-decoding",
    sentence="openGauss, serial plugin test_decoding: rows in TEXT",
    framing=whole,
    lines=TEST_DECODING,
    records=(*ddl_records(MESSAGE_DDL), (TABLE, _read_table)),
    writers={**dict.fromkeys((Insert, Update, Delete), _write_change), **serial_writers(MESSAGE_DDL)},
    options=serial_options("include-xids", "include-timestamp", "skip-empty-xacts"),
)
