"""The scan of the binary style: walks whole messages and notes where everything lies.

It follows the declaration in wireformat/formats/gaussdb_binary.py and the framing in wireformat/framing/gauss_batch.py.
At anything that it does not expect it gives the record, or the rest of the message, to them.

In all functions: buffer uint8[n] is the input; rows, cells and text are those of Spans, row the one that is filled;
words are the constant words; cursor[TEXT_USED] says how much of text is used. A row with text that is not ASCII has the
status TRANSCODE.
"""

from __future__ import annotations

import numpy as np

from ..framing import gauss_batch
from ..limits import RECORD_BYTES
from ..options.reading import KINDS
from .compiled import Array, Int, compiled, inner
from .spans import (
    BODY,
    COMMIT_TIME,
    COMMIT_TIME_KEY,
    CSN,
    DETAIL,
    ENDS,
    FIRST_LSN,
    GIVEN,
    GOOD,
    KEY_WORDS,
    KIND,
    LSN,
    MESSAGE,
    NAME,
    NEW,
    NEXT_BYTE,
    NEXT_MESSAGE,
    NEXT_RECORD,
    OLD,
    ORIGIN,
    PRESENT,
    RAW,
    READ_RECORD,
    READ_REST,
    RECORD,
    ROW_FIELDS,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_USED,
    TIME_KEY,
    TIME_TEXT,
    TYPE,
    TYPE_TABLE_SIZE,
    TYPE_WORDS,
    USERNAME,
    VALUE,
    WAL_END,
    XID,
)
from .wire import (
    check_text,
    is_ascii,
    read_16,
    read_32,
    read_64,
    unquote,
    write_number,
)

BARE_BYTES = gauss_batch.BARE_HEARTBEAT_BYTES
LEAST_RECORD = gauss_batch.LEAST_RECORD_BYTES
LEAST_CELL = 10
MOST_CELLS = 65535
BEGIN, INSERT, UPDATE, DELETE, COMMIT, HEARTBEAT, UNKNOWN = (
    KINDS.index(name) for name in ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT", "HEARTBEAT", "UNKNOWN")
)
KIND_OF_BYTE = np.full(256, UNKNOWN, np.int64)
for _byte, _kind in zip(b"BIUDCh", (BEGIN, INSERT, UPDATE, DELETE, COMMIT, HEARTBEAT), strict=True):
    KIND_OF_BYTE[_byte] = _kind


@inner
def begin_row(rows: Array, row: Int, message: Int, record: Int, start: Int, length: Int, status: Int) -> None:
    """A row that holds nothing but its place, and says where the record (or the message) lies."""
    for field in range(ENDS):
        rows[field, row] = 0
    for field in range(ENDS, ROW_FIELDS):
        rows[field, row] = rows[field, row - 1] if row > 0 else 0
    rows[TABLE_SCHEMA + 1, row] = rows[TABLE_NAME + 1, row] = rows[RAW + 1, row] = rows[TIME_TEXT + 1, row] = -1
    rows[MESSAGE, row] = message
    rows[RECORD, row] = record
    rows[PRESENT, row] = 1 << MESSAGE | 1 << RECORD
    rows[BODY, row] = start
    rows[BODY + 1, row] = length
    rows[STATUS, row] = status


@inner
def note_detail(rows: Array, row: Int, cells: Array, words: Array, key: Int, start: Int, length: Int) -> None:
    """One more entry of the row's detail map."""
    cell = rows[ENDS + DETAIL, row]
    cells[DETAIL, NAME, cell, 0] = words[KEY_WORDS + key, 0]
    cells[DETAIL, NAME, cell, 1] = words[KEY_WORDS + key, 1]
    cells[DETAIL, VALUE, cell, 0] = start
    cells[DETAIL, VALUE, cell, 1] = length
    rows[ENDS + DETAIL, row] = cell + 1
    rows[PRESENT, row] |= 1 << (GIVEN + DETAIL)


