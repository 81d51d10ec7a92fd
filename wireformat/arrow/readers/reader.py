"""What a reader of a column is: from texts to the values of an Arrow type."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import pyarrow as pa

from ..noted_texts import NotedTexts

Texts: TypeAlias = "pa.StringArray | NotedTexts"
"""The texts of a column: in a column of their own, or where they were noted."""

FEW_TEXTS = 256
"""Up to this many texts, a cast takes less time than loading a compiled reader, and far less than compiling it."""

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
