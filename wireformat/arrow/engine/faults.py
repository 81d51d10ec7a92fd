"""Says what is wrong with records of which compiled walks have found it, in the words of the declaration.

The words are those of errors: each kind of fault makes one error with marks in place of its facts, and the text of that
error is the pattern of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import BadLength, BadTag, BadText, BadValue, DecodeError, ShortData, TrailingBytes, UnknownRelation
from ...limits import BATCH_TEXT_BYTES
from ...options import ReadOptions
from ..arrays import Array, read_only
from ..scan.faults import fields
from ..scan.faults.fields import (
    AT,
    CELL,
    EXPECTED,
    FAULT,
    FIELD,
    GOT,
    IMAGE,
    INSIDE,
    LISTED,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    SHOWN,
    TABLE,
)
from ..scan.message_batches import MessageBatch
from ..scan.notes import LSN, MESSAGE, PRESENT, RECORD, Notes
from ..scan.registry import load_fault_walk
from ..scan.relations.described import Described
from .listed_texts import MOST_LISTED, NO_LIST, bytes_at, new_list, note_wrong_texts

FEW = 100
"""So many records of a stream are read by the declaration first: to load the compiled walk takes as long."""

TEXT_BYTES = 1 << 10
"""Room for the text of an error, but for the names in it."""

_NAME_GROWTH = 3
"""A byte that is no text becomes U+FFFD, which has so many bytes."""

_CELLS = "'n' or 'u' or 't' or 'b'"
_RECORD_END = "the end of the record"
_TAGS = (f"'N' or 'O' or {_RECORD_END}", f"'O' or {_RECORD_END}", _RECORD_END)
"""What may follow the names of a table, by the row image that was read last."""

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
"""Of each fault its error, what it expects, and what it has got."""

_INSIDE = (fields.BAD_TEXT, fields.BAD_KIND)
"""The faults of which the byte in the field is known."""

_LSN_MARK, _SPOT_MARK = 0xFEDCBA98_FEDCBA98, bytes.fromhex("fedcba98")
_TAG_TEXTS = [repr(chr(byte)) if 32 < byte < 127 else f"0x{byte:02X}" for byte in range(256)]


class Faults(NamedTuple):
    """What is wrong with some rows."""

    rows: Array
    """int64[n]: their indexes, in order"""
    facts: Array
    """int64[FAULT_FIELDS, n]; see wireformat/arrow/scan/faults/fields.py"""

    def stop(self, count: int) -> int:
        """Returns before which of `count` rows to stop, so that the texts of the errors are not too long together."""
        lengths = np.maximum(self.facts[[SCHEMA + 1, TABLE + 1]], 0).sum(axis=0)
        used = np.cumsum(TEXT_BYTES + _NAME_GROWTH * lengths)
        fitting = max(int(np.searchsorted(used, BATCH_TEXT_BYTES, "right")), 1)
        return int(self.rows[fitting]) if fitting < len(used) else count

    def chosen(self, which: Array) -> Faults:
        """Returns those of some rows."""
        return Faults(self.rows[which], self.facts[:, which])


class ScanStep(NamedTuple):
    """What a step of a scan has noted, and what it was given; see BatchScan."""

    message_batch: MessageBatch
    notes: Notes
    dictionary: Array
    settings: Array
    described: Described
    known_bytes: int
    """See BatchScan.known_bytes."""


class FaultTable(NamedTuple):
    """The table of a record that cannot be read.

    names   of schema and table; None if they cannot be read either
    """

    text: str
    names: tuple[str, str] | None


NO_TABLE = FaultTable("", None)
"""Of a record of which not even this is known."""

NO_FAULTS = Faults(np.empty(0, np.int64), np.empty((fields.FAULT_FIELDS, 0), np.int64))


class FaultFinder:
    """Finds what is wrong with the records of one stream that the scan has declined.

    It takes those of which bad streams have many; the declaration reads the others.

    counted   as for Scanner
    """

    def __init__(self, format: str, options: ReadOptions, counted: ReadOptions | None) -> None:
        self._format, self._options, self._counted = format, options, counted
        self._declined = 0
        self._tables: dict[tuple[bytes, bytes, tuple[bool, bool]], FaultTable] = {}
        self._patterns: dict[tuple[int, ...], str] = {}

    def find(self, step: ScanStep, declined: Array) -> Faults:
        """Returns the faults of these rows, as far as they are found."""
        self._declined += len(declined)
        if self._options.mode == "FAILFAST" or self._declined <= FEW or not len(declined):
            return NO_FAULTS
        walk = load_fault_walk(self._format)
        if walk is None:
            return NO_FAULTS
        facts = self._facts(walk, step, declined)
        is_found = facts[FAULT] != fields.NO_FAULT
        if (facts[RELATION_ID, is_found] >= 0).any():  # the scan may not have had room for a relation that is known
            described = [relation.relation_id for relation in step.described.relations]
            is_found &= ~np.isin(facts[RELATION_ID], np.array(described, np.int64))
        found = Faults(declined, facts).chosen(is_found)
        if self._counted is None or self._counted.tables is None:
            return found
        return found.chosen(self.kept(self.tables(found, step), self._counted))  # the others become events

    def _facts(self, walk: Callable[..., None], step: ScanStep, declined: Array) -> Array:
        """Returns what a walk finds wrong with these rows; see scan/faults/fields.py."""
        buffer, (rows, cells, text) = step.message_batch.buffer, step.notes
        rule, encoding = self._rule, self._options.encoding
        messages = np.searchsorted(step.message_batch.indexes, rows[MESSAGE, declined])
        facts = np.zeros((fields.FAULT_FIELDS, len(declined)), np.int64)
        texts = new_list() if rule == fields.OTHER_TEXT else NO_LIST
        notes = (buffer, rows, cells, read_only(text[:]), declined, messages, step.dictionary, step.settings)
        begin = 0
        while begin < len(declined):
            walk(*notes, rule, begin, facts, texts)
            end = begin + int(np.searchsorted(facts[LISTED, begin:], MOST_LISTED, "right"))
            if end > begin and facts[LISTED, end - 1]:
                listed = texts[:, : facts[LISTED, end - 1]]
                note_wrong_texts(facts, listed, (memoryview(buffer), memoryview(text)), encoding)
            facts[:, end:] = 0  # their texts were not all listed
            begin = max(end, begin + 1)
        return facts

    @staticmethod
    def kept(tables: list[FaultTable], options: ReadOptions) -> Array:
        """Returns of each row whether the tables of the options keep its error."""
        return np.array([table.names is None or options.keeps_table(table.names) for table in tables], np.bool_)

    @property
    def _rule(self) -> int:
        """Which bytes are text."""
        if self._options.encoding_errors != "strict":
            return fields.ANY_TEXT
        return fields.UTF8_TEXT if self._options.encoding == "utf-8" else fields.OTHER_TEXT

    def tables(self, faults: Faults, step: ScanStep) -> list[FaultTable]:
        """Returns the tables of these rows."""
        views = memoryview(step.message_batch.buffer), memoryview(step.notes.text)
        known, found, first_utf8 = self._tables, [], -step.known_bytes
        for schema, schema_length, name, length in zip(*faults.facts[SCHEMA : TABLE + 2].tolist(), strict=True):
            if schema_length < 0:
                found.append(NO_TABLE)
                continue
            is_utf8 = first_utf8 <= schema < 0, first_utf8 <= name < 0  # what the scan itself has written is not
            key = bytes_at(*views, schema, schema_length), bytes_at(*views, name, length), is_utf8
            table = known.get(key)
            if table is None:
                table = known[key] = self._table(*key)
            found.append(table)
        return found

    def _table(self, schema: bytes, table: bytes, is_utf8: tuple[bool, bool]) -> FaultTable:
        """See `tables`. Names of relations are in UTF-8."""
        encodings = ["utf-8" if known else self._options.encoding for known in is_utf8]
        schema_name, table_name = str(schema, encodings[0], "replace"), str(table, encodings[1], "replace")
        text = f"{schema_name}.{table_name}"
        try:
            schema.decode(encodings[0]), table.decode(encodings[1])
        except UnicodeDecodeError:
            return FaultTable(text, None)
        return FaultTable(text, (schema_name, table_name))

    def texts(self, faults: Faults, tables: list[FaultTable], step: ScanStep) -> list[str]:
        """Returns the texts of the errors, about rows of these tables."""
        rows, message_batch = step.notes.rows, step.message_batch
        facts, chosen = faults.facts, rows[:, faults.rows]
        offsets = facts[AT] - message_batch.starts[np.searchsorted(message_batch.indexes, chosen[MESSAGE])]
        has_table = (facts[SAYS_TABLE] == 1) & np.array([table is not NO_TABLE for table in tables], np.bool_)
        shapes = _shapes(facts, chosen, has_table)
        found = [""] * len(tables)
        for shape in np.unique(shapes).tolist():
            of_shape = np.flatnonzero(shapes == shape)
            members = of_shape.tolist()
            fault = _Fault.of(facts[:, members[0]], chosen[:, members[0]], bool(has_table[members[0]]))
            pattern = self._patterns.get(shape)
            if pattern is None:
                pattern = self._patterns[shape] = fault.pattern(self._format, self._options.encoding)
            columns = [
                *fault.numbers(facts[:, of_shape]),
                chosen[MESSAGE, of_shape].tolist(),
                offsets[of_shape].tolist(),
                chosen[RECORD, of_shape].tolist(),
            ]
            if fault.has_cell:
                columns.append((facts[CELL, of_shape] - 1).tolist())
            if fault.fault in _INSIDE:
                columns.append(facts[INSIDE, of_shape].tolist())
            if fault.has_lsn:
                lsns = chosen[LSN, of_shape].view(np.uint64)
                columns += [(lsns >> np.uint64(32)).tolist(), (lsns & np.uint64(0xFFFFFFFF)).tolist()]
            if fault.has_table:
                columns.append([tables[member].text for member in members])
            if fault.is_shown:
                columns.append(_spots(message_batch.buffer, facts[:, of_shape]))
            for member, values in zip(members, zip(*columns, strict=True), strict=True):
                found[member] = pattern % values
        return found


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

    def pattern(self, format: str, encoding: str) -> str:
        """Returns the text of these errors, with marks for `%` in place of what differs."""
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
        return str(error).replace("FEDCBA98/FEDCBA98", "%X/%X").replace("fe dc ba 98", "%s")

    def numbers(self, facts: Array) -> list[list[Any]]:
        """Returns what is expected and found in each record, as far as it differs."""
        _, expected, got = _WORDS[self.fault]
        columns = [facts[EXPECTED].tolist()] if "%" in expected else []
        if "%d" in got:
            columns.append(facts[GOT].tolist())
        elif "%s" in got:
            columns.append([_TAG_TEXTS[byte] for byte in facts[GOT].tolist()])
        return columns


def _shapes(facts: Array, rows: Array, has_table: Array) -> Array:
    """Returns int64[n], the same for errors whose texts have all but numbers in common."""
    is_tag = facts[FAULT] == fields.BAD_FIELD_TAG
    parts: tuple[tuple[Array, int], ...] = (
        (facts[FAULT], 16),
        (facts[IMAGE], len(fields.IMAGES)),
        (facts[FIELD], len(fields.FIELDS)),
        (np.where(is_tag, facts[EXPECTED], facts[EXPECTED] == 1), len(_TAGS)),
        (facts[GOT] == 1, 2),
        (facts[CELL] > 0, 2),
        (rows[PRESENT] >> LSN & 1, 2),
        (facts[SHOWN] > 0, 2),
        (has_table, 2),
    )
    shapes = np.zeros(len(has_table), np.int64)
    for part, size in parts:
        shapes = shapes * size + part
    return shapes


def _spots(buffer: Array, facts: Array) -> list[str]:
    """Returns the bytes where each fault is, as errors show them."""
    view = memoryview(buffer)
    return [view[at : at + size].hex(" ") for at, size in zip(*facts[[AT, SHOWN]].tolist(), strict=True)]
