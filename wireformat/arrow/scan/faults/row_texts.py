"""Texts that are not UTF-8 in row changes of JSON and TEXT that the scan has noted, and unknown kinds of rows in JSON.

Only rows are taken whose tables have plain names, and of which all texts up to the wrong one are in the record as they
are, or ASCII. The readers are in wireformat/grammar: json_text.py, table_text.py and unquoted.py.
"""

from __future__ import annotations

import numpy as np

from ....limits import NAME_BYTES
from ...arrays import Array, Int
from ...ascii import APOSTROPHE, BACKSLASH, COLON, DOT, QUOTE, SPACE
from ...jit.compiler import compiled, inner
from ..kernels.names import name_end
from ..notes import BODY, DELETE, ENDS, GOOD, INSERT, KIND, NAME, NEW, OLD, STATUS, TYPE, VALUE
from ..primitives import is_ascii
from .fields import (
    AT,
    BAD_KIND,
    CELL,
    FIELD,
    IMAGE,
    IN_CELL_NAME,
    IN_KIND,
    IN_NEW,
    IN_TYPE,
    IN_VALUE,
    INSIDE,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    TABLE,
    UTF8_TEXT,
)
from .texts import check_text, note_fault

JSON_HEAD, JSON_KIND, TEXT_HEAD = (
    np.frombuffer(token, np.uint8) for token in (b'{"table_name":"', b'","op_type":"', b"table ")
)
ROW_KINDS = np.frombuffer(b"INSERTUPDATEDELETE", np.uint8)
KIND_BYTES = 6
"""The kinds of rows have as many letters."""

JSON_ORDER, TEXT_ORDER = np.array([NAME, VALUE, TYPE]), np.array([NAME, TYPE, VALUE])
"""In which order the texts of a cell are read."""

FIELD_OF = np.zeros(3, np.int64)
FIELD_OF[[NAME, VALUE, TYPE]] = IN_CELL_NAME, IN_VALUE, IN_TYPE

MOST_NAME_BYTES = 64
"""Of longer names the hint at another format may be too short; see HEAD_BYTES in formats/signatures.py."""

MARK_BYTES = 2 * NAME_BYTES + 9
"""How far the mark after an unquoted table may be from where its names begin."""


@compiled
def find_json_faults(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    chosen: Array,
    messages: Array,
    dictionary: Array,
    settings: Array,
    rule: Int,
    faults: Array,
) -> None:
    """See fields.py."""
    for index in range(len(chosen)):
        row = chosen[index]
        stop = rows[BODY, row] + rows[BODY + 1, row]
        at = _note_table(buffer, rows[BODY, row], stop, JSON_HEAD, DOT, faults, index)
        if at < 0:
            continue
        if rows[STATUS, row] != GOOD:
            _check_kind(buffer, at, stop, faults, index)
        elif buffer[at] == QUOTE:
            _check_images(buffer, rows, cells, text, row, NEW, OLD, JSON_ORDER, True, faults, index)


@compiled
def find_quoted_faults(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    chosen: Array,
    messages: Array,
    dictionary: Array,
    settings: Array,
    rule: Int,
    faults: Array,
) -> None:
    """See fields.py; of TEXT whose tables are quoted where needed."""
    for index in range(len(chosen)):
        row = chosen[index]
        stop = rows[BODY, row] + rows[BODY + 1, row]
        at = _note_table(buffer, rows[BODY, row], stop, TEXT_HEAD, DOT, faults, index)
        if at >= 0 and buffer[at] == COLON:
            _check_images(buffer, rows, cells, text, row, OLD, NEW, TEXT_ORDER, False, faults, index)


@compiled
def find_unquoted_faults(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    chosen: Array,
    messages: Array,
    dictionary: Array,
    settings: Array,
    rule: Int,
    faults: Array,
) -> None:
    """See fields.py; of TEXT whose tables are never quoted. Records with another mark are not taken."""
    for index in range(len(chosen)):
        row = chosen[index]
        stop = rows[BODY, row] + rows[BODY + 1, row]
        at = _note_table(buffer, rows[BODY, row], stop, TEXT_HEAD, SPACE, faults, index)
        if at < 0 or buffer[at] != SPACE:
            continue
        marks = 0
        for place in range(at, min(stop - 1, at + MARK_BYTES)):
            if buffer[place + 1] == COLON and (buffer[place] == ROW_KINDS[5] or buffer[place] == ROW_KINDS[11]):
                marks += 1
        if marks == 1:
            _check_images(buffer, rows, cells, text, row, OLD, NEW, TEXT_ORDER, False, faults, index)


