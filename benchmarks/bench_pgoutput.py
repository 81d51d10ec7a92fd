"""pgoutput: this package, beside a reader by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from unittest.mock import patch

import pyarrow as pa

import wireformat as wf
from wireformat.arrow.columns.complete_images import expand_complete_images
from wireformat.arrow.columns.gather import record_batch
from wireformat.arrow.engine import scan_engine
from wireformat.arrow.scan.notes import ScannedRows

from . import pgoutput_reader, struct_reader
from .bench_scan import scan_alone
from .contestants import Contestant, as_list
from .generate import PGOUTPUT


def count_rows(messages: Sequence[bytes]) -> int:
    """Go through the rows of the reader by hand."""
    return len(pgoutput_reader.read_messages(messages))


def count_live_events(messages: Sequence[bytes]) -> int:
    """Go through the events of a generator, which are there before the next message is asked for."""
    return sum(1 for _ in wf.decode((message for message in messages), PGOUTPUT))


def count_decoded_events(messages: Sequence[bytes]) -> int:
    """Give each message to a decoder."""
    decoder = wf.Decoder(PGOUTPUT)
    return sum(len(decoder.decode(message)) for message in messages)


def changes_cell_by_cell(messages: pa.ChunkedArray) -> pa.Table:
    """Decode as if each cell had noted its own name and type: what complete images are worth."""

    def spelled(scanned: ScannedRows, schema: pa.Schema) -> pa.RecordBatch:
        expand_complete_images(scanned.rows, scanned.row_count, scanned.cells, scanned.dictionary)
        return record_batch(scanned, schema)

    with patch.object(scan_engine, "record_batch", spelled):
        return wf.arrow.changes(messages, PGOUTPUT, threads=1)


CHANGES = "wf.arrow.changes, pgoutput"
ONE_THREAD = "pgoutput in one thread"
CELL_BY_CELL = "in one thread, names and types cell by cell"
STRUCT = "pgoutput with struct by hand"

LIVE = "pgoutput of a generator (events)"
ONE_BY_ONE = "pgoutput, Decoder.decode (events)"

LIVE_SHARE = 0.03
"""What comes one by one takes a hundred times as long."""

ALL = len(wf.arrow.CHANGES)

CONTESTANTS = (
    Contestant(CHANGES, partial(wf.arrow.changes, format=PGOUTPUT), columns=ALL, source=PGOUTPUT),
    Contestant(ONE_THREAD, partial(wf.arrow.changes, format=PGOUTPUT, threads=1), columns=ALL, source=PGOUTPUT),
    Contestant(CELL_BY_CELL, changes_cell_by_cell, columns=ALL, source=PGOUTPUT),
    Contestant(LIVE, count_live_events, columns=ALL, source=PGOUTPUT, takes=as_list, share=LIVE_SHARE),
    Contestant(ONE_BY_ONE, count_decoded_events, columns=ALL, source=PGOUTPUT, takes=as_list, share=LIVE_SHARE),
    Contestant(STRUCT, count_rows, columns=struct_reader.FIELDS, source=PGOUTPUT, takes=as_list),
    scan_alone(PGOUTPUT),
)
