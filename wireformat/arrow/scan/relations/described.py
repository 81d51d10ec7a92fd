"""What messages of a batch say of relations, for those who read other records of the batch themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....formats.pgoutput.relation_messages import number_of
from ....formats.pgoutput.relations import ReadMessage, RelationMessage, Relations, no_bytes
from ...arrays import Array


class Described(NamedTuple):
    """The relations that messages of a batch describe and that the scan reads by itself, in order.

    The reader to which the scan leaves other records must learn them.
    """

    facts: Array
    """int64[3, n]: batch indexes of these messages, indexes of their relations in `relations`, and their numbers"""
    relations: list[RelationMessage | bytes]
    read: ReadMessage
    """reads those that are bytes"""

    def known_numbers(self) -> list[int]:
        """The numbers of all in `relations`."""
        return [number_of(one) if isinstance(one, bytes) else one.relation_id for one in self.relations]

    def learn(self, known: Relations, begin: int, message: int) -> int:
        """Lets `known` learn what messages before this one say, from item `begin` on; returns where to continue."""
        messages, indexes, numbers = self.facts
        if begin == len(messages):
            return begin
        end = int(np.searchsorted(messages, message))
        if begin < end:
            found = map(self.relations.__getitem__, indexes[begin:end].tolist())
            known.describe(zip(numbers[begin:end].tolist(), found, strict=True), self.read)
        return end


NOTHING_DESCRIBED = Described(np.empty((3, 0), np.int64), [], no_bytes)
