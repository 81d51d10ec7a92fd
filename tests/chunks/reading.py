"""Reads a stream in chunks, in the way distributed programs do: the reference of what they must do with them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.chunks.capture import ChunkCapture
from wireformat.chunks.records import needs_records, records_before, seen_records
from wireformat.chunks.relations import known_before, needed_messages, relation_changes, relations_before
from wireformat.chunks.summary import ChunkSummary, counted_from, summarized
from wireformat.options import ReadOptions
from wireformat.stream.capture_position import CapturePosition
from wireformat.stream.chunk_plan import PlannedStream, plan_chunks
from wireformat.stream.records_before import NOTHING_BEFORE, RecordsBefore
from wireformat.stream.transactions import TransactionMachine

_FILTERS = ("strict", "exclude_users", "skip_empty_xacts")


class ChunkedReading:
    """The chunks of a stream, with their plans.

    chunks   the messages of each
    after    the position after which the stream goes on
    """

    def __init__(
        self,
        chunks: Sequence[Sequence[bytes]],
        format: str,
        *,
        two_phase: str = "commit",
        drop_resent: bool = True,
        after: CapturePosition | None = None,
        **options: Any,
    ) -> None:
        self.chunks = chunks
        self._after = after
        self._format = format
        self._options = {**options, "two_phase": two_phase, "drop_resent": drop_resent, "threads": 1}
        reading = ReadOptions.check(**options)
        needed = [(number, needed_messages(chunk)) for number, chunk in enumerate(chunks) if format == "pgoutput"]
        self.relation_changes = [*relation_changes(needed, reading, () if after is None else after.first_relations)]
        self._firsts = [0, *accumulate(map(len, chunks))]
        self._before = self.before(None)

    @cached_property
    def summaries(self) -> list[ChunkSummary]:
        """What the light pass finds; raises the first error."""
        delivered = None if self._after is None else self._after.delivered
        found = [summarized(self._capture(number), delivered) for number in range(len(self.chunks))]
        for first, summary in zip(self._firsts, found, strict=False):
            if summary.error is not None:
                raise counted_from(summary.error, first)
        return found

    @cached_property
    def planned(self) -> PlannedStream:
        """The plans of the chunks."""
        machine: TransactionMachine[int] = TransactionMachine(
            two_phase=self._options["two_phase"], drop_resent=self._options["drop_resent"]
        )
        if self._after is not None:
            streamed = {one.xid for one in self._after.open if one.stage in ("block", "streamed")}
            machine.continue_after(self._after.delivered, streamed)
        return plan_chunks([summary.items for summary in self.summaries], machine)

    def before(self, tables: Sequence[str] | None) -> list[RecordsBefore]:
        """Returns what each chunk must know of the records of the others."""
        reading = ReadOptions.check(**{name: self._options[name] for name in _FILTERS if name in self._options})
        names = [self._name_in(number) for number in range(len(self.chunks))]
        if not needs_records(reading):
            return [NOTHING_BEFORE] * len(self.chunks)
        self._before = [NOTHING_BEFORE] * len(self.chunks)
        seen = [seen_records(self._capture(number), tables) for number in range(len(self.chunks))]
        found = records_before(pickle.loads(pickle.dumps(seen)), self._format, reading)
        return [one._replace(name=name) for one, name in zip(found, names, strict=True)]

    def _name_in(self, chunk: int) -> Callable[[int], str]:
        return lambda message: f"message {self._firsts[chunk] + message}"

    def changes(self, **filters: Any) -> pa.Table:
        """Returns all records, with their messages counted through all chunks."""
        found, self._before = [], self.before(filters.get("tables"))
        for number, first in enumerate(self._firsts[:-1]):
            try:
                rows = self._capture(number).changes(**filters).read_all()
            except wf.WireformatError as error:
                raise counted_from(error, first) from None
            at = rows.column_names.index("message")
            found.append(rows.set_column(at, rows.schema.field(at), pc.add(rows["message"], first)))
        return pa.concat_tables(found)

    def capture(self, number: int) -> ChunkCapture:
        """Returns the capture of a chunk."""
        return self._capture(number, self.planned)

    def captures(self) -> Iterator[ChunkCapture]:
        """Yields a capture of each chunk, in an order that is not that of the stream."""
        for number in reversed(range(len(self.chunks))):
            if self.planned.plans[number].start is not None:
                yield self.capture(number)

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
            relations=relations_before(number, self.relation_changes),
            known=partial(known_before, number, self.relation_changes),
            before=self._before[number],
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
