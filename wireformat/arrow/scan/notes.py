"""The notes that a scan makes: for every row its numbers, and where its texts are in the input.

A text is a pair (start, length). start >= 0 is an offset in the input; start < 0 is the offset ~start in `text`, which
begins with the dictionary (kinds, detail keys, tokens, type names) and continues with texts that the input does not
hold as they are. Length -1 is NULL; for lower ones see UNCHANGED_LENGTH and BINARY_LENGTH. All texts are noted in this
way, so one gather builds every string column.

The notes are a few plain arrays, because each array that a compiled function takes costs compile time.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...events import Truncate
from ...limits import COLUMN_BYTES
from ...options.reading import KINDS
from ...stream.reader import Located
from ..arrays import Array
from .dictionary import DICTIONARY_TEXT
from .relations.described import NOTHING_DESCRIBED, Described

BEGIN, INSERT, UPDATE, DELETE, COMMIT, MESSAGE_KIND, HEARTBEAT = (
    KINDS.index(name) for name in ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT", "MESSAGE", "HEARTBEAT")
)
UNKNOWN, CORRUPT = KINDS.index("UNKNOWN"), KINDS.index("CORRUPT")
PREPARE, COMMIT_PREPARED, ROLLBACK_PREPARED, RELATION_KIND, TYPE_KIND, ORIGIN_KIND, TRUNCATE, DDL_KIND = (
    KINDS.index(name)
    for name in ("PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED", "RELATION", "TYPE", "ORIGIN", "TRUNCATE", "DDL")
)
STREAM_START, STREAM_STOP, STREAM_ABORT, STREAM_COMMIT, STREAM_PREPARE = (
    KINDS.index(f"STREAM_{name}") for name in ("START", "STOP", "ABORT", "COMMIT", "PREPARE")
)
"""Kinds as a scan notes them: indexes in KINDS."""

# Fields of a row: numbers of the table, whether they are there, pairs, ends of maps.
MESSAGE, RECORD, LSN, XID, CSN, COMMIT_LSN = range(6)
PRESENT = 6  # bit n is 1 where number n is there; bit GIVEN + m where map m is not null
STATUS = 7
NEEDS = 8
KIND = 9  # index in KINDS
TABLE_SCHEMA, TABLE_NAME, RAW, BODY, TIME_TEXT = 10, 12, 14, 16, 18  # pairs; BODY is the record without its framing
RELATION = 20  # entry of a relation of the row's table in the dictionary, that of complete images; 0 if none is known
ENDS = 21  # + map: one past the row's last cell
# How many row changes of the message batch were stepped over before this row; the message and record of the first one
# since the row before, if there is one.
STEPPED, STEPPED_MESSAGE, STEPPED_RECORD = 24, 25, 26
ERROR = 27  # pair: what is wrong with a record that is CORRUPT; not noted in other rows
ROW_FIELDS = 29
# In a DECLINED_REST row: where the last record begins whose framing was looked at, and its index.
FRAMING = ERROR

NUMBERS = ("message", "record", "lsn", "xid", "csn", "commit_lsn")
TEXTS = {"table_schema": TABLE_SCHEMA, "table_name": TABLE_NAME, "raw": RAW}

# The maps of the table, and the fields of their cells, each a pair; detail has no types.
NEW, OLD, DETAIL = range(3)
MAPS = ("new", "old", "detail")
GIVEN = 6
HAS_UNCHANGED = GIVEN + len(MAPS)
COMPLETE = HAS_UNCHANGED + 1  # + NEW or OLD: names and types of its cells are those of the relation, and are not noted
# The types of its cells are forms of literals, noted also in a complete image. The table has none.
UNTYPED = COMPLETE + 2
IMAGE_BITS = 1 << NEW | 1 << OLD  # the bits of both images, of PRESENT shifted down by GIVEN or COMPLETE
NAME, VALUE, TYPE = range(3)
CELL_FIELDS = 3
PAIR = 2  # how many numbers a pair is: start and length

# A row's status, one of these: who reads its record.
GOOD = 0  # the scan has read it
DECLINED = 1  # the declaration reads this record: to decode it, or to report what is wrong
DECLINED_REST = 2  # the framing is broken: the declaration reads the message from this record on
FULL = 3  # the scratch has too few cells for it; no row keeps this
RARE = 4  # the walk over rare records reads it, before anybody else sees the row; see rare_records.py
STEPPED_OVER = 5  # a change of a table that the filters drop, whose cells are not read; no row keeps this
UNLIKE = 6  # a row image that does not have the columns of a relation; no row keeps this
RESERVED = 7  # kept free for a RARE record before it that becomes more rows than one
EXTRA_ROW = 8  # RARE, or GOOD of the walk over rare records, with this for each row after the first one

# What the texts of a good row still need, as flags: the transcoder, the walk over binary values or the second look
# does it.
TRANSCODE = 1  # a text is not ASCII, and the encoding is not UTF-8
HEX_TEXT = 2  # a value is of a type without a text form, and the last detail is to list its column
BINARY_TEXT = 0xFC  # a value was noted in its binary form: one bit for each group of types, numbered as here
BYTES_VALUE, NUMERIC_VALUE, FLOAT_VALUE, TIME_VALUE, ARRAY_VALUE, OTHER_ARRAY_VALUE = range(2, 8)

# A scan's cursor: where the next call continues, how much text is used, and how much the next record may need.
NEXT_MESSAGE, NEXT_BYTE, NEXT_RECORD, TEXT_USED, TEXT_NEEDED = range(5)

# How many rows are RARE in this call, and how many row changes were stepped over in this message batch. Then the
# message and record of the first one since the last row, or NONE_STEPPED.
RARE_ROWS, STEPPED_ROWS, FIRST_STEPPED, FIRST_STEPPED_RECORD = range(5, 9)
NONE_STEPPED = -1

# Of learned relations: the entries of the first and the next one; how much of their text is used, and where it ends;
# whether there was no room for one: if it WANTS_ROOM, the scan stops to get it; the first one of the newest table; the
# first one of the table of the record that is being read, or 0 (see loop.py); how many row images were read in full,
# and that number when one was last recognised; how many had names that could not be learned. Then the slots in
# which tables are looked up, of a scan that learns; see relations/recognise.py.
FIRST_LEARNED, NEXT_ENTRY, LEARNED_USED, LEARNED_END, LEARNED_FULL, NEWEST, TABLE_FOUND = range(9, 16)
READ_IN_FULL, LAST_RECOGNISED, NOT_LEARNED = range(16, 19)
CURSOR_FIELDS = 19
WANTS_ROOM, NO_ROOM = 1, 2
SLOTS = 1 << 14

# A scan's settings: whether the encoding is UTF-8; bits of the kinds wanted; microseconds in a heartbeat's unit, 0 to
# guess; where the table of the encoding's characters begins, which is the end of the settings, or 0 if there is none
# (see relations/characters.py); of a text style, whether the names of its tables are quoted, followed by its table of
# lines.
UTF8, KINDS_WANTED, HEARTBEAT_FACTOR, CHARACTERS, QUOTED, LINES = range(6)

OF_ANY_TABLE = 32
"""The bits of KINDS_WANTED from this one on say of which kinds a record is wanted whatever its table."""

TIME_KNOWN = -2
"""In place of the length of TIME_TEXT: in place of its start are the microseconds since 1970 themselves."""

BINARY_LENGTH = -16
"""A value of n bytes that is noted in its binary form has the length BINARY_LENGTH - n; its row needs BINARY_TEXT."""

UNCHANGED_LENGTH = -2
"""Length of a value that was not sent; the bit HAS_UNCHANGED of PRESENT says that the row has one."""

DETAILS_PER_ROW = 7
"""The most details that a scan notes for a row: those of a DDL with a statement and an owner."""


GROWTH_PER_CELL, LEAST_GROWING_CELL, TEXT_PER_RECORD = 16, 8, 128
"""The most text that a scan writes for a record beyond the record's own bytes.