@inner
def row_image(
    buffer: Array,
    at: Int,
    stop: Int,
    cells: Array,
    place: Int,
    cell: Int,
    text: Array,
    words: Array,
    cursor: Array,
    utf8: bool,
) -> tuple[Int, Int, Int]:
    """One tuple into the map `place` from `cell` on: (status, byte after it, cell after it)."""
    status = GOOD
    image = cells[place]
    used = cursor[TEXT_USED]
    count = read_16(buffer, at) if stop - at >= 2 else -1
    at += 2
    while count > 0:
        length = read_16(buffer, at) if stop - at >= 2 else stop
        at += 2
        if stop - at < length + 8:
            return READ_RECORD, at, cell
        name, name_length = at, length
        if not is_ascii(buffer, at, length):
            status |= check_text(buffer, at, length, utf8)
        if length > 0 and buffer[at] == 34:
            name, name_length = unquote(buffer, at, length, text, used)
            if name_length < 0:
                return READ_RECORD, at, cell
            if name < 0:
                used += name_length
        at += length
        oid = read_32(buffer, at)
        word = TYPE_WORDS + min(oid, TYPE_TABLE_SIZE - 1)
        type_start, type_length = np.int64(words[word, 0]), np.int64(words[word, 1])
        if type_length == 0 or oid >= TYPE_TABLE_SIZE:
            begin = used
            text[used], text[used + 1], text[used + 2], text[used + 3] = 111, 105, 100, 58  # oid:
            used = write_number(text, used + 4, oid, 10, False)
            type_start, type_length = ~begin, used - begin
        length = read_32(buffer, at + 4)
        at += 8
        if length == 0xFFFFFFFF:
            length = -1
        elif length > stop - at:
            return READ_RECORD, at, cell
        elif not is_ascii(buffer, at, length):
            status |= check_text(buffer, at, length, utf8)
        image[NAME, cell, 0] = name
        image[NAME, cell, 1] = name_length
        image[VALUE, cell, 0] = at
        image[VALUE, cell, 1] = length
        image[TYPE, cell, 0] = type_start
        image[TYPE, cell, 1] = type_length
        cell += 1
        at += max(length, 0)
        count -= 1
    cursor[TEXT_USED] = used
    return (status if count == 0 else READ_RECORD), at, cell


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
    utf8: bool,
) -> Int:
    """Table and row images of INSERT, UPDATE and DELETE, to the end of the record; returns the row's status."""
    status = GOOD
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        length = read_16(buffer, at) if stop - at >= 2 else stop
        at += 2
        if length > stop - at:
            return READ_RECORD
        if not is_ascii(buffer, at, length):
            status |= check_text(buffer, at, length, utf8)
        rows[field, row] = at
        rows[field + 1, row] = length
        at += length
    for place in range(NEW, OLD + 1):
        if at < stop and buffer[at] == (78 if place == NEW else 79):  # N, O
            begin = rows[ENDS + place, row]
            found, at, end = row_image(buffer, at + 1, stop, cells, place, begin, text, words, cursor, utf8)
            if found == READ_RECORD:
                return READ_RECORD
            status |= found
            rows[ENDS + place, row] = end
            rows[PRESENT, row] |= 1 << (GIVEN + place)
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
    utf8: bool,
) -> Int:
    """The fields of BEGIN and COMMIT, to the end of the record; returns the row's status."""
    status = GOOD
    used = cursor[TEXT_USED]
    if rows[KIND, row] == BEGIN:
        if stop - at < 16:
            return READ_RECORD
        rows[CSN, row] = read_64(buffer, at)
        rows[PRESENT, row] |= 1 << CSN
        begin = used
        used = write_number(text, used, read_32(buffer, at + 8), 16, False)
        text[used] = 47
        used = write_number(text, used + 1, read_32(buffer, at + 12), 16, False)
        note_detail(rows, row, cells, words, FIRST_LSN, ~begin, used - begin)
        at += 16
    time_at, origin_at, user_at = -1, -1, -1
    time_length, user_length = 0, 0
    while at < stop:
        tag = buffer[at]
        at += 1
        if tag == 88 and stop - at >= 8 and not rows[PRESENT, row] >> XID & 1:  # X
            rows[XID, row] = read_64(buffer, at)
            rows[PRESENT, row] |= 1 << XID
            at += 8
        elif tag == 79 and stop - at >= 4 and origin_at < 0:  # O
            origin_at = at
            at += 4
        elif stop - at >= 4 and ((tag == 84 and time_at < 0) or (tag == 78 and user_at < 0)):  # T, N
            length = read_32(buffer, at)
            at += 4
            if length > stop - at:
                return READ_RECORD
            if not is_ascii(buffer, at, length):
                status |= check_text(buffer, at, length, utf8)
            if tag == 84:
                time_at, time_length = at, length
            else:
                user_at, user_length = at, length
            at += length
        else:
            return READ_RECORD
    if time_at >= 0:
        note_detail(rows, row, cells, words, COMMIT_TIME_KEY, time_at, time_length)
        rows[TIME_TEXT, row] = time_at
        rows[TIME_TEXT + 1, row] = time_length
    if origin_at >= 0:
        origin = read_32(buffer, origin_at)
        origin -= (origin >> 31) << 32  # signed 32 bits
        begin = used
        used = write_number(text, used, origin, 10, True)
        note_detail(rows, row, cells, words, ORIGIN, ~begin, used - begin)
    if user_at >= 0:
        note_detail(rows, row, cells, words, USERNAME, user_at, user_length)
    cursor[TEXT_USED] = used
    return status


@inner
def heartbeat(
    buffer: Array,
    at: Int,
    stop: Int,
    rows: Array,
    row: Int,
    cells: Array,
    text: Array,
    words: Array,
    cursor: Array,
) -> Int:
    """The three numbers of a heartbeat; returns the row's status."""
    if stop - at != 24:
        return READ_RECORD
    used = cursor[TEXT_USED]
    value = np.int64(0)
    for number in range(3):
        value = read_64(buffer, at + 8 * number)
        begin = used
        used = write_number(text, used, value, 10, WAL_END + number == TIME_KEY)
        note_detail(rows, row, cells, words, WAL_END + number, ~begin, used - begin)
    rows[COMMIT_TIME, row] = value
    rows[PRESENT, row] |= 1 << COMMIT_TIME
    cursor[TEXT_USED] = used
    return GOOD


