"""A Delta table of a lake: each write is one commit, which has the position of the stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ...errors import LakeError, OptionError, needs
from ...options.table_names import written
from ...stream.capture_position import CapturePosition
from ...stream.positions import Position
from ..parquet import WrittenFile
from ..stored.store import Store
from .log import (
    LAST_CHECKPOINT,
    added_path,
    checkpoint_path,
    commit_path,
    delta_errors,
    delta_uri,
    last_write,
    log_of,
    position_in,
)

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable


class KeptTable(NamedTuple):
    """A table after a write of this process, with what DeltaFolder knows about it.

    last   the bytes of the last commit of its log, by which it is recognised
    """

    table: DeltaTable
    done: Position
    relation_id: int | None
    last: bytes


_KEPT: dict[tuple[str, frozenset[tuple[str, str]]], KeptTable] = {}
"""Tables by URI and storage options. Without them, `follow` would read the log of each table since its last checkpoint
for each batch."""

_MOST_COMMITS = 100_000
"""The most commits of all kept tables: a commit adds at least one file, and a table in memory has its statistics."""

_RULES = "NOT NULL", "delta.invariants", "delta.generationExpression"
"""Rules for the values of a column."""


class DeltaFolder:
    """A Delta table in a lake, which may not exist yet.

    name         schema and name of the table whose rows it has
    partitions   the columns of its partitions

    `table` is the table as deltalake has it; None if it does not exist. `done` is the position that it had reached
    when it was opened, `relation_id` the OID of the table whose rows it has, if the format sends OIDs.

    Raises OptionError if `Capture.write` has not written the table, LakeError for deltalake's errors, MissingExtra.
    """

    def __init__(self, store: Store, folder: str, name: tuple[str, str], partitions: list[str]) -> None:
        with needs("delta", "format='delta'"):
            import deltalake
        self._store = store
        self._folder = folder
        self._options = store.storage_options
        self._uri = delta_uri(store, folder)
        self.partitions = partitions
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
                f"option folder: {store.location(folder)} is a Delta table that `Capture.write` has not made; write "
                f"{written(name)} to another lake, or move that table"
            )
        self._flushed = -1 if self.table is None else self.table.version()

    def _open(self) -> None:
        import deltalake

        self.table = deltalake.DeltaTable(self._uri, storage_options=self._options)
        self.done, self.relation_id = position_in(self.table)

    def check_whole(self, reached: Position | None) -> None:
        """Raises LakeError if rows of earlier writes were taken away: the next ones would follow a gap.

        reached   the position after the last write to the table, as the manifest has it; None if it does not

        Also raises it for other partitions: added files would lack the values of their columns.
        """
        if self.table is None:
            return
        where = self._store.location(self._folder)
        if (there := self.table.metadata().partition_columns) != self.partitions:
            raise LakeError(
                f"expected the Delta table in {where} with partitions by {self.partitions}, got "
                f"partitions by {there}: overwrite it with the former ones, or write the whole stream to a new lake"
            )
        if reached is not None and reached.is_ahead(self.done):
            raise LakeError(
                f"expected the Delta table in {where} at the position that the manifest has for it, got an older one: "
                "put the newer one back, or write the whole stream to a new lake"
            )
        version, is_undone = last_write(self._commit, self.table.version())
        if is_undone:
            raise LakeError(
                f"expected the Delta table in {where} with the rows of its last write, got one that was restored to an "
                f"earlier version; call `deltalake.DeltaTable(folder).restore({version})`, or write the whole stream "
                "to a new lake"
            )

    def check_unconstrained(self) -> None:
        """Raises LakeError if the table has rules for its rows, which deltalake does not check in added files."""
        if self.table is None:
            return
        rules = [name for name in self.table.metadata().configuration if name.startswith("delta.constraints.")]
        for field in self.table.schema().fields:
            found = [*field.metadata, *([] if field.nullable else ["NOT NULL"])]
            rules += [f"{name} of {field.name}" for name in found if name in _RULES]
        if rules:
            raise LakeError(
                f"expected the Delta table in {self._store.location(self._folder)} without rules for its rows, which "
                f"deltalake does not check in added files, got {', '.join(rules)}: drop them"
            )

    def keep(self, position: CapturePosition, relation_id: int | None) -> None:
        """Keeps the table in memory for the next write of this process, with the position of its last commit."""
        if self.table is None or self.done is None:
            return
        with self.errors():
            self.table.update_incremental()  # after a commit of files, deltalake's table is the one before it
        last = self._commit(self.table.version())
        if last is None:
            return
        now, before = position.delivered, self.done  # a number that the position lacks is that of an earlier commit
        done = Position(
            now.transactions, before.lsn if now.lsn is None else now.lsn, before.csn if now.csn is None else now.csn
        )
        _KEPT[self._key] = KeptTable(self.table, done, self.relation_id if relation_id is None else relation_id, last)
        sizes = {key: kept.table.version() for key, kept in [*_KEPT.items()]}  # other threads also keep tables
        while sum(sizes.values()) > _MOST_COMMITS:  # the largest one goes, so that not all of them are read each time
            largest = max(sizes, key=sizes.__getitem__)
            del sizes[largest]
            _KEPT.pop(largest, None)

    def _kept(self) -> KeptTable | None:
        """Returns the kept table; None if there is none, or if another process has replaced it or written to it."""
        kept = _KEPT.pop(self._key, None)
        if kept is None:
            return None
        version = kept.table.version()
        return kept if self._commit(version) == kept.last and self._commit(version + 1) is None else None

    @property
    def _key(self) -> tuple[str, frozenset[tuple[str, str]]]:
        return self._uri, frozenset((self._options or {}).items())

    def _commit(self, version: int) -> bytes | None:
        """Returns the bytes of a commit, which differ from those of all others; None if there is no such commit."""
        return self._store.read(commit_path(self._folder, version))

    def errors(self) -> AbstractContextManager[None]:
        """Raises LakeError, which names the table, for an error of deltalake, which does not."""
        return delta_errors(self._store, self._folder)

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the table; None if it does not exist."""
        return None if self.table is None else pa.schema(self.table.schema().to_arrow())

    @property
    def row_columns(self) -> set[str]:
        """The columns with which the rows of the table were written.

        A column that a stopped write added, without rows, is not one of them. The table must exist.
        """
        import deltalake

        assert self.table is not None, "the table exists"
        table = self.table
        version, _ = last_write(self._commit, table.version())
        if version is not None and version < table.version():
            table = deltalake.DeltaTable(self._uri, version, storage_options=self._options)
        return {field.name for field in table.schema().fields}

    def evolve(self, schema: pa.Schema) -> None:
        """Adds the columns that the table lacks, in a commit without rows. Does nothing if the table does not exist."""
        if self.table is None or not _adds(schema, self.schema):
            return
        import deltalake

        # deltalake refuses a column whose metadata, such as its SQL type, differ from those in the table
        plain = pa.schema([pa.field(field.name, field.type) for field in schema])
        with self.errors():
            deltalake.write_deltalake(self.table, plain.empty_table(), mode="append", schema_mode="merge")
            self.table = deltalake.DeltaTable(self._uri, storage_options=self._options)

    def empty(self) -> None:
        """Deletes all rows, if the table exists."""
        if self.table is not None:
            with self.errors():
                self.table.delete()

    def append(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties) -> None:
        """Adds files in one commit, which creates a table that does not exist yet."""
        self._add(schema, files, properties, "append")

    def replace(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties) -> None:
        """Replaces all rows by files in one commit, which creates a table that does not exist yet."""
        self._add(schema, files, properties, "overwrite")

    def flush(self) -> None:
        """Waits until the commits since the table was opened, and their files, are on the disk of a durable store.

        deltalake does not wait for the disk.
        """
        if not self._store.is_durable:
            return
        while (commit := self._commit(self._flushed + 1)) is not None:
            actions = map(json.loads, commit.splitlines())
            for file in [added_path(self._folder, action["add"]) for action in actions if "add" in action]:
                self._store.flush(file)
                self._store.flush_names(file)
            self._flushed += 1
            checkpoint = checkpoint_path(self._folder, self._flushed)
            if self._store.has(checkpoint):
                self._store.flush(checkpoint)
                self._store.flush(f"{log_of(self._folder)}/{LAST_CHECKPOINT}")
            self._store.flush(commit_path(self._folder, self._flushed))
            self._store.flush_names(commit_path(self._folder, self._flushed))

    def _add(self, schema: pa.Schema, files: Iterable[WrittenFile], properties: CommitProperties, mode: str) -> None:
        from deltalake import Schema
        from deltalake.transaction import AddAction, create_table_with_add_actions

        now = int(time.time() * 1000)
        actions: list[Any] = [
            AddAction(file.path[len(self._folder) + 1 :], file.size, file.partition, now, True, file.statistics)
            for file in files
        ]
        if actions:
            self.check_unconstrained()
        plain = Schema.from_arrow(schema)
        with self.errors():
            if self.table is None:
                create_table_with_add_actions(
                    self._uri,
                    plain,
                    actions,
                    mode="error",
                    partition_by=self.partitions,
                    storage_options=self._options,
                    commit_properties=properties,
                )
            else:
                self.table.create_write_transaction(
                    actions, mode, plain, partition_by=self.partitions, commit_properties=properties
                )


def _adds(new: pa.Schema | pa.StructType, there: pa.Schema | pa.StructType) -> bool:
    """Whether a schema has fields that another one lacks, also within structs."""
    known: Mapping[str, Any] = {field.name: field.type for field in there}
    return any(
        field.name not in known or (pa.types.is_struct(field.type) and _adds(field.type, known[field.name]))
        for field in new
    )
