"""The walk over heartbeats of the binary style; see wireformat/formats/gaussdb_binary.py."""

from __future__ import annotations

from ....framing.gauss_batch import BARE_HEARTBEAT_BYTES
from ...arrays import Int
from ...jit.compiler import inner
from ..dictionary import WAL_END_KEY, WAL_FLUSHED_KEY
from ..notes import DECLINED, GOOD, HEARTBEAT, KIND, ScanArrays
from ..primitives import read_64
from ..rare_records import make_rare_walk
from ..row_notes import note_heartbeat_time, note_number


@inner
def read_heartbeat(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes the three numbers of a heartbeat, which are the whole record after the kind; see rare_records.py."""
    if stop - at != BARE_HEARTBEAT_BYTES:
        return DECLINED
    arrays.rows[KIND, row] = HEARTBEAT
    note_number(arrays, row, WAL_END_KEY, read_64(arrays.buffer, at + 1), False)
    note_number(arrays, row, WAL_FLUSHED_KEY, read_64(arrays.buffer, at + 9), False)
    note_heartbeat_time(arrays, row, read_64(arrays.buffer, at + 17))
    return GOOD


walk_heartbeats = make_rare_walk("walk_heartbeats", read_heartbeat)
