"""Rewrites the texts of a scan that are in another encoding in UTF-8, many texts at a time; see joined_texts.py.

Walks over texts use tables of states, of the bytes that Python's strict decoders take for text in an encoding:

    states: uint8[n, 256], the next state for the current state and a byte. Each character begins and ends in state 0;
    the last state is that of bytes that are no text

UTF-8 has a table, and so do encodings whose characters have one or two bytes. The decoders of the latter report one
byte of a wrong character.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from ...limits import COLUMN_BYTES
from ...options import ReadOptions
from ..arrays import Array, Int, read_only
from ..jit.byte_ranges import copy_bytes
from ..jit.compiler import compiled, hot, inner
from ..jit.intrinsics import BLOCK, read_64
from .joined_texts import JOINABLE, LOOKS_AHEAD, decode_joined
from .notes import (
    CELL_FIELDS,
    COMPLETE,
    DETAIL,
    ENDS,
    GOOD,
    MAPS,
    NAME,
    NEEDS,
    PRESENT,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_SLACK,
    TIME_TEXT,
    TRANSCODE,
    VALUE,
    Notes,
)
from .primitives import UTF8_STATES, is_ascii_anywhere, is_ascii_block, same_bytes

JOINED_BYTES = 1 << 18
"""How many bytes of texts are joined: enough to make the calls free, few enough to stay in the cache."""

FIRST_JOINED_BYTES = 1 << 14
"""How many are joined first, to see whether many are invalid."""

MOST_FOUND = 1 << 15
"""How many pairs are found before their texts are decoded."""

MOST_TEXT = COLUMN_BYTES // 2
"""How large the text of a step may become here: pairs are int32, and the second look may add more text."""

LONGEST_SHARED, SLOTS = 64, 4096
"""Texts of up to LONGEST_SHARED bytes are decoded once for all pairs that have them, such as the names of columns. A
slot remembers the last text with its hash."""

MANY_INVALID = 100
"""After this many invalid texts, further ones are found before the texts are joined."""

LEAD = 8
"""Bytes before the joined texts: the last eight bytes of a text are read at once, however short it is."""

NO_ROOM = -1
"""The joined texts have no room for a text."""

ROW, ADDRESS, TEXT = range(3)
"""Fields of a found pair. ADDRESS is the index of the pair in the cells, or ~field for a field of the row. TEXT is the
index of its joined text, or NO_ROOM if the texts of the whole row need more room than there is, or one is invalid."""


@hot
def _join(data: Array, start: Int, length: Int, joined: Array, starts: Array, slots: Array, texts: Int) -> Int:
    """Returns the index of a text among the joined ones, or NO_ROOM; it is `texts` if the text was added to them.

    starts   int64[n], starts[i] : starts[i + 1] are the joined text i and its zero byte; the first one is LEAD
    slots    int32[SLOTS], indexes of joined texts by their hash. They may be those of earlier texts
    """
    to = starts[texts]
    if to + length + 1 + BLOCK > len(joined):
        return NO_ROOM
    if length <= LONGEST_SHARED and start + length >= 8:
        mask = ~(-1 << 8 * length) if length < 8 else np.int64(-1)
        last = read_64(data, start + length - 8) & mask  # the last eight bytes, and the eight bytes from the first one
        first = read_64(data, start) if length > 8 else last
        hashed = last ^ first << 5
        hashed ^= hashed >> 32
        hashed ^= hashed >> 16
        slot = (hashed ^ hashed >> 12 ^ length) & (SLOTS - 1)
        seen = np.int64(slots[slot])
        if seen < texts and starts[seen + 1] - starts[seen] == length + 1:
            other = starts[seen]
            is_same = last == read_64(joined, other + length - 8) & mask
            if length > 8:
                is_same = is_same and first == read_64(joined, other)
            if is_same and (length <= 16 or same_bytes(data, start, joined, other, length)):
                return seen
        slots[slot] = texts
    joined[copy_bytes(joined, to, data, start, length)] = 0
    starts[texts + 1] = to + length + 1
    return texts


@partial(compiled, by_byte=True)
def _join_texts(
    rows: Array,
    begin: Int,
    count: Int,
    cells: Array,
    buffer: Array,
    text: Array,
    known_bytes: Int,
    states: Array,
    joined: Array,
    starts: Array,
    slots: Array,
    found: Array,
) -> tuple[Int, Int, Int]:
    """Joins the texts that are not ASCII of the rows that need it, from row `begin` on, until there is no more room.

    text          uint8[k], of the notes, read-only: of the same type as the buffer, so that one code reads both
    known_bytes   length of the text of the dictionary and of relations, which is in UTF-8
    states        the table of the encoding, if rows with an invalid text are to be found before they are joined, or
                  NO_STATES
    joined        uint8[JOINED_BYTES or less], filled; for starts and slots see `_join`
    found         int32[MOST_FOUND, 3], filled with the pairs of these texts, in the order of their rows
    returns       the row to continue with, the number of joined texts, the number of pairs
    """
    texts = pairs = np.int64(0)
    starts[0] = LEAD
    for row in range(begin, count):
        if rows[STATUS, row] != GOOD or rows[NEEDS, row] & TRANSCODE == 0:
            continue
        texts_before, pairs_before = texts, pairs
        has_room = are_texts = True
        for map_index in range(-1, len(MAPS)):  # -1: the fields of the row
            first_field, fields = TABLE_SCHEMA, TIME_TEXT + 1
            cell, cell_end = np.int64(row), np.int64(row) + 1
            if map_index >= 0:
                is_noted = map_index != DETAIL and rows[PRESENT, row] >> (COMPLETE + map_index) & 1 == 0
                first_field, fields = (NAME, CELL_FIELDS) if is_noted else (VALUE, VALUE + 1)
                cell = rows[ENDS + map_index, row - 1] if row > 0 else 0
                cell_end = rows[ENDS + map_index, row]
            cell_begin = cell
            for field in range(first_field, fields):
                if map_index < 0 and field != TABLE_SCHEMA and field != TABLE_NAME and field != TIME_TEXT:
                    continue
                for cell in range(cell_begin, cell_end):
                    if map_index < 0:
                        start, length, address = rows[field, row], rows[field + 1, row], ~np.int64(field)
                    else:
                        start, length = (
                            np.int64(cells[map_index, field, cell, 0]),
                            np.int64(cells[map_index, field, cell, 1]),
                        )
                        address = (map_index * CELL_FIELDS + field) * cells.shape[2] + cell
                    if length <= 0 or (start < 0 and ~start < known_bytes):
                        continue
                    data = buffer if start >= 0 else text
                    if start < 0:
                        start = ~start
                    if is_ascii_anywhere(data, start, length):
                        continue
                    if len(states) > 1 and not is_text(data, start, length, states):
                        are_texts = False
                        break
                    index = np.int64(NO_ROOM)
                    if pairs < len(found):
                        index = _join(data, start, length, joined, starts, slots, texts)
                    if index == NO_ROOM:
                        has_room = False
                        break
                    texts += index == texts
                    found[pairs, ROW], found[pairs, ADDRESS], found[pairs, TEXT] = row, address, index
                    pairs += 1
                if not (has_room and are_texts):
                    break
            if not (has_room and are_texts):
                break
        if not are_texts:
            texts, pairs = texts_before, pairs_before
            if pairs == len(found):
                return row, texts, pairs
            found[pairs, ROW], found[pairs, TEXT] = row, NO_ROOM
            pairs += 1
        elif not has_room:
            texts, pairs = texts_before, pairs_before
            if pairs > 0:
                return row, texts, pairs
            found[0, ROW], found[0, TEXT] = row, NO_ROOM
            return row + 1, 0, 1
    return count, texts, pairs


@compiled
def _note_decoded(
    rows: Array, begin: Int, end: Int, cells: Array, found: Array, pairs: Int, offsets: Array, bad: Array
) -> None:
    """Notes the decoded texts in the rows in which all of them are good, which then need no TRANSCODE.

    begin, end   the rows of the found pairs
    cells        int32[n, 2], the pairs of all cells
    offsets      int64[texts + 1], offsets[i] : offsets[i + 1] - 1 is the decoded text i in the text of the notes
    bad          uint8[texts], whether the second look must decode the text
    """
    pair = 0
    for row in range(begin, end):
        if rows[STATUS, row] != GOOD or rows[NEEDS, row] & TRANSCODE == 0:
            continue
        first = pair
        is_good = True
        while pair < pairs and found[pair, ROW] == row:
            index = found[pair, TEXT]
            if index < 0 or bad[index]:
                is_good = False
            pair += 1
        if not is_good:
            continue
        for at in range(first, pair):
            index = found[at, TEXT]
            address = np.int64(found[at, ADDRESS])
            start, length = ~offsets[index], offsets[index + 1] - offsets[index] - 1
            if address < 0:
                rows[~address, row] = start
                rows[~address + 1, row] = length
            else:
                cells[address, 0] = start
                cells[address, 1] = length
        rows[NEEDS, row] &= ~TRANSCODE


class Transcoder:
    """Transcodes the texts of the rows of a scan."""

    def __init__(self, options: ReadOptions) -> None:
        self._encoding, self._errors = options.encoding, options.encoding_errors
        self._joined = np.empty(JOINED_BYTES, np.uint8)
        self._starts = np.zeros(MOST_FOUND + 1, np.int64)
        self._slots = np.zeros(SLOTS, np.int32)
        self._found = np.empty((MOST_FOUND, 3), np.int32)
        self._has_begun, self._invalid = False, 0

    def transcode(self, notes: Notes, count: int, buffer: Array, known_bytes: int, used: int) -> tuple[Array, int]:
        """Transcodes the texts of the rows of a step that need it. Leaves out rows with an invalid text, or with too
        much text.

        known_bytes   see `_join_texts`; in a later step they are more, if relations were learned
        used          how many bytes of the text of the notes are used
        returns       the text of the notes, or a larger one in its place, and how many bytes of it are used
        """
        rows, cells, text = notes
        flat_cells = cells.reshape(-1, 2)
        row = 0
        while row < count and used < MOST_TEXT:
            begin = row
            joined, self._has_begun = self._joined if self._has_begun else self._joined[:FIRST_JOINED_BYTES], True
            row, texts, pairs = _join_texts(
                rows,
                begin,
                count,
                cells,
                buffer,
                read_only(text[:]),
                known_bytes,
                self._states(),
                joined,
                self._starts,
                self._slots,
                self._found,
            )
            ends = self._starts[1 : texts + 1] - LEAD - 1
            data, offsets, bad = decode_joined(
                self._joined[LEAD : self._starts[texts]], ends, self._encoding, self._errors
            )
            self._invalid += int(np.count_nonzero(bad))
            text = with_room(text, used, len(data) + TEXT_SLACK)
            text[used : used + len(data)] = data
            offsets += used
            used += len(data)
            _note_decoded(rows, begin, row, flat_cells, self._found, pairs, offsets, bad)
        return text, used

    def _states(self) -> Array:
        """Returns the table of the encoding once many texts were invalid: Python's decoder takes longer for those."""
        if self._errors != "strict" or self._invalid < MANY_INVALID:
            return NO_STATES
        states = text_states(self._encoding)
        return NO_STATES if states is None else states


