"""The order of sources: that of the positions in their messages."""

from __future__ import annotations

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


def _begin_of(begins: pa.RecordBatch) -> SourceBegin | None:
    """Returns where BEGIN records begin; None if none has a position."""
    for name in ("csn", "commit_lsn"):
        values = begins[name].drop_null()
        if len(values):
            return SourceBegin(name, unsigned(values[0].as_py()), begins["message"][0].as_py())
    return None


class NamedBegin(NamedTuple):
    """Where a source begins.

    first   index of its first message
    """

    source: str
    first: int
    begin: SourceBegin


class SourceOrder:
    """Checks that sources come in the order of their positions: each begins at or after the beginning of the last one.

    `first` and `last` are the beginnings of the first and the last source with positions.

    Raises OrderError, which names both.
    """

    COLUMNS = ("kind", "message", "csn", "commit_lsn")

    def __init__(self, format: str) -> None:
        self._format = format
        self.first: NamedBegin | None = None
        self.last: NamedBegin | None = None
        self._waiting: list[tuple[int, str]] = []
        """The sources whose beginning has not been found: the index of the first message of each, and its name."""

    def add(self, first: int, source: str) -> None:
        """Says of which source the messages are from an index on."""
        self._waiting.append((first, source))

    def take(self, batch: pa.RecordBatch) -> None:
        """Looks at the next rows. They may be of messages that came long ago, if options held them back."""
        if not self._waiting:
            return
        begins = batch.select(self.COLUMNS).filter(pc.equal(batch["kind"], "BEGIN"))
        if not len(begins):
            return
        firsts = [*(first for first, _ in self._waiting), np.iinfo(np.int64).max]
        bounds = np.searchsorted(np.asarray(begins["message"]), firsts).tolist()
        waiting, self._waiting = self._waiting, []
        for (start, stop), (first, source) in zip(pairwise(bounds), waiting, strict=True):
            begin = _begin_of(begins.slice(start, stop - start)) if start < stop else None
            if begin is not None:
                self.take_begin(NamedBegin(source, first, begin))
            elif stop == len(begins):  # else a BEGIN of a later source has come
                self._waiting.append((first, source))

    def take_begin(self, named: NamedBegin) -> None:
        """Looks at where the next source begins."""
        if self.last is None:
            self.first = self.last = named
            return
        before, _, earlier = self.last
        source, _, begin = named
        if source == before:
            return
        self.go_on(named)
        if earlier.column != begin.column or earlier.value <= begin.value:
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

    def go_on(self, named: NamedBegin) -> None:
        """Goes on after a source whose beginning was looked at elsewhere, unless this is one more part of the last."""
        if self.last is None or named.source != self.last.source:
            self.last = named
