"""PostgreSQL's plugin test_decoding, releases 9.4 to 18, `test-decoding`.

Source: PostgreSQL's test_decoding.
"""

from __future__ import annotations

from ..errors import EncodeError
from ..events import ROW_CHANGES, Message, RowChange, Truncate
from ..framing import line_feeds
from ..grammar.lines import POSTGRES
from ..grammar.messages import MESSAGE, STREAMED, read_message, read_streamed_message, write_message
from ..grammar.names import POSTGRES as POSTGRES_WRITING
from ..grammar.table_text import read_table, write_change, write_truncate
from ..grammar.tuple_text import TABLE
from .direct.text_rows import quoted_rows
from .registry import ROWS
from .text_format import TextFormat, reader


def _write_change(event: RowChange, encoding: str) -> bytes:
    return write_change(event, encoding, POSTGRES_WRITING)


def _write_truncate(event: Truncate, encoding: str) -> bytes:
    if event.xid is not None:
        raise EncodeError("xid: it has no place where the tables are named")
    return write_truncate(event, encoding, POSTGRES_WRITING)


TEST_DECODING = TextFormat(
    row=ROWS["test-decoding"],
    lines=POSTGRES,
    records=(
        (TABLE, reader(read_table)),
        (MESSAGE, reader(read_message)),
        (STREAMED, reader(read_streamed_message)),
    ),
    writers={
        **dict.fromkeys(ROW_CHANGES.values(), _write_change),
        Truncate: _write_truncate,
        Message: write_message,
    },
    separator=line_feeds.SEPARATOR,
    row_parts=quoted_rows(POSTGRES_WRITING),
)
