"""Compiled notes on logical messages, MESSAGE records: what all formats that have them say of them."""

from __future__ import annotations

from ..arrays import Array, Int
from ..ascii import BACKSLASH, DIGIT_0, LOWER_A, LOWER_X
from ..jit.compiler import inner
from .dictionary import BINARY_KEY, CONTENT_KEY, PREFIX_KEY, TRANSACTIONAL_KEY, token_entry
from .notes import DECLINED, GOOD, TEXT_NEEDED, TEXT_SLACK, TEXT_USED, UTF8, ScanArrays
from .primitives import is_ascii, transcode_flag
from .row_notes import note_detail, note_flag
from .tokens import CONTENT_IS_BINARY

CONTENT_IS_BINARY_ENTRY = token_entry(CONTENT_IS_BINARY)


@inner
def write_hex(data: Array, start: Int, length: Int, text: Array, used: Int) -> Int:
    """Writes bytes as `\\x` and hexadecimal digits; returns the new end of the used text."""
    text[used], text[used + 1] = BACKSLASH, LOWER_X
    used += 2
    for at in range(start, start + length):
        for shift in range(4, -1, -4):
            digit = data[at] >> shift & 15
            text[used] = digit + (DIGIT_0 if digit < 10 else LOWER_A - 10)
            used += 1
    return used


@inner
def is_utf8(arrays: ScanArrays, start: Int, length: Int) -> bool:
    """Whether a text needs no transcoding. It begins after the first eight bytes of the buffer; see `is_ascii`."""
    utf8 = arrays.settings[UTF8] == 1
    return is_ascii(arrays.buffer, start, length) or transcode_flag(arrays.buffer, start, length, utf8) == 0


@inner
def note_message(
    arrays: ScanArrays, row: Int, transactional: bool, prefix: Int, prefix_length: Int, content: Int, length: Int
) -> Int:
    """Notes a message with its content; returns the row's status.

    A content that is no text is written in hexadecimal digits. In encodings other than UTF-8, the declaration reads the
    messages that are not ASCII: their content may be text or not, and the row may have the message's own LSN already.
    """
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    if not is_utf8(arrays, prefix, prefix_length):
        return DECLINED
    is_text = is_utf8(arrays, content, length)
    if is_text:
        note_detail(arrays, row, CONTENT_KEY, content, length)
    else:
        if arrays.settings[UTF8] == 0 or 2 * length + 2 > cursor[TEXT_NEEDED] - TEXT_SLACK:
            return DECLINED
        begin = cursor[TEXT_USED]
        end = write_hex(arrays.buffer, content, length, text, begin)
        cursor[TEXT_USED] = end
        note_detail(arrays, row, CONTENT_KEY, ~begin, end - begin)
    note_detail(arrays, row, PREFIX_KEY, prefix, prefix_length)
    note_flag(arrays, row, TRANSACTIONAL_KEY, transactional)
    if not is_text:
        start, size = dictionary[CONTENT_IS_BINARY_ENTRY, 0], dictionary[CONTENT_IS_BINARY_ENTRY, 1]
        note_detail(arrays, row, BINARY_KEY, start, size)
    return GOOD
