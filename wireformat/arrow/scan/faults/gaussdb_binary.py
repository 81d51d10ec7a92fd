"""What is wrong with row changes of the binary style; see the declaration in wireformat/formats/gaussdb_binary.py."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....formats.gaussdb_binary import NEW_TAG, NULL_LENGTH, OLD_TAG
from ....formats.pgoutput.messages import IMAGES as PGOUTPUT_IMAGES
from ....formats.row import MOST_HIGH_BYTE
from ...arrays import Array, Int
from ...ascii import QUOTE
from ...jit.compiler import compiled, inner
from ..kernels.gaussdb_binary import KIND_OF_BYTE
from ..notes import BODY, DELETE, INSERT, UPDATE
from ..primitives import is_ascii, read_16
from .fields import (
    ANY_TEXT,
    BAD_FIELD_TAG,
    CELL,
    FIELD,
    IMAGE,
    IN_CELL_NAME,
    IN_CELLS,
    IN_NEW,
    IN_OID,
    IN_OLD,
    IN_SCHEMA,
    IN_TAG,
    IN_VALUE,
    NO_NULL,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    STOPPED,
    TABLE,
    TextRule,
    begin_record,
    check_room,
    check_sized,
    note_fault,
)

PGOUTPUT_TAGS = np.zeros(256, np.bool_)
PGOUTPUT_TAGS[[*PGOUTPUT_IMAGES]] = True


@partial(compiled, by_byte=True)
def find_binary_faults(
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
        if (kind == INSERT or kind == UPDATE or kind == DELETE) and _looks_like_a_row(buffer, start, stop):
            faults[RELATION_ID, index] = -1
            _note_names(buffer, start + 1, stop, faults, index)
            _walk(buffer, start + 1, stop, text_rule, faults, texts, index)


@inner
def _looks_like_a_row(buffer: Array, start: Int, stop: Int) -> bool:
    """Whether no other format begins like this; else the error would say so. See formats/row.py."""
    if stop - start < 2 or buffer[start + 1] != 0:
        return False
    for at in range(start + 5, min(start + 10, stop - 1), 4):  # without and with a transaction id
        if PGOUTPUT_TAGS[buffer[at]] and buffer[at + 1] <= MOST_HIGH_BYTE:
            return False
    return True


@inner
def _note_names(buffer: Array, at: Int, stop: Int, faults: Array, index: Int) -> None:
    """Notes the names of schema and table, if the record is long enough for both, and they are names."""
    faults[SCHEMA + 1, index] = faults[TABLE + 1, index] = -1
    schema = at + 2
    if schema > stop:
        return
    table = schema + read_16(buffer, at) + 2
    if table > stop:
        return
    length = read_16(buffer, table - 2)
    if length > stop - table or _holds_zero(buffer, schema, table - 2) or _holds_zero(buffer, table, table + length):
        return
    faults[SCHEMA, index], faults[SCHEMA + 1, index] = schema, table - 2 - schema
    faults[TABLE, index], faults[TABLE + 1, index] = table, length
    faults[SAYS_TABLE, index] = 1


@inner
def _holds_zero(buffer: Array, start: Int, stop: Int) -> bool:
    """Whether the bytes are no name, since no name has a zero byte."""
    for at in range(start, stop):
        if buffer[at] == 0:
            return True
    return False


@inner
def _walk(buffer: Array, at: Int, stop: Int, rule: TextRule, faults: Array, texts: Array, index: Int) -> None:
    """Reads a row change, from the byte after the kind on."""
    for field in range(2):
        faults[FIELD, index] = IN_SCHEMA + field
        at = check_sized(buffer, at, stop, 2, NO_NULL, rule, faults, texts, index)
        if at < 0:
            return
    image = np.int64(0)
    while at < stop:
        tag = buffer[at]
        if tag == NEW_TAG and image < IN_NEW:
            image = np.int64(IN_NEW)
        elif tag == OLD_TAG and image < IN_OLD:
            image = np.int64(IN_OLD)
        else:
            faults[FIELD, index], faults[IMAGE, index], faults[CELL, index] = IN_TAG, 0, 0
            note_fault(faults, index, BAD_FIELD_TAG, at, image, np.int64(tag), 1)
            return
        faults[IMAGE, index] = image
        at = _walk_image(buffer, at + 1, stop, rule, faults, texts, index)
        if at < 0:
            return


@inner
def _walk_image(buffer: Array, at: Int, stop: Int, rule: TextRule, faults: Array, texts: Array, index: Int) -> Int:
    """Reads one row image; returns where it ends, or STOPPED."""
    faults[FIELD, index], faults[CELL, index] = IN_CELLS, 0
    cells = check_room(at, stop, 2, faults, index)
    if cells < 0:
        return cells
    count = read_16(buffer, at)
    at = cells
    for cell in range(count):
        faults[CELL, index] = cell + 1
        faults[FIELD, index] = IN_CELL_NAME
        name = at + 2
        at = check_sized(buffer, at, stop, 2, NO_NULL, rule, faults, texts, index)
        if at < 0:
            return at
        if at > name and buffer[name] == QUOTE:
            # what replaces wrong bytes may take the quote with it
            may_lose_quote = rule.which == ANY_TEXT and not is_ascii(buffer, name, at - name)
            if may_lose_quote or not _is_quoted(buffer, name, at):
                return np.int64(STOPPED)
        faults[FIELD, index] = IN_OID
        at = check_room(at, stop, 4, faults, index)
        if at < 0:
            return at
        faults[FIELD, index] = IN_VALUE
        at = check_sized(buffer, at, stop, 4, NULL_LENGTH, rule, faults, texts, index)
        if at < 0:
            return at
    return at


@inner
def _is_quoted(buffer: Array, start: Int, stop: Int) -> bool:
    """Whether a name that begins with a double quote ends with one, and those between are doubled."""
    at = start + 1
    while at < stop - 1:
        if buffer[at] == QUOTE:
            at += 1
            if at >= stop - 1 or buffer[at] != QUOTE:
                return False
        at += 1
    return stop - start >= 2 and buffer[stop - 1] == QUOTE
