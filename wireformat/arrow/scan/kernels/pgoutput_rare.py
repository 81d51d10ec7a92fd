"""The walk over pgoutput's rare messages: of prepared and streamed transactions, logical messages, origins, types,
keepalives, and TRUNCATE.

It follows the declaration in wireformat/formats/pgoutput/messages.py. In the functions for one kind, `at` is the byte
after the kind, and `stop` the end of the record.
"""

from __future__ import annotations

import numpy as np

from ....formats.pgoutput.messages import KEEPALIVE
from ....times import MICROS_OF_2000
from ...arrays import Int
from ...ascii import CLOSE_BRACKET, OPEN_BRACKET
from ...jit.compiler import inner
from ..dictionary import (
    CASCADE_KEY,
    COMMIT_TIME_KEY,
    DETAILS,
    END_LSN_KEY,
    FIRST_SEGMENT_KEY,
    GID_KEY,
    ORIGIN,
    PREPARE_TIME_KEY,
    RELATION_ID_KEY,
    REPLY_KEY,
    RESTART_IDENTITY_KEY,
    SCHEMA,
    SUBXID_KEY,
    TABLE,
    TYPE_OIDS_KEY,
    WAL_END_KEY,
)
from ..notes import (
    BEGIN,
    COMMIT_LSN,
    COMMIT_PREPARED,
    DECLINED,
    EXTRA_ROW,
    GOOD,
    HEARTBEAT,
    KIND,
    LSN,
    MESSAGE_KIND,
    ORIGIN_KIND,
    PREPARE,
    PRESENT,
    RELATION,
    ROLLBACK_PREPARED,
    STREAM_ABORT,
    STREAM_COMMIT,
    STREAM_PREPARE,
    STREAM_START,
    STREAM_STOP,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TRUNCATE,
    TYPE_KIND,
    XID,
    ScanArrays,
)
from ..primitives import read_32, read_64, write_decimal, zero_at
from ..rare_records import begin_extra_row, make_rare_walk
from ..row_notes import is_utf8, note_detail, note_flag, note_heartbeat_time, note_lsn, note_message, note_number
from .pgoutput_values import note_time, note_xid
from .pgoutput_walk import (
    ABORT_BYTES,
    IS_OPENGAUSS,
    PARALLEL_ABORT_BYTES,
    RARE_TAGS,
    RELATION_CODES,
    START_BYTES,
    STREAM_COMMIT_BYTES,
    TRUNCATE_HEAD,
    entry_of,
    is_aside,
    is_in_block,
    truncated_tables,
)

KIND_OF_BYTE = np.zeros(256, np.int64)
for _byte, _kind in zip(
    RARE_TAGS,
    (
        *(HEARTBEAT, MESSAGE_KIND, BEGIN, PREPARE, COMMIT_PREPARED, ROLLBACK_PREPARED),
        *(ORIGIN_KIND, TYPE_KIND, TRUNCATE),
        *(STREAM_START, STREAM_STOP, STREAM_COMMIT, STREAM_ABORT, STREAM_PREPARE),
    ),
    strict=True,
):
    KIND_OF_BYTE[_byte] = _kind

CASCADES, RESTARTS_IDENTITY = 1, 2
TRUNCATE_FLAGS = CASCADES | RESTARTS_IDENTITY

KEEPALIVE_BYTES = KEEPALIVE.sizeof()
"""Without the kind: the end of the log, the time, and whether the server wants an answer."""

KEEPALIVE_REPLY = KEEPALIVE_BYTES - 1
"""Where it says whether the server wants an answer."""

LAST_TIME_OF_KEEPALIVE = (1 << 63) - 1 - MICROS_OF_2000
"""The last one that is in 64 bits if it is counted from 1970."""


