"""`Lake`: a lake while it is written: its manifest, the files of a write, its commit, and work on its tables."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

import pyarrow as pa

from ..arrow.typed_tables.versions import TableVersions
from ..errors import LakeConflict, OptionError, counted
from ..options.table_names import ALL_TABLES
from ..stream.capture_position import CapturePosition
from .delta.log import undo_damaged_commits, unlogged
from .stored.manifest import EARLIER, Manifest, is_of_lake, read_manifest, write_manifest
from .stored.schema import known_versions
from .stored.store import HIDDEN, Store, shown_name
from .table_folder import LakeFiles, TableFolder

_FILE = re.compile(r"wireformat-(?:[0-9a-f]{16}-)?(\d{6,})(?:-[0-9a-f]+){0,2}(?:_\d{4,})?\.parquet")
"""Names of files, with the number of their write. In a Parquet lake, a repeated write replaces its own files; in an
object store, and in Delta tables, they have other names. Earlier releases put 16 hex digits before the number."""

Table = TypeVar("Table")

PUBLISHED_AT_ONCE = 8
"""Number of tables published at once, however many processors there are: the threads mostly wait for the storage."""

_BEGUN = f"{HIDDEN}begun"
"""A file that exists while a lake is written. It names the write that began last."""


class Lake:
    """A lake that is written to, by one write at a time.

    store      the folder
    manifest   that of the last write, to which this one adds
    stream     the format of the stream
    writer     what names this write
    """

    def __init__(self, store: Store, manifest: Manifest, stream: str, writer: str) -> None:
        self.store, self.manifest, self.stream, self.writer = store, manifest, stream, writer
        self.format, self.state = manifest.format, manifest.state
        self._write = manifest.writes + 1
        self._attempt = attempt_of(store, writer, manifest.format)
        self._chunk = ""  # what names the chunk, if this is the lake of one
        self._has_begun = self._was_killed = False
        self._leftovers: dict[str, None] = {}
        """Finished files of an earlier write that the manifest does not name; of Delta tables, the log may."""
        self._targets: dict[tuple[str, str], TableFolder] = {}

    def clean(self) -> None:
        """Removes what an earlier write left unfinished. It looks at all files, but only if that write did not end."""
        self._was_killed = self.store.has(_BEGUN)
        self._has_begun = self._was_killed and self.store.is_local
        if not self._was_killed:
            return
        self.store.flush_all()
        if self.format == "delta":
            undo_damaged_commits(self.store)
        for path in filter(is_of_lake, self.store.files()):
            folder, _, name = path.rpartition("/")
            found = _FILE.fullmatch(shown_name(path))
            if name.startswith(HIDDEN) and path != _BEGUN:
                if found or folder in ("", EARLIER):  # else of a lake in the folder of a table
                    self.store.delete(path)
            elif found and int(found[1]) > self.manifest.writes:
                self._leftovers[path] = None

    def begin(self) -> None:
        """Notes that a write has begun, so that the next one looks for what this one may leave."""
        if not self._has_begun:
            self.store.note(_BEGUN, self.writer.encode())
            self._has_begun = True

    @property
    def position(self) -> CapturePosition | None:
        """The position of the stream after the last write; None before the first one."""
        return self.manifest.position

    def known_versions(self) -> dict[tuple[str, str], TableVersions]:
        """Returns the versions of the columns of all tables, after the last write.

        A later write needs them: an UPDATE may omit columns whose values did not change.
        """
        return {name: known_versions(table) for name, table in self.manifest.tables.items() if table.columns}

    def target(self, table: tuple[str, str], typed: pa.Schema, types: Mapping[str, str]) -> TableFolder:
        """Returns the folder that takes the rows of a table; raises what `TableFolder` raises.

        typed   the schema of its typed rows
        types   the SQL types of its columns
        """
        self.begin()
        if table not in self._targets:
            files = LakeFiles(self.store, self.manifest, self.stream, self.new_path)
            self._targets[table] = TableFolder(files, table, typed, types)
        return self._targets[table]

    def begin_again(self, table: tuple[str, str]) -> None:
        """Removes what this write has written of a table, which is written once more."""
        if table in self._targets:
            self._targets.pop(table).discard()

    def new_path(self, folder: str, index: int = 0) -> str:
        """Returns the path of a file of this write, or of this chunk of it."""
        number = f"_{index:04d}" if index else ""
        return f"{folder}/wireformat-{self._write:06d}{self._chunk}{self._attempt}{number}.parquet"

    def other_files(self, own: Collection[str] = (), folder: str = "") -> Iterator[str]:
        """Yields the files in a folder that attempts to make this write have not published: without its own ones, and
        those that the log of a Delta table names. Published files with its number may be those of another write.

        After the commit, files of an earlier write that was killed are among them: tasks of it may have ended since the
        lake was cleaned, and readers of an object store would see their rows twice.
        """
        others, mark = [], f"-{self.writer}" if self._attempt else f"/{HIDDEN}"
        if self._was_killed and self._attempt and self.format == "parquet" and self.manifest.writes == self._write:
            mark = ""  # of every writer
        for path in filter(is_of_lake, self.store.files(folder)):
            found = _FILE.fullmatch(shown_name(path))
            if found and int(found[1]) == self._write and mark in path and path not in own:
                others.append(path)
        return unlogged(self.store, others) if self.format == "delta" else iter(others)

    def check_alone(self) -> None:
        """Raises LakeConflict if another process, or another attempt to make this write, has written since it began.

        Where there are no locks, also if another process has begun to: it may remove the files of this write.
        """
        got: object = self._writes_there()
        if got == self.manifest.writes:
            if not self._has_begun or self._began_last():
                return
            got = "the beginning of another one"
        if self._attempt:  # the files of the other one have other names
            self._discard_files()
        raise self._conflict(got)

    def _began_last(self) -> bool:
        """Whether no other write has begun since this one. Where there are locks, none can."""
        return self.store.is_local or self.store.read(_BEGUN) in (None, self.writer.encode())

    def _conflict(self, got: object) -> LakeConflict:
        had, where = counted(self._write - 1, "write"), self.store.location("")
        return LakeConflict(
            f"expected the lake {where} to have {had}, as when this one began, got {got}: another "
            "process wrote to it at the same time; let one process write at a time, and write again"
        )

    def commit(self, position: CapturePosition) -> None:
        """Writes the manifest, which names everything that was written, and the position after it.

        Raises LakeConflict as `check_alone` does, and OSError.
        """
        self.check_alone()
        self.begin()  # a write without rows has not done it
        kept = {file.path for table in self.manifest.tables.values() for file in table.files}
        left = [path for path in self._leftovers if path not in kept]
        for path in unlogged(self.store, left):
            self.store.delete(path)
        if left:  # that took time
            self.check_alone()
        self.manifest.tables = dict(sorted(self.manifest.tables.items()))  # threads have added them
        self.manifest.writes, self.manifest.writer = self._write, self.writer
        self.manifest.position = position
        write_manifest(self.store, self.manifest)
        if not self.store.is_local:
            if not self.was_committed():
                raise self._conflict("the manifest of another one")
            if not self.store.has(_BEGUN) and not kept.issubset(self.store.files()):  # another one has ended
                raise LakeConflict(
                    f"expected the files of this write in the lake {self.store.location('')}, got a part of them: "
                    "another process wrote to it at the same time; write the whole stream to a new lake"
                )
        self._end()

    def _end(self) -> None:
        if self._has_begun and self._began_last():
            self.store.delete(_BEGUN)

    def _writes_there(self) -> int:
        there = read_manifest(self.store)
        return 0 if there is None else there.writes

    def was_committed(self) -> bool:
        """Whether the manifest is that of this write, which may fail directly after its commit."""
        there = read_manifest(self.store)
        return there is not None and there.writer == self.writer

    def is_taken(self) -> bool:
        """Whether this write was committed, or another one in its place, whose files may have the names of its own."""
        return self._writes_there() >= self._write

    def discard(self) -> None:
        """Removes the files of this write, unless it or another one was committed."""
        if self.is_taken():
            return
        self._discard_files()
        if not self._leftovers and not any(target.may_be_logged for target in self._targets.values()):
            self._end()

    def _discard_files(self) -> None:
        for target in self._targets.values():
            target.discard()


def checked_manifest(
    store: Store,
    format: str,
    state: str,
    partition_by: str | Mapping[str, str] | None,
    patterns: list[str],
    stream: str,
) -> Manifest:
    """Returns the manifest of a lake, or a new one if the folder has none. Changes no file.

    partition_by   as `Capture.write` takes it
    patterns       the patterns of the tables that are written
    stream         the format of the stream

    Raises OptionError if the lake is of another kind, and StateError if its manifest is damaged.
    """
    partitions = partition_by if partition_by is None or isinstance(partition_by, str) else {**partition_by}
    found = read_manifest(store)
    manifest = Manifest(format, state, partitions, patterns) if found is None else found
    where = f"option folder: {store.location('')}".rstrip("/")
    for name, given in (("format", format), ("state", state), ("partition_by", partitions)):
        there = getattr(manifest, name)
        if there != given:
            raise OptionError(f"{where} is a lake with {name}={there!r}, got {given!r}; write to another folder")
    position = manifest.position
    if position is not None and position.format != stream:
        raise OptionError(f"{where} is a lake of {position.format}, got a stream of {stream}; write to another one")
    if format == "delta" and store.is_decoded:
        raise OptionError(
            f"{where} has a percent sign and two hex digits in its path, which deltalake takes for a character; "
            "choose another folder, or write Parquet files"
        )
    if found is not None and (format, state) == ("parquet", "latest"):
        raise OptionError(
            f"{where} has the rows of an earlier write with state='latest'. Parquet files cannot be merged: use "
            "format='delta', or write to a new folder"
        )
    if manifest.patterns is None:
        manifest.patterns = patterns
    if manifest.patterns != patterns:  # the position covers the changes of other tables, so they would be skipped
        before, asked = (None if one == [ALL_TABLES] else one for one in (manifest.patterns, patterns))
        raise OptionError(
            f"option tables: the lake {store.location('').rstrip('/')} has been written with tables={before!r}, got "
            f"{asked!r}. It skips the transactions that it has, also for tables that it does not have: write to "
            "another folder, or pass the same tables"
        )
    return manifest


def attempt_of(store: Store, writer: str, format: str = "parquet") -> str:
    """Returns a part of the names of files that tells this attempt to write from others; "" if none is needed.

    writer   what names the write, which several tasks may attempt
    format   of the lake

    It is needed where a file is not renamed when it is published, as in an object store and in Delta tables: an attempt
    that fails would otherwise remove the files of one that succeeded.
    """
    return "" if store.moves and format == "parquet" else f"-{writer}{secrets.token_hex(4)}"


def for_each(work: Callable[[Table], object], tables: Iterable[Table], threads: int) -> None:
    """Does a work for each table, in threads. After an error no more is begun; it is raised when all threads are done.

    If there are several errors, it is that of the first table.
    """
    has_failed = Event()

    def done(table: Table) -> None:
        try:
            if not has_failed.is_set():
                work(table)
        except BaseException:
            has_failed.set()
            raise

    with ThreadPoolExecutor(threads, "wireformat-lake") as pool:
        for task in [pool.submit(done, table) for table in tables]:
            task.result()
