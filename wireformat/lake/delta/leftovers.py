"""Files that a write which did not end has left in the folders of Delta tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby

from ..stored.store import Store
from .access import delta_errors, delta_uri
from .log import log_of

_FOLDERS = 2
"""How many folders deep the folder of a table is: that of its schema comes before it."""


def unlogged(store: Store, files: Iterable[str]) -> Iterator[str]:
    """Yields the files that the log of their Delta table does not name; none of a table whose log cannot be read."""
    for parts, paths in groupby(sorted(files), lambda path: path.split("/")[:_FOLDERS]):
        with suppress(OSError, ImportError):
            said = _log(store, "/".join(parts))
            yield from (path for path in paths if path.rpartition("/")[2].encode() not in said)


def _log(store: Store, folder: str) -> bytes:
    """Returns the commits of a Delta table, and the files of its last version; nothing if there is no table."""
    log = [*store.files(log_of(folder))]
    if not log:
        return b""
    from deltalake import DeltaTable

    commits = [store.read(path) or b"" for path in log if path.endswith(".json")]
    with delta_errors(store, folder):
        table = DeltaTable(delta_uri(store, folder), storage_options=store.storage_options)
        return b"\n".join([*commits, *map(str.encode, table.file_uris())])  # commits before a checkpoint may be gone
