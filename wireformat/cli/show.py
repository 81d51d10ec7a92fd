"""`wireformat show`: one line a record."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from ..formats.registry import find_format
from ..options import ReadOptions
from .client_line import client_line
from .decoding import Decoding
from .inputs import all_parts, find_inputs

AS_IT_IS = "latin-1"
"""Reads any byte as a character and writes that character as the same byte."""


def show(
    paths: Sequence[str], *, format: str, column: str, encoding: str | None, tables: list[str] | None, **options: Any
) -> None:
    """Print the records of all inputs to standard output.

    encoding    of the server; the text is then printed in the encoding of the terminal. None: bytes as they are
    The other options are those of `ReadOptions`. Raises Failed, OptionError.
    """
    out_encoding = sys.stdout.encoding
    name_text: Callable[[str], str] = str
    if encoding is None:
        encoding = out_encoding = AS_IT_IS
        tables = None if tables is None else [os.fsencode(table).decode(AS_IT_IS) for table in tables]
        name_text = _readable
    checked = ReadOptions.check(encoding=encoding, tables=tables, **options)
    decoding = Decoding(find_format(format), checked, name_text)
    with find_inputs(paths, find_format(format), column) as inputs:
        for part in all_parts(inputs):
            for event in decoding.events(part):
                sys.stdout.buffer.write(client_line(event).encode(out_encoding, "backslashreplace") + b"\n")
            sys.stdout.buffer.flush()
    if decoding.dropped:
        typer.echo(f"{decoding.dropped:,} records left out", err=True)


def _readable(name: str) -> str:
    """A name that was read as it is, as UTF-8."""
    return name.encode(AS_IT_IS).decode("utf-8", "backslashreplace")
