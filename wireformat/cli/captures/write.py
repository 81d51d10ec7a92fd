"""`wireformat write`: all tables of a stream into a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ... import lake
from ...errors import OptionError
from ...options.table_names import written
from ..screen import print_lines
from .opened import opened
from .screen_table import print_table

SHOWN = pa.schema(
    [
        ("table", pa.string()),
        *((name, pa.int64()) for name in ("rows", "files", "open", "dropped", "corrupt")),
    ]
)
"""The columns that are printed at the end."""


def write(
    paths: Sequence[str],
    folder: str,
    *,
    lake_format: str,
    state: str,
    tables: Sequence[str] | None,
    partition_by: str | None,
    keys: Mapping[str, Sequence[str]] | None,
    schemas: Mapping[str, Mapping[str, str]] | None,
    rejects: str | None,
    go_on: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Writes all tables to a lake, and prints what was written.

    go_on     whether the messages begin where the lake ends
    as_json   whether to print a line of JSON for each row of what `Capture.write` returns

    Raises Failed.
    """
    if go_on and _is_there(folder):
        options["after"] = lake.position(folder)
    with opened(paths, on_screen=False, **options) as capture:
        found = capture.write(
            folder,
            format=lake_format,
            state=state,
            tables=tables,
            partition_by=partition_by,
            keys=keys,
            schemas=schemas,
            rejects=rejects,
        )
    if as_json:
        print_lines(found.to_pylist())
        return
    rows = [
        {
            "table": "" if row["table_name"] is None else written((row["table_schema"], row["table_name"])),
            **{name: row[name] for name in SHOWN.names[1:]},
        }
        for row in found.to_pylist()
    ]
    print_table([pa.RecordBatch.from_pylist(rows, SHOWN)], SHOWN)


def _is_there(folder: str) -> bool:
    """Whether there is a lake in a folder."""
    try:
        lake.position(folder)
    except OptionError:
        return False
    return True
