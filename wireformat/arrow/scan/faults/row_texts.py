"""Wrong texts in row changes of JSON and TEXT that the scan has noted, and unknown kinds of rows in JSON.

Rows of TEXT are left to the declaration whose wrong text has doubled quotes. The readers are in wireformat/grammar:
json_text.py, table_text.py and tuple_text.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ....events import ROW_CHANGES
from ....formats.row import HEAD_BYTES
from ....grammar import tuple_text
from ....limits import NAME_BYTES
from ...arrays import Array, Int
from ...ascii import APOSTROPHE, BACKSLASH, COLON, DOT, QUOTE, SPACE
from ...jit.compiler import compiled, inner
from ...scan import tokens
from ..dictionary import HEAD
from ..kernels.json_changes import string_end
from ..kernels.literals import name_end, names_end
from ..notes import (
    BODY,
    DELETE,
    ENDS,
    GOOD,
    INSERT,
    KIND,
    NAME,
    NEW,
    OLD,
    RELATION,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TYPE,
    VALUE,
)
from ..primitives import is_ascii, may_have_colon
from ..tokens import KIND_BYTES
from ..transcode import is_text
from .fields import (
    BAD_KIND,
    CELL,
    FIELD,
    IMAGE,
    IN_CELL_NAME,
    IN_KIND,
    IN_NEW,
    IN_SCHEMA,
    IN_TYPE,
    IN_VALUE,
    LEFT_TO_DECLARATION,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    STATES_TEXT,
    TABLE,
    TextRule,
    begin_record,
    check_text,
    is_known,
    note_fault,
)

JSON_HEAD, JSON_KIND, TEXT_HEAD = (
    np.frombuffer(token, np.uint8) for token in (tokens.JSON_HEAD, tokens.JSON_KIND, tuple_text.TABLE)
)
ROW_KINDS = np.frombuffer("".join(ROW_CHANGES).encode(), np.uint8)
LAST_OF_INSERT, LAST_OF_OTHERS = b"TE"
"""The last letters of INSERT, and of UPDATE and DELETE."""

JSON_ORDER, TEXT_ORDER = np.array([NAME, VALUE, TYPE]), np.array([NAME, TYPE, VALUE])
"""In which order the texts of a cell are read."""

STRINGS_BEFORE_IMAGES = 4
"""The keys and values of table and kind."""

ARRAY_OF = np.zeros(3, np.int64)
ARRAY_OF[[NAME, TYPE, VALUE]] = range(3)
"""The order of the arrays of an image in JSON; each comes after its key."""

FIELD_OF = np.zeros(3, np.int64)
FIELD_OF[[NAME, VALUE, TYPE]] = IN_CELL_NAME, IN_VALUE, IN_TYPE

MOST_TABLE_BYTES = HEAD_BYTES - len(b"table : INSERT:")
"""If the names of a table in TEXT are longer, too few bytes may be left for the hint at another format."""

MARK_BYTES = 2 * NAME_BYTES + 9
"""How far the mark after an unquoted table may be from where its names begin."""


@partial(compiled, by_byte=True)
def find_json_faults(
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
        row = chosen[index]
        if rows[STATUS, row] != GOOD:
            _check_kind(buffer, rows[BODY, row], rows[BODY, row] + rows[BODY + 1, row], faults, index)
        elif _note_table(buffer, rows, text, row, True, text_rule, faults, texts, index):
            _check_images(buffer, rows, cells, text, row, NEW, OLD, JSON_ORDER, True, text_rule, faults, texts, index)


@partial(compiled, by_byte=True)
def find_quoted_faults(
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
    """See fields.py; of TEXT whose tables are quoted where needed."""
    text_rule = TextRule(rule, states, known_bytes)
    for index in range(begin, len(chosen)):
        if not begin_record(faults, texts, index, begin):
            continue
        row = chosen[index]
        table = rows[BODY, row] + len(TEXT_HEAD)
        stop = rows[BODY, row] + rows[BODY + 1, row]
        if (
            rows[STATUS, row] == GOOD
            and names_end(buffer, table, stop, COLON) - table <= MOST_TABLE_BYTES
            and _note_table(buffer, rows, text, row, False, text_rule, faults, texts, index)
        ):
            _check_images(buffer, rows, cells, text, row, OLD, NEW, TEXT_ORDER, False, text_rule, faults, texts, index)


@partial(compiled, by_byte=True)
def find_unquoted_faults(
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
    """See fields.py; of TEXT whose tables are never quoted. Records with another mark are not taken."""
    text_rule = TextRule(rule, states, known_bytes)
    for index in range(begin, len(chosen)):
        if not begin_record(faults, texts, index, begin):
            continue
        row = chosen[index]
        table = rows[BODY, row] + len(TEXT_HEAD)
        stop = rows[BODY, row] + rows[BODY + 1, row]
        if (
            rows[STATUS, row] == GOOD
            and _is_a_clear_table(buffer, rows, row, table, stop, dictionary, text_rule)
            and _note_table(buffer, rows, text, row, False, text_rule, faults, texts, index)
        ):
            _check_images(buffer, rows, cells, text, row, OLD, NEW, TEXT_ORDER, False, text_rule, faults, texts, index)


@inner
def _is_a_clear_table(
    buffer: Array, rows: Array, row: Int, at: Int, stop: Int, dictionary: Array, rule: TextRule
) -> bool:
    """Whether the names of a table without quotes can be read in one way: there is one mark, and no other format begins
    like this; see formats/row.py."""
    schema_bytes, names_bytes = rows[TABLE_SCHEMA + 1, row], rows[TABLE_SCHEMA + 1, row] + rows[TABLE_NAME + 1, row]
    if is_known(rows[TABLE_SCHEMA, row], rule):
        head_bytes = np.int64(dictionary[rows[RELATION, row] + HEAD, 1])  # of both names, and the blank between them
        if head_bytes != names_bytes + 1:  # they are longer in UTF-8
            schema_bytes = names_bytes = head_bytes - 1
    if names_bytes >= MOST_TABLE_BYTES or buffer[at] == QUOTE:
        return False
    for offset in range(at, at + schema_bytes):
        if buffer[offset] == DOT:
            return False
    marks = 0
    offset, last = at, min(stop - 1, at + MARK_BYTES)
    while offset < last:
        if last - offset >= 8 and not may_have_colon(buffer, offset):
            offset += 7
            continue
        if buffer[offset + 1] == COLON and (buffer[offset] == LAST_OF_INSERT or buffer[offset] == LAST_OF_OTHERS):
            marks += 1
        offset += 1
    return marks == 1


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
def _note_table(
    buffer: Array,
    rows: Array,
    text: Array,
    row: Int,
    is_json: bool,
    rule: TextRule,
    faults: Array,
    texts: Array,
    index: Int,
) -> bool:
    """Notes the table of a noted row; returns False if a name is no text."""
    faults[SCHEMA + 1, index] = faults[TABLE + 1, index] = faults[RELATION_ID, index] = -1
    if rows[KIND, row] < INSERT or rows[KIND, row] > DELETE:
        return False
    begin = rows[BODY, row] + len(JSON_HEAD)
    before = np.int64(0)  # how many bytes of the string of JSON are before the name
    for part in range(2):
        faults[FIELD, index] = IN_SCHEMA + part
        start, length = rows[TABLE_SCHEMA + 2 * part, row], rows[TABLE_SCHEMA + 2 * part + 1, row]
        if is_known(start, rule):  # then so is the other name
            continue
        at, inside = start, np.int64(0)
        if is_json:
            at, inside = begin, before + (start < 0) if before >= 0 else np.int64(LEFT_TO_DECLARATION)
            before = _json_schema_end(buffer, begin, length) if start < 0 else length + 1
        elif start < 0:
            inside = np.int64(LEFT_TO_DECLARATION)
        data = buffer if start >= 0 else text
        if not check_text(data, start, length, at, inside, rule, faults, texts, index):
            return False
    for part in range(2):
        for half in range(2):
            faults[SCHEMA + 2 * part + half, index] = rows[TABLE_SCHEMA + 2 * part + half, row]
    faults[SAYS_TABLE, index] = 1
    return True


@inner
def _json_schema_end(buffer: Array, at: Int, length: Int) -> Int:
    """How many bytes of a string of JSON a quoted schema and the dot take; LEFT_TO_DECLARATION if there are others than
    its name and the quotes, each after a backslash."""
    end = at + length + 2
    if buffer[at + 1] == QUOTE and buffer[end] == BACKSLASH and buffer[end + 1] == QUOTE and buffer[end + 2] == DOT:
        return length + 3
    return np.int64(LEFT_TO_DECLARATION)


@inner
def _string_at(buffer: Array, at: Int, stop: Int, number: Int) -> Int:
    """Where the content of a string of JSON begins, by its number in a record that the scan has noted; -1 if there are
    fewer."""
    while at < stop:
        if buffer[at] == QUOTE:
            if number == 0:
                return at + 1
            at = string_end(buffer, at + 1, stop)[0]
            if at < 0:
                return np.int64(-1)
            number -= 1
        at += 1
    return np.int64(-1)


@inner
def _json_place(buffer: Array, rows: Array, row: Int, map_index: Int, field: Int, cell: Int) -> Int:
    """Where the string of JSON begins that a text was in before its escapes were undone, or -1."""
    number = np.int64(STRINGS_BEFORE_IMAGES)
    for image in range(NEW, map_index + 1):
        count = rows[ENDS + image, row] - (rows[ENDS + image, row - 1] if row > 0 else 0)
        number += (3 if image < map_index else ARRAY_OF[field]) * (count + 1)
    start = rows[BODY, row]
    return _string_at(buffer, start, start + rows[BODY + 1, row], number + 1 + cell)


@inner
def _check_kind(buffer: Array, at: Int, stop: Int, faults: Array, index: Int) -> None:
    """Reads the table, if its names are plain, and the kind of a row in JSON that the scan has declined."""
    if not _begins_with(buffer, at, stop, JSON_HEAD):
        return
    schema = at + len(JSON_HEAD)
    schema_end = name_end(buffer, schema, stop)
    table = schema_end + 1
    if schema_end == schema or schema_end == stop or buffer[schema_end] != DOT:
        return
    table_end = name_end(buffer, table, stop)
    if table_end == table or not _begins_with(buffer, table_end, stop, JSON_KIND):
        return
    begin = table_end + len(JSON_KIND)
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
    faults[SCHEMA, index], faults[SCHEMA + 1, index] = schema, schema_end - schema
    faults[TABLE, index], faults[TABLE + 1, index] = table, table_end - table
    faults[SAYS_TABLE, index], faults[RELATION_ID, index] = 1, -1
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
    rule: TextRule,
    faults: Array,
    texts: Array,
    index: Int,
) -> None:
    """Looks for the first wrong text in the row images of a noted row, in this order."""
    if _check_image(buffer, rows, cells, text, row, first, order, is_json, rule, faults, texts, index):
        _check_image(buffer, rows, cells, text, row, second, order, is_json, rule, faults, texts, index)


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
    rule: TextRule,
    faults: Array,
    texts: Array,
    index: Int,
) -> bool:
    """Looks for the first wrong text in a row image; returns whether to go on behind it."""
    begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
    faults[IMAGE, index] = IN_NEW + map_index
    for cell in range(begin, rows[ENDS + map_index, row]):
        faults[CELL, index] = cell - begin + 1
        for field in order:
            start, length = np.int64(cells[map_index, field, cell, 0]), np.int64(cells[map_index, field, cell, 1])
            if length <= 0 or is_known(start, rule) or (start >= 0 and is_ascii(buffer, start, length)):
                continue
            faults[FIELD, index] = FIELD_OF[field]
            at, inside = start, np.int64(0)
            if start < 0:
                if is_ascii(text, ~start, length) or (
                    rule.which == STATES_TEXT and is_text(text, ~start, length, rule.states)
                ):
                    continue
                at = _json_place(buffer, rows, row, map_index, field, cell - begin) if is_json else np.int64(-1)
                inside = np.int64(LEFT_TO_DECLARATION) if at < 0 else np.int64(field != TYPE)
            elif is_json:
                inside = _inside(buffer, start)
                at = start - max(inside, 0)
            data = buffer if start >= 0 else text
            if not check_text(data, start, length, at, inside, rule, faults, texts, index):
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
