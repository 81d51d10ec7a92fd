"""`wireformat write`: all tables of a stream into a lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ... import lake
from ...errors import OptionError
from ...formats.registry import find_format
from ...options import ReadOptions
from ...options.table_names import written
from ...sources.source import Source
from ..decoding import TableFilter
from ..inputs import all_messages
from ..screen import print_lines, say
from .opened import opened
from .tables import print_table

SHOWN = pa.schema(
    [
        ("table", pa.string()),
        *((name, pa.int64()) for name in ("rows", "files", "open", "dropped", "corrupt")),
    ]
)
"""The columns that are printed at the end."""

_READ_OPTIONS = ("encoding", "encoding_errors", "dialect")
"""The options on which the names of the tables depend."""


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
    with opened(paths, on_screen=False, **options) as (capture, sources):
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
        told = [*_complaints(found, sources, tables, options)]
    for line in told:
        say(line)
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


def _complaints(
    found: pa.Table, sources: Sequence[Source], tables: Sequence[str] | None, options: Mapping[str, Any]
) -> Iterator[str]:
    """Returns a line for each pattern that matches no table of the input. Reads the input again if nothing was written
    for a pattern, until it has matched a table.

    found    what `Capture.write` returned
    tables   the patterns
    """
    names = zip(found["table_schema"].to_pylist(), found["table_name"].to_pylist(), strict=True)
    checked = ReadOptions.check(tables=tables, **{name: options[name] for name in _READ_OPTIONS})
    table_filter = TableFilter(find_format(options["format"]), checked)
    table_filter.add((schema, table) for schema, table in names if table is not None)
    for messages in all_messages(sources) if table_filter.has_unmatched else ():
        table_filter.look(messages)
    return table_filter.complaints()


def _is_there(folder: str) -> bool:
    """Whether there is a lake in a folder."""
    try:
        lake.position(folder)
    except OptionError:
        return False
    return True
