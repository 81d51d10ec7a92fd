"""The notes that a scan makes: for every row its numbers, and where in the input each of its texts lies.

A text is a pair (start, length). start >= 0 is a position in the input; start < 0 is position -1 - start in `text`, which
begins with the constant words (kinds, detail keys, type names) and goes on with what does not stand in the input as it
is. Length -1 is NULL. One rule for every string column, so one gather serves all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..options.reading import KINDS
from ..pgtypes import SQL_NAMES

# Rows of Spans.numbers, each an int64 column of the table.
MESSAGE, RECORD, LSN, XID, CSN, COMMIT_LSN, COMMIT_TIME = range(7)
NUMBERS = ("message", "record", "lsn", "xid", "csn", "commit_lsn", "commit_time")

# Rows of Spans.texts, each a string column of the table; BODY is the record itself.
KIND, TABLE_SCHEMA, TABLE_NAME, RAW, BODY = range(5)
TEXTS = ("kind", "table_schema", "table_name", "raw")

# Rows of Spans.ends, each a map column of the table.
NEW, OLD, DETAIL = range(3)
MAPS = ("new", "old", "detail")

# Columns of a map's cells where a pair begins; detail has no types.
NAME, VALUE, TYPE = 0, 2, 4

# Spans.status: what becomes of a row after the scan.
GOOD = 0
READ_RECORD = 1  # the declaration reads this record: to decode it, or to say what is wrong
READ_REST = 2  # the framing is broken: the declaration reads the message from this record on
TRANSCODE = 3  # text that is not ASCII, in an encoding that is not UTF-8

# Cursor of a scan: where it goes on when it is called again.
NEXT_MESSAGE, NEXT_BYTE, NEXT_RECORD, TEXT_USED, TEXT_NEEDED = range(5)
CURSOR_SIZE = 5

# Keys of the detail map, in its order.
DETAIL_KEYS = ("first_lsn", "commit_time", "origin", "username", "wal_end", "wal_flushed", "time")
DETAILS_PER_ROW = 4
FIRST_LSN, COMMIT_TIME_TEXT, ORIGIN, USERNAME, WAL_END, WAL_FLUSHED, TIME = range(7)

TEXT_SLACK = 256
"""Bytes of `text` beyond what is used: for the numbers of one record, and for a short copy that reads past its end."""

TYPE_TABLE_SIZE = 1 << 14
"""PostgreSQL gives numbers below 16384 to built-in types; others are not in the catalogue."""


class Words(NamedTuple):
    """The constant words at the beginning of Spans.text, and the pair of each."""

    text: np.ndarray[Any, Any]
    kinds: np.ndarray[Any, Any]
    """int32[len(KINDS), 2]"""
    keys: np.ndarray[Any, Any]
    """int32[len(DETAIL_KEYS), 2]"""
    types: np.ndarray[Any, Any]
    """int32[TYPE_TABLE_SIZE, 2], by type number; length 0 where the number is in no catalogue"""


class Spans(NamedTuple):
    """Room for the notes on some rows; filled by a scan, emptied by the gather, used again."""

    numbers: np.ndarray[Any, Any]
    """int64[7, rows]"""
    present: np.ndarray[Any, Any]
    """uint8[7, rows]: 0 where the number is null"""
    texts: np.ndarray[Any, Any]
    """int32[5, rows, 2]"""
    ends: np.ndarray[Any, Any]
    """int32[3, rows]: one past the row's last cell"""
    given: np.ndarray[Any, Any]
    """uint8[3, rows]: 0 where the map is null"""
    status: np.ndarray[Any, Any]
    """uint8[rows]"""
    new: np.ndarray[Any, Any]
    """int32[cells, 6]: name, value and type of each cell"""
    old: np.ndarray[Any, Any]
    """int32[cells, 6]"""
    detail: np.ndarray[Any, Any]
    """int32[cells, 4]: key and value"""
    text: np.ndarray[Any, Any]
    """uint8[n]: the words, then the scan's own text"""


def make_spans(rows: int, cells: int, text: int) -> Spans:
    """Room for so many rows, so many cells in each list, and so many bytes of text beside the words."""
    spans = Spans(
        numbers=np.empty((len(NUMBERS), rows), np.int64),
        present=np.empty((len(NUMBERS), rows), np.uint8),
        texts=np.empty((len(TEXTS) + 1, rows, 2), np.int32),
        ends=np.empty((len(MAPS), rows), np.int32),
        given=np.empty((len(MAPS), rows), np.uint8),
        status=np.empty(rows, np.uint8),
        new=np.empty((cells, 6), np.int32),
        old=np.empty((cells, 6), np.int32),
        detail=np.empty((DETAILS_PER_ROW * rows, 4), np.int32),
        text=np.empty(len(WORDS.text) + text, np.uint8),
    )
    spans.text[: len(WORDS.text)] = WORDS.text
    return spans


def _make_words() -> Words:
    text = bytearray()

    def pair(word: str) -> tuple[int, int]:
        start = len(text)
        text.extend(word.encode())
        return -1 - start, len(text) - start

    kinds = np.array([pair(word) for word in KINDS], np.int32)
    keys = np.array([pair(word) for word in DETAIL_KEYS], np.int32)
    types = np.zeros((TYPE_TABLE_SIZE, 2), np.int32)
    for oid, name in SQL_NAMES.items():
        types[oid] = pair(name)
    return Words(np.frombuffer(bytes(text), np.uint8), kinds, keys, types)


WORDS = _make_words()
