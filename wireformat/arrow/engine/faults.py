"""Finds what is wrong with records that a scan has declined, by compiled walks; error_texts.py says it.

For texts in encodings other than UTF-8, the walks only make a list; which are invalid, and where, is found here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...formats.base import Format
from ...limits import BATCH_TEXT_BYTES
from ...options import ReadOptions
from ..arrays import Array, read_only
from ..scan.faults import fields
from ..scan.faults.error_texts import number_tables
from ..scan.faults.fields import (
    AT,
    BAD_TEXT,
    CELL,
    EXPECTED,
    FAULT,
    FIELD,
    GOT,
    IMAGE,
    INSIDE,
    LEFT_TO_DECLARATION,
    LENGTH,
    LISTED,
    NO_FAULT,
    OWNER,
    RELATION_ID,
    SAYS_TABLE,
    SCHEMA,
    SHOWN,
    START,
    TABLE,
    TEXT_AT,
    TEXT_CELL,
    TEXT_FIELD,
    TEXT_IMAGE,
    TEXT_INSIDE,
    TEXT_SAYS_TABLE,
)
from ..scan.notes import BODY, MESSAGE
from ..scan.registry import load_fault_walk
from ..scan.transcode import NO_STATES, text_states
from .error_texts import ErrorTexts, ErrorWriter, ScanStep

FEW = 100
"""Number of declined records of a stream that the declaration reads first: loading the compiled walk takes as long."""

MOST_NAMES_BYTES = 1 << 22
"""The most bytes of names of tables that are kept. What is made of them takes some times as much."""

TEXT_BYTES = 1 << 10
"""Room for the text of an error without the names in it."""

_NAME_GROWTH = 3
"""An invalid byte becomes U+FFFD, which has three bytes."""


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

    def are_of(self, rows: Array, count: int) -> Array:
        """Returns which of some rows have a fault, of `count` rows."""
        has_fault = np.zeros(count, np.bool_)
        has_fault[self.rows] = True
        return has_fault[rows]

    def chosen(self, which: Array) -> Faults:
        """Returns those of some rows."""
        if which.all():
            return self
        facts = np.ascontiguousarray(self.facts[:, which])  # compiled code takes one layout of arrays
        return Faults(self.rows[which], facts)


class FaultTable(NamedTuple):
    """The table of a record that cannot be read.

    names   of schema and table; None if they cannot be read either
    """

    text: str
    names: tuple[str, str] | None


NO_TABLE = FaultTable("", None)
"""For records whose table is not known."""


class FaultTables(NamedTuple):
    """The tables of some records that cannot be read."""

    indexes: Array
    """int64[n]: that of each record, as an index in `tables`"""
    tables: list[FaultTable]

    def kept(self, options: ReadOptions) -> Array:
        """Returns of each record whether the tables of the options keep its error."""
        is_kept = [table.names is None or options.keeps_table(table.names) for table in self.tables]
        return np.array(is_kept, np.bool_)[self.indexes]


NO_FAULTS = Faults(np.empty(0, np.int64), np.empty((fields.FAULT_FIELDS, 0), np.int64))


class FaultFinder:
    """Finds what is wrong with the records of one stream that the scan has declined.

    It takes those of which bad streams have many; the declaration reads the others.

    needed    as for Scanner
    """

    def __init__(self, format: Format, options: ReadOptions, needed: ReadOptions | None) -> None:
        self._format, self._options, self._needed = format.name, options, needed
        self._declined = 0
        self._tables: dict[tuple[bytes, bytes, tuple[bool, bool]], FaultTable] = {}
        self._names_bytes = 0
        self._writer = ErrorWriter(format, options.encoding)
        self._rule = fields.ANY_TEXT
        self._states: Array = NO_STATES

    def find(self, step: ScanStep, declined: Array) -> Faults:
        """Returns the faults of these rows, as far as they are found."""
        self._declined += len(declined)
        if self._options.mode == "FAILFAST" or self._declined <= FEW or not len(declined):
            return NO_FAULTS
        message_batch, bodies = step.message_batch, step.notes.rows[BODY : BODY + 2, declined]
        messages = message_batch.positions(step.notes.rows[MESSAGE, declined])
        is_empty = message_batch.starts[messages] == message_batch.stops[messages]
        if is_empty.any():
            is_empty &= bool(self._writer.empty)
        facts = np.zeros((fields.FAULT_FIELDS, len(declined)), np.int64)
        walk = load_fault_walk(self._format)
        walked = np.flatnonzero(bodies[1] > 0)
        if walk is not None and len(walked) == len(declined):
            facts = self._facts(walk, step, declined, messages)
        elif walk is not None and len(walked):
            facts[:, walked] = self._facts(walk, step, declined[walked], messages[walked])
        facts[[[FAULT], [RELATION_ID], [SCHEMA + 1], [TABLE + 1]], is_empty] = [[fields.EMPTY], [-1], [-1], [-1]]
        is_found = facts[FAULT] != fields.NO_FAULT
        if (facts[RELATION_ID, is_found] >= 0).any():  # the scan may not have had room for a relation that is known
            is_found &= ~np.isin(facts[RELATION_ID], np.array(step.described.known_numbers(), np.int64))
        found = Faults(declined, facts).chosen(is_found)
        if self._needed is None or self._needed.tables is None:
            return found
        return found.chosen(self.tables(found, step).kept(self._needed))  # the others become events

    def _facts(self, walk: Callable[..., None], step: ScanStep, declined: Array, messages: Array) -> Array:
        """Returns what a walk finds wrong with these rows; see scan/faults/fields.py."""
        if self._options.encoding_errors == "strict":
            states = text_states(self._options.encoding)
            self._rule = fields.OTHER_TEXT if states is None else fields.STATES_TEXT
            self._states = NO_STATES if states is None else states
        buffer, (rows, cells, text) = step.message_batch.buffer, step.notes
        encoding = self._options.encoding
        facts = np.zeros((fields.FAULT_FIELDS, len(declined)), np.int64)
        texts = new_list() if self._rule == fields.OTHER_TEXT else NO_LIST
        notes = (buffer, rows, cells, read_only(text[:]), declined, messages, step.dictionary, step.settings)
        which = (self._states, self._rule, step.known_bytes)
        begin = 0
        while begin < len(declined):
            walk(*notes, *which, begin, facts, texts)
            end = begin + int(np.searchsorted(facts[LISTED, begin:], MOST_LISTED, "right"))
            if end > begin and facts[LISTED, end - 1]:
                listed = texts[:, : facts[LISTED, end - 1]]
                note_wrong_texts(facts, listed, (memoryview(buffer), memoryview(text)), encoding)
            facts[:, end:] = 0  # their texts were not all listed
            begin = max(end, begin + 1)
        return facts

    def tables(self, faults: Faults, step: ScanStep) -> FaultTables:
        """Returns the tables of these rows."""
        buffer, text = step.message_batch.buffer, step.notes.text
        count, views = len(faults.rows), (memoryview(buffer), memoryview(text))
        slots = np.full(1 << (2 * count).bit_length(), -1, np.int32)
        owners = np.empty(count, np.int64)
        number_tables(buffer, read_only(text[:]), faults.facts, -step.known_bytes, slots, owners)
        firsts = np.flatnonzero(owners == np.arange(count))
        tables = [NO_TABLE]  # at NO_TABLE_INDEX
        for schema, schema_length, name, length in faults.facts[SCHEMA : TABLE + 2, firsts].T.tolist():
            is_utf8 = -step.known_bytes <= schema < 0, -step.known_bytes <= name < 0  # what the scan has written is not
            key = bytes_at(*views, schema, schema_length), bytes_at(*views, name, length), is_utf8
            if key not in self._tables:
                self._names_bytes += len(key[0]) + len(key[1])
                if self._names_bytes > MOST_NAMES_BYTES:  # damaged records may have any names
                    self._tables, self._names_bytes = {}, 0
                self._tables[key] = self._table(*key)
            tables.append(self._tables[key])
        indexes = np.zeros(count + 1, np.int64)  # the last one is that of no owner
        indexes[firsts] = np.arange(1, len(tables))
        return FaultTables(indexes[owners], tables)

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

    def texts(self, faults: Faults, tables: FaultTables, step: ScanStep) -> ErrorTexts:
        """Returns the texts of the errors, about rows of these tables."""
        names = [table.text for table in tables.tables]
        return self._writer.write(step, faults.rows, faults.facts, tables.indexes, names)


MOST_LISTED = 1 << 14
"""How many texts are listed at a time."""

_FROM_TEXT = np.array([AT, INSIDE, IMAGE, CELL, FIELD, SAYS_TABLE])
_OF_TEXT = np.array([TEXT_AT, TEXT_INSIDE, TEXT_IMAGE, TEXT_CELL, TEXT_FIELD, TEXT_SAYS_TABLE])


def bytes_at(buffer: memoryview, text: memoryview, start: int, length: int) -> bytes:
    """Returns the bytes of a pair; see wireformat/arrow/scan/notes.py."""
    return bytes(buffer[start : start + length] if start >= 0 else text[~start : ~start + length])


def note_wrong_texts(facts: Array, texts: Array, sources: tuple[memoryview, memoryview], encoding: str) -> None:
    """Notes of each record the first listed text that is wrong: it comes before what else is wrong with the record.

    facts     as the walk has filled them, changed in place
    texts     int64[TEXT_FIELDS, n], the listed texts, in the order in which the declaration reads them
    sources   the buffer, and the text of the notes
    """
    good: set[bytes] = set()  # names come again and again
    wrong: list[int] = []
    inside: list[int] = []
    got: list[int] = []
    last = -1
    for index, (owner, start, length) in enumerate(zip(*texts[[OWNER, START, LENGTH]].tolist(), strict=True)):
        if owner == last:
            continue
        data = bytes_at(*sources, start, length)
        if data in good:
            continue
        try:
            data.decode(encoding)
            good.add(data)
        except UnicodeDecodeError as error:
            last = owner
            wrong.append(index)
            inside.append(error.start)
            got.append(error.end - error.start)
    if not wrong:
        return
    chosen = texts[:, wrong]
    records = chosen[OWNER]
    facts[_FROM_TEXT[:, np.newaxis], records] = chosen[_OF_TEXT]
    facts[INSIDE, records] += inside
    facts[GOT, records] = got
    facts[[[EXPECTED], [SHOWN]], records] = 0
    is_left = chosen[TEXT_INSIDE] == LEFT_TO_DECLARATION
    facts[FAULT, records] = np.where(is_left, NO_FAULT, BAD_TEXT)


def new_list() -> Array:
    """Returns memory for listed texts."""
    return np.empty((fields.TEXT_FIELDS, MOST_LISTED), np.int64)


NO_LIST = np.empty((fields.TEXT_FIELDS, 0), np.int64)
"""For walks that list no texts."""
