"""`wireformat inspect`: the bytes of a record beside what they mean."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from ...errors import OptionError, counted
from ...formats.registry import find_format
from ...inspection.nodes import Node
from ...inspection.reading import RecordReader, Slice
from ...inspection.rows import Row, error_lines, rows, shown_value
from ...inspection.scan import find_records
from ...options import ReadOptions
from ...printable import printable
from ...sources.files import PARQUET_MAGIC
from ...sources.picked import pick_message
from ..exits import BAD_USAGE, Failed
from ..inputs import find_inputs
from .guessed import guessed_format

MOST_RECORDS = 20
"""Of a message with more records, the records are listed, a line each."""

SCANNED_BYTES = 64 << 20
"""How many bytes `--scan` reads."""

WIDE = 10_000
"""Columns of a pipe, which has no width: nothing is wrapped."""


def inspect(
    path: str,
    *,
    format: str | None,
    column: str | None,
    message: int,
    record: int | None,
    at: int | None,
    scan: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print one message of a file, or some records found in it, to standard output.

    message, record     which message, and which of its records; None for all
    at                  the byte where a message, or the search, begins
    The other options are those of `ReadOptions`. Raises Failed, OptionError.
    """
    checked = ReadOptions.check(**options)
    name = guessed_format([path], format, column, at=at or 0)
    reader = RecordReader(find_format(name), checked)
    if scan or at is not None:
        first = at or 0
        data = _bytes_of(path, first)
        found: Iterator[Slice] = find_records(reader, data) if scan else reader.slices(_first_message(reader, data))
        title = f"{path}, {counted(len(data), 'byte', ',')} from byte {first:,}"
    else:
        with ExitStack() as held:
            (source,) = held.enter_context(find_inputs([path], find_format(name), column))
            picked = pick_message(source, message)
        for earlier in picked.before if reader.format.relations is not None else ():
            reader.learn(earlier if isinstance(earlier, bytes) else earlier.as_py() or b"")
        data, first = picked.message, picked.stream_offset or 0
        found = reader.slices(data)
        title = f"{source.name}, message {message}, {counted(len(data), 'byte', ',')} of {name}"
    pieces = list(enumerate(found if record is None else islice(found, record + 1)))
    if record is not None and not 0 <= record < len(pieces):
        raise Failed(f"--record: expected a number below {len(pieces)}, got {record}", BAD_USAGE)
    chosen = pieces if record is None else [pieces[record]]
    if as_json:
        _print_json(reader, data, chosen, first)
        return
    width = None if sys.stdout.isatty() else WIDE
    console = Console(highlight=False, soft_wrap=True, width=width, emoji=False, markup=False)
    console.print(Text(printable(title), style="bold"))
    if record is None and (len(chosen) > MOST_RECORDS or scan):
        for index, piece in chosen:
            node = reader.node(data, piece, index)
            wrong = f"  {printable(error_lines(data, node.error)[0])}" if node.error is not None else ""
            size = counted(piece.stop - piece.start, "byte", ",")
            console.print(
                Text.assemble(
                    (f"{first + piece.start:>12,}", "cyan"),
                    f"  record {index:<6} {size:>14}  ",
                    (shown_value(node), "bold"),
                    (wrong, "red"),
                )
            )
        advice = "; --record N shows one of them" if chosen else ""
        console.print(Text(counted(len(chosen), "record", ",") + advice, style="dim"))
        return
    for index, piece in chosen:
        _print_tree(console, data, reader.node(data, piece, index))


def _print_tree(console: Console, data: bytes, node: Node) -> None:
    for row in rows(data, node):
        console.print(_line(row))
    if node.error is not None:
        for line in error_lines(data, node.error):
            console.print(Text(f"        ! {line}", style="bold red"))


def _line(row: Row) -> Text:
    node = row.node
    style = "bold red" if node.error is not None and node.is_leaf else "dim" if node.is_word else ""
    return Text.assemble(
        (f"{row.offset}  ", "cyan"),
        (f"{row.hex:<47}  ", "yellow"),
        (f"{row.text:<16}  ", "green"),
        (f"{'  ' * row.depth + node.name:<28}  ", style or "bold"),
        (f"{row.value}  " if row.value else "", "magenta"),
        (printable(node.rule), "dim"),
    )


def _print_json(reader: RecordReader, data: bytes, chosen: Sequence[tuple[int, Slice]], first: int) -> None:
    """A line of JSON for each leaf."""
    for index, piece in chosen:
        node = reader.node(data, piece, index)
        for leaf in node.leaves():
            value = leaf.value.hex() if isinstance(leaf.value, bytes) else leaf.value
            line = {
                "record": index,
                "kind": node.value.kind,
                "path": leaf.path,
                "start": leaf.start,
                "stop": leaf.stop,
                "hex": data[leaf.start : leaf.stop].hex(),
                "value": value if value is None or isinstance(value, (bool, int, str)) else str(value),
                "rule": leaf.rule,
                "error": None if leaf.error is None else str(leaf.error),
            }
            typer.echo(json.dumps(line))


def _bytes_of(path: str, first: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            if file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
                raise Failed(
                    f"{path}: --at and --scan are for files of messages; of a Parquet file, pass --message N", BAD_USAGE
                )
            file.seek(first)
            return file.read(SCANNED_BYTES)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", BAD_USAGE) from None


def _first_message(reader: RecordReader, data: bytes) -> bytes:
    """The message at the beginning of the bytes; all of them where nothing says where it ends."""
    try:
        found, end = reader.format.find_end(data, 0, 0)
    except (ValueError, OptionError):
        return data
    return data[: end - len(reader.format.separator)] if found else data
