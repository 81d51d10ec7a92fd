"""`wireformat show`: one line for each record."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..errors import DecodeError
from ..events import Corrupt
from ..formats.registry import find_format
from ..formats.text_format import TextFormat
from ..options import ReadOptions
from ..sources.source import message_bytes
from ..stream.reader import Located
from .client_line import client_line
from .decoding import Decoding
from .inputs import all_messages, find_inputs
from .inspection.guessed import guessed_format
from .screen import coloured, has_colours, paged, say, say_skipped, screen_line

AS_IT_IS = "latin-1"
"""An encoding that reads any byte as a character, and writes that character as the same byte."""


def show(
    paths: Sequence[str],
    *,
    format: str | None,
    column: str | None,
    encoding: str | None,
    tables: list[str] | None,
    follow: bool = False,
    pager: bool = False,
    **options: Any,
) -> None:
    """Prints the records of all inputs to standard output.

    format     None guesses the format, and reports the guess
    encoding   the encoding of the server; text is then printed in the encoding of the terminal. None prints the bytes
               of the messages unchanged
    follow     whether to continue as the last file grows
    pager      whether to show them in a pager, which gets what the terminal would

    On a terminal, a record is one line, with its kind in colour and control characters as escapes. The other options
    are those of `ReadOptions`. Raises Failed and OptionError.
    """
    out_encoding = sys.stdout.encoding
    name_text: Callable[[str], str] = str
    if encoding is None:
        encoding = out_encoding = AS_IT_IS
        tables = None if tables is None else [os.fsencode(table).decode(AS_IT_IS) for table in tables]
        name_text = _readable
    checked = ReadOptions.check(encoding=encoding, tables=tables, **options)
    found = find_format(guessed_format(paths, format, column, says_usual=sys.stderr.isatty()))
    decoding = Decoding(found, checked, name_text)
    on_screen, in_colours = sys.stdout.isatty(), has_colours()
    with paged(wanted=pager), find_inputs(paths, found, column, follow=follow) as inputs:
        for messages in all_messages(inputs):
            text_of = _texts(found, messages.messages, decoding.messages) if isinstance(found, TextFormat) else None
            for located in decoding.located(messages):
                if text_of is None or isinstance(located.event, Corrupt):
                    line = client_line(located.event).encode(out_encoding, "backslashreplace")
                else:
                    line = text_of(located)
                    if out_encoding != AS_IT_IS:
                        line = line.decode(checked.encoding, "replace").encode(out_encoding, "backslashreplace")
                if on_screen:
                    line = screen_line(line)
                if in_colours:
                    line = coloured(line, located.event.kind)
                sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
    decoding.check()
    say_skipped(decoding.dropped)
    for complaint in decoding.complaints():
        say(complaint)


def _texts(format: TextFormat, messages: Any, first: int) -> Callable[[Located], bytes]:
    """Returns a function that gives the text of a record as it is in its message, as the client prints text styles.

    first   the index of the first message
    """
    message = -1
    texts: list[bytes] = []

    def text(located: Located) -> bytes:
        nonlocal message
        if located.message != message:
            message = located.message
            texts[:] = _good(format.texts(message_bytes(messages[message - first]) or b""))
        return texts[located.record]

    return text


def _good(texts: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the texts before broken framing, which is an event of its own."""
    with suppress(DecodeError):
        yield from texts


def _readable(name: str) -> str:
    """Returns a name whose bytes were read by AS_IT_IS, read as UTF-8."""
    return name.encode(AS_IT_IS).decode("utf-8", "backslashreplace")
