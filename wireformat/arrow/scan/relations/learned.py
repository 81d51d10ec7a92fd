"""The memory for the relations that scans have learned: it grows, and is kept from one message batch to the next."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..dictionary import DICTIONARY_TEXT
from ..notes import (
    CURSOR_FIELDS,
    FIRST_LEARNED,
    LEARNED_END,
    LEARNED_FULL,
    LEARNED_USED,
    NEWEST,
    NEXT_ENTRY,
    NO_ROOM,
    SLOTS,
    WANTS_ROOM,
    ScanInput,
)

LEAST_ENTRIES, MOST_ENTRIES = 1 << 14, 1 << 19
LEAST_TEXT, MOST_TEXT = 1 << 17, 1 << 22
"""How many entries of the dictionary, and bytes of text, there is room for: that of four hundred tables of eight
columns at first, and of some ten thousand then. Growing ends a step, and a step takes time."""


class LearnedRelations:
    """What the scans of one stream have learned, for one scan at a time. A scan adds to it, and changes nothing in it.

    dictionary   int32[d, 2]: that of the scan's input, then the learned relations
    cursor       int64[CURSOR_FIELDS + SLOTS]: the scan's cursor, with the slots in which tables are looked up
    """

    def __init__(self, scan_input: ScanInput) -> None:
        self._input = scan_input
        self._begin = len(DICTIONARY_TEXT) + len(scan_input.text)
        self.cursor = np.zeros(CURSOR_FIELDS + SLOTS, np.int64)
        self._lent = 0
        self._forget()

    @property
    def room(self) -> int:
        """How many bytes of the notes' text are for the relations: they follow the text of the scan's input."""
        return len(self._text)

    def begin(self) -> None:
        """Begins a message batch."""
        if self.cursor[LEARNED_FULL] == NO_ROOM:
            self._forget()
        self.cursor[:FIRST_LEARNED] = 0

    def make_room(self) -> None:
        """Makes more room before a step, where the last one stopped to get it."""
        if self.cursor[LEARNED_FULL] == WANTS_ROOM:
            entries, text = len(self.dictionary) - len(self._input.dictionary), len(self._text)
            if entries >= MOST_ENTRIES or text >= MOST_TEXT:
                self.cursor[LEARNED_FULL] = NO_ROOM
            else:
                self._grow(MOST_ENTRIES, MOST_TEXT)

    def lend(self, text: Array) -> None:
        """Writes the learned texts to the text of the notes, before a step."""
        self._lent = self._used
        text[self._begin : self._begin + self._lent] = self._text[: self._lent]
        self.cursor[LEARNED_END] = self._begin + len(self._text)

    def take_back(self, text: Array) -> None:
        """Keeps what the step has learned."""
        learned = slice(self._lent, self._used)
        self._text[learned] = text[self._begin :][learned]

    @property
    def _used(self) -> int:
        return int(self.cursor[LEARNED_USED]) - self._begin

    def _forget(self) -> None:
        self.dictionary, self._text = self._input.dictionary, np.empty(0, np.uint8)
        self._grow(LEAST_ENTRIES, LEAST_TEXT)
        self.cursor[NEWEST:] = 0  # and the slots
        self.cursor[FIRST_LEARNED] = self.cursor[NEXT_ENTRY] = len(self._input.dictionary)
        self.cursor[LEARNED_USED] = self._begin

    def _grow(self, entries: int, text: int) -> None:
        """Makes room for this many entries of the dictionary, and bytes of text."""
        known = len(self._input.dictionary)
        dictionary, learned = np.zeros((known + entries, 2), np.int32), np.empty(text, np.uint8)
        dictionary[: len(self.dictionary)], learned[: len(self._text)] = self.dictionary, self._text
        self.dictionary, self._text = dictionary, learned
        self.cursor[LEARNED_FULL] = 0
