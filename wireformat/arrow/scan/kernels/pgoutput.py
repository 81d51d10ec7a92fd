"""The scan of pgoutput: rows, BEGIN and COMMIT; all else is rare, and read by the declaration.

It follows the declaration in wireformat/formats/pgoutput/messages.py. Which relation a message means, and whether it
carries a transaction id, is known beforehand: see known_relations.py. For the arguments see scan_gaussdb_binary.py.
"""

from __future__ import annotations

import numpy as np

from ....formats.pgoutput.messages import BINARY_CELL, KEY, NEW, NULL, OLD, TEXT_CELL, UNCHANGED_CELL
from ....framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ....limits import RECORD_BYTES
from ....times import MICROS_OF_2000
from ...arrays import Array, Int
from ...jit.compiler import inner
from .. import notes as spans
from ..dictionary import COMMIT_TIME_KEY, END_LSN_KEY, OLD_KEY, mark_word
from ..loop import DONE, make_scan
from ..marks import BOOLEANS, FULL_ROW, KEY_ROW
from ..notes import (
    BEGIN,
    BINARY_CELLS,
    BINARY_LENGTH,
    COMMIT,
    COMMIT_LSN,
    COMPLETE,
    CSN,
    DELETE,
    ENDS,
    FULL,
    GIVEN,
    GOOD,
    HAS_UNCHANGED,
    INSERT,
    KIND,
    NAME,
    NEXT_MESSAGE,
    PRESENT,
    READ_RECORD,
    RELATION,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TIME_TEXT,
    TYPE,
    UNCHANGED_LENGTH,
    UPDATE,
    UTF8,
    VALUE,
    XID,
)
from ..primitives import check_text, is_ascii, read_16, read_32, read_64, write_number
from ..row_notes import note_detail
from .pgoutput_relations import (
    BOOLEAN_FORM,
    CELL_FACTS,
    CELL_NAME,
    CELL_TYPE,
    CELL_WORDS,
    CELLS,
    COLUMNS,
    DATE_FORM,
    INTEGER_FORM,
    IS_OPENGAUSS,
    KNOWN,
    OID_FORM,
    OTHER_FORM,
    SCHEMA,
    SIZE_OF_FORM,
    TABLE,
    TEXT_FORM,
    TIME_FORM,
    UNKNOWN_FORM,
)

KEY_WORD, FULL_WORD, T_WORD, F_WORD = (mark_word(mark) for mark in (KEY_ROW, FULL_ROW, *BOOLEANS))
OTHER = -1
KIND_OF_BYTE = np.full(256, OTHER, np.int64)
for _byte, _kind in zip(b"BCIUD", (BEGIN, COMMIT, INSERT, UPDATE, DELETE), strict=True):
    KIND_OF_BYTE[_byte] = _kind

