"""What the scan of pgoutput must know of each message beforehand: its relation, and whether it has a transaction id.

Messages that say something about that are few and stand anywhere; between two of them nothing changes, so their rows
are looked up together.
"""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pyarrow as pa

from ....errors import DecodeError
from ....events import Relation
from ....formats.base import Format
from ....formats.pgoutput.messages import ASIDE_BYTES, MESSAGE_TAG, RECORDS, is_aside
from ....formats.pgoutput.relations import ASKS, CLOSES, ENDS, NOTHING, OPENS, role_of
from ....framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ....options import ReadOptions
from ....pgtypes import type_name
from ...arrays import Array, Int
from ...jit.compiler import compiled
from ..binary_text.forms import DECLINED_FORM, FORM, HEX_FORM, form_of
from ..dictionary import DICTIONARY, DICTIONARY_TEXT
from ..message_batches import MessageBatch
from ..notes import LINES, QUOTED, ScanInput
from ..primitives import read_32
from ..registry import FindInput

RARE_TAGS = b"kMbPKr"
"""Kind bytes of the messages that the scan leaves to pgoutput_rare.py."""

IS_OPENGAUSS, RELATION_CODES = QUOTED, LINES
"""Indexes of the scan's settings: whether the dialect is openGauss's, and the relation code of the first message.

A row's code is 2 times its relation's entry in the dictionary (0 without a relation), plus 1 in a streamed block. The
code of other messages is 1 if a block is open before them: the declaration must see it if they end the block."""

COLUMNS, SCHEMA, TABLE, RELATION_ID, CELLS = range(5)
"""A relation in the dictionary: number of columns; names of schema and table and the OID, each a pair; then four pairs
for each column."""

LEAST_ROW_BYTES = 9
"""Kind, transaction id, relation: shorter rows are for the declaration, which tells what is missing."""

CELL_NAME, CELL_TYPE, CELL_FACTS, CELL_QUOTED, CELL_ENTRIES = range(5)
"""CELL_FACTS is no pair: whether the column is in the key, and the form of its binary values; see forms.py. CELL_QUOTED
is the name as a string of JSON, if these have no text form."""

_ROLES = {dialect: np.full(256, NOTHING, np.uint8) for dialect in RECORDS}
"""The role of each kind of message, by its kind byte."""
for _dialect, _records in RECORDS.items():
    for _tag, (_kind, _) in _records.items():
        _ROLES[_dialect][_tag] = role_of(_kind)


MESSAGE_TAG_BYTE = bytes([MESSAGE_TAG])

STREAM_STOP_TAG = ord("E")
"""Kind byte of the message that closes a streamed block; it has no other byte."""


class PreparedRelations:
    """Looks up relations, one message batch at a time; see Preparation. Walks share them: few relations are new."""

    def __init__(self, settings: list[int], options: ReadOptions) -> None:
        self._settings = settings
        self._options = options
        self._table = RelationTable()

    def begin(self, format: Format) -> FindInput:
        """See Preparation.begin."""
        known = format.relations
        reader = format.fresh(known and known.copy())  # runs ahead of the format, and comes to the same
        return lambda message_batch: find_relations(message_batch, reader, self._table, self._settings, self._options)


def find_relations(
    message_batch: MessageBatch, reader: Format, table: RelationTable, settings: list[int], options: ReadOptions
) -> ScanInput:
    """Looks up the relation of every row in a message batch.

    reader      knows the relations before the batch; afterwards those after it
    table       the relations that earlier batches needed; those of this one are added
    settings    those that all scans have
    """
    count = len(message_batch.starts)
    asking, oids, telling = np.empty(count, np.int64), np.empty((2, count), np.int64), np.empty(count, np.int64)
    relations = reader.relations
    if relations is None:
        raise TypeError(f"{reader.name} has no relations")
    in_block, roles = relations.block is not None, _ROLES[options.dialect]
    asked, told = _read_heads(
        message_batch.buffer, message_batch.starts, message_batch.stops, roles, in_block, asking, oids, telling
    )
    found = np.zeros(count, np.int64)
    table.forget_much()
    begin = 0
    ends = np.searchsorted(asking[:asked], telling[:told])
    for end, message in [*zip(ends.tolist(), telling[:told].tolist(), strict=True), (asked, -1)]:
        if begin < end:
            streamed = int(relations.block is not None)
            own = pa.py_buffer(oids[streamed, begin:end])
            coded = pa.Array.from_buffers(pa.int64(), end - begin, [None, own]).dictionary_encode()
            known = [2 * table.entry(relations.find(oid)) + streamed for oid in coded.dictionary.to_pylist()]
            codes = np.frombuffer(coded.indices.buffers()[1], np.int32, end - begin)
            found[asking[begin:end]] = np.array(known, np.int64)[codes]
            begin = end
        if message >= 0:
            found[message] = int(relations.block is not None)
            data = message_batch.message(message)
            head = data[ENVELOPE_BYTES if data[0] == ENVELOPE else 0 :][:ASIDE_BYTES]
            if head[:1] == MESSAGE_TAG_BYTE and not is_aside(head):
                continue  # it has a transaction id, and says nothing
            with suppress(DecodeError):  # it will be told when the record is read
                for frame in reader.frames(data):
                    reader.read(data, frame, options)
    head = [*settings, options.dialect == "opengauss"]
    return ScanInput(table.dictionary(), np.concatenate([np.array(head, np.int64), found]), bytes(table.text))


