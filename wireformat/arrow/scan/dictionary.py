"""The constant texts that a scan can point at: kinds, keys of the detail map, marks of the text styles, type names."""

from __future__ import annotations

import numpy as np

from ...options.reading import KINDS
from ...pgtypes import SQL_NAMES
from ..arrays import Array
from ..schemas import DETAIL_KEYS
from .marks import MARKS

FIRST_LSN, COMMIT_TIME_KEY, ORIGIN, USERNAME = range(4)
END_LSN_KEY, OLD_KEY = DETAIL_KEYS.index("end_lsn"), DETAIL_KEYS.index("old")

# Places in WORDS: of kinds, of detail keys, of marks, and of type names by number.
KIND_WORDS = 0
KEY_WORDS = len(KINDS)
MARK_WORDS = KEY_WORDS + len(DETAIL_KEYS)
TYPE_WORDS = MARK_WORDS + len(MARKS)


def mark_word(mark: bytes) -> int:
    """The place of a mark in WORDS."""
    return MARK_WORDS + MARKS.index(mark)


TYPE_TABLE_SIZE = 1 << 14
"""PostgreSQL gives numbers below 16384 to built-in types; others are not in the catalogue."""


def _make_words() -> tuple[Array, Array]:
    text = bytearray()
    words = np.zeros((TYPE_WORDS + TYPE_TABLE_SIZE, 2), np.int32)
    keys = [word.encode() for word in (*KINDS, *DETAIL_KEYS)]
    types = [(TYPE_WORDS + oid, name.encode()) for oid, name in SQL_NAMES.items()]
    for place, word in [*enumerate((*keys, *MARKS)), *types]:
        words[place] = ~len(text), len(word)
        text += word
    return words, np.frombuffer(bytes(text), np.uint8)


WORDS, WORD_TEXT = _make_words()
"""WORDS: int32[n, 2], the pair of each constant word; length 0 where a type number is in no catalogue."""
