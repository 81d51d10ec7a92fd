"""The manifest of a lake: which files belong to it, and its position. A write replaces it last, in one step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import StateError
from ...stream.capture_position import CapturePosition
from ...stream.positions import Position
from .store import Store

PATH = "_wireformat.json"
"""The path of the manifest in the lake. The names of tables' folders do not begin with `_`."""

EARLIER = "_wireformat"
"""The folder with lists of the files of earlier writes."""

KIND = "wireformat.lake"
EARLIER_KIND = "wireformat.lake.files"
VERSION = 1

MOST_FILES = 1000
"""With more files than this, the manifest names a list of them, which is not written again: a write costs the same
however many writes came before."""


class File(NamedTuple):
    """A Parquet file of a lake."""

    path: str
    rows: int
    size: int


class StoredVersion(NamedTuple):
    """The columns of a table between two changes of its definition, as the list of tables has them.

    types     their SQL types; None where a type is not known
    typmods   their type modifiers; None if the format sends none
    """

    columns: list[str]
    types: list[str | None]
    typmods: list[int] | None = None


@dataclass
class StoredTable:
    """A table of a lake.

    folder    its folder in the lake
    columns   the name under which each of its columns is stored
    types     the SQL type of each column, if it is known
    versions  the versions of its columns; empty if an earlier release has written it
    current   the index of the version of its last row
    files     its files in a Parquet lake, without those in earlier lists
    is_made   whether its Delta table exists
    reached   the position after the last write to its Delta table; None if an earlier release has made it
    """

    folder: str
    columns: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    versions: list[StoredVersion] = field(default_factory=list)
    current: int = 0
    files: list[File] = field(default_factory=list)
    is_made: bool = False
    reached: Position | None = None


@dataclass
class Manifest:
    """What is in a lake.

    format         parquet or delta
    state          changes or latest
    partition_by   the column by which tables are partitioned, or that of each table
    patterns       the patterns of the tables that are written, as `canonical_patterns` returns them; None if an earlier
                   release has written the manifest
    writes         the number of writes
    position       the position of the stream after the last write; None before the first one
    tables         by schema and name
    earlier        the paths of lists of files, in the order of their writes
    publications   the publications from which the last write of a slot has read; None if there was none, or only by an
                   earlier release
    """

    format: str
    state: str
    partition_by: dict[str, str] | str | None = None
    patterns: list[str] | None = None
    writes: int = 0
    position: CapturePosition | None = None
    tables: dict[tuple[str, str], StoredTable] = field(default_factory=dict)
    earlier: list[str] = field(default_factory=list)
    publications: list[str] | None = None

    def to_json(self) -> str:
        """Returns the manifest as JSON with a version. Later releases can read it."""
        fields = {
            "kind": KIND,
            "version": VERSION,
            "format": self.format,
            "state": self.state,
            "partition_by": self.partition_by,
            **({} if self.patterns is None else {"patterns": self.patterns}),
            **({} if self.publications is None else {"publications": self.publications}),
            "writes": self.writes,
            "position": None if self.position is None else json.loads(self.position.to_json()),
            "earlier": self.earlier,
            "tables": [
                {
                    "table_schema": schema,
                    "table_name": name,
                    "folder": table.folder,
                    "columns": [
                        {"name": column, "stored": stored, "type": table.types.get(column)}
                        for column, stored in table.columns.items()
                    ],
                    "versions": [version._asdict() for version in table.versions],
                    "current": table.current,
                    "files": [file._asdict() for file in table.files],
                    "is_made": table.is_made,
                    "reached": table.reached and table.reached[:3],
                }
                for (schema, name), table in self.tables.items()
            ],
        }
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> Manifest:
        """Returns the manifest from what `to_json` returned; raises StateError.

        where   the path, for errors
        """
        fields = _checked_fields(text, KIND, where)
        try:
            return cls._read(fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _damaged(where) from None

    @classmethod
    def _read(cls, fields: Any) -> Manifest:
        position = fields["position"]
        tables = {
            (table["table_schema"], table["table_name"]): StoredTable(
                table["folder"],
                {column["name"]: column["stored"] for column in table["columns"]},
                {column["name"]: column["type"] for column in table["columns"] if column["type"] is not None},
                [StoredVersion(**version) for version in table.get("versions", ())],
                int(table.get("current", 0)),
                [File(**file) for file in table["files"]],
                bool(table.get("is_made")),
                Position(*table["reached"]) if table.get("reached") else None,
            )
            for table in fields["tables"]
        }
        return cls(
            fields["format"],
            fields["state"],
            fields["partition_by"],
            [*map(str, fields["patterns"])] if "patterns" in fields else None,
            int(fields["writes"]),
            None if position is None else CapturePosition.from_json(json.dumps(position)),
            tables,
            [str(path) for path in fields.get("earlier", ())],
            [*map(str, fields["publications"])] if "publications" in fields else None,
        )


def _checked_fields(text: str, expected: str, where: str) -> Any:
    """Returns the fields of a manifest or a list of files; raises StateError for another kind of text or version."""
    try:
        fields = json.loads(text)
        kind, version = fields["kind"], fields["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        fields = kind = version = None
    if kind != expected:
        raise StateError(f"{where}: expected the manifest of a lake, got other text")
    if version != VERSION:
        raise StateError(
            f"{where}: expected version {VERSION} of the manifest, which this release reads, got another one: use "
            "the release that wrote it"
        )
    return fields


def _damaged(where: str) -> StateError:
    return StateError(
        f"{where}: the manifest is damaged: expected the fields of version {VERSION}; restore it from a copy, or write "
        "the stream to a new folder"
    )


def read_manifest(store: Store) -> Manifest | None:
    """Returns the manifest of a lake; None if there is none. Raises StateError."""
    raw = store.read(PATH)
    return None if raw is None else Manifest.from_json(raw.decode("utf-8", "replace"), store.path(PATH))


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Writes or replaces the manifest. If it has many files, they first go to a list of their own. Raises OSError."""
    if sum(len(table.files) for table in manifest.tables.values()) > MOST_FILES:
        files = {table.folder: [[*file] for file in table.files] for table in manifest.tables.values() if table.files}
        path = f"{EARLIER}/files-{manifest.writes:06d}.json"
        text = json.dumps({"kind": EARLIER_KIND, "version": VERSION, "files": files}, ensure_ascii=False)
        store.write(path, text.encode())
        manifest.earlier.append(path)
        for table in manifest.tables.values():
            table.files = []
    store.write(PATH, manifest.to_json().encode())


def read_files(store: Store, manifest: Manifest) -> dict[str, list[File]]:
    """Returns all files of the tables of a Parquet lake by the tables' folders, in the order of their writes.

    Raises StateError.
    """
    found: dict[str, list[File]] = {table.folder: [] for table in manifest.tables.values()}
    for path in manifest.earlier:
        where, raw = store.path(path), store.read(path)
        try:
            files = _checked_fields((raw or b"").decode("utf-8", "replace"), EARLIER_KIND, where)["files"]
            for folder, listed in files.items():
                found[folder] += (File(*file) for file in listed)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _damaged(where) from None
    for table in manifest.tables.values():
        found[table.folder] += table.files
    return found