@inner
def is_wanted(buffer: Array, rows: Array, row: Int, kinds: Int, patterns: Array, names: Array) -> bool:
    """Whether the filters keep a good row; a pattern is two pairs, a length of -1 is *."""
    kind = rows[KIND, row]
    if not kinds >> kind & 1:
        return False
    if len(patterns) == 0 or rows[TABLE_NAME + 1, row] < 0:
        return True
    for pattern in range(len(patterns)):
        matches = True
        for part in range(0, 4, 2):
            start, length = patterns[pattern, part], patterns[pattern, part + 1]
            own = rows[TABLE_SCHEMA + part, row]
            if length >= 0 and length != rows[TABLE_SCHEMA + part + 1, row]:
                matches = False
            elif matches:
                for at in range(length):
                    if buffer[own + at] != names[start + at]:
                        matches = False
                        break
        if matches:
            return True
    return False


@compiled
def scan_gaussdb_binary(
    buffer: Array,
    starts: Array,
    stops: Array,
    indexes: Array,
    cursor: Array,
    rows: Array,
    cells: Array,
    text: Array,
    words: Array,
    settings: Array,
    patterns: Array,
    names: Array,
) -> Int:
    """Walk messages and note where everything lies, as far as there is room.

    buffer          uint8[n]      bytes of all messages, not copied
    starts, stops   int64[m]      first byte of each message, one past its last
    indexes         int64[m]      what the table calls the message
    cursor          int64[5]      where to go on, changed in place; all is done when cursor[NEXT_MESSAGE] is m
    rows, cells, text             of Spans, filled in place
    words           int32[w, 2]   pairs of the constant words
    settings        int64[2]      1 if the encoding is UTF-8; bits of the kinds wanted
    patterns        int32[p, 4]   tables wanted, pairs in names; none: all
    names           uint8[k]
    returns         int           rows noted; 0 with messages left: text needs room for cursor[TEXT_NEEDED] bytes more
    Raises nothing. Source: see the declaration.
    """
    utf8, kinds = settings[0] == 1, settings[1]
    message, at, record = cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD]
    row = 0
    while message < len(starts):
        stop = stops[message]
        if record == 0:
            at = starts[message]
        bare = record == 0 and at < stop and buffer[at] == 104  # h
        if bare:
            body, end = at, at + BARE_BYTES
            whole = end <= stop
        else:
            length = read_32(buffer, at) if stop - at >= 4 else 0
            body, end = at + 12, at + 4 + length
            whole = end <= stop and LEAST_RECORD <= length <= RECORD_BYTES
        size = end - body if whole else 0
        most = min(size // LEAST_CELL + 1, MOST_CELLS)
        need = size + 32 * most
        full = 0
        if row > 0:
            full = max(rows[ENDS + NEW, row - 1], rows[ENDS + OLD, row - 1])
        if row + 2 > rows.shape[1] or full + most > cells.shape[2] or cursor[TEXT_USED] + need > text.shape[0]:
            cursor[TEXT_NEEDED] = need
            break
        lost = not whole
        if whole:
            used = cursor[TEXT_USED]
            begin_row(rows, row, indexes[message], record, body, size, GOOD)
            lsn = np.int64(0) if bare else read_64(buffer, at + 4)
            has_lsn = (not bare) << LSN
            kind = KIND_OF_BYTE[buffer[body]]
            rows[KIND, row] = kind
            status = GOOD
            if kind == INSERT or kind == UPDATE or kind == DELETE:
                status = row_change(buffer, body + 1, end, rows, row, cells, text, words, cursor, utf8)
            elif kind == BEGIN or kind == COMMIT:
                status = transaction(buffer, body + 1, end, rows, row, cells, text, words, cursor, utf8)
            elif kind == HEARTBEAT:
                status = heartbeat(buffer, body + 1, end, rows, row, cells, text, words, cursor)
            else:
                rows[RAW, row] = body
                rows[RAW + 1, row] = size
            if status == READ_RECORD:
                begin_row(rows, row, indexes[message], record, body, size, READ_RECORD)
            rows[LSN, row] = lsn
            rows[PRESENT, row] |= has_lsn
            rows[STATUS, row] = status
            if status != GOOD or is_wanted(buffer, rows, row, kinds, patterns, names):
                row += 1
            else:
                cursor[TEXT_USED] = used
            record += 1
            at = end
            done = False
            if at < stop and buffer[at] == 70 and at + 1 == stop:  # F
                done = True
            elif stop - at >= 5 and buffer[at] == 80 and not bare:  # P
                at += 1
                done = read_32(buffer, at) == 0 and at + 4 == stop
            else:
                lost = True
            if done:
                message += 1
                record = 0
        if lost:
            start = starts[message]
            begin_row(rows, row, indexes[message], record, start, stop - start, READ_REST)
            row += 1
            message += 1
            record = 0
    cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD] = message, at, record
    return row
