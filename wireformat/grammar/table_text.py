"""Records that begin with a table whose names are quoted where needed: row changes and TRUNCATE.

    table public.orders: INSERT: id[integer]:1
    table public.a, public."B": TRUNCATE: (no-flags)

Source: PostgreSQL's and openGauss's test_decoding.
"""

from __future__ import annotations

from typing import Any

from ..errors import DecodeError, EncodeError
from ..events import Event, RowChange, Truncate
from .cursor import Cursor
from .names import OPENGAUSS, Dialect, read_relation, write_relation
from .tuple_text import CHANGE_OF_MARK, MARK_OF_CHANGE, TABLE, read_images, write_images

MARK = b": TRUNCATE:"
NO_FLAGS = b" (no-flags)"
FLAGS = {"restart_identity": b" restart_seqs", "cascade": b" cascade"}
"""The words of the flags, in the order in which they are written."""


def read_truncate(cursor: Cursor, first: tuple[str, str], lsn: int | None) -> Truncate:
    """The event of a record whose first table has been read; raises DecodeError."""
    tables = [first]
    while cursor.skip(b", "):
        tables.append(read_relation(cursor))
    cursor.expect(MARK, "tables")
    flags: dict[str, Any] = dict.fromkeys(FLAGS, False)
    if not cursor.skip(NO_FLAGS):
        flags = {name: cursor.skip(word) for name, word in FLAGS.items()}
        if not any(flags.values()):
            cursor.fail("' (no-flags)', ' restart_seqs' or ' cascade'", "flags")
    cursor.expect_end("the end of the record", "flags")
    return Truncate(lsn=lsn, tables=tuple(tables), **flags)


def write_truncate(event: Truncate, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """The record; raises EncodeError."""
    if not event.tables:
        raise EncodeError("tables: expected at least one")
    tables = b", ".join([write_relation(schema, table, encoding, dialect) for schema, table in event.tables])
    words = b"".join([word for name, word in FLAGS.items() if getattr(event, name)])
    return b"table " + tables + MARK + (words or NO_FLAGS)


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
