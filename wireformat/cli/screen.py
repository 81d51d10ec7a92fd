"""Text for a terminal, with control characters as escapes, and lines of JSON for programs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import typer

from ..errors import counted
from ..printable import printable

if TYPE_CHECKING:
    from rich.console import Console

PAGER = "less -FRX"
"""The pager, unless the environment names another one."""

_NO_WIDTH = 10_000
"""The width of a pipe, at which nothing is wrapped or cut."""

COLOURS = {"INSERT": 32, "UPDATE": 33, "DELETE": 31, "TRUNCATE": 31, "CORRUPT": 91}
"""The number of ECMA-48's colour for a kind of record; other kinds are cyan."""


def screen_line(line: bytes) -> bytes:
    """Returns a line in the encoding of the terminal, with control characters and invalid bytes as escapes."""
    encoding = sys.stdout.encoding
    return printable(line.decode(encoding, "backslashreplace")).encode(encoding, "backslashreplace")


def console(**options: Any) -> Console:
    """Returns a console that prints styles and tables to standard output, as wide as the terminal.

    It raises BrokenPipeError if a pipe is closed.
    """
    from rich.console import Console

    class OfOutput(Console):
        def on_broken_pipe(self) -> None:
            """Raises the error again; rich would end the process with exit code 1."""
            raise

    width = None if sys.stdout.isatty() else _NO_WIDTH
    return OfOutput(file=sys.stdout, width=width, highlight=False, **options)


def has_colours() -> bool:
    """Whether standard output is a terminal with colours, which NO_COLOR and TERM=dumb turn off."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(line: bytes, kind: str) -> bytes:
    """Returns a line with the name of its kind in colour."""
    word = kind.encode("ascii")
    return line.replace(word, b"\x1b[%dm%b\x1b[0m" % (COLOURS.get(kind, 36), word), 1)


def say(text: str) -> None:
    """Prints a line to standard error, with control characters as escapes."""
    typer.echo(printable(text), err=True)


def say_skipped(count: int) -> None:
    """Prints how many records DROPMALFORMED has left out, if there are any."""
    if count:
        say(f"{counted(count, 'record', ',')} skipped")


def print_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints a line of JSON for each row to standard output, for programs."""
    for row in rows:
        typer.echo(json.dumps(row, default=str))


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]], are_numbers: Sequence[bool] = ()) -> None:
    """Prints a table to standard output; where a terminal is too narrow, a paragraph of a line a column for each row.

    names         of the columns
    are_numbers   whether the cells of a column are aligned right
    """
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    names, *rows = ([cell.replace("\t", r"\t") for cell in cells] for cells in (names, *rows))
    columns = [*zip(names, *rows, strict=True)]
    widths = [max((cell_len(word) for cell in cells for word in cell.split()), default=1) for cells in columns]
    screen, between = console(), " " * 3
    most = screen.width if sys.stdout.isatty() else sys.maxsize
    spare = most - sum(widths) - len(between) * (len(names) - 1)
    if spare < 0:
        width = max(map(cell_len, names))
        for name in () if rows else names:
            typer.echo(name)
        for number, row in enumerate(rows, 1):
            typer.echo(f"row {number}")
            for name, cell in zip(names, row, strict=True):
                typer.echo(f"{set_cell_size(name, width)}{between}{cell}".rstrip())
        return
    more = [max(map(cell_len, cells)) - width for cells, width in zip(columns, widths, strict=True)]
    for left, index in zip(range(len(names), 0, -1), sorted(range(len(names)), key=more.__getitem__), strict=True):
        widened = min(more[index], spare // left)
        widths[index] += widened
        spare -= widened
    for number, row in enumerate((names, *rows)):
        wrapped = [Text(cell).wrap(screen, width) for cell, width in zip(row, widths, strict=True)]
        for cells in zip_longest(*wrapped, fillvalue=""):
            parts = []
            for part, width, is_number in zip_longest(cells, widths, are_numbers):
                text = str(part).rstrip()
                parts.append(" " * (width - cell_len(text)) + text if is_number else set_cell_size(text, width))
            typer.echo(between.join(parts).rstrip())
        if not number:
            rule = "-" if screen.options.ascii_only else "─"
            typer.echo(rule * (sum(widths) + len(between) * (len(names) - 1)))


@contextmanager
def paged(*, wanted: bool) -> Iterator[None]:
    """Sends standard output to the program that PAGER names, if that is wanted and standard output is a terminal."""
    if not wanted or not sys.stdout.isatty():
        yield
        return
    try:
        command = shlex.split(os.environ.get("PAGER") or "") or shlex.split(PAGER)
        pager = subprocess.Popen(command, stdin=subprocess.PIPE)
    except (OSError, ValueError):  # no such program, or a quote that is not closed
        yield  # the terminal shows the same without a pager
        return
    assert pager.stdin is not None
    screen = os.dup(sys.stdout.fileno())
    sys.stdout.flush()
    os.dup2(pager.stdin.fileno(), sys.stdout.fileno())
    pager.stdin.close()
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        os.dup2(screen, sys.stdout.fileno())
        os.close(screen)
        pager.wait()
