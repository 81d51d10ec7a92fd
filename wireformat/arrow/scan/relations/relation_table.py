"""Relations of pgoutput as entries of the dictionary that a scan is given, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from json import JSONEncoder

import numpy as np

from ....events import Relation
from ....formats.pgoutput.relations import DescribedAs, ReadMessage, RelationMessage, message_of
from ....pgtypes import type_name
from ...arrays import Array, unused
from ..binary_text.forms import DECLINED_FORM, FORM, HEX_FORM, form_of
from ..dictionary import (
    CELL_ENTRIES,
    CELL_FACTS,
    CELL_NAME,
    CELL_QUOTED,
    CELL_TYPE,
    CELLS,
    COLUMNS,
    DICTIONARY,
    DICTIONARY_TEXT,
    SCHEMA,
    UNDECIDED,
)
from .new_relations import USED_FIELDS, USED_PAIRS, USED_TEXT, RelationArrays

MOST_TEXT = 1 << 24
"""Bytes of the texts of relations that are kept for the next message batch, and of their pairs: those of some 20,000
tables or more."""

MOST_TEXT_OF_BATCH = 1 << 28
"""Bytes of relations that one message batch may need: pairs are int32, and a scan's own text follows them."""

LARGER = 16
"""How many times more room is made than is needed, up to MOST_TEXT: memory that is not used costs little."""


def larger_size(size: int) -> int:
    """How much room is made where so much is needed."""
    return size + min(LARGER * size, MOST_TEXT)


_as_json = JSONEncoder(ensure_ascii=False).encode


