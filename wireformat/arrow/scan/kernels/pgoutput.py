"""The scan of pgoutput. It reads row changes, BEGIN, COMMIT and RELATION; others are rare, or for the declaration.

It follows the declaration in wireformat/formats/pgoutput/messages.py. Which relation a message means, and whether it
carries a transaction id, is known beforehand: see pgoutput_relations.py. For the arguments see ScanArrays.
"""

from __future__ import annotations

import numpy as np

from ....formats.pgoutput.messages import BEGIN as DECLARED_BEGIN
from ....formats.pgoutput.messages import BINARY_CELL, NULL, TEXT_CELL, UNCHANGED_CELL
from ....formats.pgoutput.messages import COMMIT as DECLARED_COMMIT
from ....formats.pgoutput.messages import KEY as KEY_TAG
from ....formats.pgoutput.messages import NEW as NEW_TAG
from ....formats.pgoutput.messages import OLD as OLD_TAG
from ....framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ....limits import RECORD_BYTES
from ...arrays import Array, Int
from ...jit.compiler import hot, inner
from ..binary_text.forms import (
    DECLINED_FORM,
    FORM,
    GROUP_SHIFT,
    GROUPS,
    HEX_FORM,
    JSONB_FORM,
    TEXT_FORM,
)
from ..dictionary import (
    BINARY_KEY,
    CELL_ENTRIES,
    CELL_FACTS,
    CELL_NAME,
    CELL_TYPE,
    CELLS,
    COLUMNS,
    COMMIT_TIME_KEY,
    DETAIL_COUNT,
    DETAILS,
    END_LSN_KEY,
    OLD_KEY,
    RELATION_ID_KEY,
    SCHEMA,
    TABLE,
    UNWANTED,
    token_entry,
)
from ..loop import DONE, make_scan
from ..notes import (
    BEGIN,
    COMMIT,
    COMMIT_LSN,
    COMPLETE,
    CSN,
    DECLINED,
    DELETE,
    ENDS,
    EXTRA_ROW,
    FULL,
    GIVEN,
    GOOD,
    HAS_UNCHANGED,
    HEX_TEXT,
    INSERT,
    KIND,
    NAME,
    NEEDS,
    NEW,
    NEXT_MESSAGE,
    OLD,
    PRESENT,
    RARE,
    RELATION,
    RELATION_KIND,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    UPDATE,
    UTF8,
    VALUE,
    XID,
    ScanArrays,
)
from ..primitives import is_ascii, read_16, read_32, read_64, transcode_flag
from ..row_notes import note_detail, note_lsn
from ..tokens import FULL_ROW, KEY_ROW
from .pgoutput_values import binary_value, note_time, note_xid
from .pgoutput_walk import (
    IS_OPENGAUSS,
    RARE_TAGS,
    RELATION_CODES,
    entry_of,
    is_in_block,
    truncated_tables,
)

KEY_ENTRY, FULL_ENTRY = token_entry(KEY_ROW), token_entry(FULL_ROW)
"""What `detail` says of an old image."""

BEGIN_BYTES, COMMIT_BYTES = DECLARED_BEGIN.sizeof(), DECLARED_COMMIT.sizeof()
OPENGAUSS_BEGIN_BYTES, CSN_BYTES = 24, 8
"""What follows the kind of a record. A BEGIN of openGauss may end with a csn."""

NOT_SCANNED, RARE_KIND = -1, -2
KIND_OF_BYTE = np.full(256, NOT_SCANNED, np.int64)
for _byte, _kind in zip(b"BCIUDR", (BEGIN, COMMIT, INSERT, UPDATE, DELETE, RELATION_KIND), strict=True):
    KIND_OF_BYTE[_byte] = _kind
KIND_OF_BYTE[list(RARE_TAGS)] = RARE_KIND