@inner
def _begins_with(buffer: Array, at: Int, stop: Int, token: Array) -> bool:
    """Whether the bytes at `at` are those of the token."""
    if stop - at < len(token):
        return False
    for offset in range(len(token)):
        if buffer[at + offset] != token[offset]:
            return False
    return True


@inner
def _note_table(buffer: Array, at: Int, stop: Int, head: Array, between: Int, faults: Array, index: Int) -> Int:
    """Notes the table of a row, with a byte between its names; returns where it ends, before another byte, or -1."""
    if not _begins_with(buffer, at, stop, head):
        return np.int64(-1)
    at += len(head)
    schema_end = name_end(buffer, at, stop)
    table = schema_end + 1
    if schema_end == at or schema_end == stop or buffer[schema_end] != between:
        return np.int64(-1)
    end = name_end(buffer, table, stop)
    if end == table or end == stop or schema_end - at > MOST_NAME_BYTES or end - table > MOST_NAME_BYTES:
        return np.int64(-1)
    faults[SCHEMA, index], faults[SCHEMA + 1, index] = at, schema_end - at
    faults[TABLE, index], faults[TABLE + 1, index] = table, end - table
    faults[SAYS_TABLE, index], faults[RELATION_ID, index] = 1, -1
    return end


@inner
def _check_kind(buffer: Array, at: Int, stop: Int, faults: Array, index: Int) -> None:
    """Reads the kind of a row in JSON, from the quote after its table on."""
    if not _begins_with(buffer, at, stop, JSON_KIND):
        return
    begin = at + len(JSON_KIND)
    end = begin
    while end < stop and buffer[end] != QUOTE:
        if buffer[end] < SPACE or buffer[end] == BACKSLASH or buffer[end] >= 128:
            return
        end += 1
    if end == begin or end == stop:
        return
    if end - begin == KIND_BYTES:
        for kind in range(0, len(ROW_KINDS), KIND_BYTES):
            if _begins_with(buffer, begin, end, ROW_KINDS[kind : kind + KIND_BYTES]):
                return
    faults[FIELD, index] = IN_KIND
    note_fault(faults, index, BAD_KIND, begin, 0, 0, 0)


@inner
def _check_images(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    row: Int,
    first: Int,
    second: Int,
    order: Array,
    is_json: bool,
    faults: Array,
    index: Int,
) -> None:
    """Looks for the first wrong text in the row images of a noted row, in this order."""
    if (
        rows[STATUS, row] == GOOD
        and INSERT <= rows[KIND, row] <= DELETE
        and _check_image(buffer, rows, cells, text, row, first, order, is_json, faults, index)
    ):
        _check_image(buffer, rows, cells, text, row, second, order, is_json, faults, index)


@inner
def _check_image(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    row: Int,
    map_index: Int,
    order: Array,
    is_json: bool,
    faults: Array,
    index: Int,
) -> bool:
    """Looks for the first wrong text in a row image; returns whether to go on behind it."""
    begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
    faults[IMAGE, index] = IN_NEW + map_index
    for cell in range(begin, rows[ENDS + map_index, row]):
        faults[CELL, index] = cell - begin + 1
        for field in order:
            start, length = np.int64(cells[map_index, field, cell, 0]), np.int64(cells[map_index, field, cell, 1])
            if length <= 0 or (start >= 0 and is_ascii(buffer, start, length)):
                continue
            if start < 0:
                if is_ascii(text, ~start, length):
                    continue
                return False
            inside = _inside(buffer, start) if is_json else 0
            faults[FIELD, index] = FIELD_OF[field]
            if inside < 0:
                return False
            if check_text(buffer, start, length, UTF8_TEXT, faults, index) < 0:
                faults[AT, index] -= inside
                faults[INSIDE, index] += inside
                return False
    return True


@inner
def _inside(buffer: Array, start: Int) -> Int:
    """How far a text that the scan has noted is from where its string of JSON begins; -1 if another byte is before it.

    The text is the whole string, or between single quotes in it.
    """
    inside = np.int64(buffer[start - 1] == APOSTROPHE)
    begin = start - inside - 1
    return inside if buffer[begin] == QUOTE and buffer[begin - 1] != BACKSLASH else np.int64(-1)
