"""The lake that `follow` writes: its position, and commits of a batch with the position after it."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from .. import lake
from ..capture import Capture
from ..errors import LakeConflict, LakeError, OptionError, ServerError
from ..lake.delta.folder import DeltaFolder
from ..lake.options import LakeOptions
from ..lake.stored.manifest import read_manifest
from ..lake.stored.names import folder_of
from ..options.table_names import one_table, written
from ..stream.capture_position import CapturePosition, SlotPosition


@dataclass
class Sink:
    """The lake, and how it is written.

    folder     its path or URI
    lake       the options of each write; `rejects` is a folder
    reading    options of the Capture of each batch
    patterns   the patterns of the tables, as ReadOptions has them
    """

    folder: Any
    lake: LakeOptions
    reading: dict[str, Any]
    patterns: tuple[tuple[str | None, str | None], ...] | None

    def position(self) -> CapturePosition | None:
        """Returns the position of the lake; None if there is no lake. Raises OptionError if it is of another kind."""
        try:
            found = lake.position(
                self.folder, filesystem=self.lake.filesystem, storage_options=self.lake.storage_options
            )
        except OptionError as error:
            if "expected a lake" not in str(error):
                raise
            return None
        self.lake.check_lake(self.folder, found.format)
        return found

    def publications(self) -> list[str] | None:
        """Returns the publications from which the last write has read; None if they are not known."""
        found = read_manifest(self.lake.store(self.folder))
        return None if found is None else found.publications

    def named_tables(self) -> dict[str, list[tuple[str | None, str | None]]]:
        """Returns the tables that each option names, as patterns of ReadOptions."""
        options = {name: getattr(self.lake, name) for name in ("keys", "partition_by", "schemas")}
        named: dict[str, list[tuple[str | None, str | None]]] = {"tables": list(self.patterns or ())}
        for name, given in options.items():
            if isinstance(given, dict):
                named[name] = [one_table(table) for table in given]
        return named

    def flush_all(self) -> None:
        """Waits until what an earlier run has written is on the disk; that run may have ended before it waited."""
        self.lake.store(self.folder).flush_all()

    def check_alone(self, *slots: SlotPosition | None) -> None:
        """Raises LakeConflict if the lake is at none of these positions: another run has written to it.

        LakeError if there is no lake, and None is not among them.
        """
        store = self.lake.store(self.folder)
        found = read_manifest(store)
        if found is None and None not in slots:
            raise LakeError(
                f"expected the lake {store.location('')} where this run continues, got none: put it back, perhaps its "
                "disk is not mounted. A run that does not find it begins another lake, from where the slot is"
            )
        if (None if found is None or found.position is None else found.position.slot) not in slots:
            raise LakeConflict(
                f"expected the lake {store.location('')} where this run continues, but another run has written to it: "
                "let one run write at a time, and start it again"
            )

    def empty_unfinished(self, tables: Iterable[tuple[str, str]], after: SlotPosition) -> None:
        """Empties Delta tables whose copy was stopped before the manifest named them. Raises as `check_alone`."""
        self.check_alone(after)
        if self.lake.format == "delta":
            store = self.lake.store(self.folder)
            for table in tables:
                DeltaFolder(store, folder_of(table), table, []).empty()

    def write(
        self,
        messages: Any,
        format: str,
        after: CapturePosition | None,
        slot: SlotPosition,
        copied: Iterable[tuple[str, str]] | None = None,
    ) -> tuple[CapturePosition, dict[str, int]]:
        """Writes a batch with the position after it, in one commit. Returns the position, and the rows of each table.

        messages   as a Capture takes them
        after      the position before the batch
        slot       where the slot is after the batch
        copied     the tables whose changes are written; None for all

        Raises what `Capture.write` raises, also if the lake is no longer at the position `after`.
        """
        before = None if after is None else after.slot
        self.check_alone(before, slot)  # an attempt may fail directly after its commit
        capture = Capture(messages, format, after=after, slot=slot, **self.reading)
        name = f"{(before or slot).lsn:016X}.parquet"  # a batch that comes again after a crash may be longer
        folder = self.lake.rejects
        options = replace(self.lake, rejects=None if folder is None else f"{folder}/{name}")
        has_rejects = folder is not None and self.lake.store(folder).has(name)  # of an earlier attempt
        found = capture.write_some(self.folder, options, self.patterns if copied is None else tuple(copied))
        if (
            folder is not None
            and not has_rejects
            and not any(pc.sum(found[column]).as_py() for column in ("dropped", "corrupt"))
        ):
            self.lake.store(folder).delete(name)
        rows = {
            written((row["table_schema"], row["table_name"])): row["rows"]
            for row in found.to_pylist()
            if row["table_name"] is not None
        }
        return capture.position, rows


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk of this machine is full. An error of the server does not count."""
    if isinstance(error, ServerError):
        return False
    code = getattr(error, "errno", None)
    return code in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)