@inner
def row_image(
    arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, relation: Int, is_key: bool
) -> tuple[Int, Int]:
    """Notes one TupleData in the map `map_index`; returns the status, and the offset of the byte after it."""
    buffer, rows, cells, dictionary, cursor = arrays.buffer, arrays.rows, arrays.cells, arrays.dictionary, arrays.cursor
    utf8 = arrays.settings[UTF8] == 1
    image = cells[map_index]
    used = cursor[TEXT_USED]
    cell = rows[ENDS + map_index, row]
    count = np.int64(dictionary[relation + COLUMNS, 0])
    if stop - at < 2 or read_16(buffer, at) != count:
        return DECLINED, at
    at += 2
    if cell + count > image.shape[1]:
        return FULL, at
    for column in range(relation + CELLS, relation + CELLS + CELL_ENTRIES * count, CELL_ENTRIES):
        if at >= stop:
            return DECLINED, at
        tag = buffer[at]
        at += 1
        length = np.int64(-1)
        size = np.int64(0)
        value = at
        if tag == TEXT_CELL or tag == BINARY_CELL:
            if stop - at < 4:
                return DECLINED, at
            size = read_32(buffer, at)
            at += 4
            if size > stop - at:
                return DECLINED, at
            value, length = at, size
            packed = np.int64(dictionary[column + CELL_FACTS, 1]) if tag == BINARY_CELL else TEXT_FORM
            form = packed & FORM
            if form == JSONB_FORM and size > 0 and buffer[at] == 1:  # the version, and the text
                form = np.int64(TEXT_FORM)
                value += 1
                length -= 1
            if form == TEXT_FORM:
                if not is_ascii(buffer, value, length):
                    rows[NEEDS, row] |= transcode_flag(buffer, value, length, utf8)
            elif form == DECLINED_FORM:
                return DECLINED, at
            else:
                value, length = binary_value(arrays, at, size, used, form)
                if length < 0:
                    rows[NEEDS, row] |= 1 << (packed >> GROUP_SHIFT & GROUPS)
                    if form == HEX_FORM:
                        rows[NEEDS, row] |= HEX_TEXT
                elif value == ~used:  # it was written to `text`
                    used += length
        elif tag == UNCHANGED_CELL:
            length = np.int64(UNCHANGED_LENGTH)
            rows[PRESENT, row] |= 1 << HAS_UNCHANGED
        elif tag != NULL:
            return DECLINED, at
        elif is_key and dictionary[column + CELL_FACTS, 0] == 0:  # the NULL of a column that is not in the key
            continue
        image[VALUE, cell, 0] = value
        image[VALUE, cell, 1] = length
        if is_key:
            for part in range(2):
                image[NAME, cell, part] = dictionary[column + CELL_NAME, part]
                image[TYPE, cell, part] = dictionary[column + CELL_TYPE, part]
        cell += 1
        at += size
    rows[ENDS + map_index, row] = cell
    rows[PRESENT, row] |= 1 << (GIVEN + map_index) | np.int64(not is_key) << (COMPLETE + map_index)
    cursor[TEXT_USED] = used
    return GOOD, at


@hot
def row_change(arrays: ScanArrays, at: Int, stop: Int, row: Int, relation_code: Int) -> Int:
    """INSERT, UPDATE and DELETE, from the byte after the kind to the end; returns the row's status."""
    buffer, rows, dictionary = arrays.buffer, arrays.rows, arrays.dictionary
    relation = entry_of(relation_code)
    if relation == 0:  # no relation, or the message is too short to name one
        return DECLINED
    if is_in_block(relation_code) == 1:
        note_xid(arrays, at, row)
        at += 4
    at += 4
    rows[RELATION, row] = relation
    rows[TABLE_SCHEMA, row] = dictionary[relation + SCHEMA, 0]
    rows[TABLE_SCHEMA + 1, row] = dictionary[relation + SCHEMA, 1]
    rows[TABLE_NAME, row] = dictionary[relation + TABLE, 0]
    rows[TABLE_NAME + 1, row] = dictionary[relation + TABLE, 1]
    note_detail(arrays, row, RELATION_ID_KEY, dictionary[relation + DETAILS, 0], dictionary[relation + DETAILS, 1])
    kind = rows[KIND, row]
    tag = np.int64(buffer[at]) if at < stop else np.int64(0)
    if kind != INSERT and (tag == KEY_TAG or tag == OLD_TAG):
        is_key = tag == KEY_TAG
        status, at = row_image(arrays, at + 1, stop, row, OLD, relation, is_key)
        if status != GOOD:
            return status
        entry = KEY_ENTRY if is_key else FULL_ENTRY
        note_detail(arrays, row, OLD_KEY, dictionary[entry, 0], dictionary[entry, 1])
        tag = np.int64(buffer[at]) if at < stop else np.int64(0)
    elif kind == DELETE:
        return DECLINED
    if kind != DELETE:
        if tag != NEW_TAG:
            return DECLINED
        status, at = row_image(arrays, at + 1, stop, row, NEW, relation, False)
        if status != GOOD:
            return status
    if rows[NEEDS, row] & HEX_TEXT:
        note_detail(arrays, row, BINARY_KEY, ~np.int64(0), np.int64(0))
    return GOOD if at == stop else DECLINED


