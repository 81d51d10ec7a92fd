"""The bytes of a large file as messages, whose ends compiled code finds."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..arrow.arrays import Array, read_only
from ..arrow.scan.message_ends import find_batch_ends, find_line_ends
from ..formats.base import Format
from ..formats.registry import find_row
from ..framing import gauss_batch, line_feeds, text_batch
from ..framing.buffer import FindEnds

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
