"""Tables of states for walks over texts: which bytes Python's strict decoders take for text in an encoding.

    states: uint8[n, 256], the next state for the current state and a byte. Each character begins and ends in state 0;
    the last state is that of bytes that are no text

UTF-8 has a table, and so do encodings whose characters have one or two bytes. The decoders of the latter report one
byte of a wrong character.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..arrays import Array, Int
from ..jit.compiler import inner
from .joined_texts import JOINABLE, LOOKS_AHEAD
from .primitives import UTF8_STATES, is_ascii_block

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
