"""The rejects file: records that could not be read, and rows with values that do not fit, so that nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..arrow.noted.rows import NotedRows
from ..arrow.readers.reader import as_strings
from ..arrow.row_changes import TABLE_KINDS
from ..arrow.schemas import TEXT_MAP
from ..arrow.typed_tables.images import Images
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.unread import UNREAD
from ..errors import OptionError
from ..options.table_names import TableName
from .parquet import ParquetFile
from .stored.manifest import PATH as MANIFEST
from .stored.store import Store

SCHEMA = pa.schema(
    [
        pa.field("message", pa.int64()),
        pa.field("record", pa.int32()),
        pa.field("kind", pa.string()),
        pa.field("table_schema", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("commit_lsn", pa.int64()),
        pa.field("ordinal", pa.int64()),
        pa.field("error", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("new", TEXT_MAP),
        pa.field("old", TEXT_MAP),
    ]
)
"""One row for each record that could not be read, with its bytes in `raw`, and for each row that did not fit, with the
texts of its values in `new` and `old`. commit_lsn and ordinal are those of its `_sequence`."""

_OTHER_ENDINGS = (".arrow", ".avro", ".csv", ".json", ".jsonl", ".orc")

_NOT_UNDERSTOOD = "a record of a kind that the format does not list"


class Rejects:
    """Collects rejects in a Parquet file, which appears when it is closed.

    path                          the path of the file. Rows of an existing file stay: a write that continues a lake
                                  does not read their transactions again
    filesystem, storage_options   see `Capture.write`
    lake                          what names the lake, of which one write at a time has the file
    durable                       whether to wait for the disk

    `unread` is the number of records that could not be read.

    Raises OSError, and OptionError if the path is that of another file, or ends as one of another format.
    """

    def __init__(
        self, path: Any, filesystem: Any, storage_options: Mapping[str, str] | None, lake: str, *, durable: bool
    ) -> None:
        folder, _, name = str(path).replace("\\", "/").rpartition("/")
        folder = folder or ("/" if str(path).startswith("/") else ".")
        self._store = Store.of(folder, filesystem, storage_options, durable=durable)
        earlier = self._earlier(name)
        if name.lower().endswith(_OTHER_ENDINGS):
            raise OptionError(f"option rejects: {name}: rejects are Parquet: pass a name that ends in .parquet")
        self._file = ParquetFile(self._store, name, SCHEMA, {}, writer=lake)
        self._earlier_digests: set[bytes] = set()
        self._lock = threading.Lock()
        self.unread = 0
        for found in () if earlier is None else earlier.iter_batches():
            for batch in pa.Table.from_batches([found]).cast(SCHEMA).to_batches():
                self._earlier_digests.update(_digests(batch))
                self._file.write(batch)

    def _earlier(self, name: str) -> pq.ParquetFile | None:
        """Returns the existing rejects file; None if there is none. Raises OptionError for a file of another kind."""
        if name != MANIFEST and not self._store.exists(name):
            return None
        found = self._store.parquet(name) if self._store.has(name) and self._store.is_parquet(name) else None
        if name == MANIFEST or found is None or found.schema_arrow.names != SCHEMA.names:
            raise OptionError(
                f"option rejects: {self._store.location(name)} is not a rejects file, so it is not replaced: pass "
                "another path"
            )
        return found

    def without_unread(self, rows: Iterable[pa.RecordBatch | NotedRows]) -> Iterator[pa.RecordBatch | NotedRows]:
        """Yields the rows that could be read; takes the others as rejects. Raises OSError."""
        for item in rows:
            kinds = item["kind"] if isinstance(item, pa.RecordBatch) else item.other_records["kind"]
            if not pc.any(pc.is_in(kinds, pa.array([*UNREAD]))).as_py():
                yield item
                continue
            batch = item if isinstance(item, pa.RecordBatch) else item.batch_of(np.arange(len(item.kind_codes)))
            is_unread = pc.is_in(batch["kind"], pa.array([*UNREAD]))
            unread = self._unseen(batch.filter(is_unread))
            self.unread += len(unread)
            columns = {name: unread[name] for name in SCHEMA.names if name in unread.schema.names}
            columns["error"] = pc.fill_null(columns["error"], _NOT_UNDERSTOOD)
            if len(unread):
                self._write(columns, len(unread))
            yield batch.filter(pc.invert(is_unread))

    def take(self, table: TableName, rows: ChangeRows, typed: pa.RecordBatch) -> None:
        """Takes the rows of a table that did not fit. Raises OSError.

        rows    the row changes
        typed   their typed rows, one for each
        """
        bad = np.flatnonzero(np.asarray(typed["_error"].is_valid()))
        if not len(bad):
            return
        chosen, of_typed = rows.chosen(bad), typed.take(pa.array(bad))
        sequence = of_typed["_sequence"]
        columns = {
            "message": chosen.column("message", pa.int64()),
            "record": chosen.column("record", pa.int32()),
            "kind": pa.array([TABLE_KINDS[kind] for kind in chosen.kinds.tolist()], pa.string()),
            "table_schema": pa.array([table[0]] * len(bad), pa.string()),
            "table_name": pa.array([table[1]] * len(bad), pa.string()),
            "commit_lsn": pc.struct_field(sequence, "commit_lsn"),
            "ordinal": pc.struct_field(sequence, "ordinal"),
            "error": of_typed["_error"],
            "new": _texts(chosen.new),
            "old": _texts(chosen.old),
        }
        self._write(columns, len(bad))

    def close(self) -> None:
        """Publishes the file, even if there are no rejects. Raises OSError."""
        written = self._file.close({})
        if written.unfinished != written.path:
            self._store.move(written.unfinished, written.path)
        self._store.flush_names(written.path)

    def discard(self) -> None:
        """Removes what has been written."""
        self._file.discard()
        self._store.remove_empty()

    def _unseen(self, unread: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the records that no earlier write has taken; here all, since `_write` compares whole rows."""
        return unread

    def _write(self, columns: Mapping[str, pa.Array], count: int) -> None:
        arrays = [columns.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in SCHEMA]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        if self._earlier_digests:
            batch = batch.filter(pa.array([one not in self._earlier_digests for one in _digests(batch)], pa.bool_()))
        if len(batch):
            with self._lock:
                self._file.write(batch)


def _digests(rows: pa.RecordBatch) -> list[bytes]:
    """Returns what identifies each reject: a digest of the whole row with its message, since rows may be large."""
    return [digest(repr(row).encode()) for row in rows.to_pylist()]


def digest(data: bytes) -> bytes:
    """Returns 16 bytes that identify the bytes of a record."""
    return blake2b(data, digest_size=16).digest()


def _texts(images: Images) -> pa.Array:
    """Returns the texts of the values of some rows, as a map by column for each row."""
    lists = [images.names.lists[code] or () for code in images.names.codes.tolist()]
    names = list(dict.fromkeys(name for of_row in lists for name in of_row))
    columns = {name: as_strings(images.texts(name, index)).to_pylist() for index, name in enumerate(names)}
    has = {name: images.has(name) for name in names}
    return pa.array(
        [
            [(name, columns[name][row]) for name in of_row if has[name][row]] if is_valid else None
            for row, (of_row, is_valid) in enumerate(zip(lists, images.valid.tolist(), strict=True))
        ],
        TEXT_MAP,
    )
