"""Delta tables of a lake: one commit a write, with the position of the stream in it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Array
from ..errors import LakeError, OptionError
from ..extras import needs
from ..options.table_names import written
from ..stream.capture_position import CapturePosition
from ..stream.positions import Position
from .parquet import WrittenFile
from .store import Store

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_APPLICATION = "wireformat."
_NUMBERS = ("transactions", "lsn", "csn")
"""Of a Position. Each is the version of an application of this name in the log, which checkpoints keep."""

_RELATION_ID = f"{_APPLICATION}relation_id"
POSITION = f"{_APPLICATION}position"
"""Key of a commit's metadata: the position, as JSON."""

_TRANSACTIONS = f"{_APPLICATION}app_transactions"
"""Key of a commit's metadata: how many application transactions it has. deltalake writes them last."""

_COMMIT = re.compile(r"\d{20}\.json")
_LAST_CHECKPOINT = "_last_checkpoint"

_MOST = (1 << 63) - 1

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|↳")


class KeptTable(NamedTuple):
    """A table after a write of this process; see DeltaFolder.

    last   the last commit of its log, by which it is recognised
    """

    table: DeltaTable
    done: Position
    relation_id: int | None
    last: bytes


_KEPT: dict[tuple[str, frozenset[tuple[str, str]]], KeptTable] = {}
"""By URI and storage options. To open a table is to read its log since a checkpoint, which `follow` would do for each
batch."""

_MOST_COMMITS = 100_000
"""Of all tables that are kept: a commit adds a file or more, of which a table in memory holds the statistics."""


