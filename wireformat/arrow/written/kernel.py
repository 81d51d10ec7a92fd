"""Compiled: which rows share a layout, how many bytes rows become, and the bytes themselves.

The layouts are those of wireformat/formats/direct. A row is the pieces of its layout with its values between them, each
after its length. Rows that have no layout bring their bytes along.
"""

from __future__ import annotations

import numpy as np

from ...framing.gauss_batch import END, MORE
from ...limits import RECORD_BYTES
from ..arrays import Array, Int
from ..jit.compiler import compiled, hot
from ..jit.intrinsics import BLOCK, copy_block

MOST_CODES = 1 << 12
"""How many layouts the rows of one call may have; those of others are written by Python."""

SLOTS = 4 * MOST_CODES

NO_CODE = -1

HEAD_BYTES = 12
"""Of a framed record, before its kind: length and LSN."""

MESSAGE_HEAD_BYTES = 25
"""What a sender counts besides the records of a message; see XLOG_DATA_HEADER_BYTES in formats/message_writer.py."""

_MORE, _END = ord(MORE), ord(END)
_MIX, _MASK = 40503, (1 << 46) - 1


@compiled
def code_rows(
    heads: Array,
    starts: Array,
    stops: Array,
    there: Array,
    words: Array,
    skip: Array,
    codes: Array,
    firsts: Array,
    slots: Array,
) -> Int:
    """Numbers the rows by what they have besides values: rows with the same number share a layout.

    heads          int32[3, n], kind, schema and table as numbers
    starts, stops  int64[k, n], where in `words` the lists of the row are; 0 <= start <= stop <= len(words)
    there          uint8[k, n], whether the row has the list
    words          int32[m], the items of the lists as numbers
    skip           uint8[n], rows that get no number
    codes          int32[n], filled with the number, or NO_CODE
    firsts         int32[MOST_CODES], filled with the first row of each number
    slots          int32[SLOTS], all NO_CODE
    returns        the number of numbers
    """
    count = np.int64(0)
    for row in range(len(codes)):
        codes[row] = NO_CODE
        if skip[row]:
            continue
        hashed = np.int64(0)
        for head in range(len(heads)):
            hashed = (hashed * _MIX + heads[head, row] + 1) & _MASK
        for part in range(len(starts)):
            start, stop = starts[part, row], stops[part, row]
            hashed = (hashed * _MIX + stop - start + there[part, row] + 2) & _MASK
            for at in range(start, stop):
                hashed = (hashed * _MIX + words[at] + 1) & _MASK
        slot = (hashed ^ hashed >> 23) & (SLOTS - 1)
        while True:
            code = np.int64(slots[slot])
            if code == NO_CODE:
                if count < len(firsts):
                    slots[slot] = codes[row] = count
                    firsts[count] = row
                    count += 1
                break
            if _is_same_layout(heads, starts, stops, there, words, row, np.int64(firsts[code])):
                codes[row] = code
                break
            slot = (slot + 1) & (SLOTS - 1)
    return count


@hot
def _is_same_layout(
    heads: Array, starts: Array, stops: Array, there: Array, words: Array, row: Int, other: Int
) -> bool:
    for head in range(len(heads)):
        if heads[head, row] != heads[head, other]:
            return False
    for part in range(len(starts)):
        start, first = starts[part, row], starts[part, other]
        length = stops[part, row] - start
        if there[part, row] != there[part, other] or length != stops[part, other] - first:
            return False
        for step in range(length):
            if words[start + step] != words[first + step]:
                return False
    return True


