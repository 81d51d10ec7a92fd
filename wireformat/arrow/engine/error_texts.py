"""Writes the texts of many errors, in the words of the declaration.

The words are those of errors: each kind of fault makes one error with marks in place of its facts, and the text of that
error is the pattern of the others.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...errors import BadLength, BadTag, BadText, BadValue, DecodeError, ShortData, TrailingBytes, UnknownRelation
from ...formats.base import Format
from ..arrays import Array, read_only, unused
from ..jit.intrinsics import BLOCK
from ..scan.faults import fields
from ..scan.faults.error_texts import (
    CELL_NUMBER,
    EXPECTED_NUMBER,
    GOT_NUMBER,
    INSIDE_NUMBER,
    LSN_HIGH,
    LSN_LOW,
    MESSAGE_NUMBER,
    MOST_TAGS,
    NOTHING,
    OFFSET_NUMBER,
    RECORD_NUMBER,
    SHAPES,
    SPOT_TEXT,
    TABLE_TEXT,
    TAG_TEXT,
    number_shapes,
    says_table,
    write_errors,
)
from ..scan.faults.fields import CELL, EXPECTED, FAULT, FIELD, GOT, IMAGE, SHOWN
from ..scan.message_batches import MessageBatch
from ..scan.notes import LSN, MESSAGE, PRESENT, Notes
from ..scan.relations.described import Described


class ScanStep(NamedTuple):
    """What a step of a scan has noted, and what it was given; see BatchScan."""

    message_batch: MessageBatch
    notes: Notes
    dictionary: Array
    settings: Array
    described: Described
    known_bytes: int


_CELLS = "'n' or 'u' or 't' or 'b'"
_RECORD_END = "the end of the record"
_TAGS = (f"'N' or 'O' or {_RECORD_END}", f"'O' or {_RECORD_END}", _RECORD_END)
"""What may follow the names of a table, by the row image that was read last."""

assert len(_TAGS) == MOST_TAGS, "compiled code numbers the shapes of texts by them"

_WORDS: dict[int, tuple[type[DecodeError], str, str]] = {
    fields.BAD_TEXT: (BadText, "text in {encoding}", "%d invalid byte{got_s}"),
    fields.SHORT: (ShortData, "%d byte{expected_s}", "%d, then the record ends"),
    fields.BAD_LENGTH: (BadLength, "a length of at most %d, the rest of the record", "%d"),
    fields.BAD_FIELD_TAG: (BadTag, "{tags}", "%s"),
    fields.BAD_CELL_TAG: (BadTag, _CELLS, "%s"),
    fields.NO_CELL: (ShortData, _CELLS, _RECORD_END),
    fields.TRAILING: (TrailingBytes, _RECORD_END, "%d more byte{got_s}"),
    fields.WRONG_COUNT: (BadLength, "%d cell{expected_s}, a cell a column of the relation", "%d"),
    fields.BAD_KIND: (BadValue, "INSERT, UPDATE or DELETE", "other bytes"),
    fields.UNKNOWN: (UnknownRelation, "a relation that an earlier message describes", "oid %d"),
}
"""For each fault: the class of its error, what was expected, and what was found."""

_INSIDE = (fields.BAD_TEXT, fields.BAD_KIND)
"""The faults whose byte in the field is known."""

_MARKS = re.compile("%[ds]")
_LSN_MARK, _SPOT_MARK = 0xFEDCBA98_FEDCBA98, bytes.fromhex("fedcba98")
_TAG_TEXTS = [(repr(chr(byte)) if 32 < byte < 127 else f"0x{byte:02X}").encode() for byte in range(256)]
_TAG_TEXT = b"".join(_TAG_TEXTS)
_TAG_LENGTHS = np.array([*map(len, _TAG_TEXTS)], np.int64)
_TAG_PAIRS = np.stack((np.cumsum(_TAG_LENGTHS) - _TAG_LENGTHS, _TAG_LENGTHS), axis=1)

_MOST_DIFFERING = 250
"""The most bytes that the numbers and the spot of a text take."""


class ErrorTexts(NamedTuple):
    """Texts of errors."""

    data: Array
    """uint8[m]: the texts, one after the other"""
    ends: Array
    """int64[n]: one past each text"""


NO_ERRORS = ErrorTexts(np.empty(0, np.uint8), np.empty(0, np.int64))


class ErrorWriter:
    """Writes the texts of errors of one stream."""

    def __init__(self, format: Format, encoding: str) -> None:
        self._declared, self._format, self._encoding = format, format.name, encoding

    def write(self, step: ScanStep, chosen: Array, facts: Array, tables: Array, names: list[str]) -> ErrorTexts:
        """Returns the texts of errors.

        chosen   int64[n], their rows
        facts    see wireformat/arrow/scan/faults/fields.py
        tables   int64[n], the table of each error, as an index in `names`; NO_TABLE_INDEX if it is not known
        """
        rows, message_batch, count = step.notes.rows, step.message_batch, len(chosen)
        shapes, firsts, ends = (np.empty(count, np.int64) for _ in range(3))
        shape_count = number_shapes(facts, rows, chosen, tables, np.full(SHAPES, -1, np.int32), shapes, firsts)
        literals, first_pieces, sizes = _Literals(), [], []
        pieces: list[tuple[int, int, int]] = []
        for first in firsts[:shape_count].tolist():
            has_table = says_table(facts, tables, first)
            fault = _Fault.of(facts[:, first], rows[:, chosen[first]], has_table)
            is_empty = fault.fault == fields.EMPTY
            found = self.empty if is_empty else fault.pieces(self._format, self._encoding)
            first_pieces.append(len(pieces))
            sizes.append(sum(len(text) for text, _ in found) + _MOST_DIFFERING)
            pieces += [(*literals.add(text), what) for text, what in found]
        name_pairs = np.array([literals.add(name.encode()) for name in names], np.int64)
        size = int(np.array(sizes, np.int64)[shapes].sum() + name_pairs[tables, 1].sum())
        data = unused(size + BLOCK, np.uint8)
        write_errors(
            message_batch.buffer,
            message_batch.starts[message_batch.positions(rows[MESSAGE, chosen])],
            facts,
            rows,
            chosen,
            shapes,
            np.array(first_pieces, np.int64),
            np.array(pieces, np.int64),
            read_only(np.frombuffer(bytes(literals.data) + bytes(BLOCK), np.uint8)),
            tables,
            name_pairs,
            _TAG_PAIRS,
            data,
            ends,
        )
        return ErrorTexts(data[: ends[-1]], ends)

    @cached_property
    def empty(self) -> list[tuple[bytes, int]]:
        """The pieces of the text about messages without bytes; nothing if the framing does not refuse them."""
        try:
            next(iter(self._declared.frames(b"")), None)
        except DecodeError as error:
            begin, end = str(error.add(format=self._format, message="%d", record=0)).split("%d")
            return [(begin.encode(), MESSAGE_NUMBER), (end.encode(), NOTHING)]
        return []


class _Literals:
    """Constant texts, one after the other; those of the tags come first."""

    def __init__(self) -> None:
        self.data = bytearray(_TAG_TEXT)

    def add(self, text: bytes) -> tuple[int, int]:
        """Adds a text; returns its start and length."""
        self.data += text
        return len(self.data) - len(text), len(text)


class _Fault(NamedTuple):
    """What the texts of some errors have in common."""

    fault: int
    image: int
    field: int
    expected: int
    got: int
    has_cell: bool
    has_lsn: bool
    has_table: bool
    is_shown: bool

    @classmethod
    def of(cls, facts: Array, row: Array, has_table: bool) -> _Fault:
        """Returns what the error of a row has in common with others."""
        fault, image, field, expected, got = facts[[FAULT, IMAGE, FIELD, EXPECTED, GOT]].tolist()
        has_cell, is_shown = bool(facts[CELL] > 0), bool(facts[SHOWN] > 0)
        has_lsn = bool(row[PRESENT] >> LSN & 1)
        return cls(fault, image, field, expected, got, has_cell, has_lsn, has_table, is_shown)

    def pieces(self, format: str, encoding: str) -> list[tuple[bytes, int]]:
        """Returns the constant parts of the text of these errors, and what follows each of them."""
        texts = [text.encode() for text in _MARKS.split(self.pattern(format, encoding))]
        return [*zip(texts, [*self.differing(), NOTHING], strict=True)]

    def pattern(self, format: str, encoding: str) -> str:
        """Returns the text of these errors, with a mark in place of each thing that differs."""
        kind, expected, got = _WORDS[self.fault]
        words = {
            "encoding": encoding,
            "expected_s": "" if self.expected == 1 else "s",
            "got_s": "" if self.got == 1 else "s",
            "tags": _TAGS[self.expected] if self.fault == fields.BAD_FIELD_TAG else "",
        }
        path = (fields.IMAGES[self.image], "cells[%d]" if self.has_cell else "", fields.FIELDS[self.field])
        error = kind(
            expected.format_map(words),
            got.format_map(words),
            format=format,
            message="%d",
            message_offset="%d",
            record="%d",
            path=".".join(filter(None, path)) or None,
            field_offset="%d" if self.fault in _INSIDE else None,
            record_lsn=_LSN_MARK if self.has_lsn else None,
            table="%s" if self.has_table else None,
            spot=_SPOT_MARK if self.is_shown else b"",
        )
        return str(error).replace("FEDCBA98/FEDCBA98", "%d/%d").replace("fe dc ba 98", "%s")

    def differing(self) -> list[int]:
        """Returns what is in the places of the marks, in their order."""
        _, expected, got = _WORDS[self.fault]
        marks = [
            (EXPECTED_NUMBER, "%" in expected),
            (GOT_NUMBER, "%d" in got),
            (TAG_TEXT, "%s" in got),
            (MESSAGE_NUMBER, True),
            (OFFSET_NUMBER, True),
            (RECORD_NUMBER, True),
            (CELL_NUMBER, self.has_cell),
            (INSIDE_NUMBER, self.fault in _INSIDE),
            (LSN_HIGH, self.has_lsn),
            (LSN_LOW, self.has_lsn),
            (TABLE_TEXT, self.has_table),
            (SPOT_TEXT, self.is_shown),
        ]
        return [mark for mark, is_there in marks if is_there]
