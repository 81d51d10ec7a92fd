"""The manifest of a lake: which files belong to it, and its position. A write replaces it last, in one step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...errors import StateError
from ...options import TABLE_STATES
from ...stream.capture_position import CapturePosition
from ...stream.positions import Position
from ...stream.saved import COUNT, FLAG, SIGNED, TEXT, UNSIGNED, Shape, check, maybe, one_of
from .names import folder_of
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


def is_of_lake(path: str) -> bool:
    """Whether a file of a lake may have this path in it: a folder of a lake may also have other lakes in it."""
    *folders, _ = path.split("/")  # of the schema, the table, and partitions
    return folders in ([], [EARLIER]) or (len(folders) > 1 and all("=" in folder for folder in folders[2:]))


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
    writer         what names the last write; None if an earlier release has made it
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
    writer: str | None = None

    def copy_of(self, table: tuple[str, str]) -> StoredTable:
        """Returns a table, as it may change while a write is not published; a new one if there is none."""
        found = self.tables.get(table)
        if found is None:
            return StoredTable(folder_of(table))
        own = {name: copy(getattr(found, name)) for name in ("columns", "types", "versions", "files")}
        return replace(found, **own)

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
            "writer": self.writer,
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
    def from_json(cls, text: str | bytes, where: str) -> Manifest:
        """Returns the manifest from what `to_json` returned; raises StateError.

        where   the path, for errors
        """
        fields = _checked_fields(text, KIND, where)
        with _naming_damage(where):
            return cls._read(fields)

    @classmethod
    def _read(cls, fields: Any) -> Manifest:
        check({name: fields[name] for name in _FIELDS}, _FIELDS, KIND)
        tables: dict[tuple[str, str], StoredTable] = {}
        for table in fields["tables"]:
            names, stored = _stored_table(table)
            _require(names not in tables)
            tables[names] = stored
        _require(len({table.folder for table in tables.values()}) == len(tables))
        _require(all(map(_is_inside, fields.get("earlier", ()))))
        partition_by = fields["partition_by"]
        if isinstance(partition_by, dict):
            check({"tables": [*partition_by.values()]}, {"tables": [TEXT]}, KIND)
        else:
            check({"column": partition_by}, {"column": maybe(TEXT)}, KIND)
        lists = {name: fields[name] for name in ("patterns", "publications") if name in fields}
        check(lists, {name: [TEXT] for name in lists}, KIND)
        writer = fields.get("writer")
        check({"writer": writer}, {"writer": maybe(TEXT)}, KIND)
        return cls(
            fields["format"],
            fields["state"],
            partition_by,
            lists.get("patterns"),
            fields["writes"],
            CapturePosition.from_json(json.dumps(fields["position"])),
            tables,
            [*fields.get("earlier", ())],
            lists.get("publications"),
            writer,
        )


_FIELDS: Shape = {"format": one_of("parquet", "delta"), "state": one_of(*TABLE_STATES), "writes": COUNT}
_TABLE: Shape = {
    **dict.fromkeys(("table_schema", "table_name", "folder"), TEXT),
    "current": COUNT,
    "is_made": FLAG,
    "name": [TEXT],
    "stored": [TEXT],
    "type": [maybe(TEXT)],
}
_VERSION: Shape = {"columns": [TEXT], "types": [maybe(TEXT)], "typmods": [SIGNED]}
_FILES: Shape = {"path": [TEXT], "rows": [COUNT], "size": [COUNT]}
_REACHED: Shape = {"transactions": COUNT, "lsn": maybe(UNSIGNED), "csn": maybe(UNSIGNED)}


def _stored_table(found: Any) -> tuple[tuple[str, str], StoredTable]:
    """Returns the names of a table, and what the manifest says about it; raises StateError, KeyError and TypeError."""
    columns = {name: [column[name] for column in found["columns"]] for name in ("name", "stored", "type")}
    about = {"current": 0, "is_made": False} | {name: found[name] for name in _TABLE if name in found}
    check(about | columns, _TABLE, KIND)
    _require(all(len({*columns[name]}) == len(columns[name]) for name in ("name", "stored")))
    versions = [StoredVersion(**version) for version in found.get("versions", ())]
    for version in versions:
        given = version._asdict() if version.typmods is not None else version._replace(typmods=[])._asdict()
        check(given, _VERSION, KIND)
        typmods = version.types if version.typmods is None else version.typmods
        _require(len(version.columns) == len(version.types) == len(typmods))
    _require(about["current"] < max(len(versions), 1))
    reached = None
    if found.get("reached") is not None:
        reached = Position(*found["reached"])
        check(dict(zip(_REACHED, found["reached"], strict=True)), _REACHED, KIND)
    table = StoredTable(
        about["folder"],
        dict(zip(columns["name"], columns["stored"], strict=True)),
        {name: type for name, type in zip(columns["name"], columns["type"], strict=True) if type is not None},
        versions,
        about["current"],
        _files(about["folder"], [File(**file) for file in found["files"]]),
        about["is_made"],
        reached,
    )
    return (found["table_schema"], found["table_name"]), table


def _files(folder: str, files: list[File]) -> list[File]:
    """Returns files in the folder of a table; raises StateError."""
    check({name: [getattr(file, name) for file in files] for name in _FILES}, _FILES, KIND)
    for path in (folder, *(file.path for file in files)):
        _require(_is_inside(path) and f"{path}/".startswith(f"{folder}/"))
    return files


def _is_inside(path: Any) -> bool:
    """Whether a path is one in the folder of a lake."""
    return isinstance(path, str) and _INSIDE.fullmatch(path) is not None


_INSIDE = re.compile(r"(?!\.)[^/\\:\0]+(/(?!\.)[^/\\:\0]+)+")


def _require(is_so: bool) -> None:
    if not is_so:
        raise ValueError


def _checked_fields(text: str | bytes, expected: str, where: str) -> Any:
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


@contextmanager
def _naming_damage(where: str) -> Iterator[None]:
    """Raises StateError, which names the path of the manifest, for what is wrong in it."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise StateError(
            f"{where}: the manifest is damaged: expected the fields of version {VERSION}, with paths in the lake; "
            "restore it from a copy, or write the stream to a new folder"
        ) from None


def read_manifest(store: Store) -> Manifest | None:
    """Returns the manifest of a lake; None if there is none. Raises StateError."""
    raw = store.read(PATH)
    return None if raw is None else Manifest.from_json(raw, store.location(PATH))


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
        where, raw = store.location(path), store.read(path)
        files = _checked_fields(raw or b"", EARLIER_KIND, where)
        with _naming_damage(where):
            for folder, listed in files["files"].items():
                found[folder] += _files(folder, [File(*file) for file in listed])
    for table in manifest.tables.values():
        found[table.folder] += table.files
    return found
