"""openGauss's serial plugin test_decoding, `opengauss-test-decoding`.

Source: openGauss's test_decoding, whose rows are those of PostgreSQL's plugin of this name.
"""

from __future__ import annotations

from ...events import ROW_CHANGES, Event
from ...grammar.cursor import Cursor
from ...grammar.ddl_lines import MESSAGE_DDL
from ...grammar.dialects import OPENGAUSS
from ...grammar.lines import TEST_DECODING
from ...grammar.table_text import read_table, write_change
from ...grammar.tuple_text import TABLE
from ...options import ReadOptions
from ..direct.text_rows import quoted_rows
from ..registry import ROWS
from ..text_format import TextFormat
from .records import ddl_records, serial_writers


def _read_table(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    return read_table(cursor, lsn)


OPENGAUSS_TEST_DECODING = TextFormat(
    row=ROWS["opengauss-test-decoding"],
    lines=TEST_DECODING,
    records=(*ddl_records(MESSAGE_DDL), (TABLE, _read_table)),
    writers={**dict.fromkeys(ROW_CHANGES.values(), write_change), **serial_writers(MESSAGE_DDL)},
    row_parts=quoted_rows(OPENGAUSS),
)
