"""One message of a file, without reading what need not be read, and what its format looks like."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ..errors import OptionError, counted
from ..formats.guess import Guess, guess_format
from ..formats.registry import find_format
from ..framing.buffer import MessageBuffer
from .columns import find_column
from .files import LINES, LINES_HEAD_BYTES, ParquetSource, errors_of
from .source import Source

BATCH_ROWS = 4096
"""How many rows of a Parquet file are read at a time while a message is looked for."""


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
    count = 0
    for given in source.read():
        messages = given.messages
        if index < count + len(messages):
            begin = index - count
            offset = None
            if given.stream_offset is not None:
                offset = given.stream_offset + sum(len(message) for message in messages[:begin])
            return Picked(_bytes(messages[begin]), list(messages[:begin]), offset)
        count += len(messages)
    raise _too_few(source, count, index)


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
