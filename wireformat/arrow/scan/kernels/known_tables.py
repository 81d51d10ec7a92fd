"""The known tables of gaussdb-text, as entries of the dictionary: where blanks leave a choice, they tell the schema."""

from __future__ import annotations

import numpy as np

from ....formats.base import Format
from ....options import ReadOptions
from ...arrays import Array
from ..dictionary import DICTIONARY, DICTIONARY_TEXT
from ..notes import ScanInput
from ..registry import FindInput

FIRST_KNOWN, KNOWN_ENTRIES = len(DICTIONARY), 2
"""From FIRST_KNOWN on, for each table: the pair of `schema table`, and the length of the schema, which is no pair."""

NO_LENGTH = (1 << 31) - 1
"""Of a name that equals no bytes: the scan then leaves names that are not ASCII to the grammar."""


class KnownTables:
    """The known tables whose names contain blanks; see Preparation."""

    def __init__(self, settings: Array, options: ReadOptions) -> None:
        names = [
            (schema.encode(), table.encode()) for schema, table in options.known_tables if " " in f"{schema}{table}"
        ]
        entries, text = [], bytearray()
        for schema, table in sorted(names, key=lambda name: len(name[0])):  # the shortest schema first
            joined = schema + b" " + table
            is_comparable = options.encoding == "utf-8" or joined.isascii()
            length = len(joined) if is_comparable else NO_LENGTH
            entries += [(~(len(DICTIONARY_TEXT) + len(text)), length), (len(schema), 0)]
            text += joined
        dictionary = np.concatenate([DICTIONARY, np.array(entries, np.int32).reshape(-1, 2)])
        self._input = ScanInput(dictionary, settings, bytes(text))

    def begin(self, format: Format) -> FindInput:
        """See Preparation.begin."""
        return lambda message_batch: self._input
