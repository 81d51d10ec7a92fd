"""The log of a Delta table: what a commit says of the stream, damaged commits, and files that no commit names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...errors import LakeError
from ...stream.capture_position import CapturePosition
from ...stream.positions import Position
from ..stored.delta_files import one_line
from ..stored.manifest import is_of_lake
from ..stored.store import Store

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_APPLICATION = "wireformat."
_NUMBERS = ("transactions", "lsn", "csn")
"""The numbers of a Position. The log keeps each as the version of an application of this name, also in checkpoints."""

_RELATION_ID = f"{_APPLICATION}relation_id"
POSITION = f"{_APPLICATION}position"
"""Key of a commit's metadata: the position, as JSON, without what it says of tables."""

_TRANSACTIONS = f"{_APPLICATION}app_transactions"
"""Key of a commit's metadata: the number of its application transactions, which deltalake writes last."""

LAST_CHECKPOINT = "_last_checkpoint"
"""The file of a log that names its last checkpoint."""

_LOG = "/_delta_log"
_CHECKPOINT = ".checkpoint.parquet"
_COMMIT = re.compile(r"\d{20}\.json")
_MOST = (1 << 63) - 1
_FOLDERS = 2
"""How many folders deep the folder of a table is: that of its schema comes before it."""


def log_of(folder: str) -> str:
    """Returns the folder with the log of the table in a folder."""
    return f"{folder}{_LOG}"


def commit_path(folder: str, version: int) -> str:
    """Returns the path of a commit."""
    return f"{log_of(folder)}/{version:020}.json"


def checkpoint_path(folder: str, version: int) -> str:
    """Returns the path of the checkpoint after a commit."""
    return f"{log_of(folder)}/{version:020}{_CHECKPOINT}"


def added_path(folder: str, add: dict[str, Any]) -> str:
    """Returns the path in the lake of a file that a commit adds; `add` is the action."""
    return f"{folder}/{unquote(add['path'])}"


def commit_properties(position: CapturePosition, relation_id: int | None) -> CommitProperties:
    """Returns what a commit says about the stream, which `position_in` reads."""
    from deltalake import CommitProperties, Transaction

    numbers = {name: getattr(position.delivered, name) for name in _NUMBERS}
    versions = {_APPLICATION + name: min(number, _MOST) for name, number in numbers.items() if number is not None}
    if relation_id is not None:
        versions[_RELATION_ID] = relation_id
    return CommitProperties(
        custom_metadata={POSITION: position.without_tables().to_json(), _TRANSACTIONS: str(len(versions))},
        app_transactions=[Transaction(name, version) for name, version in versions.items()],
    )


def position_in(table: DeltaTable) -> tuple[Position | None, int | None]:
    """Returns the position that a Delta table has reached, and the OID of the table whose rows it has.

    The position is None if `Capture.write` has not written the table, the OID if the format sends none.
    """
    transactions, lsn, csn = (table.transaction_version(_APPLICATION + name) for name in _NUMBERS)
    done = None if transactions is None else Position(transactions, lsn, csn)
    return done, table.transaction_version(_RELATION_ID)


def last_write(commit: Callable[[int], bytes | None], version: int) -> tuple[int | None, bool]:
    """Returns the version of the last commit with a position, and whether the table was restored to one before it.

    commit    returns the bytes of a commit; None if the log no longer has it. The version is then None
    version   the last one of the table

    A commit that restores a table keeps the versions of its applications. One that gives a time, not a version, counts
    as one to an earlier version.
    """
    shown = version  # the version with the rows that readers see
    while (raw := commit(version)) is not None:
        if POSITION.encode() in raw:
            return version, shown < version
        if shown == version:
            shown = version - 1
            if b'"RESTORE"' in raw:
                about: Any = [json.loads(line).get("commitInfo") or {} for line in raw.splitlines()]
                found = [one["operationParameters"] for one in about if one.get("operation") == "RESTORE"]
                shown = min([shown, *(-1 if one.get("version") is None else int(one["version"]) for one in found)])
        version -= 1
    return None, False


