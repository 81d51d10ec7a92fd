"""The manifest of a lake: which files belong to it, and how far it goes. It is written last, in one step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import StateError
from ..stream.capture_position import CapturePosition
from .store import Store

PATH = "_wireformat.json"
"""The manifest, in the folder of the lake. Folders of tables do not begin with `_`."""

KIND = "wireformat.lake"
VERSION = 1


class File(NamedTuple):
    """A Parquet file of a lake."""

    path: str
    rows: int
    size: int


@dataclass
class Table:
    """A table of a lake.

    folder    in the lake
    columns   the names of its columns, and the names under which they are stored
    types     their SQL types
    files     of a Parquet lake
    """

    folder: str
    columns: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    files: list[File] = field(default_factory=list)


@dataclass
class Manifest:
    """What is in a lake.

    format      parquet or delta
    state       changes or latest
    writes      the number of writes
    position    of the stream, after the last write; None before the first one
    """

    format: str
    state: str
    partition_by: dict[str, str] | str | None = None
    writes: int = 0
    position: CapturePosition | None = None
    tables: dict[tuple[str, str], Table] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the manifest as JSON with a version. Later releases can read it."""
        fields = {
            "kind": KIND,
            "version": VERSION,
            "format": self.format,
            "state": self.state,
            "partition_by": self.partition_by,
            "writes": self.writes,
            "position": None if self.position is None else json.loads(self.position.to_json()),
            "tables": [
                {
                    "table_schema": schema,
                    "table_name": name,
                    "folder": table.folder,
                    "columns": [
                        {"name": column, "stored": stored, "type": table.types.get(column)}
                        for column, stored in table.columns.items()
                    ],
                    "files": [file._asdict() for file in table.files],
                }
                for (schema, name), table in self.tables.items()
            ],
        }
        return json.dumps(fields, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str, where: str) -> Manifest:
        """Returns the manifest that `to_json` made the text of; raises StateError."""
        try:
            fields = json.loads(text)
            kind, version = fields["kind"], fields["version"]
        except (ValueError, TypeError, KeyError, RecursionError):
            fields = kind = version = None
        if kind != KIND:
            raise StateError(f"{where}: expected the manifest of a lake, got other text")
        if version != VERSION:
            raise StateError(
                f"{where}: expected version {VERSION} of the manifest, which this release reads, got another one: use "
                "the release that wrote it"
            )
        try:
            return cls._read(fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise StateError(f"{where}: the manifest is damaged: expected the fields of version {VERSION}") from None

    @classmethod
    def _read(cls, fields: Any) -> Manifest:
        position = fields["position"]
        tables = {
            (table["table_schema"], table["table_name"]): Table(
                table["folder"],
                {column["name"]: column["stored"] for column in table["columns"]},
                {column["name"]: column["type"] for column in table["columns"]},
                [File(**file) for file in table["files"]],
            )
            for table in fields["tables"]
        }
        return cls(
            fields["format"],
            fields["state"],
            fields["partition_by"],
            int(fields["writes"]),
            None if position is None else CapturePosition.from_json(json.dumps(position)),
            tables,
        )


def read_manifest(store: Store) -> Manifest | None:
    """Returns the manifest of a lake; None if there is none. Raises StateError."""
    raw = store.read(PATH)
    return None if raw is None else Manifest.from_json(raw.decode("utf-8", "replace"), store.path(PATH))


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Writes or replaces the manifest."""
    store.write(PATH, manifest.to_json().encode())
