"""The scratch: memory for a scan's notes. How much a message batch needs, and what earlier scans have returned.

The first touch of fresh memory is slow, so the memory is used again.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from ...limits import MESSAGE_BATCH_BYTES, MESSAGE_BATCH_CELLS, MESSAGE_BATCH_ROWS
from .dictionary import DICTIONARY_TEXT
from .message_batches import MessageBatch
from .notes import Notes, make_notes
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
