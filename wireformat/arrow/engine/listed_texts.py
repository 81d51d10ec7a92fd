"""Texts in other encodings that walks over faults have listed: which of them are wrong, and where."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..scan.faults import fields
from ..scan.faults.fields import (
    AT,
    BAD_TEXT,
    CELL,
    EXPECTED,
    FAULT,
    FIELD,
    GOT,
    IMAGE,
    INSIDE,
    LEFT_TO_DECLARATION,
    LENGTH,
    NO_FAULT,
    OWNER,
    SAYS_TABLE,
    SHOWN,
    START,
    TEXT_AT,
    TEXT_CELL,
    TEXT_FIELD,
    TEXT_IMAGE,
    TEXT_INSIDE,
    TEXT_SAYS_TABLE,
)

MOST_LISTED = 1 << 14
"""How many texts are listed at a time."""

_FROM_TEXT = np.array([AT, INSIDE, IMAGE, CELL, FIELD, SAYS_TABLE])
_OF_TEXT = np.array([TEXT_AT, TEXT_INSIDE, TEXT_IMAGE, TEXT_CELL, TEXT_FIELD, TEXT_SAYS_TABLE])


def bytes_at(buffer: memoryview, text: memoryview, start: int, length: int) -> bytes:
    """Returns the bytes of a pair; see wireformat/arrow/scan/notes.py."""
    return bytes(buffer[start : start + length] if start >= 0 else text[~start : ~start + length])


def note_wrong_texts(facts: Array, texts: Array, sources: tuple[memoryview, memoryview], encoding: str) -> None:
    """Notes of each record the first listed text that is wrong: it comes before what else is wrong with the record.

    facts     as the walk has filled them, changed in place
    texts     int64[TEXT_FIELDS, n], the listed texts, in the order in which the declaration reads them
    sources   the buffer, and the text of the notes
    """
    good: set[bytes] = set()  # names come again and again
    wrong: list[int] = []
    inside: list[int] = []
    got: list[int] = []
    last = -1
    for index, (owner, start, length) in enumerate(zip(*texts[[OWNER, START, LENGTH]].tolist(), strict=True)):
        if owner == last:
            continue
        data = bytes_at(*sources, start, length)
        if data in good:
            continue
        try:
            data.decode(encoding)
            good.add(data)
        except UnicodeDecodeError as error:
            last = owner
            wrong.append(index)
            inside.append(error.start)
            got.append(error.end - error.start)
    if not wrong:
        return
    chosen = texts[:, wrong]
    records = chosen[OWNER]
    facts[_FROM_TEXT[:, np.newaxis], records] = chosen[_OF_TEXT]
    facts[INSIDE, records] += inside
    facts[GOT, records] = got
    facts[[[EXPECTED], [SHOWN]], records] = 0
    is_left = chosen[TEXT_INSIDE] == LEFT_TO_DECLARATION
    facts[FAULT, records] = np.where(is_left, NO_FAULT, BAD_TEXT)


def new_list() -> Array:
    """Returns memory for listed texts."""
    return np.empty((fields.TEXT_FIELDS, MOST_LISTED), np.int64)


NO_LIST = np.empty((fields.TEXT_FIELDS, 0), np.int64)
"""For walks that list no texts."""
