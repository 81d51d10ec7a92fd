"""The format of inputs if the command names none: guessed from the first messages, and reported on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..formats.guess import Guess
from ..formats.registry import find_format
from ..inspection.reading import guess_scanned
from ..options import ReadOptions
from ..sources.files import LINES_HEAD_BYTES, PARQUET_MAGIC, file_source
from ..sources.picked import choose_format, guess_of_bytes, guess_of_source
from .options import DEFAULT_FORMAT, STDIN
from .screen import say


def guessed_format(paths: Sequence[str], given: str | None, column: str | None, *, says_usual: bool = True) -> str:
    """Returns the format that was given, or guesses it from the first input and says so.

    says_usual   whether to report the guess if it is the usual format

    There is no guess for a Parquet file in a pipe, or for an input that cannot be read: the command then reports what
    is wrong with it.
    """
    if given is not None:
        return given
    path = paths[0]
    try:
        if path == STDIN:
            guess = _guess_of_pipe()
        elif Path(path).is_file():
            guess = _guess_of_file(path, column)
        elif Path(path).exists() and not Path(path).is_dir():
            guess = Guess(None, (), f"{path} cannot be read twice", 0)
        else:
            guess = None
    except (OSError, ValueError, OverflowError):
        guess = None
    return DEFAULT_FORMAT if guess is None else _chosen(guess, says_usual=says_usual)


def format_of_bytes(data: bytes, given: str | None) -> str:
    """Returns the format that was given, or guesses it from bytes that begin with a message."""
    return given if given is not None else _chosen(guess_of_bytes(data[:LINES_HEAD_BYTES]))


def scanned_format(data: bytes, given: str | None, options: ReadOptions) -> str:
    """Returns the format that was given, or guesses it from the records in bytes whose beginning is missing."""
    return given if given is not None else _chosen(guess_scanned(data, options))


def _chosen(guess: Guess, *, says_usual: bool = True) -> str:
    name, reason = choose_format(guess, DEFAULT_FORMAT)
    if says_usual or name != DEFAULT_FORMAT:
        say(f"format {name}, guessed: {reason}; --format overrides this")
    return name


def _guess_of_pipe() -> Guess | None:
    """Returns the likely format of standard input; None if it cannot be examined."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    head = peek(LINES_HEAD_BYTES) if peek is not None else b""
    return None if not head or head.startswith(PARQUET_MAGIC) else guess_of_bytes(head)


def _guess_of_file(path: str, column: str | None) -> Guess | None:
    """Returns the likely format of a file; None if it is empty."""
    with Path(path).open("rb") as file:
        head = file.read(LINES_HEAD_BYTES)
    if head.startswith(PARQUET_MAGIC):
        return guess_of_source(file_source(Path(path), path, find_format(DEFAULT_FORMAT), column))
    return guess_of_bytes(head) if head else None
