"""The scan of the binary style: walks whole messages and notes where everything lies.

It follows the declaration in wireformat/formats/gaussdb_binary.py and the framing in wireformat/framing/gauss_batch.py.
At anything that it does not expect it gives the record (or the rest of the message) to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..framing import gauss_batch
from ..limits import RECORD_BYTES
from ..options.reading import KINDS
from .compiled import compiled, inner
from .spans import (
    BODY,
    COMMIT_TIME,
    COMMIT_TIME_TEXT,
    CSN,
    DETAIL,
    FIRST_LSN,
    GOOD,
    KIND,
    MAPS,
    LSN,
    MAPS,
    MESSAGE,
    NAME,
    NEW,
    NEXT_BYTE,
    NEXT_MESSAGE,
    NEXT_RECORD,
    NUMBERS,
    OLD,
    ORIGIN,
    RAW,
    READ_RECORD,
    READ_REST,
    RECORD,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_USED,
    TEXTS,
    TIME,
    TRANSCODE,
    TYPE,
    TYPE_TABLE_SIZE,
    USERNAME,
    VALUE,
    WAL_END,
    WAL_FLUSHED,
    XID,
)
from .wire import (
    heartbeat_micros,
    is_ascii,
    is_utf8,
    parse_commit_time,
    read_64,
    read_u16,
    read_u32,
    same,
    unquoted,
    write_decimal,
    write_lsn,
)

MAP_COUNT, NUMBER_COUNT, TEXT_COUNT = len(MAPS), len(NUMBERS), len(TEXTS)
BARE_BYTES = gauss_batch.BARE_HEARTBEAT_BYTES
LEAST_RECORD = gauss_batch.LEAST_RECORD_BYTES
MOST_CELLS = 65535
LEAST_CELL_BYTES = 10
ROW_KINDS = np.full(256, -1, np.int64)
for _byte, _name in zip(b"BCIUDh", ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE", "HEARTBEAT"), strict=True):
    ROW_KINDS[_byte] = KINDS.index(_name)
BEGIN, COMMIT, HEARTBEAT, UNKNOWN = (KINDS.index(name) for name in ("BEGIN", "COMMIT", "HEARTBEAT", "UNKNOWN"))
INSERT, DELETE = KINDS.index("INSERT"), KINDS.index("DELETE")


@inner
def _begin_row(spans: Any, row: int, message: int, record: int) -> None:
    """An empty row: everything null, every list at the end of the row before."""
    for number in range(NUMBER_COUNT):
        spans.present[number, row] = 0
    for text in range(TEXT_COUNT):
        spans.texts[text, row, 0] = 0
        spans.texts[text, row, 1] = -1
    for item in range(MAP_COUNT):
        spans.given[item, row] = 0
        spans.ends[item, row] = 0 if row == 0 else spans.ends[item, row - 1]
    spans.status[row] = GOOD
    _number(spans, row, MESSAGE, message)
    _number(spans, row, RECORD, record)


@inner
def _number(spans: Any, row: int, number: int, value: int) -> None:
    spans.numbers[number, row] = value
    spans.present[number, row] = 1


@inner
def _text(spans: Any, row: int, text: int, start: int, length: int) -> None:
    spans.texts[text, row, 0] = start
    spans.texts[text, row, 1] = length


@inner
def _check_text(buffer: Any, start: int, length: int, utf8: bool, status: int) -> int:
    """The row's status with this text in it."""
    if is_ascii(buffer, start, length) or (utf8 and is_utf8(buffer, start, length)):
        return status
    return TRANSCODE


@inner
def _detail(spans: Any, row: int, words: Any, key: int, start: int, length: int) -> None:
    cell = spans.ends[DETAIL, row]
    spans.given[DETAIL, row] = 1
    spans.detail[cell, 0] = words.keys[key, 0]
    spans.detail[cell, 1] = words.keys[key, 1]
    spans.detail[cell, 2] = start
    spans.detail[cell, 3] = length
    spans.ends[DETAIL, row] = cell + 1


@inner
def _facts(buffer: Any, at: int, stop: int, spans: Any, row: int, words: Any, used: int, utf8: bool) -> tuple[int, int]:
    """The tagged fields of BEGIN and COMMIT, to the end of the record: (status, text used)."""
    status = GOOD
    xid_at, time_at, origin_at, user_at = -1, -1, -1, -1
    time_length, user_length = 0, 0
    while at < stop:
        tag = buffer[at]
        at += 1
        if tag == 88 and xid_at < 0 and stop - at >= 8:  # X
            xid_at = at
            at += 8
        elif tag == 79 and origin_at < 0 and stop - at >= 4:  # O
            origin_at = at
            at += 4
        elif (tag == 84 and time_at < 0 or tag == 78 and user_at < 0) and stop - at >= 4:  # T, N
            length = read_u32(buffer, at)
            at += 4
            if length > stop - at:
                return READ_RECORD, used
            status = _check_text(buffer, at, length, utf8, status)
            if tag == 84:
                time_at, time_length = at, length
            else:
                user_at, user_length = at, length
            at += length
        else:
            return READ_RECORD, used
    if xid_at >= 0:
        _number(spans, row, XID, read_64(buffer, xid_at))
    if time_at >= 0:
        _detail(spans, row, words, COMMIT_TIME_TEXT, time_at, time_length)
        known, micros = parse_commit_time(buffer, time_at, time_at + time_length)
        if known:
            _number(spans, row, COMMIT_TIME, micros)
    if origin_at >= 0:
        origin = read_u32(buffer, origin_at)
        end = write_decimal(spans.text, used, origin - (1 << 32) if origin >= 1 << 31 else origin, True)
        _detail(spans, row, words, ORIGIN, -1 - used, end - used)
        used = end
    if user_at >= 0:
        _detail(spans, row, words, USERNAME, user_at, user_length)
    return status, used


