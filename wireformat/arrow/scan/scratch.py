"""Memory of scans: the scratch for a scan's notes, and the relations that scans have learned.

How much scratch a message batch needs, and what earlier scans have returned: the first touch of fresh memory is slow,
so the memory is used again. The memory for learned relations grows, and is kept from one message batch to the next.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

import numpy as np

from ...limits import MESSAGE_BATCH_BYTES, MESSAGE_BATCH_CELLS, MESSAGE_BATCH_ROWS
from ..arrays import Array
from .dictionary import DICTIONARY_TEXT
from .message_batches import MessageBatch
from .notes import (
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
    Notes,
    ScanInput,
    make_notes,
)
from .row_notes import max_text_bytes

LEAST_ROW_BYTES = 5  # of BEGIN alone, the smallest record of any text style
LEAST_CELL_BYTES = 7  # of a column as TEXT prints it; NULLs of pgoutput are smaller, and cost a second call

SPARE_TEXT_BYTES = 2 * max_text_bytes(MESSAGE_BATCH_BYTES, MESSAGE_BATCH_CELLS)
"""Scratch with more text than this was made for a huge record, and is not kept."""

MOST_SPARE = 4
_spare: deque[Notes] = deque(maxlen=MOST_SPARE)


def take_scratch(message_batch: MessageBatch, held: Notes | None, record_text: int, known_text: int) -> Notes:
    """Returns memory for the notes on a batch, never for more than MESSAGE_BATCH_ROWS and MESSAGE_BATCH_CELLS at once.

    held            notes that may be large enough; None: takes spare ones. If they are too small, new ones are made
    record_text     bytes of text that one record needs, if it is known to need more than usual
    known_text      bytes of text besides what the scan writes
    """
    size = len(message_batch.buffer)
    rows = min(size // LEAST_ROW_BYTES + len(message_batch.starts) + 2, MESSAGE_BATCH_ROWS)
    cells = min(size // LEAST_CELL_BYTES + 1, MESSAGE_BATCH_CELLS)
    text = max(max_text_bytes(min(size, MESSAGE_BATCH_BYTES), cells), record_text) + known_text
    if held is None:
        with suppress(IndexError):
            held = _spare.pop()
    enough = (
        held is not None
        and held.rows.shape[1] >= rows
        and held.cells.shape[2] >= cells
        and len(held.text) >= len(DICTIONARY_TEXT) + text
    )
    return held if held is not None and enough else make_notes(rows, cells, text)


def return_scratch(notes: Notes) -> None:
    """Keeps the memory for the next scan."""
    if len(notes.text) <= SPARE_TEXT_BYTES:
        _spare.append(notes)


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
