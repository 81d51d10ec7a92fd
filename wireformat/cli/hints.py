"""Advice in errors, in the words of the command line."""

from __future__ import annotations

from ..errors import DecodeError
from ..formats.guess import guess_format
from ..formats.registry import find_format
from ..framing.buffer import MessageBuffer

LINES = "test-decoding"
"""The format whose messages are found in a file by their line feeds."""

HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""

_WORDS = {
    "pass it, for example encoding='gbk'": "pass it, for example --encoding gbk",
    ", or on Spark pass relations=spark_udfs.relations(...)": "",
    "pass the format of the messages": "pass it with --format",
}
"""Advice for Python and Spark, and what it is here."""


def in_words_of_the_command(error: DecodeError) -> DecodeError:
    """The error with the advice that its hint gives, as options of the command."""
    for words, here in _WORDS.items():
        if error.hint is not None:
            error.hint = error.hint.replace(words, here)
    return error


def line_file_hint(head: bytes, format: str) -> str | None:
    """The advice for a file that begins with lines of test-decoding and is read as another format; else None."""
    if format == LINES:
        return None
    lines = find_format(LINES)
    found = MessageBuffer(lines.find_end, lines.separator)
    guess = guess_format(found.feed(head[:HEAD_BYTES]))
    if found.lost is not None or guess.messages < 2 or LINES not in guess.candidates:
        return None
    return f"the file looks like one of pg_recvlogical with lines of {LINES}; pass --format {LINES}"
