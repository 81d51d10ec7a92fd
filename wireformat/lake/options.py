"""What a write to a lake is given: the stream of a capture, and the options, checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ..arrow.typed_tables.versions import TableVersions
from ..errors import OptionError
from ..options import TABLE_STATES, ReadOptions
from ..options.checks import flag, one_of, shown, texts
from ..options.table_names import TableName, canonical_patterns, one_table, suggestion, written
from ..sources.handed_rows import HandedRows
from ..sources.identities import Identities
from .lake import Lake, checked_manifest
from .stored.store import Store

_FORMATS = ("parquet", "delta")


class LakeInput(NamedTuple):
    """What a capture hands to a lake.

    format      its name
    mode        for values that do not fit, and records that cannot be read
    schema      of its row changes
    listed      returns the list of its tables; before the last row of `rows`, this reads the stream once more
    found       returns the versions of a table, as far as a reading that lists the tables has found them
    rows        reads the committed rows; with a function, which takes the rows that were read, and returns some of them
    keys        returns the columns of the replica identity of a table, [] for the whole row; raises OptionError
    identities  the replica identities that the stream states, as far as it has been read
    schema_of   returns what `typed` takes as the schema of a table; raises BadRows if its columns have no types
    known       the versions with which the list of its tables begins: what the lake has, if this is one stream with it
    version_before   returns the index of the version of a table before its first row; -1 if it is not known
    dropped     returns the number of records that DROPMALFORMED left out, after the last row
    threads     the number of threads
    memory      how many bytes of rows wait in memory
    """

    format: str
    mode: str
    schema: pa.Schema
    listed: Callable[[], pa.Table]
    found: Callable[[TableName], TableVersions | None]
    rows: Callable[[Callable[[Iterable[Any]], Iterator[Any]] | None], Iterator[HandedRows]]
    keys: Callable[[str], list[str]]
    identities: Identities
    schema_of: Callable[[str], Any]
    known: Mapping[TableName, TableVersions]
    version_before: Callable[[TableName], int]
    dropped: Callable[[], int]
    threads: int
    memory: int


class Choice(NamedTuple):
    """What to write.

    options   its `tables` are the patterns of the tables to write
    keys      the key columns of tables, by name; a list is that of all tables
    schemas   schemas of tables, by name
    is_batch  whether keys and schemas may name tables that the stream does not have yet
    """

    options: ReadOptions
    keys: Mapping[str, Sequence[str]] | Sequence[str] | None
    schemas: Mapping[str, Any]
    is_batch: bool = False


@dataclass(frozen=True)
class LakeOptions:
    """The options of `Capture.write`; raises OptionError.

    patterns   of the tables, as `canonical_patterns` returns them
    is_batch   whether a stream that goes on is written batch by batch: a mapping may name tables that come later
    publications   of the slot that is read; None if there is none
    """

    format: str
    state: str
    patterns: list[str]
    partition_by: str | dict[str, str] | None
    keys: dict[str, Sequence[str]] | Sequence[str] | None
    schemas: dict[str, Any]
    rejects: Any
    durable: bool
    filesystem: Any
    storage_options: Mapping[str, str] | None
    is_batch: bool = False
    publications: list[str] | None = None

    @classmethod
    def check(
        cls,
        *,
        format: str,
        state: str,
        tables: Collection[tuple[str | None, str | None]] | None,
        partition_by: str | Mapping[str, str] | None,
        keys: Mapping[str, Sequence[str]] | Sequence[str] | None,
        schemas: Mapping[str, Any] | None,
        rejects: Any,
        filesystem: Any,
        storage_options: Mapping[str, str] | None,
        mode: str,
        durable: bool = False,
        is_batch: bool = False,
        publications: list[str] | None = None,
    ) -> LakeOptions:
        """Returns the options as users give them, but `tables` as ReadOptions has them."""
        state = one_of("state", state, TABLE_STATES)
        if keys is not None and state != "latest":
            raise OptionError("option keys: expected state='latest', which needs them; changes have no key")
        if rejects is not None and mode == "FAILFAST":
            raise OptionError("option rejects: needs mode='PERMISSIVE' or 'DROPMALFORMED'; FAILFAST rejects nothing")
        if partition_by is not None and not isinstance(partition_by, (str, Mapping)):
            raise OptionError(f"option partition_by: expected a column or a mapping, got {shown(partition_by)}")
        if schemas is not None and not isinstance(schemas, Mapping):
            raise OptionError(f"option schemas: expected a mapping of table to schema, got {shown(schemas)}")
        if filesystem is not None and format == "delta" and storage_options is None:
            raise OptionError("option filesystem: deltalake takes a URI and storage_options, not a file system")
        return cls(
            one_of("format", format, _FORMATS),
            state,
            canonical_patterns(tables),
            _by_table(partition_by) if isinstance(partition_by, Mapping) else partition_by,
            {name: texts("keys", given) for name, given in _by_table(keys).items()}
            if isinstance(keys, Mapping)
            else None
            if keys is None
            else texts("keys", keys),
            _by_table(schemas or {}),
            rejects,
            flag("durable", durable),
            filesystem,
            storage_options,
            is_batch,
            publications,
        )

    def store(self, folder: Any) -> Store:
        """Returns the store of a folder; raises OptionError."""
        return Store.of(folder, self.filesystem, self.storage_options, durable=self.durable)

    def opened(self, folder: Any, stream: str) -> Lake:
        """Returns the lake in a folder, for a stream of this format; raises OptionError and StateError."""
        return self._lake(self.store(folder), stream)

    @contextmanager
    def locked(self, folder: Any, stream: str, *, waits: bool = False) -> Iterator[Lake]:
        """Yields what `opened` returns, and keeps other writes out of it; see `Store.locked`."""
        store = self.store(folder)
        with store.locked(waits=waits):
            yield self._lake(store, stream)

    def _lake(self, store: Store, stream: str) -> Lake:
        lake = Lake(store, self.format, self.state, self.partition_by, self.patterns, stream)
        if self.publications is not None:
            lake.manifest.publications = self.publications
        return lake

    def check_lake(self, folder: Any, stream: str) -> None:
        """Raises OptionError if the lake in a folder is of another kind. A write that is in progress goes on."""
        checked_manifest(self.store(folder), self.format, self.state, self.partition_by, self.patterns, stream)


def _by_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping with the names of tables as `written` returns them."""
    return {written(one_table(name)): value for name, value in given.items()}


def check_named_tables(options: Mapping[str, Any], tables: Iterable[TableName], filtered: ReadOptions) -> None:
    """Raises OptionError if an option, by its name, is a mapping that names a table that is not there.

    filtered   keeps the tables that are written: of others, it is not known whether they are there
    """
    there = {*tables}
    for option, given in options.items():
        for name in given if isinstance(given, Mapping) else ():
            if one_table(name) not in there and filtered.keeps_table(one_table(name)):
                wanted = written(one_table(name))
                raise OptionError(
                    f"option {option}: the stream has no changes of {wanted}"
                    f"{suggestion(wanted, {*map(written, there)})}"
                )
