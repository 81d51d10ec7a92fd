"""One message of a file, without reading what need not be read, and what its format looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ..errors import OptionError, counted
from ..formats.guess import Guess, guess_format
from ..formats.registry import find_format
from ..framing.buffer import MessageBuffer
from .columns import find_column
from .files import LINES, LINES_HEAD_BYTES, MessageSource, ParquetSource, errors_of, message_file
from .skipping import Skipped, skip_messages
from .source import Source, SourceMessages

BATCH_ROWS = 4096
"""How many rows of a Parquet file are read at a time while a message is looked for."""

PYTHON_BYTES = 8 << 20
"""How much of a file of messages is read in Python, in less time than it takes to load compiled code for the rest."""


class Picked(NamedTuple):
    """A message and what comes before it.

    message        its bytes
    before         the messages before it that were read on the way, oldest first
    stream_offset  its first byte in a file of messages; None in a Parquet file
    """

    message: bytes
    before: list[Any]
    stream_offset: int | None


def pick_message(source: Source, index: int) -> Picked:
    """Returns the message of this index; raises OptionError if the source has fewer.

    Of a Parquet file, only the row group of the message is read.
    """
    if isinstance(source, ParquetSource):
        return _of_parquet(source, index)
    passed = Skipped(0, 0)
    for given in source.read():
        if index < passed.messages + len(given.messages):
            return _chosen(source, given, index - passed.messages)
        passed = Skipped(_offset(source, given, len(given.messages)) or 0, passed.messages + len(given.messages))
        if passed.offset < PYTHON_BYTES or given.is_lost:
            continue
        if isinstance(source, MessageSource) and source.path is not None:
            return _after_skipping(source, source.path, passed, index)
    raise _too_few(source, passed.messages, index)


def _after_skipping(source: MessageSource, path: Path, passed: Skipped, index: int) -> Picked:
    """The same for a file of which some messages were passed already."""
    with errors_of(source.name):
        offset, count = skip_messages(path, source.format, passed, index)
        rest = message_file(path, source.name, source.format, offset)
    for given in rest.read():
        if index < count + len(given.messages):
            return _chosen(rest, given, index - count)
        count += len(given.messages)
    raise _too_few(source, count, index)


def _chosen(source: Source, given: SourceMessages, place: int) -> Picked:
    """The message at a place of some messages of a source."""
    messages = given.messages
    return Picked(_bytes(messages[place]), list(messages[:place]), _offset(source, given, place))


def _offset(source: Source, given: SourceMessages, place: int) -> int | None:
    """The byte of the source where the message at this place begins; None if the source has message bounds."""
    if given.stream_offset is None or not isinstance(source, MessageSource):
        return None
    sizes = sum(len(message) for message in given.messages[:place])
    return given.stream_offset + sizes + place * len(source.format.separator)


def guess_of_source(source: Source) -> Guess:
    """What the first messages of a Parquet file look like."""
    for given in source.read():
        if len(given.messages):
            return guess_format(given.messages)
    return guess_format([])


def guess_of_bytes(head: bytes) -> Guess:
    """What a file of messages looks like by its first bytes: lines of test-decoding, or one message."""
    lines = find_format(LINES)
    buffer = MessageBuffer(lines.find_end, lines.separator)
    messages = buffer.feed(head[:LINES_HEAD_BYTES])
    if buffer.lost is None and messages:
        guess = guess_format(messages)
        if LINES in guess.candidates:
            return Guess(LINES, (LINES,), f"{guess.reason}, a line feed after each", guess.messages)
    return guess_format([head] if head else [])


def choose_format(guess: Guess, usual: str) -> tuple[str, str]:
    """Returns the format to read with, and why in words; `usual` where the guess leaves a choice."""
    if guess.name is not None:
        return guess.name, guess.reason
    if not guess.candidates:
        return usual, f"{guess.reason}; {usual} is the usual one"
    name = usual if usual in guess.candidates else guess.candidates[0]
    return name, guess.reason


def _of_parquet(source: ParquetSource, index: int) -> Picked:
    with errors_of(source.name), pq.ParquetFile(source.file, pre_buffer=False) as parquet:
        column = find_column(source.name, parquet.schema_arrow, source.column)
        first = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if index >= first + rows:
                first += rows
                continue
            before: list[Any] = []
            for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=[column]):
                messages = batch.column(0)
                if index < first + len(messages):
                    before += messages[: index - first]
                    return Picked(_bytes(messages[index - first]), before, None)
                before += messages
                first += len(messages)
        raise _too_few(source, first, index)


def _too_few(source: Source, count: int, index: int) -> OptionError:
    return OptionError(f"option message: {source.name} has {counted(count, 'message')}, from 0 on; got {index}")


def _bytes(message: Any) -> bytes:
    found = message if isinstance(message, bytes) else message.as_py()
    return b"" if found is None else found
