"""The format of inputs where the command names none: guessed from the first messages, and said on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...formats.registry import find_format
from ...sources.files import LINES_HEAD_BYTES, PARQUET_MAGIC, file_source
from ...sources.picked import choose_format, guess_of_bytes, guess_of_source
from ..options import STDIN
from ..screen import say

USUAL = "gaussdb-binary"
"""The format where nothing is recognised, or several are and this is one of them."""


def guessed_format(
    paths: Sequence[str], given: str | None, column: str | None, *, at: int = 0, says_usual: bool = True
) -> str:
    """Returns the format that was given, or guesses it from the first input and says so.

    at          the byte of the file where the first message begins
    says_usual  whether to say so where the guess is the usual format
    An input that cannot be read gives USUAL: the command then says what is wrong with it.
    """
    if given is not None:
        return given
    path = paths[0]
    try:
        if path == STDIN:
            peek = getattr(sys.stdin.buffer, "peek", None)
            head = peek(LINES_HEAD_BYTES) if peek is not None else b""
            if not head or head.startswith(PARQUET_MAGIC):
                return USUAL
            guess = guess_of_bytes(head)
        elif not Path(path).is_file():
            return USUAL
        else:
            with Path(path).open("rb") as file:
                file.seek(at)
                head = file.read(LINES_HEAD_BYTES)
            if not head:
                return USUAL
            is_parquet = head.startswith(PARQUET_MAGIC)
            source = file_source(Path(path), path, find_format(USUAL), column) if is_parquet else None
            guess = guess_of_bytes(head) if source is None else guess_of_source(source)
    except (OSError, ValueError):
        return USUAL
    name, reason = choose_format(guess, USUAL)
    if says_usual or name != USUAL:
        say(f"format {name}, guessed: {reason}; --format says another")
    return name
