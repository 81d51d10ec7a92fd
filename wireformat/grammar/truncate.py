"""TRUNCATE in the serial formats: `table a.b, c.d: TRUNCATE: restart_seqs cascade`, or `(no-flags)`."""

from __future__ import annotations

from typing import Any

from ..errors import EncodeError
from ..events import Truncate
from .cursor import Cursor
from .dialects import OPENGAUSS, Dialect
from .names import read_relation, write_relation

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
