"""What the formats of the serial plugins share: TRUNCATE and DDL."""

from __future__ import annotations

from ...events import Ddl, Event, Truncate
from ...grammar.cursor import Cursor
from ...grammar.ddl_lines import OBJECTS, DdlLine, read_ddl_line, read_ddl_object, write_ddl_line
from ...grammar.names import read_relation
from ...grammar.truncate import read_truncate, write_truncate
from ...grammar.tuple_text import TABLE
from ...options import ReadOptions
from ..text_format import RecordReader, RecordWriter


def ddl_records(line: DdlLine) -> tuple[tuple[bytes, RecordReader], ...]:
    """Readers of DDL: openGauss's line of this plugin, and GaussDB's objects."""

    def read_line(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
        return read_ddl_line(cursor, line, lsn)

    def read_object(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
        return read_ddl_object(cursor, lsn)

    return ((line.head, read_line), *((head, read_object) for head in OBJECTS))


def read_table(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    """A record that begins with a table and can only be a TRUNCATE."""
    cursor.expect(TABLE, "record")
    return read_truncate(cursor, read_relation(cursor), lsn)


def serial_writers(line: DdlLine) -> dict[type[Event], RecordWriter]:
    """Writers of TRUNCATE and DDL."""
    return {Truncate: write_truncate, Ddl: lambda event, encoding: write_ddl_line(event, line, encoding)}
