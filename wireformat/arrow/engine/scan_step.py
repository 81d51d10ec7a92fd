"""What a step of a scan has noted, for those who read its records again."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Array
from ..scan.message_batches import MessageBatch
from ..scan.notes import Notes
from ..scan.relations.described import Described


class ScanStep(NamedTuple):
    """What a step of a scan has noted, and what it was given; see BatchScan."""

    message_batch: MessageBatch
    notes: Notes
    dictionary: Array
    settings: Array
    described: Described
    known_bytes: int
    """See BatchScan.known_bytes."""
