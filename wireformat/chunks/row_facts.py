"""`RowFacts`: what all changes of a table have in common, as far as it decides how its current rows are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Array
from ..arrow.row_changes import TABLE_INSERT, TABLE_RELATION, TABLE_TRUNCATE, TABLE_UPDATE
from ..arrow.typed_tables.observations import Observations
from ..arrow.typed_tables.rows import ChangeRows
from ..formats.pgoutput.relation_lists import relation_lists
from ..options.table_names import TableName
from ..sources.identities import Definition


class RowFacts(NamedTuple):
    """What all changes of a table have in common.

    sent           the columns whose values every new row has; None if there are no new rows
    is_truncated   whether there is a TRUNCATE
    relation_ids   the OIDs that the table has had
    definitions    those that the stream states, without keys and repetitions
    """

    sent: frozenset[str] | None = None
    is_truncated: bool = False
    relation_ids: frozenset[int] = frozenset()
    definitions: tuple[Definition, ...] = ()

    def and_those(self, other: RowFacts) -> RowFacts:
        """Returns the facts of these changes and later ones."""
        given = [sent for sent in (self.sent, other.sent) if sent is not None]
        return RowFacts(
            reduce(frozenset.intersection, given) if given else None,
            self.is_truncated or other.is_truncated,
            self.relation_ids | other.relation_ids,
            tuple(one for one, _ in groupby((*self.definitions, *other.definitions))),
        )

    @property
    def adds_again(self) -> bool:
        """Whether a column was added that the table had before."""
        known: set[str] = set()
        for before, after in pairwise(self.definitions):
            known.update(before.columns or ())
            if not known.isdisjoint(after.added_after(before)):
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
            found = RowFacts(
                _sent(rows, indices[(kinds == TABLE_INSERT) | (kinds == TABLE_UPDATE)]),
                bool((kinds == TABLE_TRUNCATE).any()),
                _different(oids.take(pa.array(changes))) if has_oids and len(changes) else frozenset(),
                _definitions(rows, relations),
            )
            self.row_facts[table] = self.row_facts.get(table, RowFacts()).and_those(found)
        super().take(rows, all_tables, position_of)


def _different(oids: pa.Array) -> frozenset[int]:
    return frozenset(oids.drop_null().unique().to_pylist())


def _definitions(rows: ChangeRows, indices: Array) -> tuple[Definition, ...]:
    details = (rows.detail(index) for index in indices.tolist())
    columns = (tuple(relation_lists(detail)["columns"]) for detail in details if detail is not None)
    return tuple(Definition((), names) for names, _ in groupby(columns))


def _sent(rows: ChangeRows, indices: Array) -> frozenset[str] | None:
    """Returns the columns whose values the new images of all these rows have; None if there are no rows."""
    if not len(indices):
        return None
    images, unchanged = (
        [column.lists[code] or () for code in np.flatnonzero(np.bincount(column.codes[indices])).tolist()]
        for column in (rows.new.names, rows.unchanged)
    )
    return reduce(frozenset.intersection, map(frozenset, images)).difference(*unchanged)
