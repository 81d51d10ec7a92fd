"""Relations of pgoutput as entries of the dictionary that a scan is given, and their text."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from json.encoder import encode_basestring
from operator import attrgetter

import numpy as np

from ....events import Relation
from ....formats.pgoutput.relations import Columns, ReadMessage, RelationMessage, message_of
from ....pgtypes import type_name
from ...arrays import Array
from ..binary_text.forms import DECLINED_FORM, FORM, HEX_FORM, form_of
from ..dictionary import DICTIONARY, DICTIONARY_TEXT
from ..relations.entries import (
    CELL_ENTRIES,
    CELL_FACTS,
    CELL_NAME,
    CELL_QUOTED,
    CELL_TYPE,
    CELLS,
    DETAIL_COUNT,
    DETAILS,
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

_rest_of = attrgetter("rest")
"""What relations may have in common: all but their names and numbers."""


def larger_size(size: int) -> int:
    """How much room is made where so much is needed."""
    return size + min(LARGER * size, MOST_TEXT)


def _as_json(names: Iterable[str]) -> str:
    """A list of texts as JSON; json's own encoder of lists takes several times as long."""
    return f"[{', '.join(map(encode_basestring, names))}]"


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
        self._columns: dict[Columns, array[int]] = {}
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
            larger = np.empty((larger_size(used_pairs + pairs), 2), np.int32)
            larger[:used_pairs] = arrays.pairs[:used_pairs]
            arrays = arrays._replace(pairs=larger)
        if used_text + text > len(arrays.text):
            longer = np.empty(larger_size(used_text + text), np.uint8)
            longer[:used_text] = arrays.text[:used_text]
            arrays = arrays._replace(text=longer)
        self.arrays = arrays
        return True

    def add(self, relations: Sequence[RelationMessage]) -> range:
        """Adds relations that are not there yet; returns their indexes in `relations`."""
        added = range(len(self.relations), len(self.relations) + len(relations))
        entries = [entry for rest, some in groupby(relations, _rest_of) for entry in self._add(rest, list(some))]
        self.add_written(relations, entries)
        return added

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
        known = len(self.relations)
        self._indexes.update(zip(map(id, self.relations[self._indexed :]), range(self._indexed, known), strict=True))
        self._indexed = known
        index = self._indexes.get(id(relation))
        if index is None:
            (index,) = self.add([self.read(relation) if isinstance(relation, bytes) else message_of(relation)])
            self._indexes[id(relation)] = index
            self._held.append(relation)
        return self.entries[index]

    def dictionary(self) -> Array:
        """int32[d, 2]: the constant texts, then the relations."""
        return self.arrays.pairs[: self.arrays.used[USED_PAIRS]]

    def text(self) -> Array:
        """The text of the relations, which follows that of the dictionary."""
        return self.arrays.text[: self.arrays.used[USED_TEXT]]

    def _append(self, pairs: Array, text: bytes) -> None:
        """Appends to pairs and text, which have room."""
        arrays, (used_pairs, used_text) = self.arrays, self.arrays.used[[USED_PAIRS, USED_TEXT]].tolist()
        arrays.pairs[used_pairs : used_pairs + len(pairs)] = pairs
        arrays.text[used_text : used_text + len(text)] = np.frombuffer(text, np.uint8)
        arrays.used[USED_PAIRS] += len(pairs)
        arrays.used[USED_TEXT] += len(text)

    def _add(self, rest: Columns, relations: list[RelationMessage]) -> Sequence[int]:
        """Adds relations that have their columns in common: servers describe thousands of partitions one after the
        other. Returns the first entry of each, or 0 if there is no room for their texts.
        """
        nowhere = [0] * len(relations)
        pairs = self._columns.get(rest)
        if pairs is None:
            pairs = self._columns_pairs(rest)
            if pairs is None:
                return nowhere
            self._columns[rest] = pairs
        texts = [text for one in relations for text in (one.table_schema, one.table_name, str(one.relation_id))]
        text = "".join(texts).encode()
        count = len(pairs) // 2
        if not self.make_room(count * len(relations), len(text)):
            return nowhere
        first, used_text = self.arrays.used[[USED_PAIRS, USED_TEXT]].tolist()
        lengths = np.fromiter(map(len, texts if text.isascii() else map(str.encode, texts)), np.int32, len(texts))
        starts = len(DICTIONARY_TEXT) + used_text + np.cumsum(lengths, dtype=np.int32) - lengths
        names = np.stack([~starts, lengths], axis=-1).reshape(len(relations), -1)
        added = np.tile(np.frombuffer(pairs, np.int32), (len(relations), 1))
        added[:, 2 : 2 + names.shape[1]] = names
        self._append(added.reshape(-1, 2), text)
        return range(first, first + len(relations) * count, count)

    def _columns_pairs(self, relation: Columns) -> array[int] | None:
        """Returns the pairs of a relation, those of its names left out, and adds their texts; None if there is no room.

        Relations that have the rest in common share them.
        """
        names, oids, keys = relation.columns, relation.type_oids, frozenset(relation.key_columns)
        count, forms = len(names), [*map(form_of, oids)]
        hexed = [index for index, form in enumerate(forms) if form & FORM == HEX_FORM]
        if hexed and len({*names}) < count:  # names are listed once, and the scan tells columns by their index
            forms, hexed = [DECLINED_FORM if index in hexed else form for index, form in enumerate(forms)], []
        texts = [
            text.encode()
            for text in (
                relation.replica_identity,
                _as_json(names),
                str([*oids]),
                str([*relation.typmods]),
                _as_json(relation.key_columns),
                *names,  # one after the other, and so are the types: the gather then copies those of a row as one text
                *map(type_name, oids),
                *[encode_basestring(names[index]) for index in hexed],
            )
        ]
        text = b"".join(texts)
        if not self.make_room(0, len(text)):
            return None
        lengths = [*map(len, texts)]
        starts = [~at for at in accumulate(lengths, initial=len(DICTIONARY_TEXT) + int(self.arrays.used[USED_TEXT]))]
        self._append(np.empty((0, 2), np.int32), text)
        head, first_type, first_quoted = DETAIL_COUNT - 1, DETAIL_COUNT - 1 + count, DETAIL_COUNT - 1 + 2 * count
        pairs = array("i", [count, UNDECIDED] + [0] * 2 * (CELLS - 1 + CELL_ENTRIES * count))
        for half, numbers in enumerate((starts, lengths)):
            pairs[2 * (DETAILS + 1) + half : 2 * CELLS : 2] = array("i", numbers[:head])
            for item, first in ((CELL_NAME, head), (CELL_TYPE, first_type)):
                pairs[2 * (CELLS + item) + half :: 2 * CELL_ENTRIES] = array("i", numbers[first : first + count])
            for index, number in zip(hexed, numbers[first_quoted:], strict=False):
                pairs[2 * (CELLS + CELL_ENTRIES * index + CELL_QUOTED) + half] = number
        pairs[2 * (CELLS + CELL_FACTS) :: 2 * CELL_ENTRIES] = array("i", [name in keys for name in names])
        pairs[2 * (CELLS + CELL_FACTS) + 1 :: 2 * CELL_ENTRIES] = array("i", forms)
        return pairs
