"""The tables of a capture: their list, and their typed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from .arrow.noted.changes import CommittedRows
from .arrow.noted.relation_events import DESCRIBING_KINDS
from .arrow.noted.tables import NotedTables
from .arrow.typed_tables.batch import TypedOptions
from .arrow.typed_tables.listed import check_listed, of_table, ranges_by_table, replica_identity, states_identity
from .arrow.typed_tables.rows import ChangeRows
from .arrow.typed_tables.table import TypedPart
from .arrow.typed_tables.tables import NOTHING_KNOWN, POSITION, TablesFound
from .arrow.typed_tables.versions import TableVersions
from .arrow.unread import judged_rows
from .capture_reading import CaptureReading
from .errors import BadRows, WireformatError
from .formats.pgoutput.undelivered import Descriptions
from .formats.registry import find_row
from .options import ReadOptions
from .options.table_names import TableName, one_table, written
from .sources.groups import groups_of_tables
from .sources.handed_rows import KEEP_MESSAGES, HeldRows, Reached, grouped_rows, joined_parts
from .sources.identities import Identities

_HELD_SHARE = 8
"""The part of the memory limit that the rows of a table may take that are held while the tables are listed."""


class CaptureTables(CaptureReading):
    """A capture whose tables are known after the first question that needs them.

    Of the methods that return a list of tables, `_known_list` never reads the capture, `_read_…` always do, and the
    others do if the list is not there.

    _listed            the list of all tables
    _was_listed_early  whether it has no counts of changes
    _listed_some       options, and a list that is complete for the tables that they keep: others were stepped over
    _listed_alone      what such a list says of one table
    _held              the rows of one table, which the next question may ask for
    _known_versions    the versions that tables had before the first message, which the list has too
    _found             the tables that the last reading has found that made a list
    _finding           takes the rows of the reading that is making a list
    _ranges            a list, and where each table is in it
    """

    _listed: pa.Table | None = None
    _was_listed_early = False
    _listed_some: tuple[ReadOptions, pa.Table] | None = None
    _listed_alone: Mapping[TableName, pa.Table] = MappingProxyType({})
    _held: HeldRows | None = None
    _known_versions: Mapping[TableName, TableVersions] = NOTHING_KNOWN
    _found: TablesFound | None = None
    _finding: NotedTables | None = None
    _ranges: tuple[pa.Table, Mapping[TableName, tuple[int, int]]] | None = None

    def _typed(
        self,
        table: TableName,
        part: TypedPart,
        keep: Sequence[str],
        held: HeldRows | None = None,
        listed: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the typed changes of a table; see `_typed_groups` and `_check_is_listed`."""
        yield from map(itemgetter(1), self._typed_groups(table, part, keep, held))  # which keeps none of them
        self._check_is_listed(listed)

    def _check_is_listed(self, listed: int | None) -> None:
        """Raises BadRows if messages have come since the tables were listed, whose columns may not be listed.

        listed   how many messages there were then; None if that is not known, or does not matter
        """
        if listed is not None and self._messages != listed:
            raise BadRows(
                f"as many messages as when the tables were listed, {listed}", f"{self._messages}", hint=KEEP_MESSAGES
            )

    def _typed_groups(
        self,
        table: TableName,
        part: TypedPart,
        keep: Sequence[str],
        held: HeldRows | None,
        through: Callable[[Iterable[Any]], Iterator[Any]] | None = None,
    ) -> Iterator[tuple[ChangeRows, pa.RecordBatch]]:
        """Yields the changes of a table, and their typed rows, which may be fewer.

        keep      columns of the committed rows that are kept
        held      the changes, if they have been read
        through   see `_committed`
        """
        all_dropped = 0
        of_table = replace(self._options, tables=(table,))
        committed = self._committed(of_table, through=through)
        for rows, position in grouped_rows(committed, table, keep) if held is None else held.groups:
            found, dropped = (None, 0) if rows is None else part.read(rows)
            if position is not None:
                self._position = position
            all_dropped += dropped
            if rows is not None and found is not None and len(found):
                yield rows, found
            rows = found = None  # not in memory while the next ones are read
        if held is not None:
            self._dropped, self._unknown_prepared = held.dropped, held.unknown_prepared
        self._dropped = (self._dropped or 0) + all_dropped

    def _typed_all(self, filtered: ReadOptions, options: TypedOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
        reached, all_dropped = self._position, 0
        parts: dict[TableName, TypedPart] = {}

        def committed() -> Iterator[CommittedRows | None]:
            nonlocal reached
            for rows, position in self._committed(filtered, through=partial(self._while_listing, filtered)):
                reached = position or reached
                yield rows

        groups = groups_of_tables(
            committed(),
            (),
            filtered.keeps_table,
            self._memory_limit,
            may_go=lambda: self._known_list(filtered) is not None,
            make_list=lambda: self._needed_list(filtered),
        )
        for table, rows in groups:
            if table not in parts:
                parts[table] = self._typed_part(written(table), options)
            found, dropped = parts[table].read(joined_parts(rows, table, ()))
            all_dropped += dropped
            if len(found):
                yield written(table), found
        self._position = reached
        self._dropped = (self._dropped or 0) + all_dropped

    def _typed_part(self, table: str, options: TypedOptions, schema: Any = None) -> TypedPart:
        current = self._version_before(one_table(table)) if schema is None else -1
        return TypedPart(
            table,
            schema=self._listed_table(table) if schema is None else schema,
            options=options,
            evolution="union",
            kept=(),
            format=self._name,
            current=current,
            found=self._versions_found(one_table(table)),
        )

    def _versions_found(self, table: TableName) -> TableVersions | None:
        """Returns the versions of a table, as far as a reading that lists the tables has found them."""
        return None if self._found is None else self._found.versions_of(table)

    def _found_so_far(self, table: TableName) -> TablesFound | None:
        """Returns what the reading that makes a list has found of a table; None if it may lack columns of its rows."""
        if self._found is None or self._finding is None:
            return None
        self._finding.finish()
        return self._found.so_far(table)

    def _version_before(self, table: TableName) -> int:
        """Returns the index in the list of tables of the version that a table has before its first row."""
        return self._known_versions[table].current if table in self._known_versions else 0

    def _whole_list(self) -> pa.Table:
        """Returns the list of tables. It is kept."""
        if self._listed is None:
            self._listed = self._read_list(None)
        return self._listed

    def _all_tables(self, options: ReadOptions) -> set[TableName]:
        """Returns the tables of the stream, also those that options leave out. It may read the capture."""
        with suppress(WireformatError):  # of other tables, whose records nobody asked for
            if find_row(self._name).has_relation_ids:
                return {*ranges_by_table(self._needed_list(options))}
            other = copy(self)
            other._options = replace(self._options, mode="PERMISSIVE")
            return {*ranges_by_table(other._whole_list())}
        return set()

    def _needed_list(self, options: ReadOptions) -> pa.Table:
        """Returns a list that is complete for the tables that options keep. It is kept."""
        if options.tables is None:
            return self._whole_list()
        listed = self._known_list(options)
        if listed is None:
            listed = self._read_list(options)
            self._keep_list(options, listed)
        return listed

    def _known_list(self, options: ReadOptions) -> pa.Table | None:
        """Returns what `_needed_list` returns, if the capture has it."""
        if self._listed is None and self._listed_some is not None and self._listed_some[0].tables == options.tables:
            return self._listed_some[1]
        return self._listed

    def _keep_list(self, options: ReadOptions, listed: pa.Table) -> None:
        if options.tables is None:
            self._listed = listed
        else:
            self._listed_some = options, listed

    def _forget_lists(self) -> None:
        self._listed, self._listed_some, self._listed_alone = None, None, {}

    def _finding_tables(self, only: TableName | None = None) -> tuple[TablesFound, NotedTables]:
        """Returns what finds the tables of a reading, and what hands it the rows; see NotedTables."""
        descriptions = Descriptions() if find_row(self._name).has_relation_ids else None
        found = TablesFound(self._known_versions, format=self._name, descriptions=descriptions)
        return found, NotedTables(found, only, descriptions)

    def _read_list(self, needed: ReadOptions | None) -> pa.Table:
        """Reads the capture and returns the list of tables.

        needed    options of whose `tables` the list is needed; what it says of others may be incomplete
        """
        self._begin_reading()
        found, tables = self._finding_tables()
        self._found = found
        noted = self._naming_open(self._noted(self._make_decoder(self._options, needed)))
        with judged_rows(chain(self._known_relations(), noted)) as all_rows:
            for rows in all_rows:
                tables.take(rows)
        tables.finish()
        return found.listed(self._name, POSITION)

    def _early_list(self, options: ReadOptions) -> pa.Table:
        """Returns what `_needed_list` returns, before all changes were read.

        Where the stream describes its tables, only that is read again: the list counts no changes.
        """
        if self._known_list(options) is None and find_row(self._name).has_relation_ids:
            self._begin_reading()
            found, tables = self._finding_tables()
            relations = replace(self._options.filtered(kinds=DESCRIBING_KINDS), tables=options.tables)
            decoder = self._make_decoder(relations, None)
            decoder.is_read = True  # whether anything could be read is judged where all rows are read
            described = self._read(decoder, lambda given: decoder.batches(given, self._schema))
            for batch in chain(self._known_relations(), described):
                tables.take(batch)
            self._keep_list(options, found.listed(self._name, POSITION))
            self._was_listed_early = options.tables is None
        return self._needed_list(options)

    def _while_listing(self, options: ReadOptions, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields all rows of the tables that options keep; after the last one, the list of these tables is there."""
        found, tables = self._finding_tables()
        if self._known_list(options) is None:
            self._found, self._finding = found, tables
        for known in self._known_relations():
            tables.take(known)
        is_needed, listed = True, None
        for item in rows:
            if is_needed and self._known_list(options) is not None:  # another reading may make it, and drop it again
                is_needed, listed = False, self._messages
            if is_needed:
                tables.take(item)
            yield item
        self._finding = None
        self._check_is_listed(listed)
        if is_needed and self._known_list(options) is None:
            tables.finish()
            self._keep_list(options, found.listed(self._name, POSITION))

    def _list_for(self, wanted: TableName, keep: Sequence[str] = ()) -> pa.Table:
        """Returns the list of tables, or one that is complete for one table if the capture has that; see `_read_list`.

        Where it reads the capture, it holds the rows of the table, unless there are many.

        keep   columns of the committed rows that are held
        """
        if self._listed is None and self._listed_some is not None and self._listed_some[0].keeps_table(wanted):
            return self._listed_some[1]
        if self._listed is None and wanted not in self._listed_alone:
            try:
                listed = self._read_list_and_rows(wanted, tuple(keep))
            except WireformatError:  # the list may be there all the same; then who reads the rows gets the error
                self._held = None
                listed = self._read_list(replace(self._options, tables=(wanted,)))
            self._listed_alone = {**self._listed_alone, wanted: of_table(listed, wanted)}
        alone = self._listed_alone.get(wanted)
        if self._listed is not None or alone is None:
            return self._whole_list()
        if not alone.num_rows:
            with suppress(WireformatError):  # of other tables, whose names an error would show
                return self._whole_list()
        return alone

    def _read_list_and_rows(self, wanted: TableName, keep: tuple[str, ...]) -> pa.Table:
        """Reads the capture; returns a list that is complete for a table, and holds its rows."""
        self._begin_reading()
        self._held = None
        found, tables = self._finding_tables(wanted)
        self._found = found
        identities = self._identities(wanted)
        all_rows: Iterator[Any] = iter(())

        def listing(rows: Iterable[Any]) -> Iterator[Any]:
            nonlocal all_rows
            all_rows = iter(rows)
            for known in self._known_relations():
                tables.take(known)
            for item in identities.through(all_rows):
                tables.take(item)
                yield item

        groups: list[tuple[ChangeRows | None, Reached | None]] = []
        of_table = replace(self._options, tables=(wanted,))
        size = 0
        for rows, position in grouped_rows(self._committed(of_table, through=listing), wanted, keep):
            groups.append((rows, position))
            size += 0 if rows is None else rows.nbytes
            if size > self._memory_limit // _HELD_SHARE:
                groups.clear()
                break
        else:
            self._held = HeldRows(wanted, keep, groups, identities, self._dropped or 0, self._unknown_prepared)
        for item in all_rows:
            tables.take(item)
        tables.finish()
        return found.listed(self._name, POSITION)

    def _take_held(self, table: TableName, keep: Sequence[str]) -> HeldRows | None:
        """Returns the rows of a table if they are held; then they are not held any more."""
        held, self._held = self._held, None
        return held if held is not None and (held.table, held.keep) == (table, tuple(keep)) else None

    def _listed_table(self, table: str, keep: Sequence[str] = ()) -> pa.Table:
        """Returns what the list of tables says of a table; raises BadRows if it does not have it, or not its types.

        keep   see `_list_for`
        """
        listed = self._list_for(one_table(table), keep)
        if self._ranges is None or self._ranges[0] is not listed:
            self._ranges = listed, ranges_by_table(listed)
        found = listed.slice(*self._ranges[1].get(one_table(table), (0, 0)))
        check_listed(found if len(found) else listed, table, self._name)
        return found

    def _replica_identity(self, table: str) -> list[str]:
        """Returns the columns of the replica identity; [] if it is the whole row. Raises BadRows and OptionError."""
        return replica_identity(self._listed_table(table), table)

    def _states_identity(self, table: str) -> bool:
        """Whether the stream states the replica identity of a table. Raises BadRows if there is no such table."""
        return states_identity(self._listed_table(table), table)

    def _identities(self, only: TableName | None = None) -> Identities:
        """Returns the replica identities before the first message, of all tables or of one."""
        return Identities(() if self._after is None else self._after.first_relations, only)
