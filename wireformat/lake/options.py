"""What a write to a lake is given: the stream of a capture, and checked options."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ..arrow.typed_tables.tables import TablesFound
from ..arrow.typed_tables.versions import TableVersions
from ..errors import OptionError
from ..options import TABLE_STATES, ReadOptions
from ..options.checks import flag, one_of, path_or_uri, shown, texts
from ..options.table_names import TableName, canonical_patterns, one_table, suggestion, written
from ..sources.handed_rows import HandedRows
from ..sources.identities import Identities
from .lake import Lake, checked_manifest
from .stored.manifest import Manifest
from .stored.store import Store

_FORMATS = ("parquet", "delta")


class LakeInput(NamedTuple):
    """What a capture hands to a lake.

    format      the name of its format
    mode        for values that do not fit, and records that cannot be read
    schema      of its row changes
    listed      returns the list of its tables; called before the last row of `rows`, it reads the stream once more,
                unless `is_listed`
    is_listed   returns whether the list is there
    all_tables  returns the tables of the stream, also those that are left out; may read it once more
    found       returns the versions of a table, as far as a reading that lists the tables has found them
    so_far      returns what the reading has found of a table, while it makes the list; None if that may lack columns
    rows        reads the committed rows. A function that it is given takes the rows that were read, and returns those
                that go on
    again       reads the committed rows of some tables once more, when the list is there: those of `rows` in the same
                order, and maybe later ones, if the input has grown
    keys        returns the columns of the replica identity of a table, [] for the whole row; raises OptionError
    identities  the replica identities that the stream states, as far as it has been read
    schema_of   returns what `typed` takes as the schema of a table; raises BadRows if its columns have no types
    known       the versions of tables that the lake has, with which the list of tables begins; empty for a new lake
    version_before   returns the index of the version of a table before its first row; -1 if it is not known
    dropped     returns the number of records that DROPMALFORMED left out; known after the last row
    threads     the number of threads
    memory      how many bytes of rows wait in memory
    """

    format: str
    mode: str
    schema: pa.Schema
    listed: Callable[[], pa.Table]
    is_listed: Callable[[], bool]
    all_tables: Callable[[], Iterable[TableName]]
    found: Callable[[TableName], TableVersions | None]
    so_far: Callable[[TableName], TablesFound | None]
    rows: Callable[[Callable[[Iterable[Any]], Iterator[Any]] | None], Iterator[HandedRows]]
    again: Callable[[Collection[TableName]], Iterator[HandedRows]]
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

    options   `options.tables` are the patterns of the tables to write
    keys      the key columns of each table by its name, or of all tables
    schemas   the schema of each table by its name
    is_batch  see LakeOptions; also if the tables that options name have been checked
    """

    options: ReadOptions
    keys: Mapping[str, Sequence[str]] | Sequence[str] | None
    schemas: Mapping[str, Any]
    is_batch: bool = False


@dataclass(frozen=True)
class LakeOptions:
    """The options of `Capture.write`, checked.

    patterns       the patterns of the tables that are written, as `canonical_patterns` returns them
    is_batch       whether a live stream is written batch by batch: options may then name later tables
    publications   the publications of the slot that is read; None if there is no slot
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
        """Returns the options. They are given as to `Capture.write`, except `tables`, which ReadOptions has checked.

        mode   of the capture

        Raises OptionError.
        """
        state = one_of("state", state, TABLE_STATES)
        if keys is not None and state != "latest":
            raise OptionError("option keys: expected state='latest', which needs them; changes have no key")
        if rejects is not None:
            path_or_uri("rejects", rejects)
        if rejects is not None and mode == "FAILFAST":
            raise OptionError("option rejects: needs mode='PERMISSIVE' or 'DROPMALFORMED'; FAILFAST rejects nothing")
        if partition_by is not None and not isinstance(partition_by, (str, Mapping)):
            raise OptionError(f"option partition_by: expected a column or a mapping, got {shown(partition_by)}")
        if isinstance(partition_by, Mapping):
            texts("partition_by", partition_by.values())
        if schemas is not None and not isinstance(schemas, Mapping):
            raise OptionError(f"option schemas: expected a mapping of table to schema, got {shown(schemas)}")
        if filesystem is not None and format == "delta" and storage_options is None:
            raise OptionError("option filesystem: deltalake takes a URI and storage_options, not a file system")
        return cls(
            one_of("format", format, _FORMATS),
            state,
            canonical_patterns(tables),
            _by_table("partition_by", partition_by) if isinstance(partition_by, Mapping) else partition_by,
            _checked_keys(keys),
            _by_table("schemas", schemas or {}),
            rejects,
            flag("durable", durable),
            filesystem,
            storage_options,
            is_batch,
            publications,
        )

    def store(self, folder: Any) -> Store:
        """Returns the store of a folder; raises OptionError and MissingExtra."""
        return Store.of(folder, self.filesystem, self.storage_options, durable=self.durable)

    @contextmanager
    def locked(self, folder: Any, stream: str) -> Iterator[Lake]:
        """Yields the lake in a folder, and keeps other writes out of it meanwhile; see `Store.locked`.

        stream   the format of the stream

        Raises OptionError, StateError and LakeConflict.
        """
        store = self.store(folder)
        with store.locked():
            yield self.opened(store, stream, secrets.token_hex(4))

    def opened(self, store: Store, stream: str, writer: str) -> Lake:
        """Returns the lake in a folder that is locked, without what an earlier write left; see `Lake`."""
        lake = Lake(store, self._manifest(store, stream), stream, writer)
        lake.clean()
        if self.publications is not None:
            lake.manifest.publications = self.publications
        return lake

    def check_lake(self, folder: Any, stream: str) -> None:
        """Raises OptionError if the lake in a folder is of another kind. Does not disturb a write in progress."""
        self._manifest(self.store(folder), stream)

    def _manifest(self, store: Store, stream: str) -> Manifest:
        return checked_manifest(store, self.format, self.state, self.partition_by, self.patterns, stream)


def _by_table(option: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping with the names of tables as `written` returns them; raises OptionError."""
    return {written(one_table(name, option)): value for name, value in given.items()}


def _checked_keys(
    given: Mapping[str, Sequence[str]] | Sequence[str] | None,
) -> dict[str, Sequence[str]] | Sequence[str] | None:
    """Returns the option `keys`; raises OptionError."""
    if isinstance(given, Mapping):
        return {name: texts("keys", columns) for name, columns in _by_table("keys", given).items()}
    return None if given is None else texts("keys", given)


def check_named_tables(options: Mapping[str, Any], tables: Iterable[TableName], filtered: ReadOptions) -> None:
    """Raises OptionError if an option is a mapping that names a table which does not exist.

    options    the options by their names
    tables     the existing tables
    filtered   keeps the tables that are written; whether others exist is not known
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


def check_patterns(
    filtered: ReadOptions, tables: Iterable[TableName], others: Callable[[], Iterable[TableName]]
) -> None:
    """Raises OptionError if tables exist, and no pattern matches one.

    tables   the existing tables, maybe without `others`
    """
    if not filtered.tables or any(map(filtered.keeps_table, tables)):
        return
    there = {*others()}
    if there and not any(map(filtered.keeps_table, there)):
        patterns = canonical_patterns(filtered.tables)
        raise OptionError(
            f"option tables: no table of the stream matches {' or '.join(patterns)}"
            f"{suggestion(patterns, {*map(written, there)})}"
        )
