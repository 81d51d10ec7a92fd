"""Passes over the first messages of a large file without holding them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from ..errors import DecodeError
from ..formats.base import Format
from ..formats.registry import find_row
from ..framing import gauss_batch, line_feeds, text_batch
from ..limits import RECORD_BYTES

if TYPE_CHECKING:
    from ..arrow.arrays import Array

READ_BYTES = 1 << 20
"""How many bytes are looked at in one go, more where a line is longer."""


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
    left = wanted - skipped.messages
    if left <= 0:
        return skipped
    with path.open("rb", buffering=0) as file:
        if framing == line_feeds.__name__:
            offset, left = _skip_lines(file, format, skipped.offset, left)
        elif framing in (gauss_batch.__name__, text_batch.__name__):
            offset, left = _skip_batches(file, skipped.offset, left, separated=framing == gauss_batch.__name__)
        else:
            return skipped
    return Skipped(offset, wanted - left)


def _skip_batches(file: BinaryIO, begun: int, left: int, *, separated: bool) -> tuple[int, int]:
    """Where the first message begins that was not passed, and how many of `left` there are still to pass."""
    from ..arrow.scan.hops import MESSAGE, hop_batches

    at, following = begun, MESSAGE
    while left:
        file.seek(at)
        data = _array(file.read(READ_BYTES))
        moved, last, left, following = hop_batches(data, left, following, separated)
        if last >= 0:
            begun = at + last
        if not moved:
            break
        at += moved
    return begun, left


def _skip_lines(file: BinaryIO, format: Format, begun: int, left: int) -> tuple[int, int]:
    """The same for records with a line feed after each."""
    from ..arrow.scan.hops import hop_lines

    heads, sizes = _table(line_feeds.QUOTED_HEADS)
    size = READ_BYTES
    while left:
        file.seek(begun)
        data = file.read(size)
        at = 0
        while left:
            at, left = hop_lines(_array(data), at, left, heads, sizes)
            try:
                found, end = format.find_end(data, at, at) if left else (False, at)
            except DecodeError:
                return begun + at, left
            if not found:
                break
            at, left = end, left - 1
        if not at and (len(data) < size or size > RECORD_BYTES):
            break
        size = READ_BYTES if at else 2 * size
        begun += at
    return begun, left


def _array(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _table(texts: tuple[bytes, ...]) -> tuple[Array, Array]:
    """Texts of different lengths as an array, and their lengths."""
    table = np.zeros((len(texts), max(map(len, texts))), np.uint8)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = _array(text)
    return table, np.array([len(text) for text in texts], np.int64)