DAY = 86_400_000_000  # microseconds
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999; other times are left to the declaration."""


@inner
def write_time(text: Array, used: Int, micros: Int) -> Int:
    """Write microseconds since 1970 as `2026-11-21 01:02:03.5+00`; returns how much of `text` is used then."""
    days = micros // DAY
    left = micros - days * DAY
    days += 719_468  # days from 0000-03-01, so that a leap day is the last of its year
    cycle = days // 146_097  # of 400 years
    day = days - cycle * 146_097
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    year += 400 * cycle
    month += 3
    if month > 12:
        month -= 12
        year += 1
    fraction = left % 1_000_000
    seconds = left // 1_000_000
    number = np.int64(0)
    for part in range(8):
        if part == 0:
            number = year // 100
        elif part == 1:
            number = year % 100
        elif part == 2:
            number = month
        elif part == 3:
            number = day
        elif part == 4:
            number = seconds // 3600
        elif part == 5:
            number = seconds // 60 % 60
        elif part == 6:
            number = seconds % 60
        else:
            break
        if part > 1:
            text[used] = 45 if part < 4 else 32 if part == 4 else 58
            used += 1
        text[used] = 48 + number // 10
        text[used + 1] = 48 + number % 10
        used += 2
    if fraction > 0:
        text[used] = 46
        used += 1
        step = 100_000
        while fraction > 0:
            text[used] = 48 + fraction // step
            used += 1
            fraction %= step
            step //= 10
    text[used], text[used + 1], text[used + 2] = 43, 48, 48
    return used + 3


@inner
def binary_value(buffer: Array, at: Int, size: Int, text: Array, words: Array, used: Int, form: Int) -> tuple[Int, Int]:
    """The pair of a value in binary form, which may be written to text[used:]; length -1 is for the declaration."""
    if form == UNKNOWN_FORM or size != form & SIZE_OF_FORM:
        return used, -1
    form -= size
    if form == BOOLEAN_FORM:
        word = T_WORD if buffer[at] != 0 else F_WORD
        return np.int64(words[word, 0]), np.int64(words[word, 1])
    number = np.int64(0)
    if size == 2:
        number = read_16(buffer, at)
    elif size == 4:
        number = read_32(buffer, at)
    elif size == 8:
        number = read_64(buffer, at)
    if form == OID_FORM:
        return ~used, write_number(text, used, number, 10, False) - used
    if size == 2 or size == 4:
        number -= (number >> (8 * size - 1)) << (8 * size)  # signed
    if form == INTEGER_FORM:
        return ~used, write_number(text, used, number, 10, True) - used
    if form == DATE_FORM:
        number *= DAY
    if number < FIRST_TIME - MICROS_OF_2000 or number >= LAST_TIME - MICROS_OF_2000:
        return used, -1
    end = write_time(text, used, number + MICROS_OF_2000)
    if form == DATE_FORM:
        end = used + 10
    elif form == TIME_FORM:
        end -= 3
    return ~used, end - used


@inner
def row_image(
    buffer: Array,
    at: Int,
    stop: Int,
    rows: Array,
    row: Int,
    cells: Array,
    place: Int,
    text: Array,
    words: Array,
    cursor: Array,
    relation: Int,
    is_key: bool,
    utf8: bool,
) -> tuple[Int, Int]:
    """One tuple into the map `place`: (status, byte after it)."""
    status = GOOD
    image = cells[place]
    used = cursor[TEXT_USED]
    cell = rows[ENDS + place, row]
    count = np.int64(words[relation + COLUMNS, 0])
    if stop - at < 2 or read_16(buffer, at) != count:
        return READ_RECORD, at
    at += 2
    if cell + count > image.shape[1]:
        return FULL, at
    for column in range(relation + CELLS, relation + CELLS + CELL_WORDS * count, CELL_WORDS):
        if at >= stop:
            return READ_RECORD, at
        form = buffer[at]
        at += 1
        length = np.int64(-1)
        size = np.int64(0)
        value = at
        if form == TEXT_CELL or form == BINARY_CELL:
            size = read_32(buffer, at) if stop - at >= 4 else stop
            at += 4
            if size > stop - at:
                return READ_RECORD, at
            value, length = at, size
            kind = np.int64(words[column + CELL_FACTS, 1]) if form == BINARY_CELL else TEXT_FORM
            if kind == TEXT_FORM:
                if not is_ascii(buffer, at, size):
                    status |= check_text(buffer, at, size, utf8)
            elif kind == OTHER_FORM:
                length = BINARY_LENGTH - size
                status |= BINARY_CELLS
            else:
                value, length = binary_value(buffer, at, size, text, words, used, kind)
                if length < 0:
                    return READ_RECORD, at
                if value == ~used:
                    used += length
        elif form == UNCHANGED_CELL:
            length = np.int64(UNCHANGED_LENGTH)
            rows[PRESENT, row] |= 1 << HAS_UNCHANGED
        elif form != NULL:
            return READ_RECORD, at
        elif is_key and words[column + CELL_FACTS, 0] == 0:
            continue
        image[VALUE, cell, 0] = value
        image[VALUE, cell, 1] = length
        if is_key:
            for part in range(2):
                image[NAME, cell, part] = words[column + CELL_NAME, part]
                image[TYPE, cell, part] = words[column + CELL_TYPE, part]
        cell += 1
        at += size
    rows[ENDS + place, row] = cell
    rows[PRESENT, row] |= 1 << (GIVEN + place) | np.int64(not is_key) << (COMPLETE + place)
    rows[RELATION, row] = relation
    cursor[TEXT_USED] = used
    return status, at


@inner
def row_change(
    buffer: Array,
    at: Int,
    stop: Int,
    rows: Array,
    row: Int,
    cells: Array,
    text: Array,
    words: Array,
    cursor: Array,
    known: Int,
    utf8: bool,
) -> Int:
    """INSERT, UPDATE and DELETE, from the byte behind the kind to the end; returns the row's status."""
    relation = known >> 1
    if relation == 0:  # no relation, or the message is too short to name one
        return READ_RECORD
    if known & 1:
        rows[XID, row] = read_32(buffer, at)
        rows[PRESENT, row] |= 1 << XID
        at += 4
    at += 4
    rows[TABLE_SCHEMA, row] = words[relation + SCHEMA, 0]
    rows[TABLE_SCHEMA + 1, row] = words[relation + SCHEMA, 1]
    rows[TABLE_NAME, row] = words[relation + TABLE, 0]
    rows[TABLE_NAME + 1, row] = words[relation + TABLE, 1]
    kind = rows[KIND, row]
    status = GOOD
    tag = np.int64(buffer[at]) if at < stop else np.int64(0)
    if kind != INSERT and (tag == KEY or tag == OLD):
        is_key = tag == KEY
        found, at = row_image(
            buffer, at + 1, stop, rows, row, cells, spans.OLD, text, words, cursor, relation, is_key, utf8
        )
        if found == READ_RECORD or found == FULL:
            return found
        status |= found
        word = KEY_WORD if is_key else FULL_WORD
        note_detail(rows, row, cells, words, OLD_KEY, words[word, 0], words[word, 1])
        tag = np.int64(buffer[at]) if at < stop else np.int64(0)
    elif kind == DELETE:
        return READ_RECORD
    if kind != DELETE:
        if tag != NEW:
            return READ_RECORD
        found, at = row_image(
            buffer, at + 1, stop, rows, row, cells, spans.NEW, text, words, cursor, relation, False, utf8
        )
        if found == READ_RECORD or found == FULL:
            return found
        status |= found
    return status if at == stop else READ_RECORD


