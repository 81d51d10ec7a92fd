"""Readers that give Python objects: the construct declaration, struct by hand, this package's events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import wireformat as wf

from .contestants import Contestant
from .generate import FORMAT
from .struct_reader import read_message


def count_events(messages: Sequence[bytes], engine: str) -> int:
    """Go through the events, one at a time."""
    return sum(1 for _ in wf.decode(messages, FORMAT, engine=engine))


def count_struct_rows(messages: Sequence[bytes]) -> int:
    """Go through the rows of the reader by hand, a message at a time."""
    return sum(len(read_message(message)) for message in messages)


DECLARATION = "construct declaration"
STRUCT = "struct by hand"
EVENTS = "wf.decode (events)"

ROW_FIELDS = 6  # kind, lsn, table_schema, table_name, new, old

CONTESTANTS = (
    Contestant(
        DECLARATION, partial(count_events, engine="declaration"), columns=ROW_FIELDS, share=0.03, bytes_objects=True
    ),
    Contestant(STRUCT, count_struct_rows, columns=ROW_FIELDS, bytes_objects=True),
    Contestant(EVENTS, partial(count_events, engine="scan"), columns=ROW_FIELDS, bytes_objects=True),
)
