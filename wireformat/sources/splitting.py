"""The bytes of a large file as messages, whose ends compiled code finds; the first ones can be skipped.

Skipped messages are not kept in memory.
"""

from __future__ import annotations

from functools import partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arrow.arrays import Array, read_only
from ..arrow.scan.message_ends import find_batch_ends, find_line_ends
from ..errors import DecodeError
from ..formats.base import Format
from ..formats.registry import find_row
from ..framing import gauss_batch, line_feeds, text_batch
from ..framing.buffer import FindEnds
from ..limits import RECORD_BYTES

MOST_ENDS = 1 << 16
"""The number of messages that are searched for at once."""


def ends_finder(format: Format) -> FindEnds | None:
    """Returns a function that finds the ends of many messages of a format at once; None if there is none."""
    framing = find_row(format.name).framing
    ends = np.empty(MOST_ENDS, np.int64)
    if framing == line_feeds.__name__:
        return partial(_line_ends, ends)
    if framing in (gauss_batch.__name__, text_batch.__name__):
        return partial(_batch_ends, ends, framing == gauss_batch.__name__)
    return None


def _batch_ends(
    ends: Array, separated: bool, data: bytearray, start: int, searched: int
) -> tuple[list[int], int, bool]:
    view = read_only(np.frombuffer(data, np.uint8))
    count, at, _, is_cut = find_batch_ends(view, searched, searched > start, separated, ends)
    return ends[:count].tolist(), at, is_cut


def _line_ends(ends: Array, data: bytearray, start: int, searched: int) -> tuple[list[int], int, bool]:
    if searched > start or not data.startswith(line_feeds.QUOTED_HEADS, start):  # it is long, or is to be left
        return [], searched, False
    view = read_only(np.frombuffer(data, np.uint8))
    count, at = find_line_ends(view, start, *QUOTED_HEADS, ends)
    return ends[:count].tolist(), at, False


def _table(texts: tuple[bytes, ...]) -> tuple[Array, Array]:
    """Texts of different lengths as an array, and their lengths."""
    table = np.zeros((len(texts), max(map(len, texts))), np.uint8)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    return table, np.array([len(text) for text in texts], np.int64)


QUOTED_HEADS = _table(line_feeds.QUOTED_HEADS)
"""How records begin of which quotes tell the end: texts with zeros after them, and their lengths."""


READ_BYTES = 2 << 20
"""The number of bytes that are examined at once; more if a line is longer."""

_USUAL_LINE = 1 << 12
"""Few lines are longer."""

MOST_MESSAGES = 1 << 62
"""More than a file can have: compiled code counts down from it."""


class Skipped(NamedTuple):
    """How far it came: the byte where a message begins, and how many messages there are before it."""

    offset: int
    messages: int


def skip_messages(path: Path, format: Format, skipped: Skipped, wanted: int) -> Skipped:
    """Passes over messages of a file up to the message of index `wanted`, or to one that only Python code can read.

    skipped  what was passed already

    Knows the messages by their framing alone. Raises OSError.
    """
    framing = find_row(format.name).framing
    left = wished = min(wanted - skipped.messages, MOST_MESSAGES)
    if left <= 0:
        return skipped
    with path.open("rb", buffering=0) as file:
        if framing == line_feeds.__name__:
            offset, left = _skip_lines(file, format, skipped.offset, left)
        elif framing in (gauss_batch.__name__, text_batch.__name__):
            offset, left = _skip_batches(file, skipped.offset, left, separated=framing == gauss_batch.__name__)
        else:
            return skipped
    return Skipped(offset, skipped.messages + wished - left)


def _skip_batches(file: FileIO, begun: int, left: int, *, separated: bool) -> tuple[int, int]:
    """Where the first message begins that was not passed, and how many of `left` there are still to pass."""
    buffer, ends = np.empty(READ_BYTES, np.uint8), np.empty(MOST_ENDS, np.int64)
    at, in_message = begun, False
    while left:
        file.seek(at)
        data = _read(file, buffer)
        count, moved, in_message, is_cut = find_batch_ends(data, 0, in_message, separated, ends[:left])
        if count:
            begun = at + int(ends[count - 1])
            left -= count
        if not moved:
            if not is_cut or len(data) < len(buffer):
                break
            buffer = np.empty(2 * len(buffer), np.uint8)
        at += moved
    return begun, left


def _skip_lines(file: FileIO, format: Format, begun: int, left: int) -> tuple[int, int]:
    """The same for records with a line feed after each."""
    buffer, ends = np.empty(READ_BYTES, np.uint8), np.empty(MOST_ENDS, np.int64)
    while left:
        file.seek(begun)
        data = _read(file, buffer)
        at = 0
        while left:
            count, at = find_line_ends(data, at, *QUOTED_HEADS, ends[:left])
            left -= count
            try:
                found, end = _end_of_line(format, data, at) if left else (False, at)
            except DecodeError:
                return begun + at, left
            if not found:
                break
            at, left = end, left - 1
        if not at and (len(data) < len(buffer) or len(buffer) > RECORD_BYTES):
            break
        if not at:
            buffer = np.empty(2 * len(buffer), np.uint8)
        begun += at
    return begun, left


def _end_of_line(format: Format, data: Array, at: int) -> tuple[bool, int]:
    """Format.find_end of a record that the compiled code left: of a few bytes first, which are mostly enough."""
    for size in (_USUAL_LINE, len(data)):
        found, end = format.find_end(data[at : at + size].tobytes(), 0, 0)
        if found or at + size >= len(data):
            return found, at + end
    return False, at


def _read(file: FileIO, buffer: Array) -> Array:
    """Reads the next bytes of a file into the memory of those before: new memory would take longer than reading."""
    size = file.readinto(buffer)
    return read_only(buffer[:size])