class DeltaFolder:
    """A Delta table in a lake, which may not be there yet.

    table        schema and name
    partitions   the columns of its partitions

    table         the table as deltalake has it; None if it is not there
    done          how far it went when it was opened
    relation_id   the OID of the table whose rows it has, if the format sends OIDs
    """

    def __init__(self, store: Store, folder: str, table: tuple[str, str], partitions: list[str]) -> None:
        with needs("delta", "format='delta'"):
            import deltalake
        self._name = table
        self._store = store
        self._folder = folder
        self._options = store.storage_options
        self._uri = Path(store.path(folder)).as_uri() if store.is_local else store.uri(folder)
        self._partitions = partitions
        self.table: DeltaTable | None = None
        self.done: Position | None = None
        self.relation_id: int | None = None
        kept = self._kept()
        if kept is not None:
            self.table, self.done, self.relation_id, _ = kept
        else:
            with self.errors():
                if deltalake.DeltaTable.is_deltatable(self._uri, self._options):
                    self._open()
        if self.table is not None and self.done is None:
            raise OptionError(
                f"option folder: {store.path(folder)} is a Delta table that `Capture.write` has not made; write "
                f"{written(table)} to another lake, or move that table"
            )
        self._flushed = -1 if self.table is None else self.table.version()

    def _open(self) -> None:
        import deltalake

        self.table = deltalake.DeltaTable(self._uri, storage_options=self._options)
        transactions, lsn, csn = (self.table.transaction_version(_APPLICATION + name) for name in _NUMBERS)
        self.done = None if transactions is None else Position(transactions, lsn, csn)
        self.relation_id = self.table.transaction_version(_RELATION_ID)

    def keep(self, position: CapturePosition, relation_id: int | None) -> None:
        """Keeps the table for the next write of this process, with what its last commit says of itself."""
        if self.table is None or self.done is None:
            return
        with self.errors():
            self.table.update_incremental()  # deltalake has it as it was before a commit of files
        last = self._commit(self.table.version())
        if last is None:
            return
        now, before = position.delivered, self.done  # what a commit does not say, an earlier one has said
        done = Position(
            now.transactions, before.lsn if now.lsn is None else now.lsn, before.csn if now.csn is None else now.csn
        )
        _KEPT[self._key] = KeptTable(self.table, done, self.relation_id if relation_id is None else relation_id, last)
        for key in [*_KEPT]:  # other threads keep tables, too
            if sum(kept.table.version() for kept in [*_KEPT.values()]) > _MOST_COMMITS:
                _KEPT.pop(key, None)

    def _kept(self) -> KeptTable | None:
        """Returns the table that was kept, unless it is another one now, or others have written to it."""
        kept = _KEPT.pop(self._key, None)
        if kept is None:
            return None
        version = kept.table.version()
        return kept if self._commit(version) == kept.last and self._commit(version + 1) is None else None

    @property
    def _key(self) -> tuple[str, frozenset[tuple[str, str]]]:
        return self._uri, frozenset((self._options or {}).items())

    def _commit(self, version: int) -> bytes | None:
        """Returns what the log says of a commit, which no other commit says; None if it is not there."""
        return self._store.read(self._path(version))

    def _path(self, version: int) -> str:
        return _commit_path(self._folder, version)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raises LakeError for an error of deltalake, whose text does not name the table."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            if isinstance(error, DeltaError):
                reason = str(error).partition("\n")[0]  # without the stack of its threads
            elif isinstance(error, LakeError) or error.errno is not None:
                raise
            else:  # of its own, in lines with colours
                reason = ": ".join(line.strip() for line in _COLOURS.sub("", str(error)).split("\n") if line.strip())
            raise LakeError(
                f"expected that deltalake reads and writes the Delta table in {self._store.path(self._folder)}, got "
                f"its error {reason!r}; commits before it stay: mend the cause and repeat the write"
            ) from error

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the table; None if it is not there."""
        return None if self.table is None else pa.schema(self.table.schema().to_arrow())

    @property
    def row_columns(self) -> set[str]:
        """The columns of the table that its rows were written with: not those that a write added before it stopped."""
        import deltalake

        assert self.table is not None, "the table is there"
        last = version = self.table.version()
        while (commit := self._commit(version)) is not None and POSITION.encode() not in commit:
            version -= 1
        table = self.table
        if commit is not None and version < last:
            table = deltalake.DeltaTable(self._uri, version, storage_options=self._options)
        return {field.name for field in table.schema().fields}

    def evolve(self, schema: pa.Schema) -> None:
        """Adds the columns that the table does not have, in a commit without rows."""
        if self.table is None or not _adds(schema, self.schema):
            return
        import deltalake

        # deltalake refuses metadata of a column that changes, such as its SQL type
        plain = pa.schema([pa.field(field.name, field.type) for field in schema])
        with self.errors():
            deltalake.write_deltalake(self.table, plain.empty_table(), mode="append", schema_mode="merge")
            self.table = deltalake.DeltaTable(self._uri, storage_options=self._options)

    def empty(self) -> None:
        """Deletes all rows, if the table is there."""
        if self.table is not None:
            with self.errors():
                self.table.delete()

    def append(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties) -> None:
        """Adds files in one commit, or makes the table of them."""
        self._add(schema, files, properties, "append")

    def replace(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties) -> None:
        """Replaces all rows in one commit, or makes the table of them."""
        self._add(schema, files, properties, "overwrite")

    def flush(self) -> None:
        """Waits until the commits since the table was opened, and their files, are on a durable store's disk.

        deltalake leaves that to the operating system.
        """
        if not self._store.is_durable:
            return
        while (commit := self._commit(self._flushed + 1)) is not None:
            actions = map(json.loads, commit.splitlines())
            files = [f"{self._folder}/{unquote(action['add']['path'])}" for action in actions if "add" in action]
            for file in files:
                self._store.flush(file)
                self._store.flush_names(file)
            self._flushed += 1
            log = _log_of(self._folder)
            checkpoint = f"{log}/{self._flushed:020}.checkpoint.parquet"
            if self._store.has(checkpoint):
                self._store.flush(checkpoint)
                self._store.flush(f"{log}/{_LAST_CHECKPOINT}")
            self._store.flush(self._path(self._flushed))
            self._store.flush_names(self._path(self._flushed))

    def _add(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties, mode: str) -> None:
        from deltalake import Schema
        from deltalake.transaction import AddAction, create_table_with_add_actions

        now = int(time.time() * 1000)
        actions: list[Any] = [
            AddAction(file.path[len(self._folder) + 1 :], file.size, file.partition, now, True, file.statistics)
            for file in files
        ]
        plain = Schema.from_arrow(schema)
        with self.errors():
            if self.table is None:
                create_table_with_add_actions(
                    self._uri,
                    plain,
                    actions,
                    mode="error",
                    partition_by=self._partitions,
                    storage_options=self._options,
                    commit_properties=properties,
                )
            else:
                self.table.create_write_transaction(
                    actions, mode, plain, partition_by=self._partitions, commit_properties=properties
                )


def _log_of(folder: str) -> str:
    return f"{folder}/_delta_log"


def _commit_path(folder: str, version: int) -> str:
    return f"{_log_of(folder)}/{version:020}.json"


def undo_damaged_commits(store: Store) -> None:
    """Removes the last commits of all Delta tables of a store whose files a power cut has damaged.

    deltalake does not wait for the disk, so after a power cut a commit may lack its end, or files that it names.
    Readers then get an error, or a part of its rows. Call it only if a write has not ended: what an ended write has
    written is on the disk.
    """
    logs: dict[str, list[str]] = {}
    for path in store.files():
        folder, _, name = path.rpartition("/")
        if folder.endswith("/_delta_log"):
            logs.setdefault(folder.removesuffix("/_delta_log"), []).append(name)
    for folder, names in logs.items():
        for name in names:
            if name.endswith(".checkpoint.parquet") and not store.is_parquet(f"{_log_of(folder)}/{name}"):
                store.delete(f"{_log_of(folder)}/{name}")
                store.delete(f"{_log_of(folder)}/{_LAST_CHECKPOINT}")  # it would name this one
        for version in sorted((int(name[:20]) for name in names if _COMMIT.fullmatch(name)), reverse=True):
            if _is_whole(store, folder, version):
                break
            store.delete(_commit_path(folder, version))


def _is_whole(store: Store, folder: str, version: int) -> bool:
    """Whether all of a commit is there, and the files in the table's folder that it adds."""
    try:
        actions = [json.loads(line) for line in (store.read(_commit_path(folder, version)) or b"").splitlines()]
    except ValueError:
        return False
    about: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    expected = int(about[_TRANSACTIONS]) if _TRANSACTIONS in about else int(POSITION in about)  # of an earlier release
    if sum("txn" in action for action in actions) < expected:
        return False  # cut at the end of a line, which deltalake takes for the end of the commit
    added = [action["add"] for action in actions if "add" in action]
    own = [add for add in added if not add["path"].startswith("/") and "://" not in add["path"]]
    return bool(actions) and all(store.size(f"{folder}/{unquote(add['path'])}") == add["size"] for add in own)


