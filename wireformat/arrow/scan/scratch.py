"""Room for a scan's notes: how much a chunk needs, and what earlier scans have left.

The first touch of fresh memory is slow, so that room is used again.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from ...limits import CHUNK_BYTES, CHUNK_CELLS, CHUNK_ROWS
from .dictionary import DICTIONARY_TEXT
from .message_batches import MessageBatch
from .notes import Notes, make_notes
from .row_notes import text_needed

LEAST_ROW_BYTES = 5  # of BEGIN alone, the smallest record of any text style
LEAST_CELL_BYTES = 7  # of a column as TEXT prints it; NULLs of pgoutput are smaller, and cost a second call

SPARE_TEXT_BYTES = 2 * text_needed(CHUNK_BYTES, CHUNK_CELLS)
"""Room for more text than this was made for a huge record: it is not kept."""

MOST_SPARE = 4
_spare: deque[Notes] = deque(maxlen=MOST_SPARE)


def take_scratch(chunk: MessageBatch, held: Notes | None, record_text: int, known_text: int) -> Notes:
    """Notes with room for the chunk, never for more than CHUNK_ROWS and CHUNK_CELLS at once.

    held            what may be enough; else what is there is looked at, and room is made
    record_text     bytes of text that one record needs, if it is known to need more than usual
    known_text      bytes of text beside what the scan writes
    """
    size = len(chunk.buffer)
    rows = min(size // LEAST_ROW_BYTES + len(chunk.starts) + 2, CHUNK_ROWS)
    cells = min(size // LEAST_CELL_BYTES + 1, CHUNK_CELLS)
    text = max(text_needed(min(size, CHUNK_BYTES), cells), record_text) + known_text
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


def return_scratch(room: Notes) -> None:
    """Keep it for the next scan."""
    if len(room.text) <= SPARE_TEXT_BYTES:
        _spare.append(room)