@inner
def _heartbeat(buffer: Any, at: int, spans: Any, row: int, words: Any, used: int, factor: int) -> int:
    """The three numbers of a heartbeat; returns how much text is used after them."""
    for key in (WAL_END, WAL_FLUSHED, TIME):
        value = read_64(buffer, at)
        end = write_decimal(spans.text, used, value, key == TIME)
        _detail(spans, row, words, key, -1 - used, end - used)
        used = end
        at += 8
    known, micros = heartbeat_micros(read_64(buffer, at - 8), factor)
    if known:
        _number(spans, row, COMMIT_TIME, micros)
    return used


@inner
def _tuple(
    buffer: Any, at: int, stop: int, spans: Any, cells: Any, cell: int, words: Any, used: int, utf8: bool
) -> tuple[int, int, int, int]:
    """One row image: (status, byte after it, cell after it, text used)."""
    if stop - at < 2:
        return READ_RECORD, at, cell, used
    status = GOOD
    count = read_u16(buffer, at)
    at += 2
    for _ in range(count):
        if stop - at < 2:
            return READ_RECORD, at, cell, used
        length = read_u16(buffer, at)
        at += 2
        if stop - at < length + 8:
            return READ_RECORD, at, cell, used
        status = _check_text(buffer, at, length, utf8, status)
        name, name_length = at, length
        if length > 0 and buffer[at] == 34:
            name, name_length, used = unquoted(buffer, at, length, spans.text, used)
            if name_length < 0:
                return READ_RECORD, at, cell, used
        at += length
        type_start, type_length, used = _type(read_u32(buffer, at), words, spans.text, used)
        length = read_u32(buffer, at + 4)
        at += 8
        if length == 0xFFFFFFFF:
            length = -1
        elif length > stop - at:
            return READ_RECORD, at, cell, used
        else:
            status = _check_text(buffer, at, length, utf8, status)
        cells[cell, NAME] = name
        cells[cell, NAME + 1] = name_length
        cells[cell, VALUE] = at
        cells[cell, VALUE + 1] = length
        cells[cell, TYPE] = type_start
        cells[cell, TYPE + 1] = type_length
        cell += 1
        at += max(length, 0)
    return status, at, cell, used


@inner
def _type(oid: int, words: Any, text: Any, used: int) -> tuple[int, int, int]:
    """The pair of a type's name, and how much text is used after it."""
    if oid < TYPE_TABLE_SIZE and words.types[oid, 1] > 0:
        return np.int64(words.types[oid, 0]), np.int64(words.types[oid, 1]), used
    begin = used
    for letter in (111, 105, 100, 58):  # oid:
        text[used] = letter
        used += 1
    used = write_decimal(text, used, oid, False)
    return -1 - begin, used - begin, used


@inner
def _row_change(
    buffer: Any, at: int, stop: int, spans: Any, row: int, words: Any, used: int, utf8: bool
) -> tuple[int, int]:
    """Table and row images of INSERT, UPDATE and DELETE, to the end of the record: (status, text used)."""
    status = GOOD
    for text in (TABLE_SCHEMA, TABLE_NAME):
        if stop - at < 2:
            return READ_RECORD, used
        length = read_u16(buffer, at)
        at += 2
        if length > stop - at:
            return READ_RECORD, used
        status = _check_text(buffer, at, length, utf8, status)
        _text(spans, row, text, at, length)
        at += length
    for tag, place in ((78, NEW), (79, OLD)):  # N, O
        if at < stop and buffer[at] == tag:
            cells = spans.new if place == NEW else spans.old
            cell = np.int64(spans.ends[place, row])
            found, at, cell, used = _tuple(buffer, at + 1, stop, spans, cells, cell, words, used, utf8)
            if found == READ_RECORD:
                return READ_RECORD, used
            status = max(status, found)
            spans.ends[place, row] = cell
            spans.given[place, row] = 1
    return (status if at == stop else READ_RECORD), used


