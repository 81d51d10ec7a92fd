"""`wireformat inspect`: the bytes of records beside what they mean."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import typer
from rich.console import Console
from rich.text import Text

from ..errors import DecodeError, OptionError, counted
from ..events import Event
from ..formats.registry import find_format
from ..inspection.nodes import BYTES_IN_ROW, Node, TreeRow, error_lines, rows, shown_event
from ..inspection.reading import RecordReader, Slice, find_records
from ..options import ReadOptions
from ..printable import printable
from ..sources.files import PARQUET_MAGIC
from ..sources.picked import pick_message
from ..sources.source import message_bytes
from .exits import BAD_USAGE, Failed
from .inputs import find_inputs, format_of_bytes, guessed_format, scanned_format
from .options import STDIN
from .screen import console, say

MOST_RECORDS = 20
"""If a message has more records, they are listed, one per line."""

SCANNED_BYTES = 64 << 20
"""How many bytes `--scan` reads."""

PASSED_BYTES = 1 << 20
"""The number of bytes of a pipe that are skipped at a time."""

NARROW = 120
"""Terminals with fewer columns get half as many bytes in a line."""


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
    """Prints one message of a file, or some records found in it, to standard output.

    message   the index of the message
    record    the index of its record; None for all
    at        the byte at which a message, or the search, begins
    scan      whether to search for records

    The other options are those of `ReadOptions`. Raises Failed and OptionError.
    """
    checked = ReadOptions.check(**options)
    found: Iterator[tuple[Slice, Event | None]]
    is_cut = False
    if scan or at is not None:
        first = at or 0
        data = _bytes_of(path, first)
        is_cut = scan and len(data) > SCANNED_BYTES
        data = data[:SCANNED_BYTES]
        name = scanned_format(data, format, checked) if scan else format_of_bytes(data, format)
        reader = RecordReader(find_format(name), checked)
        if not scan:
            data = _first_message(reader, data)
        found = find_records(reader, data) if scan else _unread(reader.slices(data))
        title = f"{_name(path)}, {counted(len(data), 'byte', ',')} of {name} from byte {first:,} on"
    else:
        name = guessed_format([path], format, column)
        reader = RecordReader(find_format(name), checked)
        with ExitStack() as held:
            (source,) = held.enter_context(find_inputs([path], find_format(name), column))
            picked = pick_message(source, message)
        for earlier in picked.before if reader.format.relations is not None else ():
            reader.learn(message_bytes(earlier) or b"")
        data, first = picked.message or b"", picked.stream_offset or 0
        found = _unread(reader.unframed(data, picked.error) if picked.is_lost else reader.slices(data))
        size = counted(len(data), "byte", ",")
        if picked.message is None:
            found, size = iter(()), "a null, which has no records,"
        title = f"{source.name}, message {message}, {size} of {name}"
    records = enumerate(found) if record is None else iter([_record(found, record)])
    count, end = 0, len(data)
    if as_json:
        for index, (piece, _) in records:
            _print_json(reader.node(data, piece, index), data, index)
            end = piece.stop
        if is_cut and record is None:
            say(f"--at {first + end} continues after these bytes")
        return
    begun = list(islice(records, MOST_RECORDS + 1))
    screen = console(soft_wrap=True, emoji=False, markup=False)
    screen.print(Text(printable(title), style="bold"))
    if record is None and (len(begun) > MOST_RECORDS or scan):
        for index, (piece, event) in chain(begun, records):
            outline = reader.outline(data, piece) if event is None else (event, None)
            screen.print(_outline(data, piece, index, first, *outline))
            count, end = index + 1, piece.stop
        advice = "; --record N shows one of them" if count else ""
        if is_cut:
            advice += f"; --at {first + end} continues after these bytes"
        screen.print(Text(counted(count, "record", ",") + advice, style="dim"))
        return
    for index, (piece, _) in begun:
        _print_tree(screen, data, reader.node(data, piece, index))


def _unread(pieces: Iterable[Slice]) -> Iterator[tuple[Slice, None]]:
    """Returns records that have not been read yet."""
    return ((piece, None) for piece in pieces)


def _record(found: Iterator[tuple[Slice, Event | None]], record: int) -> tuple[int, tuple[Slice, Event | None]]:
    """Returns the record of an index, with the index; raises Failed."""
    count = 0
    for count, item in enumerate(found, 1):
        if count > record:
            return record, item
    raise Failed(
        f"--record: there {'is' if count == 1 else 'are'} {counted(count, 'record')}, from 0 on; got {record}",
        BAD_USAGE,
    )


def _outline(data: bytes, piece: Slice, index: int, first: int, event: Event, error: DecodeError | None) -> Text:
    """Returns a line for a record: its offset in the file, its size, and what it is."""
    wrong = f"  {error_lines(data, error)[0]}" if error is not None else ""
    size = counted(piece.stop - piece.start, "byte", ",")
    return Text.assemble(
        (f"{first + piece.start:>12,}", "cyan"),
        f"  record {index:<6} {size:>14}  ",
        (shown_event(event), "bold"),
        (wrong, "red"),
    )


def _print_tree(screen: Console, data: bytes, node: Node) -> None:
    width = BYTES_IN_ROW if screen.width >= NARROW else BYTES_IN_ROW // 2
    for row in rows(data, node, most=width):
        screen.print(_line(row, width))
    if node.error is not None:
        for line in error_lines(data, node.error):
            screen.print(Text(f"        ! {line}", style="bold red"))


def _line(row: TreeRow, width: int) -> Text:
    """Returns a row of a tree, with space for the hexadecimal digits of `width` bytes."""
    node = row.node
    style = "bold red" if node.error is not None and node.is_leaf else "dim" if node.is_word else ""
    return Text.assemble(
        (f"{row.offset}  ", "cyan"),
        (f"{row.hex:<{3 * width - 1}}  ", "yellow"),
        (f"{row.text:<{width}}  ", "green"),
        (f"{'  ' * row.depth + node.name:<28}  ", style or "bold"),
        (f"{row.value}  " if row.value else "", "magenta"),
        (printable(node.rule), "dim"),
    )


def _print_json(node: Node, data: bytes, index: int) -> None:
    """Prints a line of JSON for each leaf of a record."""
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


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path


def _bytes_of(path: str, first: int) -> bytes:
    """Returns SCANNED_BYTES of a file from a byte on, more if there are more; raises Failed if there are none."""
    name = _name(path)
    try:
        with ExitStack() as held:
            file = sys.stdin.buffer if path == STDIN else held.enter_context(Path(path).open("rb"))
            head = file.read(len(PARQUET_MAGIC))
            if head == PARQUET_MAGIC:
                raise Failed(
                    f"{name}: --at and --scan are for files of messages; of a Parquet file, pass --message N", BAD_USAGE
                )
            size = _passed(file, len(head), first)
            data = head[first:] + file.read(SCANNED_BYTES + 1)
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}", BAD_USAGE) from None
    if not data:
        text = f"--at: {name} has {counted(size, 'byte', ',')}; got {first}" if size else f"{name} is empty"
        raise Failed(text, BAD_USAGE)
    return data


def _passed(file: BinaryIO, at: int, first: int) -> int:
    """Skips bytes up to the byte `first`; returns the offset reached, which is the file's size if it has fewer."""
    if file.seekable():
        size = file.seek(0, os.SEEK_END)
        return file.seek(max(at, min(first, size)))
    while at < first:
        passed = len(file.read(min(first - at, PASSED_BYTES)))
        if not passed:
            break
        at += passed
    return at


def _first_message(reader: RecordReader, data: bytes) -> bytes:
    """Returns the message at the beginning of the bytes, or all bytes if its end is not known."""
    try:
        found, end = reader.format.find_end(data, 0, 0)
    except (ValueError, OptionError):
        return data
    return data[: end - len(reader.format.separator)] if found else data
