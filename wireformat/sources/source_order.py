"""The order of sources: that of the positions in their messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import OrderError
from ..lsn import lsn_text, unsigned


class SourceBegin(NamedTuple):
    """Where a source begins: the position of its first transaction that has one.

    column    csn or commit_lsn
    value     unsigned
    message   index of its BEGIN
    """

    column: str
    value: int
    message: int


def begin_of(batch: pa.RecordBatch) -> SourceBegin | None:
    """Returns where rows begin; None if no row has a position."""
    begins = batch.filter(pc.equal(batch["kind"], "BEGIN"))
    for name in ("csn", "commit_lsn"):
        values = begins[name].drop_null()
        if len(values):
            return SourceBegin(name, unsigned(values[0].as_py()), begins["message"][0].as_py())
    return None


class SourceOrder:
    """Checks that sources come in the order of their positions: each begins at or after the beginning of the last one.

    Raises OrderError, which names both.
    """

    COLUMNS = ("kind", "message", "csn", "commit_lsn")

    def __init__(self, format: str) -> None:
        self._format = format
        self._begin: SourceBegin | None = None
        self._source: str | None = None

    def take(self, batch: pa.RecordBatch, sources: Sequence[tuple[int, str]]) -> None:
        """Looks at the next rows.

        sources   those that the rows may be of, in order: the index of the first message of each, and its name
        """
        names = [name for _, name in sources]
        begun = names.index(self._source) + 1 if self._source in names else 0
        if begun == len(names):
            return
        begins = batch.filter(pc.equal(batch["kind"], "BEGIN"))
        firsts = [*(first for first, _ in sources[begun:]), np.iinfo(np.int64).max]
        bounds = np.searchsorted(np.asarray(begins["message"]), firsts).tolist()
        for (start, stop), name in zip(pairwise(bounds), names[begun:], strict=True):
            self.take_begin(begin_of(begins.slice(start, stop - start)), name)

    def take_begin(self, begin: SourceBegin | None, source: str) -> None:
        """Looks at where the next rows begin."""
        if begin is None or source == self._source:
            return
        earlier, before = self._begin, self._source
        self._source, self._begin = source, begin
        if earlier is None or earlier.column != begin.column or earlier.value <= begin.value:
            return
        text = str if begin.column == "csn" else lsn_text
        raise OrderError(
            f"a source that begins at or after {before}, at {begin.column} {text(earlier.value)}",
            f"{source}, which begins at {text(begin.value)}",
            format=self._format,
            message=begin.message,
            state="between sources",
            open="",
            hint="give the files in the order of the stream, or name the columns that order the messages with order_by",
        )
