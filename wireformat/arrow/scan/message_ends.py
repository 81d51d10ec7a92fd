"""Where messages end in the bytes of a file, without reading them: compiled, over the framing alone.

The functions pass over what is well framed and stop before all else: what is unusual, broken or cut is left to the
Python code of the framing, which knows what to say of it.
"""

from __future__ import annotations

from ...framing.gauss_batch import BARE_HEARTBEAT, BARE_HEARTBEAT_BYTES, END, LEAST_RECORD_BYTES, MORE
from ...framing.text_batch import FIRST_LETTER
from ...framing.text_batch import LEAST_RECORD_BYTES as LEAST_TEXT_BYTES
from ...limits import RECORD_BYTES
from ..arrays import Array, Int
from ..ascii import LINE_FEED
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, line_marks, lowest_bit, read_32

_HEARTBEAT, _END, _MORE = BARE_HEARTBEAT[0], END[0], MORE[0]


@compiled
def find_batch_ends(
    data: Array, at: Int, in_message: bool, separated: bool, ends: Array
) -> tuple[Int, Int, bool, bool]:
    """Find the ends of messages of records with lengths.

    data        uint8[n]  some bytes of the file
    at          where a message begins, or a later record of it
    in_message  whether it is a later record
    separated   whether separators follow the records, as in the binary style
    ends        int64[k]  gets the ends of messages, k at most
    returns     how many ends there are; where the first message or record begins that was not passed; whether it is a
                later record; whether the bytes that end it are still to come
    """
    size, count = len(data), 0
    least = LEAST_RECORD_BYTES if separated else LEAST_TEXT_BYTES
    while count < len(ends):
        if separated and not in_message and at < size and data[at] == _HEARTBEAT:
            stop = at + BARE_HEARTBEAT_BYTES
            if stop >= size:
                return count, at, in_message, True
            if data[stop] != _END:
                break
            at = stop + 1
            ends[count] = at
            count += 1
            continue
        if not separated and not in_message and at < size and data[at] >= FIRST_LETTER:
            break
        if at + 4 > size:
            return count, at, in_message, True
        length = read_32(data, at)
        if not separated and length == 0:
            at += 4
            ends[count] = at
            count += 1
            in_message = False
            continue
        if length < least or length > RECORD_BYTES:
            break
        stop = at + 4 + length
        if not separated:
            if stop > size:
                return count, at, in_message, True
            at, in_message = stop, True
            continue
        if stop >= size or (data[stop] == _MORE and stop + 5 > size):
            return count, at, in_message, True
        if data[stop] == _END:
            at, in_message = stop + 1, False
        elif data[stop] != _MORE:
            break
        elif read_32(data, stop + 1) == 0:
            at, in_message = stop + 5, False
        else:
            at, in_message = stop + 1, True
        if not in_message:
            ends[count] = at
            count += 1
    return count, at, in_message, False


@compiled
def find_line_ends(data: Array, at: Int, heads: Array, sizes: Array, ends: Array) -> tuple[Int, Int]:
    """Find the ends of records that end at a line feed outside of quotes.

    data     uint8[n]     some bytes of the file
    at       where a record begins
    heads    uint8[k, w]  how such records begin, each with zeros after it
    sizes    int64[k]     how long each head is
    ends     int64[n]     gets the ends of records, n at most
    returns  how many ends there are; where the first record begins that was not passed
    """
    size, count = len(data), 0
    while count < len(ends):
        is_known = False
        for head in range(len(sizes)):
            length = sizes[head]
            if at + length <= size:
                same = 0
                while same < length and data[at + same] == heads[head, same]:
                    same += 1
                if same == length:
                    is_known = True
                    break
        if not is_known:
            break
        cursor, quote, stop = at, 0, -1
        while stop < 0 and cursor + BLOCK <= size:
            marks = line_marks(data, cursor)
            while marks != 0:
                mark_at = cursor + lowest_bit(marks)
                marks &= marks - 1
                byte = int(data[mark_at])
                if quote == 0 and byte == LINE_FEED:
                    stop = mark_at + 1
                    break
                # A quote begins where none is open, and its like ends it.
                quote = byte if quote == 0 else 0 if byte == quote else quote
            cursor += BLOCK
        if stop < 0:
            break
        at = stop
        ends[count] = at
        count += 1
    return count, at