@compiled
def _read_heads(
    buffer: Array, starts: Array, stops: Array, roles: Array, in_block: bool, asking: Array, oids: Array, telling: Array
) -> tuple[Int, Int]:
    """Find the messages that ask or tell something about relations; returns how many do this, and how many that.

    roles       uint8[256]: of each kind of message
    in_block    whether a streamed block is open before the first message
    asking      int64[m]: the messages that ask, which are rows, where they are long enough to be one
    oids        int64[2, m]: the number after the kind in each of these, and the number after that, which is the OID
                of the relation in a streamed block
    telling     int64[m]: the messages that tell
    """
    asked, told = 0, 0
    for message in range(len(starts)):
        at, stop = starts[message], stops[message]
        if at < stop and buffer[at] == ENVELOPE:
            at += ENVELOPE_BYTES
        role = roles[buffer[at]] if at < stop else NOTHING
        if role == ASKS and stop - at >= LEAST_ROW_BYTES:
            asking[asked] = message
            oids[0, asked] = read_32(buffer, at + 1)
            oids[1, asked] = read_32(buffer, at + 5)
            asked += 1
        elif role > ASKS and (role < ENDS or in_block):
            telling[told] = message
            told += 1
        if role == OPENS:
            in_block = True
        elif role == ENDS or (role == CLOSES and (buffer[at] != STREAM_STOP_TAG or stop - at == 1)):
            in_block = False  # a STREAM_STOP with more bytes is CORRUPT and closes nothing; others that are end a block
    return asked, told


MOST_TEXT = 1 << 20
"""Bytes of relations that are kept for the next message batch."""

MOST_TEXT_OF_BATCH = 1 << 28
"""Bytes of relations that one message batch may need: pairs are int32, and a scan's own text follows them."""


class RelationTable:
    """Relations as entries of the dictionary, and their text, which is in UTF-8."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._entries: dict[int, int] = {}
        self._held: list[Relation] = []  # so that no number of `id` comes again
        self._pairs: list[tuple[int, int]] = []
        self._dictionary = DICTIONARY
        self.text = bytearray()

    def forget_much(self) -> None:
        """Begin anew where a stream has described very many tables."""
        if len(self.text) > MOST_TEXT:
            self._clear()

    def entry(self, relation: Relation | None) -> int:
        """The relation's first entry in the dictionary; 0 for an unknown relation.

        Rows of a relation whose names would make the text too long are left to the declaration.
        """
        if relation is None:
            return 0
        if id(relation) not in self._entries:
            self._held.append(relation)
            names = (relation.table_schema, relation.table_name, *relation.columns)
            types = [type_name(oid) for oid in relation.type_oids]
            size = sum(len(text.encode()) for text in (*names, *types, str(relation.relation_id)))
            known = len(self.text) + size <= MOST_TEXT_OF_BATCH
            self._entries[id(relation)] = len(DICTIONARY) + len(self._pairs) if known else 0
            if known:
                self._add(relation)
        return self._entries[id(relation)]

    def dictionary(self) -> Array:
        """int32[d, 2]: the constant texts, then the relations."""
        if len(self._dictionary) < len(DICTIONARY) + len(self._pairs):
            self._dictionary = np.concatenate([DICTIONARY, np.array(self._pairs, np.int32).reshape(-1, 2)])
        return self._dictionary

    def _add(self, relation: Relation) -> None:
        columns, keys = list(zip(relation.columns, relation.type_oids, strict=True)), frozenset(relation.key_columns)
        self._pairs += [(len(columns), 0), self._pair(relation.table_schema), self._pair(relation.table_name)]
        self._pairs.append(self._pair(str(relation.relation_id)))
        names = [self._pair(name) for name, _ in columns]  # one after the other, and so are the types: the gather then
        types = [self._pair(type_name(oid)) for _, oid in columns]  # copies those of a row as one text
        has_twins = len({*relation.columns}) < len(columns)
        for (name, oid), *pairs in zip(columns, names, types, strict=True):
            form, quoted = form_of(oid), (0, 0)
            if (
                form & FORM == HEX_FORM and has_twins
            ):  # names are listed once, and the scan tells columns by their index
                form = DECLINED_FORM
            elif form & FORM == HEX_FORM:
                quoted = self._pair(json.dumps(name, ensure_ascii=False))
            self._pairs += [*pairs, (name in keys, form), quoted]

    def _pair(self, text: str) -> tuple[int, int]:
        data = text.encode()
        start = len(DICTIONARY_TEXT) + len(self.text)
        self.text += data
        return ~start, len(data)
