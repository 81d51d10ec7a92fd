"""What messages of a batch say of relations, for those who read other records of the batch themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....formats.pgoutput.messages import number_of
from ....formats.pgoutput.relations import ReadMessage, RelationMessage, Relations, no_bytes
from ...arrays import Array

OUTSIDE = -1
"""In place of the xid of a block, where none is open."""

KEPT, DROPPED = -1, -2
"""In place of the index of a relation: a streamed transaction ends, and what its blocks describe is kept or dropped."""


class Described(NamedTuple):
    """The relations that messages of a batch describe and that the scan reads by itself, in order.

    The reader to which the scan leaves other records must learn them, and which block is open.
    """

    facts: Array
    """int64[4, n]: batch indexes of these messages, indexes of their relations in `relations`, their numbers, and the
    transaction in whose block each is, or OUTSIDE. Of the end of such a transaction: KEPT or DROPPED, 0, and its xid"""
    relations: list[RelationMessage | bytes]
    read: ReadMessage
    """reads those that are bytes"""
    blocks: Array
    """int64[2, n]: batch indexes of messages after which a block is open or not, and its xid or OUTSIDE"""

    def known_numbers(self) -> list[int]:
        """The numbers of all in `relations`."""
        return [number_of(one) if isinstance(one, bytes) else one.relation_id for one in self.relations]

    def learn(self, known: Relations, begin: int, message: int) -> int:
        """Lets `known` learn what messages before this one say, from item `begin` on; returns where to continue."""
        messages, indexes, numbers, xids = self.facts
        end = begin if begin == len(messages) else int(np.searchsorted(messages, message))
        if begin < end:
            is_end = indexes[begin:end] < 0
            is_cut = is_end[1:] | is_end[:-1] | (xids[begin + 1 : end] != xids[begin : end - 1])
            firsts = [begin, *(np.flatnonzero(is_cut) + begin + 1).tolist()]
            for first, stop in zip(firsts, [*firsts[1:], end], strict=True):
                index, xid = int(indexes[first]), int(xids[first])
                if index < 0:
                    known.end(xid, index == KEPT)
                    continue
                found = map(self.relations.__getitem__, indexes[first:stop].tolist())
                described = zip(numbers[first:stop].tolist(), found, strict=True)
                known.describe(described, self.read, None if xid == OUTSIDE else xid)
        changes = int(np.searchsorted(self.blocks[0], message)) if self.blocks.shape[1] else 0
        if changes:
            block = int(self.blocks[1, changes - 1])
            known.block = None if block == OUTSIDE else block
        return end


NOTHING_DESCRIBED = Described(np.empty((4, 0), np.int64), [], no_bytes, np.empty((2, 0), np.int64))
