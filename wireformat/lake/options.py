"""The options of a write to a lake, checked, and the write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import OptionError
from ..options import TABLE_STATES, ReadOptions
from ..options.checks import flag, one_of, shown, texts
from ..options.table_names import canonical_patterns, one_table, written
from ..stream.capture_position import CapturePosition
from .lake import Lake, checked_manifest
from .rejects import Rejects
from .store import Store
from .write import Choice, LakeInput, LakeWriter

FORMATS = ("parquet", "delta")


@dataclass(frozen=True)
class LakeOptions:
    """The options of `Capture.write`; raises OptionError.

    patterns   of the tables, as `canonical_patterns` returns them
    is_batch   whether a stream that goes on is written batch by batch: a mapping may name tables that come later
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
            one_of("format", format, FORMATS),
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
        )

    def store(self, folder: Any) -> Store:
        """Returns the store of a folder; raises OptionError."""
        return Store.of(folder, self.filesystem, self.storage_options, durable=self.durable)

    def opened(self, folder: Any, stream: str) -> Lake:
        """Returns the lake in a folder, for a stream of this format; raises OptionError and StateError."""
        return Lake(self.store(folder), self.format, self.state, self.partition_by, self.patterns, stream)

    def check_lake(self, folder: Any, stream: str) -> None:
        """Raises OptionError if the lake in a folder is of another kind. A write that is in progress goes on."""
        checked_manifest(self.store(folder), self.format, self.state, self.partition_by, self.patterns, stream)

    def write(self, lake: Lake, options: ReadOptions, stream: LakeInput) -> tuple[pa.Table, CapturePosition]:
        """Writes a stream; see `Capture.write`. Returns what was written, and the position after it."""
        rejects = None
        if self.rejects is not None:
            rejects = Rejects(self.rejects, self.filesystem, self.storage_options, durable=self.durable)
        choice = Choice(options, self.keys, self.schemas, self.is_batch)
        return LakeWriter(stream, lake, choice, rejects, stream.memory).write()


def _by_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping with the names of tables as `written` returns them."""
    return {written(one_table(name)): value for name, value in given.items()}