@inner
def described_relation(arrays: ScanArrays, at: Int, row: Int, relation_code: Int) -> Int:
    """RELATION: all that it says is in the dictionary. Returns the row's status."""
    rows, dictionary = arrays.rows, arrays.dictionary
    relation = entry_of(relation_code)
    if relation == 0:  # it is not known
        return DECLINED
    if is_in_block(relation_code) == 1:
        note_xid(arrays, at, row)
    for field in range(2):
        rows[TABLE_SCHEMA + field, row] = dictionary[relation + SCHEMA, field]
        rows[TABLE_NAME + field, row] = dictionary[relation + TABLE, field]
    for detail in range(DETAIL_COUNT):
        pair = relation + DETAILS + detail
        note_detail(arrays, row, RELATION_ID_KEY + detail, dictionary[pair, 0], dictionary[pair, 1])
    return GOOD


@inner
def transaction(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """BEGIN and COMMIT, from the byte after the kind to the end; returns the row's status."""
    buffer, rows = arrays.buffer, arrays.rows
    is_opengauss = arrays.settings[IS_OPENGAUSS] == 1
    size = stop - at
    if rows[KIND, row] == BEGIN:
        # PostgreSQL: commit_lsn, commit_time, 4 bytes of xid. openGauss: the same, 8 bytes of xid, maybe a csn.
        time_at = at + 8
        if is_opengauss:
            if size != OPENGAUSS_BEGIN_BYTES and size != OPENGAUSS_BEGIN_BYTES + CSN_BYTES:
                return DECLINED
            rows[XID, row] = read_64(buffer, at + 16)
            if size > OPENGAUSS_BEGIN_BYTES:
                rows[CSN, row] = read_64(buffer, at + 24)
                rows[PRESENT, row] |= 1 << CSN
        else:
            if size != BEGIN_BYTES:
                return DECLINED
            rows[XID, row] = read_32(buffer, at + 16)
        rows[PRESENT, row] |= 1 << XID
    else:
        if size != COMMIT_BYTES or buffer[at] != 0:
            return DECLINED
        at += 1  # the flags; commit_lsn, end_lsn and commit_time follow
        time_at = at + 16
    if not note_time(arrays, row, COMMIT_TIME_KEY, time_at):
        return DECLINED
    rows[COMMIT_LSN, row] = read_64(buffer, at)
    rows[PRESENT, row] |= 1 << COMMIT_LSN
    if rows[KIND, row] == COMMIT:
        note_lsn(arrays, row, END_LSN_KEY, at + 8)
    return GOOD


@hot
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows, cursor, settings = arrays.buffer, arrays.rows, arrays.cursor, arrays.settings
    kind = KIND_OF_BYTE[buffer[at]]
    if kind == NOT_SCANNED:
        return DECLINED
    rows[KIND, row] = kind
    relation_code = settings[RELATION_CODES + cursor[NEXT_MESSAGE]]
    if kind == RARE_KIND:
        rows[RELATION, row] = relation_code
        return RARE if relation_code >= 0 else RARE + EXTRA_ROW * (truncated_tables(buffer, at + 1, relation_code) - 1)
    if kind == BEGIN or kind == COMMIT:
        if (
            is_in_block(relation_code) == 1
        ):  # a streamed block is open, and the declaration's reader must see that it ends
            return DECLINED
        return transaction(arrays, at + 1, stop, row)
    if kind == RELATION_KIND:
        return described_relation(arrays, at + 1, row, relation_code)
    return row_change(arrays, at + 1, stop, row, relation_code)


@inner
def open_record(buffer: Array, start: Int, stop: Int, at: Int, record: Int) -> tuple[Int, Int, Int, bool]:
    """Where the record begins and ends; see loop.py."""
    if start == stop:
        return at, -1, np.int64(0), False
    if buffer[start] != ENVELOPE:
        return start, stop if stop - start <= RECORD_BYTES else -1, np.int64(0), False
    if stop - start <= ENVELOPE_BYTES or stop - start > RECORD_BYTES:
        return at, -1, np.int64(0), False
    return start + ENVELOPE_BYTES, stop, read_64(buffer, start + 1), True


@inner
def close_record(buffer: Array, stop: Int, end: Int, has_lsn: bool) -> tuple[Int, Int]:
    """What follows the record; see loop.py."""
    return stop, DONE


@hot
def is_unwanted(arrays: ScanArrays, at: Int, stop: Int) -> bool:
    """Whether the record is a row change of a table that the filters are known to drop; see loop.py."""
    kind = KIND_OF_BYTE[arrays.buffer[at]]
    if kind != INSERT and kind != UPDATE and kind != DELETE:
        return False
    relation = entry_of(arrays.settings[RELATION_CODES + arrays.cursor[NEXT_MESSAGE]])
    return relation > 0 and arrays.dictionary[relation + COLUMNS, 1] == UNWANTED


scan_pgoutput = make_scan("scan_pgoutput", open_record, close_record, read_record, is_unwanted)
