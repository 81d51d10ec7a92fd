"""A lake: the tables of a stream as Parquet files or Delta tables in a folder. `Capture.write` writes it.

options, result             what a write is given, and what it returns
write, table_writer         the pass over a stream that fills a lake, and what it does with each table
lake                        the lake while it is written
table_folder, partitions    the files of one table in a write, and how they are divided into folders
parquet, spill              typed rows in a Parquet file, and in temporary files until all are known
rejects                     records that could not be read, and rows that did not fit
chunks                      a lake that many tasks write to

stored                      the manifest, names and files in the folder of a lake
delta                       Delta tables: rows are appended, replaced or merged
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..options.keywords import checks_keywords
from ..stream.capture_position import CapturePosition

if TYPE_CHECKING:
    import pyarrow as pa

    from .stored.manifest import Manifest
    from .stored.store import Store


__all__ = ["position", "tables"]


@checks_keywords
def position(
    folder: Any, *, filesystem: Any = None, storage_options: Mapping[str, str] | None = None
) -> CapturePosition:
    """Returns the position where a lake ends. `Capture(more, …, after=position)` continues there.

    folder, filesystem, storage_options   see `Capture.write`

    Raises OptionError if there is no lake, and StateError.
    """
    _, manifest = _opened(folder, filesystem, storage_options)
    assert manifest.position is not None, "a manifest is written with a position"
    return manifest.position


@checks_keywords
def tables(folder: Any, *, filesystem: Any = None, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """Returns the tables of a lake, with a row for each: table_schema, table_name, folder, files, rows.

    For a Parquet lake, `files` lists the files of all completed writes, and `rows` is the number of their rows. For a
    Delta lake both are null: the logs of its tables list their files. `folder` is null if no Delta table was made:
    DROPMALFORMED left out all rows. Paths begin with that of the lake. Raises OptionError if there is no lake, and
    StateError.
    """
    import pyarrow as pa

    from .result import folder_path
    from .stored.manifest import read_files

    store, manifest = _opened(folder, filesystem, storage_options)
    is_parquet = manifest.format == "parquet"
    files = read_files(store, manifest)
    schema = pa.schema(
        [
            pa.field("table_schema", pa.string()),
            pa.field("table_name", pa.string()),
            pa.field("folder", pa.string()),
            pa.field("files", pa.list_(pa.field("element", pa.string()))),
            pa.field("rows", pa.int64()),
        ]
    )
    rows = [
        {
            "table_schema": names[0],
            "table_name": names[1],
            "folder": folder_path(store, manifest.format, table),
            "files": [store.location(file.path) for file in files[table.folder]] if is_parquet else None,
            "rows": sum(file.rows for file in files[table.folder]) if is_parquet else None,
        }
        for names, table in sorted(manifest.tables.items())
    ]
    return pa.Table.from_pylist(rows, schema)


def _opened(folder: Any, filesystem: Any, storage_options: Mapping[str, str] | None) -> tuple[Store, Manifest]:
    """Returns the store and the manifest of a lake; raises OptionError if there is no lake, and StateError."""
    from .stored.manifest import read_manifest
    from .stored.store import Store

    store = Store.of(folder, filesystem, storage_options)
    manifest = read_manifest(store)
    if manifest is None:
        raise OptionError(f"option folder: expected a lake that `Capture.write` has written, got {folder}")
    return store, manifest


def __dir__() -> list[str]:
    return sorted(__all__)
