"""Readers that give Python objects: the construct declaration, struct by hand, this package's events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import wireformat as wf

from .contestants import Contestant, as_list
from .generate import BINARY
from .struct_reader import FIELDS, read_message


def count_events(messages: Sequence[bytes], engine: str) -> int:
    """Go through the events, one at a time."""
    return sum(1 for _ in wf.decode(messages, BINARY, engine=engine))


def count_struct_rows(messages: Sequence[bytes]) -> int:
    """Go through the rows of the reader by hand, a message at a time."""
    return sum(len(read_message(message)) for message in messages)


DECLARATION = "construct declaration"
STRUCT = "struct by hand"
EVENTS = "wf.decode (events)"

CONTESTANTS = (
    Contestant(DECLARATION, partial(count_events, engine="declaration"), columns=FIELDS, share=0.03, takes=as_list),
    Contestant(STRUCT, count_struct_rows, columns=FIELDS, takes=as_list),
    Contestant(EVENTS, partial(count_events, engine="scan"), columns=FIELDS, takes=as_list),
)
