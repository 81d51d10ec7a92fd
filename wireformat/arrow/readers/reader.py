"""What a reader of a column is: from texts to the values of an Arrow type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array
from ..noted_texts import NotedTexts

Texts: TypeAlias = "pa.StringArray | NotedTexts"
"""The texts of a column: in a column of their own, or where they were noted."""

FEW_TEXTS, FEW_BYTES = 256, 1 << 16
"""Up to this many texts, of so many bytes, a cast takes less time than loading a compiled reader, and far less than
compiling it."""

Misfits = dict[int, str]
"""Index of a row to a description of its value, which does not fit the type. The cell is null."""


class ValueReader(Protocol):
    """Reads the texts of a column as values of a type."""

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """Returns the values, null for a null text, and the values that do not fit."""


class TextReader:
    """Returns texts unchanged."""

    type = pa.string()

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """See ValueReader.read."""
        return as_strings(texts), {}


def as_strings(texts: Texts) -> pa.StringArray:
    """Returns the texts as a string column, which is copied only if there is none."""
    return texts.strings() if isinstance(texts, NotedTexts) else texts


def as_noted(texts: Texts) -> NotedTexts:
    """Returns where the texts are; they are not copied."""
    return texts if isinstance(texts, NotedTexts) else NotedTexts.of(texts)


def are_few(noted: NotedTexts, few: int = FEW_TEXTS) -> bool:
    """Whether compiled code is not worth its loading."""
    return len(noted.pairs) < few and int(noted.pairs[:, 1].sum(dtype=np.int64)) < FEW_BYTES


@dataclass(frozen=True)
class CompiledReader:
    """Values that compiled code reads, all but a few: it takes the usual forms of a type's texts.

    read_usual  returns the values, and int64[m]: the rows whose texts are not in a usual form, which are null
    others      reads the texts of those rows: the reference, since both read a text as the same value
    few         fewer texts than this are left to `others`, unless they are long
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
        if are_few(noted, self.few):
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
