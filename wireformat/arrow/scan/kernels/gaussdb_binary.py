"""The scan of the binary style: walks whole messages and notes where each text is. Heartbeats are rare records.

It follows the declaration in wireformat/formats/gaussdb_binary.py and the framing in wireformat/framing/gauss_batch.py.
It leaves unexpected records, or the rest of a message, to them.

In all functions `arrays` are those of the scan, see ScanArrays, and `row` is the row that is filled.
"""

from __future__ import annotations

import numpy as np

from ....formats.gaussdb_binary import (
    NEW_TAG,
    NULL_LENGTH,
    OLD_TAG,
    ORIGIN_TAG,
    RECORDS,
    TIME_TAG,
    USERNAME_TAG,
    XID_TAG,
)
from ....framing import gauss_batch
from ....framing.gauss_batch import BARE_HEARTBEAT_BYTES
from ....limits import RECORD_BYTES
from ....options.reading import KINDS
from ...arrays import Array, Int
from ...ascii import QUOTE
from ...jit.compiler import hot, inner
from ..dictionary import (
    CELL_ENTRIES,
    CELL_FACTS,
    CELLS,
    COLUMNS,
    COMMIT_TIME_KEY,
    FIRST_LSN,
    FIRST_TYPE,
    ORIGIN,
    TYPE_TABLE_SIZE,
    UNWANTED,
    USERNAME,
    WAL_END_KEY,
    WAL_FLUSHED_KEY,
)
from ..loop import DONE, LOST, MORE, make_scan
from ..notes import (
    BEGIN,
    COMMIT,
    CSN,
    DECLINED,
    DELETE,
    ENDS,
    FULL,
    GIVEN,
    GOOD,
    HEARTBEAT,
    INSERT,
    KIND,
    NAME,
    NEEDS,
    NEW,
    OLD,
    PRESENT,
    RARE,
    RAW,
    STEPPED_OVER,
    TABLE_FOUND,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TIME_TEXT,
    TYPE,
    UNKNOWN,
    UNLIKE,
    UPDATE,
    UTF8,
    VALUE,
    XID,
    ScanArrays,
)
from ..primitives import is_ascii, read_16, read_32, read_64, same_bytes, transcode_flag, unquote, write_decimal
from ..rare_records import make_rare_walk
from ..relations.recognise import expected_relation, find_relation, learn, next_relation, note_complete, note_pattern
from ..row_notes import note_detail, note_heartbeat_time, note_lsn, note_number
from .literals import note_table

BARE_HEARTBEAT = ord(gauss_batch.BARE_HEARTBEAT)
ANOTHER_RECORD, END_OF_MESSAGE = ord(gauss_batch.MORE), ord(gauss_batch.END)
OID_PREFIX = np.frombuffer(b"oid:", np.uint8)
LEAST_RECORD = gauss_batch.LEAST_RECORD_BYTES
KIND_OF_BYTE = np.full(256, UNKNOWN, np.int64)
for _byte, (_event, _) in RECORDS.items():
    KIND_OF_BYTE[_byte] = KINDS.index(_event.kind)


