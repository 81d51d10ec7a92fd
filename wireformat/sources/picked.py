"""One message of a file, which is read no further than needed, and the likely format of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DecodeError, OptionError, counted
from ..formats.guess import Guess, guess_format
from ..formats.registry import find_format
from ..framing.buffer import MessageBuffer
from .files import LINES, LINES_HEAD_BYTES, MessageSource, message_file
from .source import Source, SourceMessages, errors_of, message_bytes

PYTHON_BYTES = 8 << 20
"""Up to this size, Python reads a file of messages in less time than it takes to load compiled code."""


class Picked(NamedTuple):
    """A message, and earlier ones.

    message        its bytes; None for a null of a Parquet file, which has no records
    before         the messages before it that were read on the way, oldest first
    stream_offset  its first byte in a file of messages; None in a Parquet file
    is_lost        the framing of the file is broken, here or earlier: the bytes are no message
    error          why, if it is broken here
    """

    message: bytes | None
    before: list[Any]
    stream_offset: int | None
    is_lost: bool = False
    error: DecodeError | None = None


def pick_message(source: Source, index: int) -> Picked:
    """Returns the message of this index; raises OptionError if the source has fewer.

    In a Parquet file, only the row group of the message is read.
    """
    if not isinstance(source, MessageSource):
        return _of_parquet(source, index)
    offset = count = 0
    for given in source.read():
        if index < count + len(given.messages):
            return _chosen(source, given, index - count)
        offset, count = _offset(source, given, len(given.messages)), count + len(given.messages)
        if source.path is None or given.is_lost:
            continue
        bytes_before = offset * (index - count) // max(count, 1)  # if they are as long as those that were passed
        if min(bytes_before, (source.size or 0) - offset) >= PYTHON_BYTES:
            return _after_skipping(source, source.path, offset, count, index)
    raise _too_few(source, count, index)


def _of_parquet(source: Source, index: int) -> Picked:
    """The same for a Parquet file, whose footer has the number of rows of each row group."""
    from .parquet_files import ParquetSource, row_of

    assert isinstance(source, ParquetSource)
    found = row_of(source, index)
    if isinstance(found, int):
        raise _too_few(source, found, index)
    return Picked(message_bytes(found.message), found.before, None)


def _after_skipping(source: MessageSource, path: Path, offset: int, count: int, index: int) -> Picked:
    """The same for a file of messages, some of which were already passed, up to a byte."""
    from .splitting import Skipped, skip_messages

    with errors_of(source.name):
        offset, count = skip_messages(path, source.format, Skipped(offset, count), index)
        rest = message_file(path, source.name, source.format, offset)
    for given in rest.read():
        if index < count + len(given.messages):
            return _chosen(rest, given, index - count)
        count += len(given.messages)
    raise _too_few(source, count, index)


def _chosen(source: MessageSource, given: SourceMessages, index: int) -> Picked:
    """Returns one of some messages of a file of messages."""
    messages = given.messages
    offset = _offset(source, given, index)
    return Picked(messages[index], list(messages[:index]), offset, given.is_lost, given.error)


def _offset(source: MessageSource, given: SourceMessages, index: int) -> int:
    """Returns the byte of the file at which a message begins, by its index among some messages."""
    sizes = sum(len(message) for message in given.messages[:index])
    return (given.stream_offset or 0) + sizes + index * len(source.format.separator)


def guess_of_source(source: Source) -> Guess:
    """Returns the likely format of the first messages of a Parquet file."""
    for given in source.read():
        if len(given.messages):
            return guess_format(given.messages)
    return guess_format([])


def guess_of_bytes(head: bytes) -> Guess:
    """Returns the likely format of a file of messages by its first bytes: lines of test-decoding, or one message."""
    lines = find_format(LINES)
    buffer = MessageBuffer(lines.find_end, lines.separator)
    messages = buffer.feed(head[:LINES_HEAD_BYTES])
    if buffer.lost is None and messages:
        guess = guess_format(messages)
        if LINES in guess.candidates:
            return Guess(LINES, (LINES,), f"{guess.reason}, a line feed after each", guess.messages)
    return guess_format([head] if head else [])


def choose_format(guess: Guess, usual: str) -> tuple[str, str]:
    """Returns the format to read with, and the reason; `usual` if the guess leaves a choice."""
    if guess.name is not None:
        return guess.name, guess.reason
    if not guess.candidates:
        return usual, f"{guess.reason}; {usual} is the usual one"
    name = usual if usual in guess.candidates else guess.candidates[0]
    return name, guess.reason


def _too_few(source: Source, count: int, index: int) -> OptionError:
    if not count:
        return OptionError(f"option message: {source.name} is empty: there are no messages in it")
    return OptionError(f"option message: {source.name} has {counted(count, 'message')}, from 0 on; got {index}")
