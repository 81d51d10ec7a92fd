"""What the scan of pgoutput must know of each message beforehand: its relation, and whether it has a transaction id.

Messages that say something about that are few and stand anywhere; between two of them nothing changes, so their rows
are looked up together.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa

from ..errors import DecodeError
from ..events import Relation
from ..formats.pgoutput import PgOutput
from ..formats.relations import Relations
from ..framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ..options import ReadOptions
from ..pgtypes import type_name
from .compiled import Array
from .messages import Chunk
from .spans import LINES, QUOTED, TYPE_TABLE_SIZE, TYPE_WORDS, WORD_TEXT, WORDS, Known

IS_OPENGAUSS, KNOWN = QUOTED, LINES
"""Places in the scan's settings: whether the dialect is openGauss's, and the first message: 2 times the place of its
relation in `words`, 0 if there is none, and 1 more in a streamed block."""

COLUMNS, SCHEMA, TABLE, CELLS = range(4)
"""A relation in `words`: how many columns, the names, and from there on three pairs a column."""

CELL_NAME, CELL_TYPE, CELL_IS_KEY, CELL_WORDS = range(4)

_ASK = np.isin(np.arange(256), list(b"IUD"))
_TELL = {
    "postgresql": np.isin(np.arange(256), list(b"RSEcAp")),
    "opengauss": np.isin(np.arange(256), list(b"R")),
}


def known_relations(chunk: Chunk, relations: Relations, settings: list[int], options: ReadOptions) -> Known:
    """Look up the relation of every row in a chunk.

    relations   as they are before the chunk; not changed
    settings    those that all scans have
    """
    buffer, starts, stops = chunk.buffer, chunk.starts, chunk.stops
    last = max(len(buffer) - 1, 0)
    first = buffer[np.minimum(starts, last)] if len(buffer) else np.zeros(len(starts), np.uint8)
    heads = starts + ENVELOPE_BYTES * (first == ENVELOPE)
    kinds = np.where(heads < stops, buffer[np.minimum(heads, last)] if len(buffer) else 0, 0)
    asks = _ASK[kinds]
    found = np.zeros(len(starts), np.int64)
    table = _Table(options)
    reader = PgOutput(relations.copy())
    begin = 0
    for end in [*np.flatnonzero(_TELL[options.dialect][kinds]).tolist(), len(starts)]:
        places = begin + np.flatnonzero(asks[begin:end])
        if len(places):
            streamed = reader.relations.block is not None
            at = heads[places] + (5 if streamed else 1)
            places, at = places[at + 4 <= stops[places]], at[at + 4 <= stops[places]]
            oids = (buffer[at[:, None] + np.arange(4)].astype(np.int64) << np.array([24, 16, 8, 0])).sum(axis=1)
            coded = pa.array(oids).dictionary_encode()
            words = [table.place(reader.relations.find(oid)) for oid in coded.dictionary.to_pylist()]
            found[places] = 2 * np.array(words, np.int64)[coded.indices.to_numpy()] + streamed
        if end < len(starts):
            message = chunk.message(end)
            with suppress(DecodeError):  # it will be told when the record is read
                for frame in reader.frames(message):
                    reader.read(message, frame, options)
        begin = end + 1
    head = [*settings, options.dialect == "opengauss"]
    return Known(table.words(), np.concatenate([np.array(head, np.int64), found]), bytes(table.text))


class _Table:
    """The relations of one chunk as words and their text."""

    def __init__(self, options: ReadOptions) -> None:
        self._ascii_only = options.encoding != "utf-8"
        self._places: dict[int, int] = {}
        self._held: list[Relation] = []  # so that no number of `id` comes again
        self._pairs: list[tuple[int, int]] = []
        self.text = bytearray()

    def place(self, relation: Relation | None) -> int:
        """Where the relation lies in `words`; 0 for one that is not known.

        Names that are not ASCII, in an encoding that is not UTF-8, are left to the declaration: a row is transcoded as
        a whole, and they are in UTF-8 already.
        """
        if relation is None:
            return 0
        if id(relation) not in self._places:
            self._held.append(relation)
            names = (relation.table_schema, relation.table_name, *relation.columns)
            known = not self._ascii_only or all(name.isascii() for name in names)
            self._places[id(relation)] = len(WORDS) + len(self._pairs) if known else 0
            if known:
                self._add(relation)
        return self._places[id(relation)]

    def words(self) -> Array:
        """int32[w, 2]: the constant words, then the relations."""
        return np.concatenate([WORDS, np.array(self._pairs, np.int32).reshape(-1, 2)])

    def _add(self, relation: Relation) -> None:
        columns = list(zip(relation.columns, relation.type_oids, strict=True))
        self._pairs += [(len(columns), 0), self._pair(relation.table_schema), self._pair(relation.table_name)]
        for name, oid in columns:
            start, length = WORDS[TYPE_WORDS + (oid if oid < TYPE_TABLE_SIZE else 0)].tolist()
            is_listed = length > 0 and oid < TYPE_TABLE_SIZE
            kind = (start, length) if is_listed else self._pair(type_name(oid))
            self._pairs += [self._pair(name), kind, (name in relation.key_columns, 0)]

    def _pair(self, text: str) -> tuple[int, int]:
        data = text.encode()
        start = len(WORD_TEXT) + len(self.text)
        self.text += data
        return ~start, len(data)