@hot
def row_image(arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, relation: Int) -> tuple[Int, Int]:
    """One tuple into the map `map_index`: (status, byte after it).

    relation   the relation whose columns are expected, or 0: any columns, whose patterns are noted
    The status is UNLIKE if it has other columns than the relation.
    """
    buffer, rows, text = arrays.buffer, arrays.rows, arrays.text
    dictionary, cursor = arrays.dictionary, arrays.cursor
    utf8 = arrays.settings[UTF8] == 1
    image = arrays.cells[map_index]
    first = rows[ENDS + map_index, row]
    count = read_16(buffer, at) if stop - at >= 2 else -1
    if relation > 0 and count != np.int64(dictionary[relation + COLUMNS, 0]):
        return UNLIKE, at
    if count < 0:
        return DECLINED, at
    used = cursor[TEXT_USED]
    needs = np.int64(0)
    column = relation + CELLS + CELL_FACTS
    at += 2
    for cell in range(first, first + count):
        if cell == image.shape[1]:
            return FULL, at
        if relation > 0:
            size = np.int64(dictionary[column, 1])
            if stop - at < size + 4 or not same_bytes(buffer, at, text, ~np.int64(dictionary[column, 0]), size):
                return UNLIKE, at
            column += CELL_ENTRIES
            at += size
        else:
            pattern = at
            length = read_16(buffer, at) if stop - at >= 2 else stop
            at += 2
            if stop - at < length + 8:
                return DECLINED, at
            name, name_length = at, length
            if not is_ascii(buffer, at, length):
                needs |= transcode_flag(buffer, at, length, utf8)
            if length > 0 and buffer[at] == QUOTE:
                name, name_length = unquote(buffer, at, length, text, used)
                if name_length < 0:
                    return DECLINED, at
                if name < 0:
                    used += name_length
            at += length
            oid = read_32(buffer, at)
            entry = FIRST_TYPE + (oid if oid < TYPE_TABLE_SIZE else 0)
            type_start, type_length = np.int64(dictionary[entry, 0]), np.int64(dictionary[entry, 1])
            if type_length == 0 or oid >= TYPE_TABLE_SIZE:
                begin = used
                for offset in range(len(OID_PREFIX)):
                    text[used + offset] = OID_PREFIX[offset]
                used = write_decimal(text, used + len(OID_PREFIX), oid, False)
                type_start, type_length = ~begin, used - begin
            at += 4
            note_pattern(arrays, cell - first, pattern, at)
            image[NAME, cell, 0] = name
            image[NAME, cell, 1] = name_length
            image[TYPE, cell, 0] = type_start
            image[TYPE, cell, 1] = type_length
        length = read_32(buffer, at)
        at += 4
        if length == NULL_LENGTH:
            length = -1
        elif length > stop - at:
            return DECLINED, at
        elif not is_ascii(buffer, at, length):
            needs |= transcode_flag(buffer, at, length, utf8)
        image[VALUE, cell, 0] = at
        image[VALUE, cell, 1] = length
        at += length if length > 0 else 0
    cursor[TEXT_USED] = used
    rows[NEEDS, row] |= needs
    if relation > 0:
        note_complete(arrays, row, map_index, relation, first)
    else:
        rows[ENDS + map_index, row] = first + count
        rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    return GOOD, at


