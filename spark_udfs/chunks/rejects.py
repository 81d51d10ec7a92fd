"""The rejects of a write, in a folder: a file for each chunk that has some."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.arrow.unread import UNREAD
from wireformat.lake.lake import attempt_of
from wireformat.lake.options import LakeOptions
from wireformat.lake.parquet import ParquetFile
from wireformat.lake.rejects import SCHEMA, Rejects, digest
from wireformat.lake.stored.store import HIDDEN
from wireformat.stream.capture_position import CapturePosition

from ..decoding.task import named_errors
from ..schemas import MESSAGE
from .groups import MessagesOfGroup

_BEGIN = "wireformat-"
"""The beginning of the names of all files of rejects."""


def check_order_by(names: Iterable[str]) -> None:
    """Raises OptionError for columns order_by that rejects have, too."""
    taken = {*SCHEMA.names} - {MESSAGE}
    for name in names:
        if name.lower() in taken:
            raise wf.OptionError(f"option order_by: rejects have a column {name!r} of their own; rename the one in df")


@dataclass(frozen=True)
class RejectsFile:
    """The rejects of a chunk; plain data.

    path, unfinished   the name of the file, and the one that it has until it is published; None if there are no rejects
    unread             the number of records that could not be read
    """

    path: str | None
    unfinished: str | None
    unread: int


@dataclass(frozen=True)
class RejectsFolder:
    """The folder of the rejects of a stream, pickled to the workers.

    lake      the URI of the lake; several lakes may have one folder of rejects
    options   of the write
    write     the number of the write
    writer    what names the write
    after     the position after which the stream goes on
    fields    the columns order_by
    """

    folder: str
    lake: str
    options: LakeOptions
    write: int
    writer: str
    after: CapturePosition | None
    fields: pa.Schema

    def of_chunk(self, chunk: int, messages: MessagesOfGroup) -> ChunkRejects:
        """Returns what takes the rejects of a chunk; see ChunkRejects."""
        attempt = attempt_of(self.options.store(self.folder), self.writer)
        return ChunkRejects(self, f"{self._prefix}{chunk + 1:x}{attempt}.parquet", messages)

    def publish(self, files: Iterable[RejectsFile]) -> None:
        """Gives the files of all chunks their names, in place of what an attempt to make the same write has left."""
        store = self.options.store(self.folder)
        own = {file.unfinished: file.path for file in files if file.unfinished is not None and file.path is not None}
        for there in store.files():
            is_hidden = there.startswith(HIDDEN) and f"-{self._prefix}" in there
            if (is_hidden or there.startswith(self._prefix)) and there not in own:
                store.delete(there)
        for unfinished, path in own.items():
            if unfinished != path:
                store.move(unfinished, path)

    def discard(self) -> None:
        """Removes the files that were not published."""
        store = self.options.store(self.folder)
        begin, mark = (HIDDEN, self._prefix) if store.moves else (self._prefix, f"-{self.writer}")
        for there in store.files():
            if there.startswith(begin) and mark in there:
                store.delete(there)

    def seen(self, first: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """Yields the records that other writes could not read, as `_keys` does.

        first   the first one that is looked for, as a row with these columns; those before it may be left out

        A stream that is written from its beginning has read none of them before. Writes to another lake count, since
        this one may go on where it ends; another stream's records at the same positions have other bytes.
        """
        if self.after is None:
            return
        store, wanted = self.options.store(self.folder), first.schema
        for path in store.files():
            if not path.startswith(_BEGIN) or path.startswith(self._prefix):
                continue
            file = store.parquet(path)
            if not _types(wanted).items() <= _types(file.schema_arrow).items():
                continue  # a write with other columns order_by
            for batch in file.iter_batches(columns=[*wanted.names, "kind"]):
                is_wanted = pc.and_(
                    pc.is_in(batch["kind"], pa.array([*UNREAD])),
                    pc.greater_equal(batch[wanted.names[0]], first.column(0)[0]),
                )
                yield from _keys(batch.filter(is_wanted).select(wanted.names))

    @property
    def _prefix(self) -> str:
        """The beginning of the names of the files, which a repeated write uses again."""
        after = "" if self.after is None else self.after.to_json()
        return f"{_BEGIN}{crc32(self.lake.encode()):08x}-{self.write:06d}-{crc32(after.encode()):08x}-"


def _keys(records: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yields what identifies records: order_by, the record, and a digest of its bytes, which are the last column."""
    *places, raws = (column.to_pylist() for column in records.columns)
    yield from zip(*places, (digest(raw or b"") for raw in raws), strict=True)


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Returns the types of columns, which may be nullable here and not there."""
    return {field.name: field.type for field in schema}


class ChunkRejects(Rejects):
    """Collects the rejects of a chunk, with the columns order_by in place of the index of the message.

    Messages may be read again by a write that goes on: records that other writes have taken are left out.
    """

    def __init__(self, folder: RejectsFolder, path: str, messages: MessagesOfGroup) -> None:
        self._store = folder.options.store(folder.folder)
        self._own = folder.fields
        self._schema = pa.schema([*folder.fields, *(field for field in SCHEMA if field.name != MESSAGE)])
        self._file = ParquetFile(self._store, path, self._schema, {})
        self._path = path
        self._messages = messages
        self._folder = folder
        self._seen: set[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()
        self._rows = 0
        self._is_published = False
        self.unread = 0

    def finish(self) -> RejectsFile:
        """Ends the file, which is not visible yet."""
        if not self._rows:
            self.discard()
            return RejectsFile(None, None, self.unread)
        return RejectsFile(self._path, self._file.close({}).unfinished, self.unread)

    def close(self) -> None:
        """Publishes the file, if there are rejects, in place of what an attempt to make the same write has left."""
        self._folder.publish([self.finish()])
        self._is_published = True

    def discard(self) -> None:
        """Removes the file, unless it was published: then the same write replaces it when it is repeated."""
        if not self._is_published:
            super().discard()

    def _unseen(self, unread: pa.RecordBatch) -> pa.RecordBatch:
        if not self._messages.has_lasting_positions or not len(unread):
            return unread
        columns = [*self._messages.columns(unread["message"]), unread["record"], unread["raw"]]
        names, types = [*self._own.names, "record", "raw"], [*self._own.types, pa.int32(), pa.binary()]
        records = pa.RecordBatch.from_arrays(
            [column.cast(type) for column, type in zip(columns, types, strict=True)], names
        )
        if self._seen is None:
            self._seen = {*self._folder.seen(records.slice(0, 1))}
        return unread.filter(pa.array([key not in self._seen for key in _keys(records)], pa.bool_()))

    def _write(self, columns: Mapping[str, Any], count: int) -> None:
        with self._lock:
            messages = columns[MESSAGE]
            given = {**columns, **dict(zip(self._own.names, self._messages.columns(messages), strict=True))}
            given["error"] = named_errors(columns["error"], messages, self._messages.name)
            arrays = [given.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in self._schema]
            self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._rows += count
