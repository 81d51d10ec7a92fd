"""Records that begin with a table whose names are quoted where needed: row changes and TRUNCATE.

    table public.orders: INSERT: id[integer]:1
    table public.a, public."B": TRUNCATE: (no-flags)

Source: PostgreSQL's and openGauss's test_decoding.
"""

from __future__ import annotations

from ..errors import DecodeError
from ..events import Event, RowChange
from .cursor import Cursor
from .dialects import OPENGAUSS, Dialect
from .names import read_relation, write_relation
from .truncate import read_truncate
from .tuple_text import CHANGE_OF_MARK, MARK_OF_CHANGE, TABLE, read_images, write_images


def read_table(cursor: Cursor, lsn: int | None) -> Event:
    """The event of the record at the cursor; raises DecodeError. What follows the first table tells its kind."""
    cursor.expect(TABLE, "record")
    schema, table = read_relation(cursor)
    for mark, event in CHANGE_OF_MARK.items():
        if cursor.skip(b":" + mark):
            try:
                return event(lsn=lsn, table_schema=schema, table_name=table, **read_images(cursor, event))
            except DecodeError as error:
                raise error.in_table(schema, table) from None
    return read_truncate(cursor, (schema, table), lsn)


def write_change(event: RowChange, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """The record of a row change; raises EncodeError."""
    table = write_relation(event.table_schema, event.table_name, encoding, dialect)
    return TABLE + table + b":" + MARK_OF_CHANGE[type(event)] + write_images(event, encoding, dialect)