@hot
def row_change(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Table and row images of INSERT, UPDATE and DELETE, to the end of the record; returns the row's status."""
    buffer, rows, dictionary, cursor = arrays.buffer, arrays.rows, arrays.dictionary, arrays.cursor
    head = at
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        length = read_16(buffer, at) if stop - at >= 2 else stop
        at += 2
        if length > stop - at:
            return DECLINED
        rows[field, row] = at
        rows[field + 1, row] = length
        at += length
    head_end = at
    first = cursor[TABLE_FOUND]
    if first > 0:
        if dictionary[first + COLUMNS, 1] == UNWANTED:  # as `is_unwanted` says, if the framing were good
            return STEPPED_OVER
        note_table(arrays, row, first)
    else:
        for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
            if not is_ascii(buffer, rows[field, row], rows[field + 1, row]):
                rows[NEEDS, row] |= transcode_flag(
                    buffer, rows[field, row], rows[field + 1, row], arrays.settings[UTF8] == 1
                )
    for map_index in range(NEW, OLD + 1):
        if at < stop and buffer[at] == (NEW_TAG if map_index == NEW else OLD_TAG):
            at += 1
            begin = rows[ENDS + map_index, row]
            relation = expected_relation(arrays, row, first, head_end - head)
            while True:
                status, end = row_image(arrays, at, stop, row, map_index, relation)
                if status != UNLIKE:
                    break
                relation = next_relation(dictionary, relation, first)
            if status == GOOD and (relation == 0 or first == 0):
                first = learn(arrays, row, map_index, begin, relation, first, head, head_end, at, at)
            if status != GOOD:
                return status
            at = end
    return GOOD if at == stop else DECLINED


@inner
def transaction(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """The fields of BEGIN and COMMIT, to the end of the record; returns the row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    utf8 = arrays.settings[UTF8] == 1
    if rows[KIND, row] == BEGIN:
        if stop - at < 16:
            return DECLINED
        rows[CSN, row] = read_64(buffer, at)
        rows[PRESENT, row] |= 1 << CSN
        note_lsn(arrays, row, FIRST_LSN, at + 8)
        at += 16
    time_at, origin_at, user_at = -1, -1, -1
    time_length, user_length = 0, 0
    while at < stop:
        tag = buffer[at]
        at += 1
        if tag == XID_TAG and stop - at >= 8 and not rows[PRESENT, row] >> XID & 1:
            rows[XID, row] = read_64(buffer, at)
            rows[PRESENT, row] |= 1 << XID
            at += 8
        elif tag == ORIGIN_TAG and stop - at >= 4 and origin_at < 0:
            origin_at = at
            at += 4
        elif stop - at >= 4 and ((tag == TIME_TAG and time_at < 0) or (tag == USERNAME_TAG and user_at < 0)):
            length = read_32(buffer, at)
            at += 4
            if length > stop - at:
                return DECLINED
            if not is_ascii(buffer, at, length):
                rows[NEEDS, row] |= transcode_flag(buffer, at, length, utf8)
            if tag == TIME_TAG:
                time_at, time_length = at, length
            else:
                user_at, user_length = at, length
            at += length
        else:
            return DECLINED
    if time_at >= 0:
        note_detail(arrays, row, COMMIT_TIME_KEY, time_at, time_length)
        rows[TIME_TEXT, row] = time_at
        rows[TIME_TEXT + 1, row] = time_length
    if origin_at >= 0:
        origin = read_32(buffer, origin_at)
        note_number(arrays, row, ORIGIN, origin - ((origin >> 31) << 32), True)  # signed 32 bits
    if user_at >= 0:
        note_detail(arrays, row, USERNAME, user_at, user_length)
    return GOOD


@hot
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows = arrays.buffer, arrays.rows
    kind = KIND_OF_BYTE[buffer[at]]
    rows[KIND, row] = kind
    if kind == INSERT or kind == UPDATE or kind == DELETE:
        return row_change(arrays, at + 1, stop, row)
    if kind == BEGIN or kind == COMMIT:
        return transaction(arrays, at + 1, stop, row)
    if kind == HEARTBEAT:
        return RARE
    rows[RAW, row] = at
    rows[RAW + 1, row] = stop - at
    return GOOD


@inner
def open_record(buffer: Array, start: Int, stop: Int, at: Int, record: Int) -> tuple[Int, Int, Int, bool]:
    """Where the record begins and ends; see loop.py."""
    if record == 0 and at < stop and buffer[at] == BARE_HEARTBEAT:
        end = at + BARE_HEARTBEAT_BYTES
        return at, end if end <= stop else -1, np.int64(0), False
    if stop - at < 12:
        return at, -1, np.int64(0), True
    length = read_32(buffer, at)
    end = at + 4 + length
    if end > stop or length < LEAST_RECORD or length > RECORD_BYTES:
        end = -1
    return at + 12, end, read_64(buffer, at + 4), True


@hot
def close_record(buffer: Array, stop: Int, end: Int, has_lsn: bool) -> tuple[Int, Int]:
    """What follows the record; see loop.py."""
    if end + 1 == stop and buffer[end] == END_OF_MESSAGE:
        return end, DONE
    if stop - end < 5 or buffer[end] != ANOTHER_RECORD or not has_lsn:
        return end, LOST
    if read_32(buffer, end + 1) != 0:
        return end + 1, MORE
    return end, DONE if end + 5 == stop else LOST


@hot
def is_unwanted(arrays: ScanArrays, at: Int, stop: Int) -> bool:
    """Whether the record is a row change of a table that the filters are known to drop; see loop.py."""
    buffer, cursor = arrays.buffer, arrays.cursor
    cursor[TABLE_FOUND] = 0
    kind = KIND_OF_BYTE[buffer[at]]
    if kind != INSERT and kind != UPDATE and kind != DELETE:
        return False
    head = end = at + 1
    for _ in range(2):
        if stop - end < 2:
            return False
        end += 2 + read_16(buffer, end)
    if end > stop:
        return False
    first = find_relation(buffer, head, end, arrays.text, arrays.dictionary, cursor)  # more than 8 bytes precede
    cursor[TABLE_FOUND] = first
    return first > 0 and arrays.dictionary[first + COLUMNS, 1] == UNWANTED


scan_gaussdb_binary = make_scan("scan_gaussdb_binary", open_record, close_record, read_record, is_unwanted)


@inner
def read_heartbeat(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes the three numbers of a heartbeat, which are the whole record after the kind; see rare_records.py."""
    if stop - at != BARE_HEARTBEAT_BYTES:
        return DECLINED
    arrays.rows[KIND, row] = HEARTBEAT
    note_number(arrays, row, WAL_END_KEY, read_64(arrays.buffer, at + 1), False)
    note_number(arrays, row, WAL_FLUSHED_KEY, read_64(arrays.buffer, at + 9), False)
    note_heartbeat_time(arrays, row, read_64(arrays.buffer, at + 17))
    return GOOD


walk_heartbeats = make_rare_walk("walk_heartbeats", read_heartbeat)
