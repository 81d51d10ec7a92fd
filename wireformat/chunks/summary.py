"""`ChunkSummary`: what the light reading of a chunk finds, and `summarized`, which makes it.

Its `RowFacts` are what all changes of a table have in common, as far as it decides how its current rows are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Array
from ..arrow.change_table import checked_schema
from ..arrow.columns.rows_from_events import build
from ..arrow.committed.chunk_items import ChunkItems
from ..arrow.noted.tables import NotedTables
from ..arrow.row_changes import TABLE_INSERT, TABLE_RELATION, TABLE_TRUNCATE, TABLE_UPDATE
from ..arrow.typed_tables.observations import Observation, Observations
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.unread import ReadSummary
from ..errors import DecodeError, OrderError, WireformatError
from ..events import Relation
from ..formats.pgoutput.relations import describing_events, relation_lists
from ..options.table_names import TableName
from ..sources.find import NamedBegin
from ..sources.identities import Definition, UnknownValues, column_types
from ..stream.chunk_plan import ChunkItem
from ..stream.positions import Position
from ..stream.reader import BEFORE_ALL, Located
from .capture import ChunkCapture
from .file_ranges import FileRange


class RowFacts(NamedTuple):
    """What all changes of a table have in common.

    sent           the columns whose values every new row has; None if there are no new rows
    is_truncated   whether there is a TRUNCATE
    relation_ids   the OIDs that the table has had
    definitions    those that the stream states, without keys and repetitions
    identities     the replica identities that have all columns, as the stream names them, or none: "full" is the whole
                   row, "nothing" has no columns, any other one is a key
    """

    sent: frozenset[str] | None = None
    is_truncated: bool = False
    relation_ids: frozenset[int] = frozenset()
    definitions: tuple[Definition, ...] = ()
    identities: frozenset[str] = frozenset()

    def and_those(self, other: RowFacts) -> RowFacts:
        """Returns the facts of these changes and later ones."""
        given = [sent for sent in (self.sent, other.sent) if sent is not None]
        return RowFacts(
            reduce(frozenset.intersection, given) if given else None,
            self.is_truncated or other.is_truncated,
            self.relation_ids | other.relation_ids,
            tuple(one for one, _ in groupby((*self.definitions, *other.definitions))),
            self.identities | other.identities,
        )

    def loses_values(self, keys: Sequence[str]) -> bool:
        """Whether a column that rows had before has other values in them: it was added again, or got another type.

        keys   the columns that identify the rows; none if whole rows do
        """
        known: set[str] = set()
        unknown = UnknownValues()
        for before, after in pairwise(one._replace(keys=tuple(keys)) for one in self.definitions):
            known.update(before.columns or ())
            if not known.isdisjoint(unknown.after(before, after)):
                return True
        return False

    def are_whole(self, columns: Iterable[str]) -> bool:
        """Whether the changes are of one table that was never truncated, and every new row has these columns."""
        has_all = self.sent is None or self.sent.issuperset(columns)
        return has_all and not self.is_truncated and len(self.relation_ids) < 2


class ChunkObservations(Observations):
    """Collects the observations of rows that come in order, and the RowFacts of their tables."""

    def __init__(self) -> None:
        super().__init__()
        self.row_facts: dict[TableName, RowFacts] = {}

    def take(
        self, rows: ChangeRows, tables: Iterable[tuple[TableName, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> None:
        """Takes rows; see `TablesFound.take`."""
        all_tables = [*tables]
        oids = rows.relation_ids
        has_oids = oids.null_count < len(oids)
        for table, indices in all_tables:
            kinds = rows.kinds[indices]
            relations, changes = indices[kinds == TABLE_RELATION], indices[kinds != TABLE_RELATION]
            described = [detail for detail in map(rows.detail, relations.tolist()) if detail is not None]
            found = RowFacts(
                _sent(rows, indices[(kinds == TABLE_INSERT) | (kinds == TABLE_UPDATE)]),
                bool((kinds == TABLE_TRUNCATE).any()),
                _different(oids.take(pa.array(changes))) if has_oids and len(changes) else frozenset(),
                _definitions(described),
                _identities(described),
            )
            self.row_facts[table] = self.row_facts.get(table, RowFacts()).and_those(found)
        super().take(rows, all_tables, position_of)


def _different(oids: pa.Array) -> frozenset[int]:
    return frozenset(oids.drop_null().unique().to_pylist())


def _definitions(described: Iterable[Mapping[str, str]]) -> tuple[Definition, ...]:
    lists = map(relation_lists, described)
    found = (Definition((), one["columns"], column_types(one["type_oids"], one["typmods"])) for one in lists)
    return tuple(one for one, _ in groupby(found))


def _identities(described: Iterable[Mapping[str, str]]) -> frozenset[str]:
    lists = ((one["replica_identity"], relation_lists(one)) for one in described)
    return _whole_identities((kind, one["key_columns"], one["columns"]) for kind, one in lists)


def _whole_identities(stated: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> frozenset[str]:
    """Returns the kinds of replica identities with these key columns, of these columns, that have all or none."""
    return frozenset(kind if keys else "nothing" for kind, keys, columns in stated if len(keys) in (0, len(columns)))


def _sent(rows: ChangeRows, indices: Array) -> frozenset[str] | None:
    """Returns the columns whose values the new images of all these rows have; None if there are no rows."""
    if not len(indices):
        return None
    images, unchanged = (
        [column.lists[code] or () for code in np.flatnonzero(np.bincount(column.codes[indices])).tolist()]
        for column in (rows.new.names, rows.unchanged)
    )
    return reduce(frozenset.intersection, map(frozenset, images)).difference(*unchanged)


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


def facts_before(relations: Iterable[Relation]) -> RowFacts:
    """Returns what relations of a table that are known before the first message say of its changes."""
    known = [*relations][-1:]  # others are of earlier tables of this name
    return RowFacts(
        definitions=tuple(Definition((), one.columns, column_types(one.type_oids, one.typmods)) for one in known),
        identities=_whole_identities((one.replica_identity, one.key_columns, one.columns) for one in known),
    )


def observed_before(relations: Iterable[Relation], format: str) -> list[Observation]:
    """Returns what relations that are known before the first message say of the columns of their tables."""
    located = [Located(BEFORE_ALL, record, event) for record, event in enumerate(describing_events(relations))]
    observations = Observations()
    for rows in build(located, checked_schema(None, format), 0) if located else ():
        observations.take_batch(rows)
    return observations.found()
