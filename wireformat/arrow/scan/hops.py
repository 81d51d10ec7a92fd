"""From message to message without reading them: compiled steps over the framing of a file, a chunk at a time.

They pass over what is well framed and stop before all else: what is unusual, broken or cut is left to the Python code
of the framing, which knows what to say of it.
"""

from __future__ import annotations

from ...framing.gauss_batch import BARE_HEARTBEAT, BARE_HEARTBEAT_BYTES, END, LEAST_RECORD_BYTES, MORE
from ...framing.text_batch import LEAST_RECORD_BYTES as LEAST_TEXT_BYTES
from ...limits import RECORD_BYTES
from ..arrays import Array, Int
from ..ascii import LINE_FEED
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, line_marks, lowest_bit, read_32

MESSAGE, RECORD, SEPARATOR = range(3)
"""What comes next: a message, another record of it, or what follows a record."""

_HEARTBEAT, _END, _MORE = BARE_HEARTBEAT[0], END[0], MORE[0]


@compiled
def hop_batches(data: Array, left: Int, following: Int, separated: bool) -> tuple[Int, Int, Int, Int]:
    """Pass over messages of records with lengths.

    data       uint8[n]  some bytes of the file
    left       how many messages to pass
    following  MESSAGE, RECORD or SEPARATOR: what the bytes begin with
    separated  whether separators follow the records, as in the binary style
    returns    how many bytes were passed, more than n if the last record ends after them; where the last message
               began, -1 if before the bytes; the messages left; what comes next
    """
    size, at, begun = len(data), 0, -1
    least = LEAST_RECORD_BYTES if separated else LEAST_TEXT_BYTES
    while True:
        if following == MESSAGE:
            begun = at
            if left == 0:
                break
            if separated and at < size and data[at] == _HEARTBEAT:
                if at + BARE_HEARTBEAT_BYTES >= size or data[at + BARE_HEARTBEAT_BYTES] != _END:
                    break
                at += BARE_HEARTBEAT_BYTES + 1
                left -= 1
                continue
        if following == SEPARATOR:
            if at >= size:
                break
            if data[at] == _END:
                at += 1
                left -= 1
                following = MESSAGE
            elif data[at] != _MORE or at + 5 > size:
                break
            elif read_32(data, at + 1) == 0:
                at += 5
                left -= 1
                following = MESSAGE
            else:
                at += 1
                following = RECORD
            continue
        if at + 4 > size:
            break
        length = read_32(data, at)
        if not separated and length == 0:
            at += 4
            left -= 1
            following = MESSAGE
            continue
        if length < least or length > RECORD_BYTES:
            break
        at += 4 + length
        following = SEPARATOR if separated else RECORD
    return at, begun, left, following


@compiled
def hop_lines(data: Array, at: Int, left: Int, heads: Array, sizes: Array) -> tuple[Int, Int]:
    """Pass over records that end at a line feed outside of quotes.

    data     uint8[n]     some bytes of the file
    at       where a record begins
    left     how many records to pass
    heads    uint8[k, w]  how such records begin, each with zeros after it
    sizes    int64[k]     how long each head is
    returns  where the next record begins, the records left
    """
    size = len(data)
    while left > 0:
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
                place = cursor + lowest_bit(marks)
                marks &= marks - 1
                byte = int(data[place])
                if quote == 0 and byte == LINE_FEED:
                    stop = place + 1
                    break
                # A quote begins where none is open, and its like ends it.
                quote = byte if quote == 0 else 0 if byte == quote else quote
            cursor += BLOCK
        if stop < 0:
            break
        at = stop
        left -= 1
    return at, left
