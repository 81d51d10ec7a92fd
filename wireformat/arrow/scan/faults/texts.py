"""Compiled functions that all walks over faults use: what is noted of a fault, and texts after their lengths."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...jit.compiler import inner
from ..primitives import is_ascii_anywhere, is_ascii_block, read_16, read_32
from .fields import (
    ANY_TEXT,
    AT,
    BAD_LENGTH,
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
    LISTED,
    OTHER_TEXT,
    OWNER,
    SAYS_TABLE,
    SHORT,
    SHOWN,
    START,
    TEXT_AT,
    TEXT_CELL,
    TEXT_FIELD,
    TEXT_IMAGE,
    TEXT_INSIDE,
    TEXT_SAYS_TABLE,
    TextRule,
)

STOPPED = -1
"""In place of where a field ends: the walk is over. Either a fault is noted, or the declaration reads the record."""

NO_NULL = -1
"""Of texts that cannot be NULL."""


@inner
def note_fault(faults: Array, index: Int, fault: Int, at: Int, expected: Int, got: Int, shown: Int) -> Int:
    """Notes what is wrong, and where; returns STOPPED."""
    faults[FAULT, index] = fault
    faults[AT, index] = at
    faults[EXPECTED, index] = expected
    faults[GOT, index] = got
    faults[SHOWN, index] = shown
    return np.int64(STOPPED)


@inner
def begin_record(faults: Array, texts: Array, index: Int, begin: Int) -> bool:
    """Begins to look at a record; False if there is no more room for its texts."""
    faults[LISTED, index] = faults[LISTED, index - 1] if index > begin else 0
    return faults[LISTED, index] <= texts.shape[1]


@inner
def list_text(start: Int, length: Int, at: Int, inside: Int, faults: Array, texts: Array, index: Int) -> None:
    """Lists a text, if there is room; see the fields of a listed text."""
    listed = faults[LISTED, index]
    faults[LISTED, index] = listed + 1
    if listed >= texts.shape[1]:
        return
    texts[OWNER, listed] = index
    texts[START, listed] = start
    texts[LENGTH, listed] = length
    texts[TEXT_AT, listed] = at
    texts[TEXT_INSIDE, listed] = inside
    texts[TEXT_IMAGE, listed] = faults[IMAGE, index]
    texts[TEXT_CELL, listed] = faults[CELL, index]
    texts[TEXT_FIELD, listed] = faults[FIELD, index]
    texts[TEXT_SAYS_TABLE, listed] = faults[SAYS_TABLE, index]


@inner
def is_known(pair: Int, rule: TextRule) -> bool:
    """Whether a text is one of the dictionary or of a relation, which are good; `pair` is where it begins."""
    return pair < 0 and ~pair < rule.known_bytes


@inner
def check_text(
    data: Array, pair: Int, length: Int, at: Int, inside: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> bool:
    """Whether a text is good, as Python's strict decoder says it, or is listed; else it is noted what is wrong.

    data         what the text is in: the buffer, or the text of the notes
    pair         where it begins, as a pair says it; see notes.py
    at, inside   where its field begins, and how many bytes of that come before it; inside may be LEFT_TO_DECLARATION
    """
    start = pair if pair >= 0 else ~pair
    if rule.which == ANY_TEXT or length <= 0 or is_ascii_anywhere(data, start, length):
        return True
    if rule.which == OTHER_TEXT:
        list_text(pair, length, at, inside, faults, texts, index)
        return True
    no_text = len(rule.states) - 1
    state = np.int64(0)
    begin = start  # of the character that is not complete
    byte, stop = start, start + length
    while byte < stop:
        if state == 0:
            begin = byte
            if stop - byte >= 8 and is_ascii_block(data, byte):
                byte += 8
                continue
        state = np.int64(rule.states[state, data[byte]])
        if state == no_text:
            _note_bad_text(faults, index, at, inside, begin - start, max(byte - begin, 1))
            return False
        byte += 1
    if state != 0:
        _note_bad_text(faults, index, at, inside, begin - start, start + length - begin)
    return state == 0


@inner
def _note_bad_text(faults: Array, index: Int, at: Int, inside: Int, offset: Int, got: Int) -> None:
    if inside != LEFT_TO_DECLARATION:
        faults[INSIDE, index] = inside + offset
        note_fault(faults, index, BAD_TEXT, at, 0, got, 0)


@inner
def check_room(at: Int, stop: Int, size: Int, faults: Array, index: Int) -> Int:
    """Returns where a number of `size` bytes ends, or STOPPED if the record is too short for it."""
    if stop - at < size:
        return note_fault(faults, index, SHORT, at, size, stop - at, stop - at)
    return at + size


@inner
def check_sized(
    buffer: Array, at: Int, stop: Int, size: Int, null: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> Int:
    """Returns where a text ends that follows its length, or STOPPED.

    size   how many bytes the length has: 2 or 4
    null   the length that means NULL, or NO_NULL
    """
    begin = check_room(at, stop, size, faults, index)
    if begin < 0:
        return begin
    length = read_16(buffer, at) if size == 2 else read_32(buffer, at)
    if length == null:
        return begin
    if length > stop - begin:
        return note_fault(faults, index, BAD_LENGTH, at, stop - begin, length, size)
    is_good = check_text(buffer, begin, length, begin, np.int64(0), rule, faults, texts, index)
    return begin + length if is_good else np.int64(STOPPED)
