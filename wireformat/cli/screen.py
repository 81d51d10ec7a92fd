"""Text for a terminal: characters that would steer it are printed as escapes."""

from __future__ import annotations

import sys

import typer

from ..printable import printable


def screen_line(line: bytes) -> bytes:
    """A line in the encoding of the terminal, with what steers it or is not text of it as escapes."""
    encoding = sys.stdout.encoding
    return printable(line.decode(encoding, "backslashreplace")).encode(encoding, "backslashreplace")


def say(text: str) -> None:
    """Print a line to standard error, whatever the names in it hold."""
    typer.echo(printable(text), err=True)