@inner
def read_prepared(arrays: ScanArrays, at: Int, stop: Int, row: Int, has_flags: bool) -> Int:
    """BEGIN of a prepared transaction, PREPARE, STREAM PREPARE, COMMIT PREPARED and ROLLBACK PREPARED, from the byte
    after the kind to the end; returns the row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    kind = rows[KIND, row]
    is_commit, is_rollback = kind == COMMIT_PREPARED, kind == ROLLBACK_PREPARED
    if has_flags:
        if at == stop or buffer[at] != 0:
            return DECLINED
        at += 1
    # An LSN, end_lsn, one time or two, 4 bytes of xid, gid and a zero.
    xid_at = at + 24 + 8 * is_rollback
    gid = xid_at + 4
    if gid >= stop:
        return DECLINED
    end = zero_at(buffer, gid, stop)
    if end + 1 != stop or not is_utf8(arrays, gid, end - gid):
        return DECLINED
    if (is_commit or is_rollback) and not note_time(arrays, row, COMMIT_TIME_KEY, xid_at - 8):
        return DECLINED
    lsn = COMMIT_LSN if is_commit else LSN
    rows[lsn, row] = read_64(buffer, at)
    rows[XID, row] = read_32(buffer, xid_at)
    rows[PRESENT, row] |= 1 << lsn | 1 << XID
    note_lsn(arrays, row, END_LSN_KEY, at + 8)
    note_detail(arrays, row, GID_KEY, gid, end - gid)
    if not is_commit and not note_time(arrays, row, PREPARE_TIME_KEY, at + 16):
        return DECLINED
    return GOOD


@inner
def read_message(arrays: ScanArrays, at: Int, stop: Int, row: Int, has_xid: bool) -> Int:
    """MESSAGE, from the byte after the kind to the end; returns the row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    if has_xid:
        if stop - at < 4:
            return DECLINED
        note_xid(arrays, at, row)
        at += 4
    if stop - at < 9 or buffer[at] > 1:
        return DECLINED
    prefix = at + 9  # after a flag and the message's own LSN
    end = zero_at(buffer, prefix, stop)
    if stop - end < 5 or read_32(buffer, end + 1) != stop - end - 5:
        return DECLINED
    rows[LSN, row] = read_64(buffer, at + 1)
    rows[PRESENT, row] |= 1 << LSN
    return note_message(arrays, row, buffer[at] == 1, prefix, end - prefix, end + 5, stop - end - 5)


