"""One pass over a stream that writes all its tables to a lake."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from ..arrow.noted.changes import CommittedRows
from ..options import ReadOptions
from ..options.table_names import TableName
from ..sources.groups import Parts, groups_of_tables, size_of
from ..sources.handed_rows import HandedRows, Reached
from ..stream.capture_position import CapturePosition
from .lake import Lake
from .options import Choice, LakeInput, LakeOptions, check_named_tables
from .parquet import COLUMN_CHUNK_BYTES
from .rejects import Rejects
from .result import TableFiles, result
from .table_writer import TableWriter, WriteContext


def write_lake(
    lake: Lake, stream: LakeInput, filtered: ReadOptions, options: LakeOptions
) -> tuple[pa.Table, CapturePosition]:
    """Writes a stream; see `Capture.write`. Returns what was written, and the position after it.

    filtered   its `tables` are the patterns of the tables to write now
    """
    rejects = None
    if options.rejects is not None:
        rejects = Rejects(options.rejects, options.filesystem, options.storage_options, durable=options.durable)
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
                assert self._reached is not None, "a stream ends with its position"
                position = self._reached()
                if self._lake.state == "latest":
                    self._of_each_table(lambda table: table.write_current())
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
            for table in self._tables.values():
                table.close({})
            self._lake.check_alone()
        except BaseException:
            self._lake.discard()
            raise
        return [table.files() for table in self._tables.values()]

    def _read(self) -> None:
        """Reads the stream, and writes the typed changes of all tables to files, or to where they wait."""
        pending: deque[tuple[Future[None], int]] = deque()
        with ThreadPoolExecutor(self._stream.threads, "wireformat-lake") as pool:
            try:
                for table, parts in self._groups():
                    self._submit(pool, pending, table, parts)
                while pending:
                    pending.popleft()[0].result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _groups(self) -> Iterator[tuple[TableName, Parts]]:
        """Yields the rows of the tables to write, in groups."""
        through = None if self._rejects is None else self._rejects.without_unread
        yield from groups_of_tables(
            self._committed(self._stream.rows(through)),
            self._context.kept,
            self._choice.options.keeps_table,
            self._memory // 2,
            is_listed=lambda: self._listed is not None,
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
            self._listed = {}
            for row in self._stream.listed().to_pylist():
                self._listed.setdefault((row["table_schema"], row["table_name"]), []).append(row)
            if not self._choice.is_batch:
                options = {"keys": self._choice.keys, "schemas": self._choice.schemas}
                check_named_tables(options, {*self._listed, *self._stream.known}, self._choice.options)

    def _submit(
        self, pool: ThreadPoolExecutor, pending: deque[tuple[Future[None], int]], name: TableName, parts: Parts
    ) -> None:
        """Has the rows of a table written by a thread, and waits until those that wait for it fit into memory."""
        task = self._last[name] = pool.submit(self._write_group, name, parts, self._last.get(name))
        pending.append((task, sum(map(size_of, parts))))
        most = 2 * self._stream.threads
        while len(pending) > most or (len(pending) > 1 and sum(size for _, size in pending) > self._memory // 2):
            pending.popleft()[0].result()

    def _write_group(self, name: TableName, parts: Parts, before: Future[None] | None) -> None:
        """Writes rows of a table, after those before them."""
        if before is not None:
            before.result()
        if name not in self._tables:
            assert self._listed is not None, "the tables are known when their rows are written"
            self._tables[name] = TableWriter(self._context, name, self._listed.get(name, []))
        self._tables[name].take(parts, self._column_chunks // len(self._tables))

    def _publish(self, position: CapturePosition) -> None:
        about = {"wireformat.position": position.without_tables().to_json()}
        for table in self._tables.values():
            table.close(about)
        self._lake.check_alone()  # before files get names that another write may have given, too
        if self._rejects is not None:
            self._rejects.close()
        self._of_each_table(lambda table: table.publish(position))
        self._lake.commit(position)

    def _of_each_table(self, work: Callable[[TableWriter], None]) -> None:
        """Does a work for each table, in threads."""
        with ThreadPoolExecutor(self._stream.threads, "wireformat-lake") as pool:
            for task in [pool.submit(work, table) for table in self._tables.values()]:
                task.result()

    def _result(self, position: CapturePosition) -> pa.Table:
        unread = 0 if self._rejects is None else self._rejects.unread
        dropped = self._stream.dropped() + (unread if self._context.drops else 0)
        left_open = sum(one.changes for one in position.open)
        tables = [self._tables[name].files() for name in sorted(self._tables)]
        return result(self._lake, tables, left_open, dropped, unread)
