"""The serial plugin mppdb_decoding, `mppdb-json`: rows in JSON, all others in lines.

Source: GaussDB document "Logical Decoding Options"; openGauss's mppdb_decoding.
"""

from __future__ import annotations

from ...events import ROW_CHANGES
from ...grammar.ddl_lines import MPPDB_DDL
from ...grammar.json_text import write_change
from ...grammar.lines import MPPDB
from ...grammar.tuple_text import TABLE
from ..direct.text_rows import json_rows
from ..gaussdb_json import read_record
from ..registry import ROWS
from ..text_format import TextFormat
from .records import ddl_records, read_table, serial_writers

MPPDB_JSON = TextFormat(
    row=ROWS["mppdb-json"],
    lines=MPPDB,
    records=(*ddl_records(MPPDB_DDL), (b"{", read_record), (TABLE, read_table)),
    writers={**dict.fromkeys(ROW_CHANGES.values(), write_change), **serial_writers(MPPDB_DDL)},
    row_parts=json_rows,
    new_first=True,
)
