"""`ChunkSummary`: what the light reading of a chunk finds, and `summarized`, which makes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa

from ..arrow.change_table import checked_schema
from ..arrow.columns.rows_from_events import build
from ..arrow.committed.chunk_items import ChunkItems
from ..arrow.noted.tables import NotedTables
from ..arrow.typed_tables.observations import Observation, Observations
from ..arrow.unread import ReadSummary
from ..errors import DecodeError, OrderError, WireformatError
from ..events import Relation
from ..options.table_names import TableName
from ..sources.source_order import NamedBegin
from ..stream.chunk_plan import ChunkItem
from ..stream.positions import Position
from ..stream.reader import BEFORE_ALL, Located
from .capture import ChunkCapture
from .file_ranges import FileRange
from .row_facts import ChunkObservations, RowFacts


@dataclass
class ChunkSummary:
    """What the light reading of a chunk finds; it grows with control records and tables, not with rows.

    messages      the number of messages
    dropped       the number of records that DROPMALFORMED left out
    items         for `plan_chunks`
    observed      facts about the columns of the tables
    row_facts     facts about the rows of the tables
    seen          whether anything could be read
    begins        where its first and its last source with positions begin; none if no source has any
    error         why the reading failed; the rest is that of the rows before
    """

    messages: int = 0
    dropped: int = 0
    items: list[ChunkItem] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    row_facts: dict[TableName, RowFacts] = field(default_factory=dict)
    seen: ReadSummary = field(default_factory=ReadSummary)
    begins: tuple[NamedBegin, ...] = ()
    error: WireformatError | None = None

    def count_from(self, first: int, files: Sequence[FileRange]) -> None:
        """Counts the messages in what was found in files from `first` instead of 0."""
        self.observed = [
            one._replace(first=_counted(one.first, first), last=_counted(one.last, first)) for one in self.observed
        ]
        for error in (self.error, *self.items[-1:]):
            if isinstance(error, WireformatError):
                counted_from(error, first, files)


def seen_in(summaries: Iterable[ChunkSummary]) -> ReadSummary:
    """Returns whether some rows of these chunks could be read."""
    return reduce(ReadSummary.and_these, (summary.seen for summary in summaries), ReadSummary())


def _counted(position: dict[str, Any], first: int) -> dict[str, Any]:
    return {**position, "message": position["message"] + first}


def counted_from(error: WireformatError, first: int, files: Sequence[FileRange] = ()) -> WireformatError:
    """Returns an error whose message is counted from `first` instead of 0.

    files   that were read. If this is one of several files of the stream, the error gets its name; where several were
            read together, it has it already
    """
    if isinstance(error, (DecodeError, OrderError)) and error.message is not None:
        if len(files) == 1 and files[0].first is not None:
            error.add(source=str(files[0].path), source_message=error.message + files[0].first)
        error.add(message=error.message + first)
    return error


def summarized(
    capture: ChunkCapture, delivered: Position | None = None, tables: Sequence[str] | None = None
) -> ChunkSummary:
    """Reads a chunk and returns its summary.

    delivered   see ChunkItems
    tables      patterns: steps over row changes of other tables, of which the summary says nothing
    """
    summary = ChunkSummary()
    items, observations = ChunkItems(delivered), ChunkObservations()
    noted_tables = NotedTables(observations)
    try:
        for rows in capture.noted(tables):
            is_batch = isinstance(rows, pa.RecordBatch)
            summary.seen = summary.seen.and_of(rows) if is_batch else summary.seen.and_of_source(rows)
            items.take(rows)
            noted_tables.take(rows)
    except WireformatError as error:
        summary.error = error
    noted_tables.finish()
    summary.begins = capture.source_begins
    summary.messages = capture.messages_read
    summary.dropped = capture.rows_dropped
    summary.items = items.items
    summary.observed = sorted(observations.found(), key=lambda one: (*one.first.values(),))
    summary.row_facts = observations.row_facts
    return summary


def observed_before(relations: Iterable[Relation], format: str) -> list[Observation]:
    """Returns what relations that are known before the first message say of the columns of their tables."""
    located = [Located(BEFORE_ALL, record, relation) for record, relation in enumerate(relations)]
    observations = Observations()
    for rows in build(located, checked_schema(None, format), 0) if located else ():
        observations.take_batch(rows)
    return observations.found()