@inner
def transaction(
    buffer: Array,
    at: Int,
    stop: Int,
    rows: Array,
    row: Int,
    cells: Array,
    text: Array,
    words: Array,
    cursor: Array,
    is_opengauss: bool,
) -> Int:
    """BEGIN and COMMIT, from the byte behind the kind to the end; returns the row's status."""
    used = cursor[TEXT_USED]
    size = stop - at
    if rows[KIND, row] == BEGIN:
        if (size != 20 and (not is_opengauss or (size != 24 and size != 32))) or (is_opengauss and size == 20):
            return READ_RECORD
        time_at = at + 8
        if is_opengauss:
            rows[XID, row] = read_64(buffer, at + 16)
            if size == 32:
                rows[CSN, row] = read_64(buffer, at + 24)
                rows[PRESENT, row] |= 1 << CSN
        else:
            rows[XID, row] = read_32(buffer, at + 16)
        rows[PRESENT, row] |= 1 << XID
    else:
        if size != 25 or buffer[at] != 0:
            return READ_RECORD
        at += 1
        time_at = at + 16
    micros = read_64(buffer, time_at)
    if micros < FIRST_TIME - MICROS_OF_2000 or micros >= LAST_TIME - MICROS_OF_2000:
        return READ_RECORD
    rows[COMMIT_LSN, row] = read_64(buffer, at)
    rows[PRESENT, row] |= 1 << COMMIT_LSN
    begin = used
    used = write_time(text, used, micros + MICROS_OF_2000)
    rows[TIME_TEXT, row] = ~begin
    rows[TIME_TEXT + 1, row] = used - begin
    note_detail(rows, row, cells, words, COMMIT_TIME_KEY, ~begin, used - begin)
    if rows[KIND, row] == COMMIT:
        begin = used
        used = write_number(text, used, read_32(buffer, at + 8), 16, False)
        text[used] = 47
        used = write_number(text, used + 1, read_32(buffer, at + 12), 16, False)
        note_detail(rows, row, cells, words, END_LSN_KEY, ~begin, used - begin)
    cursor[TEXT_USED] = used
    return GOOD


@inner
def read_record(
    buffer: Array,
    at: Int,
    stop: Int,
    rows: Array,
    row: Int,
    cells: Array,
    text: Array,
    words: Array,
    cursor: Array,
    settings: Array,
) -> Int:
    """What a record says; see scan.py."""
    kind = KIND_OF_BYTE[buffer[at]]
    if kind == OTHER:
        return READ_RECORD
    rows[KIND, row] = kind
    known = settings[KNOWN + cursor[NEXT_MESSAGE]]
    if kind == BEGIN or kind == COMMIT:
        if known & 1:  # it ends a block, which the reader of the declaration must see
            return READ_RECORD
        return transaction(buffer, at + 1, stop, rows, row, cells, text, words, cursor, settings[IS_OPENGAUSS] == 1)
    return row_change(buffer, at + 1, stop, rows, row, cells, text, words, cursor, known, settings[UTF8] == 1)


@inner
def open_record(buffer: Array, start: Int, stop: Int, at: Int, record: Int) -> tuple[Int, Int, Int, bool]:
    """Where the record lies; see scan.py."""
    if start == stop:
        return at, -1, np.int64(0), False
    if buffer[start] != ENVELOPE:
        return start, stop if stop - start <= RECORD_BYTES else -1, np.int64(0), False
    if stop - start <= ENVELOPE_BYTES or stop - start > RECORD_BYTES:
        return at, -1, np.int64(0), False
    return start + ENVELOPE_BYTES, stop, read_64(buffer, start + 1), True


@inner
def close_record(buffer: Array, stop: Int, end: Int, has_lsn: bool) -> tuple[Int, Int]:
    """What follows the record; see scan.py."""
    return stop, DONE


scan_pgoutput = make_scan("scan_pgoutput", open_record, close_record, read_record)
