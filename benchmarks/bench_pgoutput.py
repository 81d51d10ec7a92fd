"""pgoutput: this package, beside a reader by hand."""

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
ONE_THREAD = "pgoutput in one thread"
STRUCT = "pgoutput with struct by hand"

ALL = len(wf.arrow.CHANGES)

CONTESTANTS = (
    Contestant(CHANGES, partial(wf.arrow.changes, format=PGOUTPUT), columns=ALL, source=PGOUTPUT),
    Contestant(ONE_THREAD, partial(wf.arrow.changes, format=PGOUTPUT, threads=1), columns=ALL, source=PGOUTPUT),
    Contestant(STRUCT, count_rows, columns=struct_reader.FIELDS, source=PGOUTPUT, takes=as_list),
)
