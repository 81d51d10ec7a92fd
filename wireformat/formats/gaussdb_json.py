"""GaussDB's and openGauss's JSON style, `gaussdb-json`.

Source: GaussDB document "Logical Decoding Options"; openGauss's parallel decoding, decode-style=j.
"""

from __future__ import annotations

from ..events import ROW_CHANGES, Event
from ..grammar.cursor import Cursor
from ..grammar.json_text import read_change, write_change
from ..grammar.lines import PARALLEL
from ..options import ReadOptions
from .direct.text_rows import json_rows
from .registry import ROWS
from .text_format import TEXT_PACKING, TextFormat


def read_record(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    """A row change."""
    return read_change(cursor, lsn)


GAUSSDB_JSON = TextFormat(
    row=ROWS["gaussdb-json"],
    lines=PARALLEL,
    records=((b"{", read_record),),
    writers=dict.fromkeys(ROW_CHANGES.values(), write_change),
    packing=TEXT_PACKING,
    row_parts=json_rows,
    new_first=True,
)
