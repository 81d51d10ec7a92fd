"""Tables of the characters of other encodings in UTF-8, by which compiled code reads names.

    characters: int64[256 * n], for each byte what it means at the beginning of a character, then what it means after
    the bytes before it: a packed character, the index of what the next byte means, or NOTHING

A packed character is its UTF-8, left-aligned in eight bytes of which the last one is its length.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...arrays import Array, Int
from ...jit.compiler import inner
from ...jit.intrinsics import read_64, write_64
from ..joined_texts import JOINABLE, decode_joined
from ..primitives import is_plain, not_plain

NOTHING = 0
"""These bytes are no character, or one that the table does not have."""

NEXT = 0xFF
"""In place of the length of a packed character: an index precedes it."""

NO_CHARACTERS = np.empty(0, np.int64)
"""In place of a table."""

MOST_GROWTH = 3
"""How many times longer a name may be in UTF-8: the characters in the table have three bytes there or less."""

_LINE = ord("\n")
_CODES = np.array([*range(1, _LINE), *range(_LINE + 1, 0xD800), *range(0xE000, 1 << 16)], "<u4")
"""The characters that a table may have. Lines separate them: Python's encoders of JIS X 0213 lose a zero character."""

LONGEST, _ALPHABETS_END = 4, 0x2000
"""The most bytes of a character. Of those with four bytes, which GB 18030 has, only codes below the second number are
kept, the letters of alphabets: with all 40,000, the table would have 8 MB."""


@cache
def characters_of(encoding: str) -> Array:
    """Returns the table of an encoding, or NO_CHARACTERS. It has those characters that are encoded as they are read."""
    if encoding not in JOINABLE:
        return NO_CHARACTERS
    text = np.stack([_CODES, np.full_like(_CODES, _LINE)], axis=-1).tobytes().decode("utf-32-le")
    encoded, in_utf8 = (
        np.frombuffer(text.encode(name, "ignore").replace(b"\n", b"\0"), np.uint8) for name in (encoding, "utf-8")
    )
    ends = np.flatnonzero(encoded == 0)
    sizes = np.diff(ends, prepend=-1) - 1
    decoded, offsets, bad = decode_joined(encoded, ends, encoding, "strict")
    packed = _packed(in_utf8, np.append(0, np.flatnonzero(in_utf8 == 0) + 1))
    is_read = (packed == _packed(decoded, offsets)) & (bad == 0)
    is_kept = is_read & (sizes > 0) & ((sizes < LONGEST) | ((sizes == LONGEST) & (_CODES < _ALPHABETS_END)))
    packed, sizes, starts = packed[is_kept], sizes[is_kept], (ends - sizes)[is_kept]
    characters, rows = np.full((1, 256), NOTHING, np.int64), np.zeros(len(sizes), np.int64)
    while len(sizes):
        places, is_last = 256 * rows + encoded[starts], sizes == 1
        characters.ravel()[places[is_last]] = packed[is_last]
        firsts, found = np.unique(places[~is_last], return_inverse=True)
        characters.ravel()[firsts] = 256 * (len(characters) + np.arange(len(firsts))) << 8 | NEXT
        packed, sizes, starts = packed[~is_last], sizes[~is_last] - 1, starts[~is_last] + 1
        rows = len(characters) + found
        characters = np.concatenate([characters, np.full((len(firsts), 256), NOTHING, np.int64)])
    return characters.ravel()


def _packed(data: Array, offsets: Array) -> Array:
    """Packs texts of three bytes or less, each followed by a zero byte; offsets as `decode_joined` returns them."""
    lengths = np.diff(offsets) - 1
    packed = lengths.copy()
    for at in range(MOST_GROWTH):
        has_byte = lengths > at
        packed[has_byte] |= data[offsets[:-1][has_byte] + at].astype(np.int64) << 56 - 8 * at
    return packed


@inner
def decode_name(data: Array, at: Int, stop: Int, target: Array, to: Int, characters: Array) -> tuple[Int, Int]:
    """Writes the name data[at:stop], or what of it precedes a zero byte, in UTF-8 to target[to:].

    target    has room for MOST_GROWTH times the name and for eight bytes more; it may be `data`, but not where the name
              is
    returns   where the zero byte is, or `stop`, or -1 if the table does not have a character; and the end of what was
              written
    """
    while at < stop and data[at] != 0:
        if stop - at >= 8:
            word = read_64(data, at)
            if is_plain(not_plain(word)):
                write_64(target, to, word)
                at += 8
                to += 8
                continue
        byte = data[at]
        at += 1
        if byte < 0x80:
            target[to] = byte
            to += 1
            continue
        meant = characters[byte]
        while meant & 0xFF == NEXT and at < stop:
            meant = characters[(meant >> 8) + data[at]]
            at += 1
        length = meant & 0xFF
        if length > MOST_GROWTH or length == NOTHING:
            return np.int64(-1), to
        write_64(target, to, meant)
        to += length
    return at, to