@inner
def read_keepalive(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """The end of the log, the time and a flag, which are the whole record; returns the row's status."""
    buffer = arrays.buffer
    if stop - at != KEEPALIVE_BYTES or buffer[at + KEEPALIVE_REPLY] > 1:
        return DECLINED
    micros = read_64(buffer, at + 8)
    if micros > LAST_TIME_OF_KEEPALIVE:
        return DECLINED
    note_number(arrays, row, WAL_END_KEY, read_64(buffer, at), False)
    note_heartbeat_time(arrays, row, micros + MICROS_OF_2000)
    note_flag(arrays, row, REPLY_KEY, buffer[at + KEEPALIVE_REPLY] == 1)
    return GOOD


@inner
def read_origin(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """ORIGIN, from the byte after the kind to the end; returns the row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    name = at + 8
    if name >= stop:
        return DECLINED
    end = zero_at(buffer, name, stop)
    if end + 1 != stop or not is_utf8(arrays, name, end - name):
        return DECLINED
    rows[LSN, row] = read_64(buffer, at)
    rows[PRESENT, row] |= 1 << LSN
    note_detail(arrays, row, np.int64(ORIGIN), name, end - name)
    return GOOD


@inner
def read_type(arrays: ScanArrays, at: Int, stop: Int, row: Int, has_xid: bool) -> Int:
    """TYPE, from the byte after the kind to the end; returns the row's status. A type of the system has no schema in
    the message."""
    buffer, rows, text, cursor = arrays.buffer, arrays.rows, arrays.text, arrays.cursor
    number = at + 4 * has_xid
    schema = number + 4
    if schema >= stop or buffer[schema] == 0:
        return DECLINED
    schema_end = zero_at(buffer, schema, stop)
    name = schema_end + 1
    end = zero_at(buffer, name, stop)
    if end + 1 != stop or not is_utf8(arrays, schema, schema_end - schema) or not is_utf8(arrays, name, end - name):
        return DECLINED
    if has_xid:
        note_xid(arrays, at, row)
    rows[TABLE_SCHEMA, row], rows[TABLE_SCHEMA + 1, row] = schema, schema_end - schema
    rows[TABLE_NAME, row], rows[TABLE_NAME + 1, row] = name, end - name
    begin = cursor[TEXT_USED]
    text[begin] = OPEN_BRACKET
    used = write_decimal(text, begin + 1, read_32(buffer, number), False)
    text[used] = CLOSE_BRACKET
    cursor[TEXT_USED] = used + 1
    note_detail(arrays, row, TYPE_OIDS_KEY, ~begin, used + 1 - begin)
    return GOOD


@inner
def read_truncate(arrays: ScanArrays, at: Int, stop: Int, row: Int, code: Int) -> Int:
    """TRUNCATE, from the byte after the kind to the end; returns the row's status, with the rows after it.

    code   see RELATION_CODES
    """
    buffer, rows, dictionary, settings = arrays.buffer, arrays.rows, arrays.dictionary, arrays.settings
    first, count, has_xid = row, truncated_tables(buffer, at, code), is_in_block(code)
    head = at + 4 * has_xid
    if stop - head != TRUNCATE_HEAD + 4 * count:
        return DECLINED
    flags = np.int64(buffer[head + 4])
    if flags & ~TRUNCATE_FLAGS != 0:
        return DECLINED
    if has_xid:
        note_xid(arrays, at, row)
    for table in range(count):
        relation = entry_of(code) if code >= 0 else settings[RELATION_CODES + entry_of(code) + table]
        if relation == 0:
            return DECLINED
        if table > 0:
            row = begin_extra_row(rows, row)
        for part in range(2):
            rows[TABLE_SCHEMA + part, row] = dictionary[relation + SCHEMA, part]
            rows[TABLE_NAME + part, row] = dictionary[relation + TABLE, part]
        note_flag(arrays, row, RESTART_IDENTITY_KEY, flags & RESTARTS_IDENTITY != 0)
        note_flag(arrays, row, CASCADE_KEY, flags & CASCADES != 0)
        note_detail(arrays, row, RELATION_ID_KEY, dictionary[relation + DETAILS, 0], dictionary[relation + DETAILS, 1])
    return GOOD + EXTRA_ROW * (row - first)


@inner
def read_streamed(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """STREAM START, STREAM STOP, STREAM COMMIT and STREAM ABORT, from the byte after the kind to the end; returns the
    row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    kind, size = rows[KIND, row], stop - at + 1
    if kind == STREAM_STOP:
        return GOOD if size == 1 else DECLINED
    if kind == STREAM_START:
        if size != START_BYTES or buffer[at + 4] > 1:
            return DECLINED
        note_flag(arrays, row, FIRST_SEGMENT_KEY, buffer[at + 4] == 1)
    elif kind == STREAM_COMMIT:
        if size != STREAM_COMMIT_BYTES or buffer[at + 4] != 0 or not note_time(arrays, row, COMMIT_TIME_KEY, at + 21):
            return DECLINED
        rows[COMMIT_LSN, row] = read_64(buffer, at + 5)
        rows[PRESENT, row] |= 1 << COMMIT_LSN
        note_lsn(arrays, row, END_LSN_KEY, at + 13)
    else:
        if size == PARALLEL_ABORT_BYTES:
            if not note_time(arrays, row, COMMIT_TIME_KEY, at + 16):
                return DECLINED
            rows[LSN, row] = read_64(buffer, at + 8)
            rows[PRESENT, row] |= 1 << LSN
        elif size != ABORT_BYTES:
            return DECLINED
        note_number(arrays, row, SUBXID_KEY, read_32(buffer, at + 4), False)
    note_xid(arrays, at, row)
    return GOOD


@inner
def read_rare(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see rare_records.py."""
    buffer, rows, settings = arrays.buffer, arrays.rows, arrays.settings
    kind = KIND_OF_BYTE[buffer[at]]
    code = rows[RELATION, row]
    has_xid = is_in_block(code) == 1
    rows[KIND, row] = kind
    rows[RELATION, row] = 0
    if kind == HEARTBEAT:
        return read_keepalive(arrays, at + 1, stop, row)
    if kind == ORIGIN_KIND:
        return read_origin(arrays, at + 1, stop, row)
    if kind == TYPE_KIND:
        return read_type(arrays, at + 1, stop, row, has_xid)
    if kind == TRUNCATE:
        return read_truncate(arrays, at + 1, stop, row, code)
    if settings[IS_OPENGAUSS] == 1:
        return DECLINED
    if has_xid and kind != STREAM_STOP and (kind != MESSAGE_KIND or is_aside(buffer, at, stop)):
        return DECLINED  # the declaration's reader must see that the block ends
    if kind == MESSAGE_KIND:
        return read_message(arrays, at + 1, stop, row, has_xid)
    if STREAM_START <= kind <= STREAM_COMMIT:
        return read_streamed(arrays, at + 1, stop, row)
    return read_prepared(arrays, at + 1, stop, row, kind != BEGIN)


walk_pgoutput_rare = make_rare_walk("walk_pgoutput_rare", read_rare)
