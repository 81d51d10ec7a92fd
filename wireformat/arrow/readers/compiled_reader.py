"""A reader whose compiled part takes the usual forms of a type's texts, and leaves the others to a cast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array
from ..noted_texts import NotedTexts
from .reader import FEW_TEXTS, Misfits, Texts, ValueReader, as_noted, as_strings


@dataclass(frozen=True)
class CompiledReader:
    """Values that compiled code reads, all but a few.

    read_usual  returns the values, and int64[m]: the rows whose texts are not in a usual form, which are null
    others      reads the texts of those rows: the reference, since both read a text as the same value
    few         fewer texts than this are left to `others`
    """

    read_usual: Callable[[NotedTexts], tuple[pa.Array, Array]]
    others: ValueReader
    few: int = FEW_TEXTS

    @property
    def type(self) -> pa.DataType:
        """See ValueReader.type."""
        return self.others.type

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """See ValueReader.read."""
        if not isinstance(texts, NotedTexts) and texts.null_count == len(texts):
            return pa.nulls(len(texts), self.type), {}
        noted = as_noted(texts)
        if len(noted.pairs) < self.few:
            return self.others.read(as_strings(texts))
        column, left = self.read_usual(noted)
        if not len(left):
            return column, {}
        if len(left) == len(column):
            return self.others.read(as_strings(texts))
        values, misfits = self.others.read(noted.chosen(left).strings())
        if len(misfits) < len(left):
            is_left = np.zeros(len(column), bool)
            is_left[left] = True
            column = pc.replace_with_mask(column, pa.array(is_left), values)
        return column, {int(left[row]): found for row, found in misfits.items()}