class RelationTable:
    """Relations as entries of the dictionary, and their text, which is in UTF-8.

    relations   those that were added, in order
    read        reads those that are bytes
    entries     the first entry of each in the dictionary; 0 if there was no room for its texts
    """

    def __init__(self, read: ReadMessage) -> None:
        self.read = read
        self._clear()

    def _clear(self) -> None:
        self.relations: list[RelationMessage | bytes] = []
        self._indexes: dict[int, int] = {}  # by `id`, of the first `_indexed` relations
        self._indexed = 0
        self._held: list[Relation | RelationMessage | bytes] = []  # so that no number of `id` comes again
        self.entries: list[int] = []
        used = np.zeros(USED_FIELDS, np.int64)
        used[USED_PAIRS] = len(DICTIONARY)
        self.arrays = RelationArrays(DICTIONARY, np.empty(0, np.uint8), used)

    def forget_much(self) -> bool:
        """Begins anew where a stream has described very many tables; returns whether it does."""
        used = self.arrays.used
        if max(used[USED_TEXT], DICTIONARY.itemsize * 2 * (used[USED_PAIRS] - len(DICTIONARY))) <= MOST_TEXT:
            return False
        self._clear()
        return True

    def make_room(self, pairs: int, text: int) -> bool:
        """Makes room for so many more pairs and bytes of text; returns whether there may be so many."""
        arrays = self.arrays
        used_pairs, used_text = (int(arrays.used[field]) for field in (USED_PAIRS, USED_TEXT))
        if used_text + text > MOST_TEXT_OF_BATCH:
            return False
        if used_pairs + pairs > len(arrays.pairs):
            own = larger_size(used_pairs + pairs - len(DICTIONARY))
            larger = unused((len(DICTIONARY) + own, 2), np.int32)
            larger[:used_pairs] = arrays.pairs[:used_pairs]
            arrays = arrays._replace(pairs=larger)
        if used_text + text > len(arrays.text):
            longer = unused(larger_size(used_text + text), np.uint8)
            longer[:used_text] = arrays.text[:used_text]
            arrays = arrays._replace(text=longer)
        self.arrays = arrays
        return True

    def add_written(self, relations: Sequence[RelationMessage | bytes], entries: Sequence[int]) -> None:
        """Adds relations that are in the dictionary, where compiled code has written them."""
        self.relations += relations
        self.entries += entries

    def entry(self, relation: Relation | RelationMessage | bytes | None) -> int:
        """The first entry in the dictionary of a relation, which is added if it is not there; 0 for an unknown one.

        Rows of a relation whose names would make the text too long are left to the declaration.
        """
        if relation is None:
            return 0
        index = self._all_indexes().get(id(relation))
        if index is None:
            index = self._indexes[id(relation)] = len(self.relations)
            self._held.append(relation)
            added = self.read(relation) if isinstance(relation, bytes) else message_of(relation)
            self.add_written([added], [self._write(added)])
        return self.entries[index]

    def known_entries(self, relations: Iterable[DescribedAs | None]) -> Array:
        """int64[n]: the entry of each relation; -1 if it is not there."""
        index_of, entries = self._all_indexes().get, [*self.entries, -1]
        return np.array([0 if one is None else entries[index_of(id(one), -1)] for one in relations], np.int64)

    def _all_indexes(self) -> dict[int, int]:
        known = len(self.relations)
        self._indexes.update(zip(map(id, self.relations[self._indexed :]), range(self._indexed, known), strict=True))
        self._indexed = known
        return self._indexes

    def dictionary(self) -> Array:
        """int32[d, 2]: the constant texts, then the relations."""
        return self.arrays.pairs[: self.arrays.used[USED_PAIRS]]

    def text(self) -> Array:
        """The text of the relations, which follows that of the dictionary."""
        return self.arrays.text[: self.arrays.used[USED_TEXT]]

    def _write(self, relation: RelationMessage) -> int:
        """Writes a relation; returns its first entry, or 0 if there is no room for its texts."""
        names, oids, keys = relation.rest.columns, relation.rest.type_oids, {*relation.rest.key_columns}
        count, forms = len(names), [*map(form_of, oids)]
        hexed = [index for index, form in enumerate(forms) if form & FORM == HEX_FORM]
        if hexed and len({*names}) < count:  # names are listed once, and the scan tells columns by their index
            forms, hexed = [DECLINED_FORM if index in hexed else form for index, form in enumerate(forms)], []
        texts = [
            text.encode()
            for text in (
                relation.table_schema,
                relation.table_name,
                str(relation.relation_id),
                relation.rest.replica_identity,
                _as_json([*names]),
                str([*oids]),
                str([*relation.rest.typmods]),
                _as_json([*relation.rest.key_columns]),
                *names,  # one after the other, and so are the types: the gather then copies those of a row as one text
                *map(type_name, oids),
                *[_as_json(names[index]) for index in hexed],
            )
        ]
        text, size = b"".join(texts), CELLS + CELL_ENTRIES * count
        if not self.make_room(size, len(text)):
            return 0
        arrays, (entry, used) = self.arrays, self.arrays.used[[USED_PAIRS, USED_TEXT]].tolist()
        starts = [~at for at in accumulate(map(len, texts), initial=len(DICTIONARY_TEXT) + used)]
        places = np.array([*zip(starts, map(len, texts), strict=False)], np.int32)
        pairs = arrays.pairs[entry : entry + size]
        pairs[COLUMNS], pairs[SCHEMA:CELLS] = (count, UNDECIDED), places[: CELLS - SCHEMA]
        cells = pairs[CELLS:].reshape(count, CELL_ENTRIES, 2)
        cells[:, [CELL_NAME, CELL_TYPE]] = places[CELLS - SCHEMA :][: 2 * count].reshape(2, count, 2).swapaxes(0, 1)
        cells[:, CELL_FACTS, 0], cells[:, CELL_FACTS, 1] = [name in keys for name in names], forms
        cells[:, CELL_QUOTED] = 0
        cells[hexed, CELL_QUOTED] = places[CELLS - SCHEMA + 2 * count :]
        arrays.text[used : used + len(text)] = np.frombuffer(text, np.uint8)
        arrays.used[USED_PAIRS] += size
        arrays.used[USED_TEXT] += len(text)
        return int(entry)
