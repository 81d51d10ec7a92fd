"""Compiled: how many bytes rows become, and the bytes themselves.

The layouts are those of wireformat/formats/direct. A row is the pieces of its layout with its values between them, each
after its length. Rows that have no layout bring their bytes along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...framing.gauss_batch import END, MORE
from ...limits import RECORD_BYTES
from ..arrays import Array, Int
from ..jit.byte_ranges import copy_bytes
from ..jit.compiler import compiled, hot
from ..jit.intrinsics import write_64
from .columns import Lists, Texts, is_valid
from .heads import NO_CODE

LENGTH_BYTES = 4
"""The bytes of the length before a value."""

HEAD_BYTES = 12
"""The bytes of a framed record before its kind: length and LSN."""

MESSAGE_HEAD_BYTES = 25
"""What a sender counts besides the records of a message; see XLOG_DATA_HEADER_BYTES in formats/message_writer.py."""

_MORE, _END = ord(MORE), ord(END)


class Marks(NamedTuple):
    """What is written for NULL and before values, each as the first bytes of a word of 64 bits.

    value        what comes before the length of a value; length_bit: where in the word the length ends
    value_bytes  of both; null_bytes: of NULL
    """

    null: int
    null_bytes: int
    value: int
    value_bytes: int
    length_bit: int

    @classmethod
    def of(cls, null: bytes, tag: bytes) -> Marks:
        """The marks for these bytes of NULL, and before the length of a value."""
        words = [int.from_bytes(part.ljust(8, b"\0"), "big", signed=True) for part in (null, tag)]
        size = len(tag) + LENGTH_BYTES
        return cls(words[0], len(null), words[1], size, 8 * (8 - size))


@compiled
def measure_rows(
    begin: Int,
    codes: Array,
    layouts: Array,
    fixed: Array,
    no_nulls: Array,
    new: Lists,
    new_values: Texts,
    old: Lists,
    old_values: Texts,
    head_bytes: Int,
    marks: Marks,
    given_counts: Array,
    row_layouts: Array,
    sizes: Array,
) -> Int:
    """Measures rows from `begin` on, up to the first one that has neither a layout nor messages, or would be too long.

    codes          int32[n], the numbers of rows, see `Heads`
    layouts        int32[MOST_CODES], the index of each number's layout, or NO_CODE while it has none
    fixed          int64[MOST_CODES], bytes of all pieces of the layout
    no_nulls       uint8[MOST_CODES], whether the layout is not for rows with a NULL
    new … old_values   the tuples of rows; they have as many values as the layout
    head_bytes     before the pieces
    given_counts   int32[n], messages that each row brings along
    row_layouts    int32[n], filled with the layout; sizes: int64[n], filled with all bytes of the row
    returns        the row that was not measured, or n
    """
    for row in range(begin, len(codes)):
        code = np.int64(codes[row])
        if code == NO_CODE and given_counts[row] > 0:
            continue
        if code == NO_CODE or layouts[code] == NO_CODE:
            return row
        new_bytes = _tuple_bytes(new, new_values, row, marks, no_nulls[code] == 1)
        old_bytes = _tuple_bytes(old, old_values, row, marks, no_nulls[code] == 1)
        size = fixed[code] + new_bytes + old_bytes
        if new_bytes < 0 or old_bytes < 0 or size > RECORD_BYTES - 8:
            return row
        row_layouts[row] = layouts[code]
        sizes[row] = head_bytes + size
    return len(codes)


@hot
def _tuple_bytes(lists: Lists, values: Texts, row: Int, marks: Marks, no_nulls: bool) -> Int:
    """The bytes of the values of a tuple; less than 0 if a NULL is among them that may not be."""
    size = np.int64(0)
    if is_valid(lists.valid, lists.first + row):
        for item in range(lists.offsets[row], lists.offsets[row + 1]):
            if is_valid(values.valid, values.first + item):
                size += marks.value_bytes + np.int64(values.offsets[item + 1]) - np.int64(values.offsets[item])
            elif no_nulls:
                return np.int64(-1)
            else:
                size += marks.null_bytes
    return size


@hot
def _append_text(out: Array, to: Int, texts: Texts, index: Int) -> Int:
    """Copies a text, and returns its end; see `copy_bytes`."""
    start = np.int64(texts.offsets[index])
    length = np.int64(texts.offsets[index + 1]) - start
    return copy_bytes(out, to, texts.data, start, length)


@hot
def _append_tuple(
    out: Array, at: Int, lists: Lists, values: Texts, row: Int, piece: Int, pieces: Texts, marks: Marks
) -> tuple[Int, Int]:
    """Writes the values of a tuple, each after the next piece; returns the end of what is written, and the piece that
    is next."""
    if is_valid(lists.valid, lists.first + row):
        for item in range(lists.offsets[row], lists.offsets[row + 1]):
            at = _append_text(out, at, pieces, piece)
            piece += 1
            if is_valid(values.valid, values.first + item):
                length = np.int64(values.offsets[item + 1]) - np.int64(values.offsets[item])
                write_64(out, at, marks.value | length << marks.length_bit)
                at = _append_text(out, at + marks.value_bytes, values, item)
            else:
                write_64(out, at, marks.null)
                at += marks.null_bytes
    return at, piece


@compiled
def write_rows(
    begin: Int,
    end: Int,
    row_layouts: Array,
    sizes: Array,
    first_pieces: Array,
    pieces: Texts,
    new: Lists,
    new_values: Texts,
    old: Lists,
    old_values: Texts,
    new_first: bool,
    lsns: Array,
    marks: Marks,
    framed: bool,
    batch_bytes: Int,
    given_counts: Array,
    given_ends: Array,
    given_alone: Array,
    given: Array,
    given_at: Int,
    out: Array,
    at: Int,
    ends: Array,
) -> tuple[Int, Int, Int]:
    """Writes measured rows as messages.

    row_layouts    int32[n], NO_CODE where the messages of the row are given; sizes: int64[n], as measured
    first_pieces   int32[l + 1], the first piece of each layout; it has one piece more than values
    new … old_values   as for `measure_rows`
    lsns           int64[n]
    framed         whether rows are records of batches; `batch_bytes`: a message is closed once it is longer
    given_counts   int32[n], messages that each row brings along; given_ends, int64, where each ends in `given`, uint8;
                   given_alone, uint8: whether a framed one is a whole message, not a record; `given_at` is the first
    out            uint8, with room for all that was measured and BLOCK bytes more; its first `at` bytes belong to the
                   message that is open
    ends           int64, filled with the ends of messages; with room for one more than there can be
    returns        bytes written, messages ended, the given message that is next
    """
    messages = np.int64(0)
    open_from = np.int64(0)
    for row in range(begin, end):
        layout = np.int64(row_layouts[row])
        if layout == NO_CODE:
            for _ in range(given_counts[row]):
                start = given_ends[given_at - 1] if given_at > 0 else np.int64(0)
                length = given_ends[given_at] - start
                if framed and given_alone[given_at] and at > open_from:
                    write_64(out, at, np.int64(0))
                    at += LENGTH_BYTES
                    ends[messages] = open_from = at
                    messages += 1
                at = copy_bytes(out, at, given, start, length)
                if framed and not given_alone[given_at]:
                    out[at] = _MORE
                    at += 1
                    if MESSAGE_HEAD_BYTES + at - open_from - 1 > batch_bytes:
                        out[at - 1] = _END
                        ends[messages] = open_from = at
                        messages += 1
                else:
                    ends[messages] = open_from = at
                    messages += 1
                given_at += 1
            continue
        if framed:
            write_64(out, at, (sizes[row] - LENGTH_BYTES) << 32)
            write_64(out, at + LENGTH_BYTES, lsns[row])
            at += HEAD_BYTES
        piece = np.int64(first_pieces[layout])
        if new_first:
            at, piece = _append_tuple(out, at, new, new_values, row, piece, pieces, marks)
        at, piece = _append_tuple(out, at, old, old_values, row, piece, pieces, marks)
        if not new_first:
            at, piece = _append_tuple(out, at, new, new_values, row, piece, pieces, marks)
        at = _append_text(out, at, pieces, piece)
        is_full = not framed
        if framed:
            out[at] = _MORE
            at += 1
            if MESSAGE_HEAD_BYTES + at - open_from - 1 > batch_bytes:
                out[at - 1] = _END
                is_full = True
        if is_full:
            ends[messages] = open_from = at
            messages += 1
    return at, messages, given_at
