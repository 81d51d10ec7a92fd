"""wf.arrow.changes: all columns, three columns, and filtered to one table of many."""

from __future__ import annotations

from functools import partial

import wireformat as wf

from .bench_scan import scan_alone
from .contestants import Contestant
from .generate import BINARY, ONE_TABLE

ALL_COLUMNS = "wf.arrow.changes, all columns"
ONE_THREAD = "the same in one thread"
THREE_COLUMNS = "wf.arrow.changes, kind lsn new"
ONE_OF_MANY = "wf.arrow.changes, 1 table of 20"

THREE = ("kind", "lsn", "new")
ALL = len(wf.arrow.CHANGES)

CONTESTANTS = (
    Contestant(ALL_COLUMNS, partial(wf.arrow.changes, format=BINARY), columns=ALL),
    Contestant(ONE_THREAD, partial(wf.arrow.changes, format=BINARY, threads=1), columns=ALL),
    Contestant(THREE_COLUMNS, partial(wf.arrow.changes, format=BINARY, columns=THREE), columns=len(THREE)),
    Contestant(
        ONE_OF_MANY,
        partial(wf.arrow.changes, format=BINARY, tables=[".".join(ONE_TABLE)]),
        columns=ALL,
        delivers="one_table",
    ),
    scan_alone(BINARY),
)