Text with escapes or doubled quotes undone is shorter. Other cells have at least LEAST_GROWING_CELL bytes and grow by at
most GROWTH_PER_CELL: 10 bytes with the number of a type become `oid:` and 10 digits, 13 bytes with a binary timestamp
become 29. The numbers and times of BEGIN and COMMIT take less than TEXT_PER_RECORD - TEXT_SLACK. So does the time that
is written after a date and then cut off."""

TEXT_SLACK = 16
"""Bytes of `text` that follow what is used: copies of whole blocks read past the end of a text."""


class Notes(NamedTuple):
    """Memory for the notes on some rows: a scan fills it, the gather reads it, the next scan uses it again."""

    rows: Array
    """int64[ROW_FIELDS, rows]"""
    cells: Array
    """int32[maps, CELL_FIELDS, cells, 2]"""
    text: Array
    """uint8[n]: the text of the dictionary, then that of the relations (see ScanInput), then what the scan writes"""


class ScanInput(NamedTuple):
    """What a call of the scan is given besides the messages and the notes."""

    dictionary: Array
    """int32[d, 2]: the dictionary, then what the scan must know beforehand, such as the relations of pgoutput"""
    settings: Array
    """int64[s]: UTF8, KINDS_WANTED and so on"""
    text: bytes | Array
    """the text of these, which follows that of the dictionary"""
    described: Described = NOTHING_DESCRIBED
    """relations of which the scan reads the messages"""


class ScanArrays(NamedTuple):
    """The arrays that a scan reads and writes, as one argument of the functions that are called once a record.

    Functions that are called for each cell take single arrays: where LLVM does not copy them into their callers, each
    call would pass all seven arrays on, field by field.
    """

    buffer: Array
    """uint8[n]: the bytes of all messages"""
    rows: Array
    """as in Notes"""
    cells: Array
    """as in Notes"""
    text: Array
    """as in Notes; cursor[TEXT_USED] bytes of it are used"""
    dictionary: Array
    """as in ScanInput, then the relations that the scan has learned"""
    cursor: Array
    """int64[CURSOR_FIELDS, or CURSOR_FIELDS + SLOTS]: NEXT_MESSAGE and so on"""
    settings: Array
    """as in ScanInput"""


def make_notes(rows: int, cells: int, text: int) -> Notes:
    """Returns memory for at least `rows` rows, `cells` cells in each map, and `text` bytes besides the dictionary's.

    A scan notes details without checking for space, so each map has at least DETAILS_PER_ROW cells for every row.
    """
    rows = _padded_rows(rows)
    assert len(DICTIONARY_TEXT) + text <= COLUMN_BYTES, "pairs are int32"
    notes = Notes(
        _mapped(np.int64, ROW_FIELDS, rows),
        _mapped(np.int32, len(MAPS), CELL_FIELDS, max(cells, DETAILS_PER_ROW * rows), 2),
        _mapped(np.uint8, len(DICTIONARY_TEXT) + text),
    )
    notes.text[: len(DICTIONARY_TEXT)] = DICTIONARY_TEXT
    return notes


_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""By default, Python shares such pages with the processes that are forked."""


