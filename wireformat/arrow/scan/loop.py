"""The walk that all scans share: message by message, record by record, until the scratch is full.

A kernel adds three functions, and may add a fourth one, all compiled into its own walk:

    open_record(buffer, start, stop, at, record) -> (body, end, lsn, has_lsn)
        the record at `at` of the message [start, stop): its body is [body, end); end is -1 if the framing is broken.
        A body without bytes is left to the declaration
    close_record(buffer, stop, end, has_lsn) -> (at, outcome)
        where the record after the one that ends at `end` begins, and MORE, DONE or LOST
    read_record(arrays, at, stop, row) -> status
        notes the record at [at, stop) in row `row` of `arrays` (see ScanArrays), after `begin_row` has filled that row;
        FULL if there are too few cells, RARE if the walk over rare records reads it (plus EXTRA_ROW for each row that
        it may need besides the first one), STEPPED_OVER for a row change of a table that the filters are known to drop
    is_unwanted(arrays, at, stop) -> whether
        the record at [at, stop), which has at least one byte, of the message cursor[NEXT_MESSAGE] is a row change of
        such a table. It notes no row, so that the walk steps over the record before it begins one; where the framing
        after the record is broken, `read_record` reads it, and must come to the same. It is called before each
        `read_record`, to which it may leave in cursor[TABLE_FOUND] which table it has found
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, Int
from ..jit.compiler import CHECKED, compiled, inner, outside_mark
from ..jit.intrinsics import LINE, prefetch
from .notes import (
    DECLINED,
    DECLINED_REST,
    DELETE,
    DETAIL,
    DETAILS_PER_ROW,
    ENDS,
    EXTRA_ROW,
    FIRST_STEPPED,
    FIRST_STEPPED_RECORD,
    FRAMING,
    FULL,
    GOOD,
    INSERT,
    KIND,
    LEARNED_FULL,
    LSN,
    NEEDS,
    NEW,
    NEXT_BYTE,
    NEXT_MESSAGE,
    NEXT_RECORD,
    NONE_STEPPED,
    PRESENT,
    RARE,
    RARE_ROWS,
    RESERVED,
    STATUS,
    STEPPED,
    STEPPED_MESSAGE,
    STEPPED_OVER,
    STEPPED_RECORD,
    STEPPED_ROWS,
    TEXT_NEEDED,
    TEXT_SLACK,
    TEXT_USED,
    TIME_TEXT,
    VALUE,
    WANTS_ROOM,
    ScanArrays,
)
from .row_notes import begin_row, is_wanted, max_text_bytes

MORE, DONE, LOST = range(3)
"""What follows a record: another record, the end of the message, or broken framing."""

SCRATCH_OVERRUN = -1
"""Returned by the walk, if CHECKED, when a record has used more scratch than notes.py allows."""

Scan = Callable[..., Any]


@inner
def _count_stepped(cursor: Array, message: Int, record: Int) -> None:
    """Counts a row change that is stepped over."""
    cursor[STEPPED_ROWS] += 1
    if cursor[FIRST_STEPPED_RECORD] == NONE_STEPPED:
        cursor[FIRST_STEPPED], cursor[FIRST_STEPPED_RECORD] = message, record


@inner
def _note_stepped(rows: Array, row: Int, cursor: Array) -> None:
    """Notes in a row what was stepped over before it."""
    rows[STEPPED, row] = cursor[STEPPED_ROWS]
    rows[STEPPED_MESSAGE, row] = cursor[FIRST_STEPPED]
    rows[STEPPED_RECORD, row] = cursor[FIRST_STEPPED_RECORD]


@inner
def _fetch_records(buffer: Array, end: Int) -> None:
    """Fetches bytes that are read soon, after the record that ends at `end`."""
    for line in range(_RECORD_LINES):
        prefetch(buffer, end + _BYTES_AHEAD + line * LINE)


@inner
def _fetch_rows(rows: Array, row: Int, cells: Array) -> None:
    """Fetches where rows after this one are noted: at more places than a processor foresees."""
    if row % _ROWS_OF_LINE == 0:
        for field in range(rows.shape[0]):
            prefetch(rows, field * rows.shape[1] + row + 2 * _ROWS_OF_LINE)
    if row > 0:
        cell = VALUE * cells.shape[2] + rows[ENDS + NEW, row - 1]
        for line in range(_CELL_LINES):
            prefetch(cells, 2 * (cell + (2 + line) * _CELLS_OF_LINE))


_BYTES_AHEAD, _RECORD_LINES = 1280, 4
"""Some records ahead, and the lines that a record takes."""

_ROWS_OF_LINE, _CELLS_OF_LINE = LINE // 8, LINE // 8
"""How many rows of a field, and how many pairs of cells, are fetched at once."""

_CELL_LINES = 2
"""The lines of values that a row takes."""


@inner
def _never_unwanted(arrays: ScanArrays, at: Int, stop: Int) -> bool:
    """In place of `is_unwanted`, where only `read_record` knows what is stepped over."""
    return False


def make_scan(
    name: str, open_record: Scan, close_record: Scan, read_record: Scan, is_unwanted: Scan = _never_unwanted
) -> Scan:
    """Returns the compiled walk of one format; its name is that of its files in the compile cache.

    The name of a scan from another package includes a mark of that package's sources, so that it is compiled again when
    they change.
    """

    def scan(
        buffer: Array,
        starts: Array,
        stops: Array,
        indexes: Array,
        cursor: Array,
        rows: Array,
        cells: Array,
        text: Array,
        dictionary: Array,
        settings: Array,
        patterns: Array,
        names: Array,
    ) -> Int:
        """Walks the messages and notes their records, until the scratch is full, or relations need more room.

        buffer          uint8[n]      bytes of all messages, not copied
        starts, stops   int64[m]      first byte of each message, one past its last
        indexes         int64[m]      index of each message in the input, as the row-change table has it
        cursor          int64[c]      where to continue, changed in place; the end is cursor[NEXT_MESSAGE] == m
        rows, cells, text             of Notes, filled in place
        dictionary      int32[d, 2]   pairs of the constant texts, then relations; a scan may learn some
        settings        int64[s]      UTF8, KINDS_WANTED and so on of notes.py; for pgoutput also those of
                                      pgoutput_walk.py
        patterns        int32[p, 4]   wanted tables, or none if all are wanted; see Filters
        names           uint8[k]      the text of the patterns
        returns         int           number of rows noted. If it is 0 and messages are left, the next record needs
                                      cursor[TEXT_NEEDED] more bytes of text
        Raises nothing.
        """
        arrays = ScanArrays(buffer, rows, cells, text, dictionary, cursor, settings)
        message, at, record = cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD]
        row, fetched_row = 0, -1
        cursor[RARE_ROWS] = 0
        while message < len(starts) and cursor[LEARNED_FULL] != WANTS_ROOM:
            start, stop = starts[message], stops[message]
            if record == 0:
                at = start
            framing_at, framing_record = at, record
            body, end, lsn, has_lsn = open_record(buffer, start, stop, at, record)
            _fetch_records(buffer, end)
            cursor[NEXT_MESSAGE] = message
            if body < end and is_unwanted(arrays, body, end):
                next_at, outcome = close_record(buffer, stop, end, has_lsn)
                if outcome != LOST:
                    _count_stepped(cursor, indexes[message], record)
                    at, record = next_at, record + 1
                    if outcome == DONE:
                        message, record = message + 1, 0
                    continue
            if row != fetched_row:
                _fetch_rows(rows, row, cells)
                fetched_row = row
            size = end - body if end >= 0 else 0
            cursor[TEXT_NEEDED] = max_text_bytes(size, cells.shape[2])
            # A record may need two rows: its own, and one for broken framing after it.
            if row + 2 > rows.shape[1] or cursor[TEXT_USED] + cursor[TEXT_NEEDED] > text.shape[0]:
                break
            outcome = LOST
            if end >= 0:
                used = cursor[TEXT_USED]
                begin_row(rows, row, indexes[message], record, body, size, GOOD)
                status = read_record(arrays, body, end, row) if body < end else DECLINED
                if CHECKED and (
                    cursor[TEXT_USED] > used + cursor[TEXT_NEEDED] - TEXT_SLACK
                    or rows[ENDS + DETAIL, row] > DETAILS_PER_ROW * (row + 1)
                ):
                    return SCRATCH_OVERRUN
                more = status // EXTRA_ROW
                status -= more * EXTRA_ROW
                if row + more + 2 > rows.shape[1]:
                    status = FULL
                if status == FULL and row > 0:
                    cursor[TEXT_USED] = used
                    break
                # FULL at row 0 becomes DECLINED: the record does not fit even into empty scratch, so the declaration
                # reads it.
                if status == DECLINED or status == FULL:
                    status = DECLINED
                    begin_row(rows, row, indexes[message], record, body, size, status)
                rows[LSN, row] = lsn
                rows[PRESENT, row] |= np.int64(has_lsn) << LSN
                rows[STATUS, row] = status
                _note_stepped(rows, row, cursor)
                if status == RARE:
                    rows[TIME_TEXT, row] = used
                    cursor[TEXT_USED] = used + cursor[TEXT_NEEDED]
                    rows[ENDS + DETAIL, row] += DETAILS_PER_ROW
                    cursor[RARE_ROWS] += 1
                    for _ in range(more):
                        row += 1
                        begin_row(rows, row, indexes[message], record, body, size, RESERVED)
                        rows[ENDS + DETAIL, row] += DETAILS_PER_ROW
                if status == STEPPED_OVER:
                    _count_stepped(cursor, indexes[message], record)
                    cursor[TEXT_USED] = used
                elif status != GOOD or rows[NEEDS, row] != 0 or is_wanted(arrays, row, patterns, names):
                    row += 1
                    cursor[FIRST_STEPPED_RECORD] = NONE_STEPPED
                else:
                    if INSERT <= rows[KIND, row] <= DELETE:
                        _count_stepped(cursor, indexes[message], record)
                    cursor[TEXT_USED] = used
                record += 1
                at, outcome = close_record(buffer, stop, end, has_lsn)
            if outcome == LOST:
                begin_row(rows, row, indexes[message], record, start, stop - start, DECLINED_REST)
                _note_stepped(rows, row, cursor)
                rows[FRAMING, row], rows[FRAMING + 1, row] = framing_at - start, framing_record
                row += 1
                cursor[FIRST_STEPPED_RECORD] = NONE_STEPPED
            if outcome != MORE:
                message += 1
                record = 0
        cursor[NEXT_MESSAGE], cursor[NEXT_BYTE], cursor[NEXT_RECORD] = message, at, record
        return row

    scan.__name__ = scan.__qualname__ = name + outside_mark(open_record, close_record, read_record, is_unwanted)
    return compiled(scan, by_byte=True)
