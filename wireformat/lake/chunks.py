"""A lake that many tasks write to: each writes files of its chunk, and one process publishes all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..stream.capture_position import CapturePosition
from .delta.folder import DeltaFolder
from .delta.log import commit_properties
from .lake import PUBLISHED_AT_ONCE, Lake, for_each
from .options import LakeOptions
from .result import TableFiles
from .stored.manifest import Manifest, read_manifest
from .table_folder import publish_files


@dataclass(frozen=True)
class LakePlan:
    """What the tasks need of a lake, which is opened by one process; plain data.

    folder     of the lake
    options    of the write
    stream     format of the stream
    manifest   before the write
    writer     what names the write
    """

    folder: Any
    options: LakeOptions
    stream: str
    manifest: Manifest
    writer: str

    @contextmanager
    def locked(self) -> Iterator[Lake | None]:
        """Yields the lake, for the task that writes all of it; None if an earlier attempt has committed the write.

        Waits for another attempt that is writing. Raises LakeConflict if another write has come between.
        """
        store = self.options.store(self.folder)
        with store.locked(waits=True):
            there = read_manifest(store)
            if there is not None and there.writer == self.writer:
                yield None
                return
            Lake(store, self.manifest, self.stream, self.writer).check_alone()
            yield self.options.opened(store, self.stream, self.writer)

    def lake_of_chunk(self, chunk: int) -> Lake:
        """Returns the lake for one chunk. It is not committed, and what earlier writes left is not removed."""
        return _ChunkLake(self, chunk)


class _ChunkLake(Lake):
    """The lake, as the task of one chunk sees it."""

    def __init__(self, plan: LakePlan, chunk: int) -> None:
        super().__init__(plan.options.store(plan.folder), plan.manifest, plan.stream, plan.writer)
        self._has_begun = True  # by the process that has opened the lake
        self._chunk = f"-{chunk + 1:x}"

    def discard(self) -> None:
        """Removes the files of this attempt. The note that a write has begun stays: others go on with the write."""
        self._discard_files()


def joined(chunks: Iterable[Iterable[TableFiles]]) -> list[TableFiles]:
    """Returns the files of all chunks, which come in the order of the stream, by table."""
    found: dict[tuple[str, str], TableFiles] = {}
    for files in chunks:
        for one in files:
            found[one.name] = found[one.name].and_later(one) if one.name in found else one
    return [found[name] for name in sorted(found)]


def publish(lake: Lake, tables: Sequence[TableFiles], position: CapturePosition) -> None:
    """Publishes the files of all tables, with the position after them; a table is whole, or as it was.

    If that fails, the files that were not published are removed. Raises OSError.
    """
    waiting = {table.name: table for table in tables}

    def publish_table(table: TableFiles) -> None:
        there = lake.manifest.tables[table.name]
        if lake.format != "delta":
            publish_files(lake.store, there, table.files)
            return
        partitions = [name for file in table.files[:1] for name in file.partition]
        folder = DeltaFolder(lake.store, there.folder, table.name, partitions)
        there.is_made |= folder.table is not None  # a write that was stopped may have made it
        if table.files and table.schema is not None:
            folder.evolve(table.schema)
            del waiting[table.name]  # from now on the log may name its files
            folder.append(table.schema, table.files, commit_properties(position, table.relation_id))
            there.is_made = True
            there.reached = position.delivered
            folder.flush()

    try:
        lake.check_alone()  # before a log names files that another write may remove
        for table in tables:
            there = lake.manifest.tables.setdefault(table.name, table.table)
            there.columns, there.types = table.table.columns, table.table.types
            there.versions, there.current = table.table.versions, table.table.current
        for_each(publish_table, tables, PUBLISHED_AT_ONCE)
        lake.commit(position)
        _remove_others(lake, tables)
    except BaseException:
        if not lake.was_committed():
            discard(lake, waiting.values(), with_names=not lake.is_taken())
        raise


def _remove_others(lake: Lake, tables: Iterable[TableFiles]) -> None:
    """Removes the files of attempts that have lost, or were killed before theirs had names that readers see.

    An attempt that ends after the commit removes its own.
    """
    own = {file.path for table in tables for file in table.files}
    for folder in {path.rpartition("/")[0] for path in own}:
        for path in lake.other_files(own, folder):
            lake.store.delete(path)


def discard(lake: Lake, tables: Iterable[TableFiles], *, with_names: bool = False) -> None:
    """Removes the files of tables that were not published; also those that have their names already."""
    for table in tables:
        for file in table.files:
            lake.store.delete(file.unfinished)
            if with_names:
                lake.store.delete(file.path)