def _mapped(type: type[np.generic], *shape: int) -> Array:
    """Returns an array in pages of its own, which go back to the system when the array is freed.

    C's allocator would keep such a large block after it is freed, in the expectation of further ones.
    """
    size = int(np.prod(shape)) * np.dtype(type).itemsize
    return np.frombuffer(mmap.mmap(-1, size, **_PRIVATE), type).reshape(shape)


def _padded_rows(rows: int) -> int:
    """Returns at least `rows`, so that the same row of different fields falls into different sets of the cache."""
    return rows // 512 * 512 + 512 + 24


class SteppedOver(NamedTuple):
    """The row changes that were stepped over before, between and after some rows.

    before            how many of the message batch were stepped over before these
    after             how many with these
    message, record   of the first one after the last row, if there is one
    """

    before: int = 0
    after: int = 0
    message: int = 0
    record: int = 0

    def between(self, rows: Array, count: int, begin: int, end: int) -> SteppedOver:
        """Returns those of the rows from `begin` to `end` of `count` rows of the notes, with those directly before."""
        before = int(rows[STEPPED, begin - 1]) if begin else self.before
        if end == count:
            return self._replace(before=before)
        return SteppedOver(before, int(rows[STEPPED, end - 1]) if begin < end else before)


class ScannedRows(NamedTuple):
    """Rows of one call of the scan: notes on those it read, events for those that the declaration read."""

    rows: Array
    """int64[ROW_FIELDS, n or more]"""
    row_count: int
    """n"""
    cells: Array
    """int32[maps, CELL_FIELDS, cells, 2]"""
    text: Array
    """uint8[k]"""
    source: Array
    """uint8[m]: the buffer that was scanned"""
    dictionary: Array
    """int32[d, 2]; see ScanArrays"""
    events: dict[int, Sequence[Located]]
    """Events that replace a row, any number of them; rows without an entry are good, or CORRUPT and noted as such."""
    stepped: SteppedOver = SteppedOver()

    def events_in_order(self) -> list[Located]:
        """Returns all events."""
        return [*chain.from_iterable(self.events[row] for row in sorted(self.events))]

    def counts(self) -> Array:
        """Returns how many rows each row becomes."""
        counts = np.ones(self.row_count, np.int64)
        counts[[*self.events]] = 0
        for row, located in self.events.items():
            for item in located:
                counts[row] += len(item.event.tables) or 1 if isinstance(item.event, Truncate) else 1
        return counts

    def origins(self) -> Array:
        """Returns for each row that these become its row here, or ~ its row among those of the events."""
        counts = self.counts()
        is_built = np.zeros(self.row_count, bool)
        is_built[[*self.events]] = True
        origins = np.repeat(np.arange(self.row_count), counts)
        built = np.flatnonzero(np.repeat(is_built, counts))
        origins[built] = ~np.arange(len(built))
        return origins