@inner
def _wanted(buffer: Any, spans: Any, row: int, kind: int, wanted: Any) -> bool:
    """Whether the filters keep a good row."""
    if wanted.kinds[kind] == 0:
        return False
    if kind < INSERT or kind > DELETE or not wanted.by_table:
        return True
    schema, schema_length = np.int64(spans.texts[TABLE_SCHEMA, row, 0]), np.int64(spans.texts[TABLE_SCHEMA, row, 1])
    table, table_length = np.int64(spans.texts[TABLE_NAME, row, 0]), np.int64(spans.texts[TABLE_NAME, row, 1])
    for pattern in range(len(wanted.patterns)):
        part = wanted.patterns[pattern]
        if (part[1] < 0 or same(buffer, schema, schema_length, wanted.names, part[0], part[1])) and (
            part[3] < 0 or same(buffer, table, table_length, wanted.names, part[2], part[3])
        ):
            return True
    return False


@inner
def _record(
    buffer: Any, at: int, stop: int, spans: Any, row: int, words: Any, used: int, utf8: bool, factor: int
) -> tuple[int, int, int]:
    """Kind and body of one record: (kind, status, text used)."""
    kind = ROW_KINDS[buffer[at]]
    begin = at
    at += 1
    if kind < 0:
        _text(spans, row, RAW, begin, stop - begin)
        return UNKNOWN, GOOD, used
    if kind == BEGIN:
        if stop - at < 16:
            return kind, READ_RECORD, used
        _number(spans, row, CSN, read_64(buffer, at))
        end = write_lsn(spans.text, used, read_64(buffer, at + 8))
        _detail(spans, row, words, FIRST_LSN, -1 - used, end - used)
        status, used = _facts(buffer, at + 16, stop, spans, row, words, end, utf8)
    elif kind == COMMIT:
        status, used = _facts(buffer, at, stop, spans, row, words, used, utf8)
    elif kind == HEARTBEAT:
        if stop - at != 24:
            return kind, READ_RECORD, used
        status = GOOD
        used = _heartbeat(buffer, at, spans, row, words, used, factor)
    else:
        status, used = _row_change(buffer, at, stop, spans, row, words, used, utf8)
    return kind, status, used


@compiled
def scan_gaussdb_binary(
    buffer: Any, starts: Any, stops: Any, indexes: Any, cursor: Any, spans: Any, words: Any, wanted: Any, text: Any
) -> int:
    """Walk messages and note where everything lies, as far as there is room.

    buffer          uint8[n]   bytes of all messages, not copied
    starts, stops   int64[m]   first byte of each message, one past its last
    indexes         int64[m]   what the table calls the message
    cursor          int64[5]   where to go on, changed in place; all messages are done when cursor[NEXT_MESSAGE] is m
    spans           Spans      filled in place
    words, wanted              constant words; filters
    text            int64[2]   1 if the encoding is UTF-8; microseconds in a heartbeat unit
    returns         int        rows noted; 0 with messages left means: text needs room for cursor[TEXT_NEEDED] bytes more

    Raises nothing. Source: see the declaration.
    """
    utf8, factor = text[0] == 1, text[1]
    message, at, record, used = cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD], cursor[TEXT_USED]
    row = 0
    rows, room = len(spans.status), len(spans.text)
    cells = min(len(spans.new), len(spans.old))
    while message < len(starts):
        stop = stops[message]
        if record == 0:
            at = starts[message]
        bare = record == 0 and at < stop and buffer[at] == 104  # h
        length = BARE_BYTES if bare else (read_u32(buffer, at) if stop - at >= 4 else 0)
        body = at if bare else at + 12
        end = at + length if bare else at + 4 + length
        whole = stop >= end and (bare or LEAST_RECORD <= length <= RECORD_BYTES)
        most = min((end - body) // LEAST_CELL_BYTES + 1, MOST_CELLS) if whole else 0
        need = (end - body) + 32 * most + 128 if whole else 0
        used_cells = max(spans.ends[NEW, row - 1], spans.ends[OLD, row - 1]) if row > 0 else 0
        if row + 2 > rows or used_cells + most > cells or used + need > room:
            cursor[TEXT_NEEDED] = need
            break
        _begin_row(spans, row, indexes[message], record)
        _text(spans, row, BODY, at, stop - at)
        if not whole:
            spans.status[row] = READ_REST
            row += 1
            message += 1
            record = 0
            continue
        if not bare:
            _number(spans, row, LSN, read_64(buffer, at + 4))
        _text(spans, row, BODY, body, end - body)
        kind, status, after = _record(buffer, body, end, spans, row, words, used, utf8, factor)
        if status == READ_RECORD:
            _begin_row(spans, row, indexes[message], record)
            _text(spans, row, BODY, body, end - body)
        spans.status[row] = status
        _text(spans, row, KIND, words.kinds[kind, 0], words.kinds[kind, 1])
        if status != GOOD or _wanted(buffer, spans, row, kind, wanted):
            used = after
            row += 1
        record += 1
        at = end
        separator = buffer[at] if at < stop else 0
        if separator == 70 and at + 1 == stop:  # F
            message += 1
            record = 0
        elif separator == 80 and not bare and stop - at >= 5:  # P
            at += 1
            if read_u32(buffer, at) == 0 and at + 4 == stop:
                message += 1
                record = 0
        else:
            _begin_row(spans, row, indexes[message], record)
            spans.status[row] = READ_REST
            row += 1
            message += 1
            record = 0
    cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD], cursor[TEXT_USED] = message, at, record, used
    return row
