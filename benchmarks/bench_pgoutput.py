"""pgoutput on one core: this package, beside a reader by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import wireformat as wf

from . import pgoutput_reader, struct_reader
from .contestants import Contestant, as_list
from .generate import PGOUTPUT


def count_rows(messages: Sequence[bytes]) -> int:
    """Go through the rows of the reader by hand."""
    return len(pgoutput_reader.read_messages(messages))


CHANGES = "wf.arrow.changes, pgoutput"
STRUCT = "pgoutput with struct by hand"

CONTESTANTS = (
    Contestant(CHANGES, partial(wf.arrow.changes, format=PGOUTPUT), columns=len(wf.arrow.CHANGES), source=PGOUTPUT),
    Contestant(STRUCT, count_rows, columns=struct_reader.FIELDS, source=PGOUTPUT, takes=as_list),
)