def with_room(text: Array, used: int, size: int) -> Array:
    """Returns the text of notes, or a larger copy of what is used of it if it has less than `size` bytes of room."""
    if used + size <= len(text):
        return text
    larger = np.empty(max(used + size, min(2 * len(text), COLUMN_BYTES)), np.uint8)
    larger[:used] = text[:used]
    return larger


NO_STATES = np.zeros((1, 256), np.uint8)
"""In the place of a table."""


@cache
def text_states(encoding: str) -> Array | None:
    """Returns the table of an encoding, or None if it has none."""
    if encoding == "utf-8":
        return UTF8_STATES
    if encoding in LOOKS_AHEAD or encoding not in JOINABLE:
        return None
    second_of = {first: _seconds(first, encoding) for first in range(256) if "\ufffd" in _replaced([first], encoding)}
    rows = sorted({second.tobytes() for second in second_of.values()})
    states = np.full((len(rows) + 2, 256), len(rows) + 1, np.uint8)
    states[0] = 0
    for index, row in enumerate(rows):
        states[index + 1, np.frombuffer(row, np.bool_)] = 0
    for first, second in second_of.items():
        states[0, first] = rows.index(second.tobytes()) + 1
    return states


def _seconds(first: int, encoding: str) -> Array:
    """Returns bool[256]: the bytes that complete a character after the first one."""
    decoded = _replaced([byte for second in range(1, 256) for byte in (first, second, 0)], encoding).split("\0")
    return np.array([False, *("\ufffd" not in text for text in decoded[:-1])], np.bool_)


def _replaced(data: list[int], encoding: str) -> str:
    return bytes(data).decode(encoding, "replace")


@inner
def is_text(data: Array, start: Int, length: Int, states: Array) -> bool:
    """Whether a text is one by a table of states."""
    state = np.int64(0)
    at, stop = start, start + length
    while at < stop:
        if state == 0 and stop - at >= 8 and is_ascii_block(data, at):
            at += 8
        else:
            state = np.int64(states[state, data[at]])
            at += 1
    return state == 0