def undo_damaged_commits(store: Store) -> None:
    """Removes the last commits of the Delta tables of a store if a power cut has damaged them or their files.

    deltalake does not wait for the disk, so after a power cut a commit may lack its end, or files that it names.
    Readers then get an error, or a part of its rows. Call it only if a write has not ended: everything that a write
    has written is on the disk when it ends. Object stores have only whole files.
    """
    if not store.is_local:
        return
    logs: dict[str, list[str]] = {}
    for path in store.files():
        folder, _, name = path.rpartition("/")
        if folder.endswith(_LOG) and is_of_lake(folder):
            logs.setdefault(folder.removesuffix(_LOG), []).append(name)
    for folder, names in logs.items():
        log = log_of(folder)
        commits = {int(name[:20]) for name in names if _COMMIT.fullmatch(name)}
        checkpoints = {int(name[:20]): name for name in names if name.endswith(_CHECKPOINT)}
        whole = {version for version, name in checkpoints.items() if store.is_parquet(f"{log}/{name}")}
        kept = _last_whole(store, folder, commits, whole)
        for version in filter(kept.__lt__, commits):
            store.delete(commit_path(folder, version))
        for version in checkpoints:
            if version > kept or version not in whole:
                store.delete(checkpoint_path(folder, version))
                store.delete(f"{log}/{LAST_CHECKPOINT}")  # it may name the deleted one


def _last_whole(store: Store, folder: str, commits: set[int], checkpoints: set[int]) -> int:
    """Returns the version of the last commit to keep. Those after it are damaged, or follow a damaged or missing one.

    Only the last commits need all of their files: others may have compacted and vacuumed the table since earlier ones.
    """
    begin = max(checkpoints, default=min(commits, default=0))
    kept = begin - (begin in commits)
    while kept + 1 in commits and _actions(store, folder, kept + 1):
        kept += 1
    while kept >= begin and kept in commits and not _is_whole(store, folder, kept):
        kept -= 1
    if kept < begin and begin in checkpoints:  # it goes, too, and nothing has been read of what comes before it
        earlier = [{version for version in versions if version < begin} for versions in (commits, checkpoints)]
        return _last_whole(store, folder, *earlier)
    return kept


def _actions(store: Store, folder: str, version: int) -> list[Any]:
    """Returns the actions of a commit; none if it is damaged."""
    try:
        return [json.loads(line) for line in (store.read(commit_path(folder, version)) or b"").splitlines()]
    except ValueError:
        return []


def _is_whole(store: Store, folder: str, version: int) -> bool:
    """Whether a commit is complete, and the files in the table's folder that it adds have their sizes."""
    actions = _actions(store, folder, version)
    about: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    # Commits of earlier releases do not say how many application transactions they have.
    expected = int(about[_TRANSACTIONS]) if _TRANSACTIONS in about else int(POSITION in about)
    if sum("txn" in action for action in actions) < expected:
        return False  # cut at the end of a line, which deltalake takes for the end of the commit
    added = [action["add"] for action in actions if "add" in action]
    own = [add for add in added if not add["path"].startswith("/") and "://" not in add["path"]]
    return bool(actions) and all(store.size(added_path(folder, add)) == add["size"] for add in own)


def unlogged(store: Store, files: Iterable[str]) -> Iterator[str]:
    """Yields the files that the log of their Delta table does not name: a write that did not end has left them.

    None of a table whose log cannot be read.
    """
    for parts, paths in groupby(sorted(files), lambda path: path.split("/")[:_FOLDERS]):
        with suppress(OSError, ImportError):
            said = _commits(store, "/".join(parts))
            yield from (path for path in paths if path.rpartition("/")[2].encode() not in said)


def _commits(store: Store, folder: str) -> bytes:
    """Returns the commits of a Delta table, and the files of its last version; nothing if there is no table."""
    log = [*store.files(log_of(folder))]
    if not log:
        return b""
    from deltalake import DeltaTable

    commits = [store.read(path) or b"" for path in log if path.endswith(".json")]
    with delta_errors(store, folder):
        table = DeltaTable(delta_uri(store, folder), storage_options=store.storage_options)
        return b"\n".join([*commits, *map(str.encode, table.file_uris())])  # commits before a checkpoint may be gone


def delta_uri(store: Store, folder: str) -> str:
    """Returns the URI of the Delta table in a folder."""
    return Path(store.path(folder)).as_uri() if store.is_local else store.uri(folder)


@contextmanager
def delta_errors(store: Store, folder: str) -> Iterator[None]:
    """Raises LakeError, which names the table in a folder, for an error of deltalake, which does not."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except Exception as error:
        if not isinstance(error, (DeltaError, OSError)) and type(error) is not Exception:
            raise
        if not isinstance(error, OSError):
            reason = str(error).partition("\n")[0]  # the next lines are the stacks of its threads
        elif isinstance(error, LakeError) or error.errno is not None:
            raise
        else:
            reason = one_line(error)
        raise LakeError(
            f"expected that deltalake reads and writes the Delta table in {store.location(folder)}, got its error "
            f"{reason!r}; earlier commits stay: remove the cause and repeat the write"
        ) from error
