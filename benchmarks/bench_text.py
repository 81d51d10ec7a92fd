"""The JSON and TEXT styles on one core: this package, beside pyarrow.json, orjson with Python, and a lexer by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from pyarrow import json as pyarrow_json

import wireformat as wf

from . import json_reader, struct_reader, text_lexer
from .bench_scan import scan_alone
from .contestants import Contestant, as_file, as_list
from .generate import JSON, JSON_LINES, TEXT

LISTS = [f"{image}_{part}" for image in ("columns", "old_keys") for part in ("name", "type", "val")]
LINE = pa.schema(
    [
        pa.field("table_name", pa.string()),
        pa.field("op_type", pa.string()),
        *(pa.field(name, pa.list_(pa.string())) for name in LISTS),
    ]
)
"""A row change as JSON."""

# Told the schema, pyarrow.json is faster than when it infers it. use_threads=False keeps it on one core: its processor
# time is its run time, with set_cpu_count(1) and without, so that setting of the whole process is left alone.
READ = pyarrow_json.ReadOptions(use_threads=False)
PARSE = pyarrow_json.ParseOptions(explicit_schema=LINE)


def split_json(file: bytes) -> pa.Table:
    """pyarrow.json. SQL literals stay as they are, and there is no LSN in a line."""
    return pyarrow_json.read_json(pa.BufferReader(file), read_options=READ, parse_options=PARSE)


def count_json_changes(lines: Sequence[bytes]) -> int:
    """Go through the row changes of the JSON reader by hand, a line at a time."""
    return sum(1 for _ in map(json_reader.read_line, lines))


def count_text_rows(messages: Sequence[bytes]) -> int:
    """Go through the rows of the lexer by hand, a message at a time."""
    return sum(len(text_lexer.read_message(message)) for message in messages)


JSON_CHANGES = "wf.arrow.changes, JSON"
PYARROW_JSON = "pyarrow.json"
ORJSON = "orjson and Python"
TEXT_CHANGES = "wf.arrow.changes, TEXT"
LEXER = "TEXT lexer by hand"

ALL = len(wf.arrow.CHANGES)

CONTESTANTS = (
    Contestant(JSON_CHANGES, partial(wf.arrow.changes, format=JSON, threads=1), columns=ALL, source=JSON),
    Contestant(PYARROW_JSON, split_json, columns=len(LINE), source=JSON_LINES, takes=as_file, delivers="changes"),
    Contestant(
        ORJSON,
        count_json_changes,
        columns=json_reader.FIELDS,
        source=JSON_LINES,
        takes=as_list,
        delivers="changes",
    ),
    Contestant(TEXT_CHANGES, partial(wf.arrow.changes, format=TEXT, threads=1), columns=ALL, source=TEXT),
    Contestant(LEXER, count_text_rows, columns=struct_reader.FIELDS, source=TEXT, takes=as_list),
    *map(scan_alone, (JSON, TEXT)),
)
