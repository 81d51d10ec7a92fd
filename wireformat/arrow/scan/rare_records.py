"""A second walk over the rows of a scan, for records of kinds that many streams never have.

It is compiled when the first of them comes, so that they cost no other stream a longer cold start. A kernel's
`read_record` returns RARE for such a record. The scan then keeps space in the text and among the details for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, Int
from ..jit.compiler import CHECKED, compiled, inner, outside_mark
from .loop import SCRATCH_OVERRUN, Scan
from .notes import (
    BODY,
    DECLINED,
    DETAIL,
    ENDS,
    EXTRA_ROW,
    GIVEN,
    GOOD,
    KIND,
    KINDS_WANTED,
    LSN,
    MESSAGE,
    NAME,
    NEEDS,
    NONE_STEPPED,
    PRESENT,
    RARE,
    RECORD,
    RELATION,
    RESERVED,
    ROW_FIELDS,
    STATUS,
    STEPPED,
    STEPPED_RECORD,
    TEXT_NEEDED,
    TEXT_SLACK,
    TEXT_USED,
    TIME_TEXT,
    VALUE,
    ScanArrays,
)
from .row_notes import begin_row, max_text_bytes


@inner
def begin_extra_row(rows: Array, row: Int) -> Int:
    """Begins another row of the record of a row whose numbers have been noted, behind it; returns which it is.

    `read_record` has asked for the row, and `read_rare` returns EXTRA_ROW for it besides GOOD. The rows must need
    nothing else: who reads the record again makes all of its rows.
    """
    extra = row + 1
    begin_row(rows, extra, rows[MESSAGE, row], rows[RECORD, row], rows[BODY, row], rows[BODY + 1, row], GOOD)
    for field in range(GIVEN):
        rows[field, extra] = rows[field, row]
    rows[PRESENT, extra] = rows[PRESENT, row] & (1 << GIVEN) - 1
    rows[KIND, extra] = rows[KIND, row]
    rows[STEPPED, extra], rows[STEPPED_RECORD, extra] = rows[STEPPED, row], NONE_STEPPED
    return extra


def make_rare_walk(name: str, read_rare: Any) -> Scan:
    """Returns the compiled walk over the rare records of one format.

    read_rare   (arrays, at, stop, row) -> GOOD or DECLINED: notes a record as `read_record` does; see loop.py. A record
                may become more rows: see `begin_extra_row`
    """

    def walk(
        buffer: Array,
        rows: Array,
        cells: Array,
        text: Array,
        dictionary: Array,
        cursor: Array,
        settings: Array,
        count: Int,
    ) -> Int:
        """Reads the rare records among the rows of a call of the scan, and drops those that the filters drop.

        buffer ... settings     those that the scan was given; the cursor is as the scan left it
        count                   how many rows the scan noted
        returns                 int: how many rows there are now; or SCRATCH_OVERRUN, as the scan
        Raises nothing.
        """
        arrays = ScanArrays(buffer, rows, cells, text, dictionary, cursor, settings)
        text_used, text_needed = cursor[TEXT_USED], cursor[TEXT_NEEDED]
        details = cells[DETAIL]
        kept = 0
        begin = np.int64(0)  # the row's first detail as the scan noted it; rows and details move to the front
        next_row = np.int64(0)
        while next_row < count:
            row, next_row = next_row, next_row + 1
            while next_row < count and rows[STATUS, next_row] == RESERVED:
                next_row += 1
            end = rows[ENDS + DETAIL, next_row - 1]
            if rows[STATUS, row] != RARE:
                to = rows[ENDS + DETAIL, kept - 1] if kept > 0 else 0
                for field in range(ROW_FIELDS):
                    rows[field, kept] = rows[field, row]
                for cell in range(begin, end):
                    for field in range(NAME, VALUE + 1):
                        details[field, to, 0] = details[field, cell, 0]
                        details[field, to, 1] = details[field, cell, 1]
                    to += 1
                rows[ENDS + DETAIL, kept] = to
                kept += 1
            else:
                message, record = rows[MESSAGE, row], rows[RECORD, row]
                start, size = rows[BODY, row], rows[BODY + 1, row]
                lsn, has_lsn = rows[LSN, row], rows[PRESENT, row] & 1 << LSN
                code = rows[RELATION, row]
                used = rows[TIME_TEXT, row]
                cursor[TEXT_USED] = used
                cursor[TEXT_NEEDED] = max_text_bytes(size, cells.shape[2])
                for field in range(STEPPED, ROW_FIELDS):
                    rows[field, kept] = rows[field, row]
                status = GOOD
                extra_rows = np.int64(0)
                for attempt in range(2):  # the second one begins the row of a record that cannot be read
                    begin_row(rows, kept, message, record, start, size, status)
                    rows[LSN, kept] = lsn
                    rows[PRESENT, kept] |= has_lsn
                    rows[RELATION, kept] = code
                    if attempt == 0:
                        status = read_rare(arrays, start, start + size, kept)
                        if CHECKED and cursor[TEXT_USED] > used + cursor[TEXT_NEEDED] - TEXT_SLACK:
                            return SCRATCH_OVERRUN
                        if status != DECLINED:
                            extra_rows = status // EXTRA_ROW
                            status = GOOD
                            break
                rows[STATUS, kept] = status
                kind = rows[KIND, kept]
                if status != GOOD or rows[NEEDS, kept] != 0 or settings[KINDS_WANTED] >> kind & 1:
                    kept += 1 + extra_rows
            begin = end
        cursor[TEXT_USED], cursor[TEXT_NEEDED] = text_used, text_needed
        return kept

    walk.__name__ = walk.__qualname__ = name + outside_mark(read_rare)
    return compiled(walk)