def commit_properties(position: CapturePosition, relation_id: int | None) -> CommitProperties:
    """Returns what a commit says of itself."""
    from deltalake import CommitProperties, Transaction

    numbers = {name: getattr(position.delivered, name) for name in _NUMBERS}
    versions = {_APPLICATION + name: min(number, _MOST) for name, number in numbers.items() if number is not None}
    if relation_id is not None:
        versions[_RELATION_ID] = relation_id
    return CommitProperties(
        custom_metadata={POSITION: position.to_json(), _TRANSACTIONS: str(len(versions))},
        app_transactions=[Transaction(name, version) for name, version in versions.items()],
    )


def not_covered(batch: pa.RecordBatch, done: Position) -> Array:
    """Returns bool[n]: whether a typed row is after a position.

    batch   with the columns commit_lsn and csn that were kept. If the table has such columns of its own, there is only
            `_sequence`: the first of LSN, CSN and the number of the transaction that the stream has
    """
    if batch.schema.names[:2] != ["commit_lsn", "csn"]:
        end = next(number for number in (done.lsn, done.csn, done.transactions) if number is not None)
        return np.asarray(_numbers(batch["_sequence"].field("commit_lsn"))[0] > np.uint64(end))
    lsns, has_lsn = _numbers(batch["commit_lsn"])
    csns, has_csn = _numbers(batch["csn"])
    sequence, _ = _numbers(batch["_sequence"].field("commit_lsn"))
    covered = sequence <= np.uint64(done.transactions)
    covered = np.where(has_csn, csns <= np.uint64(done.csn or 0), covered)
    by_lsn = (lsns <= np.uint64(done.lsn or 0)) & (~has_csn | (csns <= np.uint64(done.csn or 0)))
    return np.asarray(~np.where(has_lsn, by_lsn, covered))


def _numbers(column: pa.Array) -> tuple[Array, Array]:
    valid = np.asarray(column.is_valid())
    return np.asarray(column.fill_null(0)).view(np.uint64), valid


def _adds(new: pa.Schema | pa.StructType, there: pa.Schema | pa.StructType) -> bool:
    """Whether a schema has fields that another one does not have."""
    known: Mapping[str, Any] = {field.name: field.type for field in there}
    return any(
        field.name not in known or (pa.types.is_struct(field.type) and _adds(field.type, known[field.name]))
        for field in new
    )
