"""One pass over a stream that writes all its tables to a lake."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from ..arrow.noted.changes import CommittedRows, KeepsTable
from ..arrow.typed_tables.listed import delivered_rows
from ..arrow.typed_tables.tables import POSITION
from ..errors import BadRows, LakeError, WireformatError, counted
from ..formats.registry import find_row
from ..options import ReadOptions
from ..options.table_names import TableName
from ..sources.groups import Parts, first_rows, groups_of_tables, size_of
from ..sources.handed_rows import KEEP_MESSAGES, HandedRows, Reached
from ..stream.capture_position import CapturePosition
from .lake import PUBLISHED_AT_ONCE, Lake, for_each
from .options import Choice, LakeInput, LakeOptions, check_named_tables, check_patterns
from .parquet import COLUMN_CHUNK_BYTES
from .rejects import Rejects
from .result import TableFiles, result
from .table_writer import KnownColumns, TableWriter, WriteContext


def write_lake(
    lake: Lake, stream: LakeInput, filtered: ReadOptions, options: LakeOptions
) -> tuple[pa.Table, CapturePosition]:
    """Writes a stream; see `Capture.write`. Returns what was written, and the position after it.

    filtered   its `tables` are the patterns of the tables to write now
    """
    rejects = None
    if options.rejects is not None:
        given = options.filesystem, options.storage_options
        rejects = Rejects(options.rejects, *given, lake.store.identity, durable=options.durable)
    choice = Choice(filtered, options.keys, options.schemas, options.is_batch)
    return LakeWriter(stream, lake, choice, rejects, stream.memory).write()


class LakeWriter:
    """Writes a stream to a lake."""

    def __init__(self, stream: LakeInput, lake: Lake, choice: Choice, rejects: Rejects | None, memory: int) -> None:
        self._stream = stream
        self._lake = lake
        self._choice = choice
        self._rejects = rejects
        self._memory = memory
        self._column_chunks = memory // 4 // COLUMN_CHUNK_BYTES
        """How many columns of row groups all files may have that have not ended."""
        self._context = WriteContext(stream, lake, choice, rejects, memory)
        self._is_early = lake.state == "changes" and rejects is None and not find_row(stream.format).has_relation_ids
        """Whether rows are written before all tables are known. A stream that describes its tables is looked through
        for that in little time; what spills and rejects have taken cannot be taken back."""
        self._early: dict[TableName, KnownColumns] = {}
        """What was known of tables of which rows were written before all tables were known."""
        self._early_rows: Counter[TableName] = Counter()
        """How many rows of them there were."""
        self._outdated: set[TableName] = set()
        """Those of them that are written once more: they have other columns now, or could not be written."""
        self._listed: dict[TableName, list[dict[str, Any]]] | None = None
        self._tables: dict[TableName, TableWriter] = {}
        self._last: dict[TableName, Future[None]] = {}
        """The last task of the rows of each table."""
        self._reached: Reached | None = None

    def write(self) -> tuple[pa.Table, CapturePosition]:
        """Returns what was written, and the position after it."""
        try:
            with self._context.spill:
                self._read()
                self._write_again()
                assert self._reached is not None, "a stream ends with its position"
                position = self._reached()
                if self._lake.state == "latest":
                    for_each(TableWriter.write_current, self._tables.values(), self._stream.threads)
                self._publish(position)
        except BaseException:
            self._lake.discard()
            if self._rejects is not None:
                self._rejects.discard()
            raise
        return self._result(position), position

    def write_files(self) -> list[TableFiles]:
        """Writes the changes of a chunk to files that readers do not see until the whole stream is published."""
        try:
            with self._context.spill:
                self._read()
                self._write_again()
            for table in self._tables.values():
                table.close({})
            self._lake.check_alone()
        except BaseException:
            self._lake.discard()
            raise
        return [table.files() for table in self._tables.values()]

    def _read(self) -> None:
        """Reads the stream, and writes the typed changes of all tables to files, or to where they wait."""
        if self._stream.is_listed():
            self._learn_tables()
        through = None if self._rejects is None else self._rejects.without_unread
        self._write_groups(self._committed(self._stream.rows(through)), self._choice.options.keeps_table)
        for name, so_far in self._early.items():
            if _columns(self._listed_rows(name)) != _columns(delivered_rows(so_far.listed)[name]):
                self._outdated.add(name)
            elif name not in self._outdated:
                self._tables[name].set_versions(self._listed_rows(name))

    def _write_again(self) -> None:
        """Writes the tables that are outdated: the same rows, with all columns. Now errors are raised."""
        again, self._outdated = self._outdated, set()
        self._early.clear()
        if not again:
            return
        for name in again:
            self._tables.pop(name, None)
            self._lake.begin_again(name)
        left = Counter({name: self._early_rows[name] for name in again})
        self._write_groups((rows for rows, _ in self._stream.again(again)), again.__contains__, left)
        if left.total():
            raise BadRows(
                "as many rows as an earlier reading had", f"{counted(left.total(), 'row')} less", hint=KEEP_MESSAGES
            )

    def _write_groups(
        self,
        committed: Iterable[CommittedRows | None],
        keeps_table: KeepsTable,
        left: Counter[TableName] | None = None,
    ) -> None:
        """Writes the typed changes of all tables that are kept.

        left   how many rows of each table to write, changed: a file may have grown since they were counted; None for
               all rows
        """
        pending: deque[tuple[Future[None], int]] = deque()
        with ThreadPoolExecutor(self._stream.threads, "wireformat-lake") as pool:
            try:
                for table, parts in self._groups(committed, keeps_table):
                    first = parts if left is None else first_rows(parts, left[table])
                    if left is not None:
                        left[table] -= sum(map(len, first))
                    if first:
                        self._submit(pool, pending, table, first)
                while pending:
                    pending.popleft()[0].result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _groups(
        self, committed: Iterable[CommittedRows | None], keeps_table: KeepsTable
    ) -> Iterator[tuple[TableName, Parts]]:
        """Yields the rows of the tables to write, in groups."""
        yield from groups_of_tables(
            committed,
            self._context.kept,
            keeps_table,
            self._memory // 2,
            may_go=lambda: self._is_early or self._listed is not None,
            make_list=self._learn_tables,
        )

    def _committed(self, found: Iterable[HandedRows]) -> Iterator[CommittedRows | None]:
        for rows, position in found:
            self._reached = position or self._reached
            yield rows

    def _learn_tables(self) -> None:
        """Gets the list of tables.

        Raises OptionError if an option names a table that neither the stream nor the lake has.
        """
        if self._listed is None:
            self._listed = delivered_rows(self._stream.listed())
            if not self._choice.is_batch:
                if self._lake.position is None:
                    check_patterns(self._choice.options, self._listed, self._stream.all_tables)
                options = {"keys": self._choice.keys, "schemas": self._choice.schemas}
                check_named_tables(options, {*self._listed, *self._stream.known}, self._choice.options)

    def _listed_rows(self, name: TableName) -> list[dict[str, Any]]:
        """Returns the rows of the list of tables, of one table."""
        assert self._listed is not None, "the tables are known"
        return self._listed.get(name, [])

    def _know_table(self, name: TableName) -> None:
        """Finds out what the columns of a table are before the first rows of it are written."""
        if self._listed is None and name not in self._early:
            so_far = self._stream.so_far(name)
            versions = None if so_far is None else so_far.versions_of(name)
            if so_far is None or versions is None:
                self._learn_tables()
            else:
                self._early[name] = KnownColumns(so_far.listed(self._stream.format, POSITION), versions)

    def _submit(
        self, pool: ThreadPoolExecutor, pending: deque[tuple[Future[None], int]], name: TableName, parts: Parts
    ) -> None:
        """Has the rows of a table written by a thread, and waits until those that wait for it fit into memory."""
        self._know_table(name)
        if name in self._early:
            self._early_rows[name] += sum(map(len, parts))
        task = self._last[name] = pool.submit(self._write_group, name, parts, self._last.get(name))
        pending.append((task, sum(map(size_of, parts))))
        most = 2 * self._stream.threads
        while len(pending) > most or (len(pending) > 1 and sum(size for _, size in pending) > self._memory // 2):
            pending.popleft()[0].result()

    def _write_group(self, name: TableName, parts: Parts, before: Future[None] | None) -> None:
        """Writes rows of a table, after those before them."""
        if before is not None:
            before.result()
        if name in self._outdated:
            return
        try:
            if name not in self._tables:
                self._tables[name] = self._begun(name)
            self._tables[name].take(parts, self._column_chunks // len(self._tables))
        except WireformatError as error:
            if name not in self._early or isinstance(error, LakeError):
                raise
            self._outdated.add(name)  # what is wrong is said when it is written once more, with all columns

    def _begun(self, name: TableName) -> TableWriter:
        """Returns what writes the rows of a table."""
        so_far = self._early.get(name)
        listed = self._listed_rows(name) if so_far is None else delivered_rows(so_far.listed)[name]
        return TableWriter(self._context, name, listed, so_far)

    def _publish(self, position: CapturePosition) -> None:
        about = {"wireformat.position": position.without_tables().to_json()}
        for table in self._tables.values():
            table.close(about)
        self._lake.check_alone()  # before files get names that another write may have given, too
        if self._rejects is not None:
            self._rejects.close()
        threads = self._stream.threads
        if threads > 1 and self._lake.state == "changes":  # a MERGE takes memory
            threads = max(threads, PUBLISHED_AT_ONCE)
        for_each(lambda table: table.publish(position), self._tables.values(), threads)
        self._lake.commit(position)

    def _result(self, position: CapturePosition) -> pa.Table:
        unread = 0 if self._rejects is None else self._rejects.unread
        dropped = self._stream.dropped() + (unread if self._context.drops else 0)
        left_open = sum(one.changes for one in position.open)
        tables = [self._tables[name].files() for name in sorted(self._tables)]
        return result(self._lake, tables, left_open, dropped, unread)


def _columns(listed: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns the columns of each version of a table, from its rows in the list of tables. Changes need no keys."""
    return [tuple(row[name] for name in ("version", "columns", "types", "typmods")) for row in listed]
