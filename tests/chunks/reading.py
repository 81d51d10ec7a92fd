"""Reads a stream in chunks, in the way distributed programs do: the reference of what they must do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from wireformat.chunks.capture import ChunkCapture
from wireformat.chunks.relations import needed_messages, relations_before, said_of_stream
from wireformat.chunks.summary import ChunkSummary, summarized
from wireformat.options import ReadOptions
from wireformat.stream.chunk_plan import PlannedStream, plan_chunks
from wireformat.stream.transactions import TransactionMachine


class ChunkedReading:
    """The chunks of a stream, with their plans.

    chunks   the messages of each
    """

    def __init__(
        self,
        chunks: Sequence[Sequence[bytes]],
        format: str,
        *,
        two_phase: str = "commit",
        drop_resent: bool = True,
        **options: Any,
    ) -> None:
        self.chunks = chunks
        self._format = format
        self._options = {**options, "two_phase": two_phase, "drop_resent": drop_resent, "threads": 1}
        reading = ReadOptions.check(**options)
        needed = [(number, needed_messages(chunk)) for number, chunk in enumerate(chunks) if format == "pgoutput"]
        self._said = [*said_of_stream(needed, reading)]
        self.summaries: list[ChunkSummary] = [summarized(self._capture(number)) for number in range(len(chunks))]
        for summary in self.summaries:
            if summary.error is not None:
                raise summary.error
        self.planned: PlannedStream = plan_chunks(
            [summary.items for summary in self.summaries],
            TransactionMachine(two_phase=two_phase, drop_resent=drop_resent),
        )

    def captures(self) -> Iterator[ChunkCapture]:
        """Yields a capture of each chunk, in an order that is not that of the stream."""
        for number in reversed(range(len(self.chunks))):
            if self.planned.plans[number].start is not None:
                yield self._capture(number, self.planned)

    def committed(self, tables: Sequence[str] | None = None) -> pa.Table:
        """Returns the committed rows of all chunks, in commit order."""
        found = pa.concat_tables(capture.committed(tables=tables).read_all() for capture in self.captures())
        return in_order(found)

    def open(self) -> pa.Table:
        """Returns the rows of open transactions, chunk after chunk."""
        return pa.concat_tables([capture.open() for capture in self.captures()][::-1])

    def _capture(self, number: int, planned: PlannedStream | None = None) -> ChunkCapture:
        return ChunkCapture(
            self.chunks[number],
            self._format,
            plan=None if planned is None else planned.plans[number],
            relations=relations_before(number, self._said),
            **self._options,
        )


def in_order(rows: pa.Table) -> pa.Table:
    """Returns committed rows in commit order."""
    positions = [(one["commit_lsn"] % 2**64, one["ordinal"]) for one in rows["sequence"].to_pylist()]
    return rows.take(pa.array(sorted(range(len(rows)), key=positions.__getitem__), pa.int64()))


def divided(messages: Sequence[bytes], cuts: Sequence[int]) -> list[Sequence[bytes]]:
    """Cuts messages before these indices."""
    bounds = [0, *sorted(cut % (len(messages) + 1) for cut in cuts), len(messages)]
    return [messages[start:stop] for start, stop in pairwise(bounds)]
