"""`wireformat tables`, `typed` and `latest`: the tables of a stream, and the rows of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import counted
from ...options.table_names import written
from ...printable import printable
from ..output import CheckedOutput, find_output, open_output
from ..screen import console, say, say_skipped
from ..table_writers import cell_texts
from .opened import opened

SHOWN = pa.schema(
    [
        ("table", pa.string()),
        ("version", pa.int32()),
        ("columns", pa.string()),
        ("key", pa.string()),
        ("changes", pa.int64()),
        ("first", pa.string()),
        ("last", pa.string()),
    ]
)
"""The columns that `tables` prints, with a row for each version of a table; first and last are message and record."""


def tables(paths: Sequence[str], output: Path | None, *, to: str | None, **options: Any) -> None:
    """Prints the tables of a stream, or writes what `Capture.tables` returns. Raises Failed."""
    target = _target(output, to, paths)
    with opened(paths, on_screen=False, **options) as (capture, _):
        listed = capture.tables()
        skipped = capture.dropped
    _print_list(listed, target)
    say_skipped(skipped)


def _print_list(listed: pa.Table, target: CheckedOutput | None) -> None:
    """Prints the list of tables, or writes it."""
    if target is not None:
        _written(listed.to_batches(), listed.schema, target)
        return
    rows = [
        {
            "table": written((row["table_schema"], row["table_name"])),
            "version": row["version"],
            "columns": ", ".join(
                f"{name} {type or '?'}" for name, type in zip(row["columns"], row["types"], strict=True)
            ),
            "key": "?" if row["key_columns"] is None else ", ".join(row["key_columns"]),
            "changes": row["changes"],
            "first": _position(row["first"]),
            "last": _position(row["last"]),
        }
        for row in listed.to_pylist()
    ]
    print_table([pa.RecordBatch.from_pylist(rows, SHOWN)], SHOWN)


def _position(change: dict[str, int]) -> str:
    return f"{change['message']}/{change['record']}"


def typed(
    paths: Sequence[str],
    table: str,
    output: Path | None,
    *,
    to: str | None,
    rows: int,
    schema: Mapping[str, str] | None,
    complete: bool,
    **options: Any,
) -> None:
    """Prints or writes the committed changes of a table.

    output   None prints the first rows
    to       the format of standard output
    rows     how many rows are printed
    schema   the types of the columns; None takes those of the stream

    Raises Failed.
    """
    target = _target(output, to, paths)
    with opened(paths, on_screen=output is None, **options) as (capture, _):
        found = capture.typed(table, schema=schema, complete=complete)
        _shown_or_written(found, found.schema, target, rows)
        if options["mode"] == "DROPMALFORMED":
            for _ in found:  # the rows that are not shown: what was skipped is known at the end
                pass
            say_skipped(capture.dropped)


def latest(
    paths: Sequence[str],
    table: str,
    output: Path | None,
    *,
    to: str | None,
    rows: int,
    schema: Mapping[str, str] | None,
    keys: Sequence[str] | None,
    **options: Any,
) -> None:
    """Prints or writes the rows that a table has at the end of the stream; see `typed`. Raises Failed."""
    target = _target(output, to, paths)
    with opened(paths, on_screen=output is None, **options) as (capture, _):
        found = capture.latest(table, keys=keys, schema=schema)
        _shown_or_written(found.to_batches(), found.schema, target, rows)
        say_skipped(capture.dropped)


def _target(output: Path | None, to: str | None, paths: Sequence[str]) -> CheckedOutput | None:
    return None if output is None else find_output(output, to, paths)


def _shown_or_written(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: CheckedOutput | None, rows: int
) -> None:
    if target is not None:
        _written(batches, schema, target)
    elif print_table(batches, schema, rows):
        say(f"only the first {counted(rows, 'row', ',')}: --rows prints more, -o writes all to a file")


def _written(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: CheckedOutput) -> None:
    names = [field.name for field in schema if not pa.types.is_struct(field.type) or field.type.num_fields]
    schema = pa.schema([schema.field(name) for name in names], schema.metadata)
    count = 0
    with open_output(target, schema) as write:
        for batch in _nonempty(batches):
            write(batch.select(names))
            count += len(batch)
    say(f"{target.name}: {counted(count, 'row', ',')}")


def _nonempty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if len(batch))


def print_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None = None) -> bool:
    """Prints rows to standard output; returns whether there are more.

    most   the number of rows to print; None for all
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for field in schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(Text(printable(field.name)), justify="right" if is_number else "left", overflow="fold")
    left, has_more = most, False
    for batch in batches:
        if left is not None and len(batch) > left:
            batch, has_more = batch.slice(0, left), True
        columns = [cell_texts(column) for column in batch.columns]
        for cells in zip(*columns, strict=True):
            table.add_row(*(Text(printable(cell)) for cell in cells))
        left = None if left is None else left - len(batch)
        if has_more:
            break
    console().print(table)
    return has_more
