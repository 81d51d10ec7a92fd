"""What messages of a batch say of relations, for those who read other records of the batch themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....formats.pgoutput.relations import RelationMessage, Relations
from ...arrays import Array


class Described(NamedTuple):
    """The relations that messages of a batch describe and that the scan reads by itself, in order.

    The reader to which the scan leaves other records must learn them.
    """

    messages: Array
    """int64[n]: batch indexes of these messages"""
    indexes: Array
    """int64[n]: indexes of their relations in `relations`"""
    relations: list[RelationMessage]

    def learn(self, known: Relations, begin: int, message: int) -> int:
        """Lets `known` learn what messages before this one say, from item `begin` on; returns where to continue."""
        if begin == len(self.messages):
            return begin
        end = int(np.searchsorted(self.messages, message))
        if begin < end:
            indexes = self.indexes[begin:end]
            if (indexes[1:] > indexes[:-1]).all():
                found = indexes.tolist()
            else:  # of each only the last time counts
                found = [*dict.fromkeys(indexes[::-1].tolist())][::-1]
            known.describe([self.relations[index] for index in found])
        return end


NOTHING_DESCRIBED = Described(np.empty(0, np.int64), np.empty(0, np.int64), [])