@compiled
def measure_rows(
    begin: Int,
    codes: Array,
    layouts: Array,
    fixed: Array,
    no_nulls: Array,
    starts: Array,
    stops: Array,
    new_offsets: Array,
    new_valid: Array,
    old_offsets: Array,
    old_valid: Array,
    head_bytes: Int,
    null_bytes: Int,
    value_bytes: Int,
    row_layouts: Array,
    sizes: Array,
) -> Int:
    """Measures rows from `begin` on, up to the first one that has no layout or would be too long.

    codes          int32[n], as `code_rows` has filled it
    layouts        int32[MOST_CODES], the index of each number's layout, or NO_CODE while it has none
    fixed          int64[MOST_CODES], bytes of all pieces of the layout
    no_nulls       uint8[MOST_CODES], whether the layout is not for rows with a NULL
    starts, stops  int64[2, n], the items of the new and of the old tuple; there are as many as the layout has values
    *_offsets      int32[m + 1], offsets of the values of items; *_valid: uint8[m], whether they are not NULL
    head_bytes     before the pieces; null_bytes of a NULL; value_bytes before the bytes of a value
    row_layouts    int32[n], filled with the layout; sizes: int64[n], filled with all bytes of the row
    returns        the row that was not measured, or n
    """
    for row in range(begin, len(codes)):
        code = np.int64(codes[row])
        if code == NO_CODE or layouts[code] == NO_CODE:
            return row
        size = fixed[code]
        for side in range(2):
            offsets = new_offsets if side == 0 else old_offsets
            valid = new_valid if side == 0 else old_valid
            for item in range(starts[side, row], stops[side, row]):
                if valid[item]:
                    size += value_bytes + np.int64(offsets[item + 1]) - np.int64(offsets[item])
                elif no_nulls[code]:
                    return row
                else:
                    size += null_bytes
        if size > RECORD_BYTES - 8:
            return row
        row_layouts[row] = layouts[code]
        sizes[row] = head_bytes + size
    return len(codes)


@hot
def _append_bytes(out: Array, to: Int, data: Array, start: Int, length: Int) -> None:
    """Copies bytes; `out` has room for BLOCK bytes more."""
    if start + length + BLOCK <= len(data):
        for step in range(0, length, BLOCK):
            copy_block(out, to + step, data, start + step)
    else:
        for step in range(length):
            out[to + step] = data[start + step]


@hot
def _append_number(out: Array, to: Int, number: Int, size: Int) -> None:
    """Writes the low bytes of a number, the highest first."""
    for step in range(size):
        out[to + step] = number >> 8 * (size - 1 - step) & 0xFF


@compiled
def write_rows(
    begin: Int,
    end: Int,
    row_layouts: Array,
    first_pieces: Array,
    piece_starts: Array,
    pieces: Array,
    starts: Array,
    stops: Array,
    new_offsets: Array,
    new_valid: Array,
    new_data: Array,
    old_offsets: Array,
    old_valid: Array,
    old_data: Array,
    new_first: bool,
    lsns: Array,
    null: Array,
    tag: Array,
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

    row_layouts    int32[n], NO_CODE where the messages of the row are given
    first_pieces   int32[l + 1], the first piece of each layout; it has one piece more than values
    piece_starts   int32[p + 1], where in `pieces`, uint8, each piece is
    starts … old_data   as for `measure_rows`, with the bytes that the offsets mean
    lsns           int64[n]
    null, tag      uint8, the bytes of a NULL, and those before the length of a value
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
                    _append_number(out, at, np.int64(0), 4)
                    at += 4
                    ends[messages] = open_from = at
                    messages += 1
                _append_bytes(out, at, given, start, length)
                at += length
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
        record = at
        if framed:
            _append_number(out, at + 4, lsns[row], 8)
            at += HEAD_BYTES
        piece = np.int64(first_pieces[layout])
        for step in range(2):
            side = step if new_first else 1 - step
            offsets = new_offsets if side == 0 else old_offsets
            valid = new_valid if side == 0 else old_valid
            data = new_data if side == 0 else old_data
            for item in range(starts[side, row], stops[side, row]):
                start = np.int64(piece_starts[piece])
                length = np.int64(piece_starts[piece + 1]) - start
                _append_bytes(out, at, pieces, start, length)
                at += length
                piece += 1
                if valid[item]:
                    for index in range(len(tag)):
                        out[at + index] = tag[index]
                    at += len(tag)
                    start = np.int64(offsets[item])
                    length = np.int64(offsets[item + 1]) - start
                    _append_number(out, at, length, 4)
                    _append_bytes(out, at + 4, data, start, length)
                    at += 4 + length
                else:
                    for index in range(len(null)):
                        out[at + index] = null[index]
                    at += len(null)
        start = np.int64(piece_starts[piece])
        length = np.int64(piece_starts[piece + 1]) - start
        _append_bytes(out, at, pieces, start, length)
        at += length
        is_full = not framed
        if framed:
            _append_number(out, record, at - record - 4, 4)
            out[at] = _MORE
            at += 1
            if MESSAGE_HEAD_BYTES + at - open_from - 1 > batch_bytes:
                out[at - 1] = _END
                is_full = True
        if is_full:
            ends[messages] = open_from = at
            messages += 1
    return at, messages, given_at
