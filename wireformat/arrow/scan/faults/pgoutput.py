"""What is wrong with row changes of pgoutput; see the declaration in wireformat/formats/pgoutput/messages.py."""

from __future__ import annotations

import numpy as np

from ....formats.pgoutput.messages import (
    BINARY_CELL,
    NULL,
    TEXT_CELL,
    UNCHANGED_CELL,
)
from ....formats.pgoutput.messages import KEY as KEY_TAG
from ....formats.pgoutput.messages import NEW as NEW_TAG
from ....formats.pgoutput.messages import OLD as OLD_TAG
from ....formats.row import MOST_HIGH_BYTE
from ...arrays import Array, Int
from ...jit.compiler import compiled, inner
from ..dictionary import COLUMNS
from ..dictionary import SCHEMA as SCHEMA_ENTRY
from ..dictionary import TABLE as TABLE_ENTRY
from ..kernels.pgoutput import KIND_OF_BYTE
from ..kernels.pgoutput_walk import (
    RELATION_CODES,
)
from ..notes import BODY, DELETE, INSERT, UPDATE
from ..primitives import read_16, read_32
from .fields import (
    ANY_TEXT,
    BAD_CELL_TAG,
    CELL,
    FIELD,
    IMAGE,
    IN_CELL,
    IN_CELLS,
    IN_NEW,
    IN_OLD,
    IN_RELATION_ID,
    NO_CELL,
    NO_NULL,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    TABLE,
    TRAILING,
    UNKNOWN,
    WRONG_COUNT,
    TextRule,
    begin_record,
    check_room,
    check_sized,
    note_fault,
)

CELL_TAGS = np.zeros(256, np.bool_)
CELL_TAGS[[NULL, UNCHANGED_CELL, TEXT_CELL, BINARY_CELL]] = True


IMAGE_AT, XID_BYTES = 5, 4
"""Where the first row image begins outside of streamed blocks; in one, a transaction id is before the relation."""

LEAST_IMAGE_BYTES = 4
"""A tag, the number of cells, and the tag of a cell."""


@compiled
def find_pgoutput_faults(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    chosen: Array,
    messages: Array,
    dictionary: Array,
    settings: Array,
    states: Array,
    rule: Int,
    known_bytes: Int,
    begin: Int,
    faults: Array,
    texts: Array,
) -> None:
    """See fields.py."""
    text_rule = TextRule(rule, states, known_bytes)
    for index in range(begin, len(chosen)):
        if not begin_record(faults, texts, index, begin):
            continue
        start = rows[BODY, chosen[index]]
        stop = start + rows[BODY + 1, chosen[index]]
        kind = KIND_OF_BYTE[buffer[start]]
        code = settings[RELATION_CODES + messages[index]]
        image = start + IMAGE_AT + XID_BYTES * (code & 1)
        if (
            (kind == INSERT or kind == UPDATE or kind == DELETE)
            and stop - image >= LEAST_IMAGE_BYTES
            and _looks_like_an_image(buffer, image, kind)
        ):
            relation = code >> 1
            faults[RELATION_ID, index] = -1 if relation > 0 else read_32(buffer, image - 4)
            for part in range(2):
                faults[SCHEMA + part, index] = dictionary[relation + SCHEMA_ENTRY, part] if relation > 0 else -1
                faults[TABLE + part, index] = dictionary[relation + TABLE_ENTRY, part] if relation > 0 else -1
            count = np.int64(dictionary[relation + COLUMNS, 0]) if relation > 0 else np.int64(-1)
            _walk(buffer, image, stop, kind, count, text_rule, faults, texts, index)


@inner
def _looks_like_an_image(buffer: Array, at: Int, kind: Int) -> bool:
    """Whether the record is recognised as one of pgoutput, and holds a row image that may come first."""
    tag = buffer[at]
    is_image = (tag == NEW_TAG and kind != DELETE) or ((tag == KEY_TAG or tag == OLD_TAG) and kind != INSERT)
    return is_image and buffer[at + 1] <= MOST_HIGH_BYTE and CELL_TAGS[buffer[at + 3]]


@inner
def _walk(
    buffer: Array, at: Int, stop: Int, kind: Int, columns: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> None:
    """Reads a row change, from its first row image on.

    columns   how many the relation has; -1 if it is not known
    """
    first, first_image, first_count = at + 1, np.int64(IN_NEW), read_16(buffer, at + 1)
    has_binary = False
    if buffer[at] != NEW_TAG:
        first_image = np.int64(IN_OLD)
        faults[IMAGE, index] = IN_OLD
        at, has_binary = _walk_image(buffer, at + 1, stop, rule, faults, texts, index)
        if at < 0:
            return
        if kind == UPDATE and (at == stop or buffer[at] != NEW_TAG):
            return
    second, second_count = at + 1, np.int64(-1)
    if kind != DELETE:
        faults[IMAGE, index] = IN_NEW
        if first_image == IN_OLD and stop - second >= 2:
            second_count = read_16(buffer, second)
        at, _ = _walk_image(buffer, at + 1, stop, rule, faults, texts, index)
        if at < 0:
            return
    faults[IMAGE, index], faults[CELL, index], faults[FIELD, index] = 0, 0, 0
    if at < stop:
        note_fault(faults, index, TRAILING, at, 0, stop - at, 0)
    elif columns < 0:
        faults[FIELD, index] = IN_RELATION_ID
        note_fault(faults, index, UNKNOWN, first - IMAGE_AT, 0, faults[RELATION_ID, index], 0)
    elif first_count != columns:
        _note_count(faults, index, first_image, first, columns, first_count)
    elif second_count >= 0 and second_count != columns and not has_binary:  # else a binary value may be wrong
        _note_count(faults, index, IN_NEW, second, columns, second_count)


@inner
def _note_count(faults: Array, index: Int, image: Int, at: Int, columns: Int, count: Int) -> None:
    """Notes that a row image has another number of cells than its relation has columns."""
    faults[IMAGE, index], faults[FIELD, index], faults[SAYS_TABLE, index] = image, IN_CELLS, 1
    note_fault(faults, index, WRONG_COUNT, at, columns, count, 0)


@inner
def _walk_image(
    buffer: Array, at: Int, stop: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> tuple[Int, bool]:
    """Reads one row image; returns where it ends, or STOPPED, and whether it has binary values."""
    has_binary = False
    faults[FIELD, index], faults[CELL, index] = IN_CELLS, 0
    cells = check_room(at, stop, 2, faults, index)
    if cells < 0:
        return cells, has_binary
    count = read_16(buffer, at)
    at = cells
    faults[FIELD, index] = IN_CELL
    for cell in range(count):
        faults[CELL, index] = cell + 1
        if at == stop:
            return note_fault(faults, index, NO_CELL, at, 0, 0, 0), has_binary
        tag = buffer[at]
        if not CELL_TAGS[tag]:
            return note_fault(faults, index, BAD_CELL_TAG, at, 0, np.int64(tag), 0), has_binary
        at += 1
        if tag == TEXT_CELL or tag == BINARY_CELL:
            is_binary = tag == BINARY_CELL
            has_binary = has_binary or is_binary
            cell_rule = TextRule(np.int64(ANY_TEXT), rule.states, rule.known_bytes) if is_binary else rule
            at = check_sized(buffer, at, stop, 4, NO_NULL, cell_rule, faults, texts, index)
            if at < 0:
                return at, has_binary
    return at, has_binary
