"""Relations of pgoutput as entries of the dictionary that a scan is given, and their text."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from json.encoder import encode_basestring
from operator import attrgetter

import numpy as np

from ....events import Relation
from ....formats.pgoutput.relations import Columns, RelationMessage, message_of
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

MOST_TEXT = 1 << 24
"""Bytes of the texts of relations that are kept for the next message batch, and of their pairs: those of some 20,000
tables or more."""

MOST_TEXT_OF_BATCH = 1 << 28
"""Bytes of relations that one message batch may need: pairs are int32, and a scan's own text follows them."""


_rest_of = attrgetter("rest")
"""What relations may have in common: all but their names and numbers."""


def _as_json(names: Iterable[str]) -> str:
    """A list of texts as JSON; json's own encoder of lists takes several times as long."""
    return f"[{', '.join(map(encode_basestring, names))}]"


class RelationTable:
    """Relations as entries of the dictionary, and their text, which is in UTF-8.

    relations   those that were added, in order
    entries     the first entry of each in the dictionary; 0 if there was no room for its texts
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.relations: list[RelationMessage] = []
        self._indexes: dict[int, int] = {}  # by `id`
        self._held: list[Relation | RelationMessage] = []  # so that no number of `id` comes again
        self.entries: list[int] = []
        self._pairs = array("i")
        self._columns: dict[Columns, array[int]] = {}
        self._dictionary = DICTIONARY
        self._text = bytearray()
        self._text_bytes = b""

    def forget_much(self) -> bool:
        """Begins anew where a stream has described very many tables; returns whether it does."""
        if max(len(self._text), self._pairs.itemsize * len(self._pairs)) <= MOST_TEXT:
            return False
        self._clear()
        return True

    def add(self, relations: Sequence[RelationMessage]) -> range:
        """Adds relations that are not there yet; returns their indexes in `relations`."""
        added = range(len(self.relations), len(self.relations) + len(relations))
        self._indexes.update(zip(map(id, relations), added, strict=True))
        self.relations += relations
        for rest, some in groupby(relations, _rest_of):
            self.entries += self._add(rest, list(some))
        return added

    def entry(self, relation: Relation | RelationMessage | None) -> int:
        """The first entry in the dictionary of a relation, which is added if it is not there; 0 for an unknown one.

        Rows of a relation whose names would make the text too long are left to the declaration.
        """
        if relation is None:
            return 0
        index = self._indexes.get(id(relation))
        if index is None:
            (index,) = self.add([relation if isinstance(relation, RelationMessage) else message_of(relation)])
            self._indexes[id(relation)] = index
            self._held.append(relation)
        return self.entries[index]

    def dictionary(self) -> Array:
        """int32[d, 2]: the constant texts, then the relations."""
        if 2 * len(self._dictionary) < 2 * len(DICTIONARY) + len(self._pairs):
            self._dictionary = np.concatenate([DICTIONARY, np.frombuffer(self._pairs, np.int32).reshape(-1, 2)])
        return self._dictionary

    def text(self) -> bytes:
        """The text of the relations, which follows that of the dictionary."""
        if len(self._text_bytes) < len(self._text):
            self._text_bytes = bytes(self._text)
        return self._text_bytes

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
        if len(self._text) + len(text) > MOST_TEXT_OF_BATCH:
            return nowhere
        first = len(DICTIONARY) + len(self._pairs) // 2
        lengths = np.fromiter(map(len, texts if text.isascii() else map(str.encode, texts)), np.int32, len(texts))
        starts = len(DICTIONARY_TEXT) + len(self._text) + np.cumsum(lengths, dtype=np.int32) - lengths
        names = np.stack([~starts, lengths], axis=-1).reshape(len(relations), -1)
        added = np.tile(np.frombuffer(pairs, np.int32), (len(relations), 1))
        added[:, 2 : 2 + names.shape[1]] = names
        self._pairs.frombytes(added.reshape(-1).view(np.uint8).data)
        self._text += text
        return range(first, first + len(relations) * len(pairs) // 2, len(pairs) // 2)

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
        if len(self._text) + len(text) > MOST_TEXT_OF_BATCH:
            return None
        lengths = [*map(len, texts)]
        starts = [~at for at in accumulate(lengths, initial=len(DICTIONARY_TEXT) + len(self._text))]
        self._text += text
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
