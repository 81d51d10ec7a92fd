"""The files of a lake, in any file system of pyarrow. Readers see only complete files."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from ...errors import LakeConflict, LakeError, OptionError
from ...options.checks import in_home, path_or_uri, shown, texts
from .delta_files import delta_files

HIDDEN = ".wireformat-"
"""The beginning of the names of unfinished files: Arrow and Spark skip names that begin with a dot."""

_UNFINISHED = ".part"
"""The end of these names: DuckDB and Polars read all files that match `*.parquet`."""

_HIDDEN_BYTES = 4
"""Random bytes that follow, as hex digits. Then comes the name that the file is to get."""

_OBJECT_STORES = re.compile(r"\b(s3|gcs|gs|abfs|az)\b")
"""In the names of file systems of pyarrow and fsspec, such as `s3` and `py::fsspec+('s3', 's3a')`."""

_MAY_NOT = "a folder that this user may read and write", "change its owner or permissions, or pass another folder"
_IN_THE_WAY = "a path whose parents are folders", "move away what is in the way, or pass another folder"
_ADVICE = {
    errno.EACCES: _MAY_NOT,
    errno.EPERM: _MAY_NOT,
    errno.EROFS: ("a file system that can be written", "pass another folder"),
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ENAMETOOLONG: ("a shorter path", "pass another folder"),
    errno.EMFILE: (
        "a process that may open a file more for each lake that it locks",
        "raise the limit, for example with `ulimit -n 65536`, or write fewer streams at once",
    ),
}
"""What is expected and what to do, by the error number of the operating system."""


_LOCAL = "fsspec.implementations.local", "LocalFileSystem"
"""Module and name of fsspec's file system of this machine. Its subclasses may do more."""


def _unwrapped(filesystem: Any, path: str) -> tuple[Any, str]:
    """Returns the file system that others wrap, and the path there: a local one can be locked."""
    while "://" not in path:
        if isinstance(filesystem, pafs.SubTreeFileSystem):
            path, filesystem = f"{filesystem.base_path}{path.lstrip('/')}", filesystem.base_fs
        elif isinstance(filesystem, pafs.PyFileSystem) and isinstance(filesystem.handler, pafs.FSSpecHandler):
            filesystem = filesystem.handler.fs
        else:
            break
    if (type(filesystem).__module__, type(filesystem).__qualname__) == _LOCAL:
        return pafs.LocalFileSystem(), filesystem._strip_protocol(path)
    return filesystem, path


def _without_partition(path: str) -> str:
    """Returns a path without the folder of a partition, whose name contains the value of a cell, and what follows.

    The names of tables' folders have no `=`.
    """
    before, _, rest = path.partition("=")
    return before.rpartition("/")[0] if rest else path


class Store:
    """A folder and everything below it. Paths are relative to it.

    filesystem        the file system of the folder
    root              its path there
    uri               its URI, as deltalake takes it
    storage_options   of deltalake
    durable           whether `flush` waits for the disk. It does so only on this machine; an object store itself
                      confirms a write when the data are safe
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        root: str,
        uri: str,
        storage_options: Mapping[str, str] | None,
        durable: bool,
    ) -> None:
        self._filesystem = filesystem
        self._root = self._shown = root.rstrip("/")
        self._uri = uri.rstrip("/")
        self.storage_options = None if storage_options is None else dict(storage_options)
        self.is_durable = durable and self.is_local
        self._made: list[Path] = []
        """The folders that this store has made on this machine; in threads, so one may come before its parent."""

    @classmethod
    def of(
        cls, folder: Any, filesystem: Any, storage_options: Mapping[str, str] | None, *, durable: bool = False
    ) -> Store:
        """Returns the store of a folder.

        folder            a path, or a URI such as `s3://bucket/lake`
        filesystem        of pyarrow or fsspec; `folder` is then a path in it
        storage_options   of deltalake, which then opens a folder that is not of this machine
        durable           see the class

        Raises OptionError and MissingExtra.
        """
        text = path_or_uri("folder", folder)
        if storage_options is not None:
            if not isinstance(storage_options, Mapping):
                raise OptionError(f"option storage_options: expected a mapping, got {shown(storage_options)}")
            texts("storage_options", [*storage_options, *storage_options.values()])
        if filesystem is not None:
            given = text if isinstance(filesystem, pafs.SubTreeFileSystem) else None
            filesystem, text = _unwrapped(filesystem, text)
            if not isinstance(filesystem, pafs.FileSystem):
                if isinstance(filesystem, type) or not hasattr(filesystem, "isfile"):
                    raise OptionError(f"option filesystem: expected one of pyarrow or fsspec, got {shown(filesystem)}")
                text = filesystem._strip_protocol(text) if "://" in text else text
                filesystem = pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))
            if "://" in text:
                raise OptionError(f"option folder: expected a path in the filesystem, got the URI {text}")
            store = cls(filesystem, text, text, storage_options, durable)
            if given is not None:
                store._shown = given.rstrip("/")
            return store
        if storage_options is not None and not is_of_this_machine(text):
            return cls(delta_files(text, storage_options), "", text, storage_options, durable)
        if "://" in text:
            try:
                found, path = pafs.FileSystem.from_uri(text)
            except (pa.ArrowInvalid, OSError) as error:
                raise OptionError(f"option folder: {error}; pass filesystem or storage_options") from None
            return cls(found, path, text, storage_options, durable)
        path = str(Path(in_home(text)).absolute())
        if os.path.isfile(path):  # noqa: PTH113 - Path raises if this user may not look there
            raise OptionError(f"option folder: {text} is a file; expected the folder of a lake")
        return cls(pafs.LocalFileSystem(), path, path, storage_options, durable)

    @property
    def is_local(self) -> bool:
        """Whether the files are those of this machine."""
        return isinstance(self._filesystem, pafs.LocalFileSystem)

    @property
    def moves(self) -> bool:
        """Whether a file can be renamed in one step. Object stores cannot do it, but show only complete files."""
        return not self._has_handler and _OBJECT_STORES.search(self._filesystem.type_name) is None

    @property
    def _has_handler(self) -> bool:
        """Whether the files are read and written by deltalake."""
        return self.storage_options is not None and not self.is_local

    @contextmanager
    def locked(self, *, waits: bool = False) -> Iterator[None]:
        """Keeps other writes on this machine out of the folder; raises LakeConflict if there is one.

        waits   whether to wait for the end of the other one instead

        The system releases the lock of a process that is killed. Object stores and Windows have no locks.
        """
        if not self.is_local or os.name != "posix":
            yield
            return
        import fcntl

        file = self._open_locked(fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        try:
            yield
        finally:
            self.remove_empty()
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked process also has the file
            os.close(file)

    def _open_locked(self, lock: int) -> int:
        """Makes, opens and locks the folder; raises LakeConflict if another write holds the lock.

        lock   flags of flock

        A write that ends removes a folder that it has made and left empty: the lock must be that of the folder that
        is there now.
        """
        import fcntl

        while True:
            self._make_folder("")
            file = self._open_folder()
            try:
                fcntl.flock(file, lock)
            except BlockingIOError:
                os.close(file)
                raise LakeConflict(f"another process is writing to the lake {self._root}: write again later") from None
            except OSError:
                return file  # some file systems have no locks
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(self._root or "/")):  # noqa: PTH116 - a path of the file system
                    return file
            os.close(file)

    def _open_folder(self) -> int:
        """Opens the folder, to lock it; raises LakeError if this user may not write there."""
        with self._advising(""):
            if not os.access(
                self._root or "/", os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
            ):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return os.open(self._root or "/", os.O_RDONLY)

    def remove_empty(self) -> None:
        """Removes the folders that were made and are empty, so that a write that fails leaves none of them."""
        for path in sorted(self._made, key=lambda made: len(made.parts), reverse=True):
            with suppress(OSError):
                path.rmdir()
        self._made = []

    def path(self, path: str) -> str:
        """Returns the path in the file system."""
        return f"{self._root}/{path}" if self._root else path

    def uri(self, path: str) -> str:
        """Returns the URI as deltalake takes it."""
        return f"{self._uri}/{path}"

    def location(self, path: str) -> str:
        """Returns the path as users have it: the URI if deltalake opens the folder, else that in their file system."""
        return self.uri(path) if self._has_handler else f"{self._shown}/{path}" if self._shown else path

    @property
    def identity(self) -> str:
        """What names the folder, however its path is written."""
        return (
            os.path.realpath(self._root or "/") if self.is_local else self.uri("") if self._has_handler else self._root
        )

    @property
    def is_decoded(self) -> bool:
        """Whether deltalake would open another folder, because it decodes `%` and two hex digits in paths."""
        return self.is_local and unquote(self._root) != self._root

    @contextmanager
    def _advising(self, path: str) -> Iterator[None]:
        """Raises LakeError, which says what to do, for errors that a user can remedy."""
        try:
            yield
        except OSError as error:
            number = errno.EISDIR if error.errno is None and "is a directory" in str(error) else error.errno
            shown = _without_partition(path)
            if number not in _ADVICE and (number is None or (shown == path and error.filename)):
                raise
            folder, _, name = shown.rpartition("/")
            where = self.path(folder if name.startswith(HIDDEN) else shown).rstrip("/") or "/"
            if number not in _ADVICE:
                raise OSError(number, os.strerror(number), where) from None
            expected, advice = _ADVICE[number]
            raise LakeError(f"expected {expected}, got {os.strerror(number)!r} for {where}; {advice}") from None

    def hidden(self, path: str, writer: str | None = None) -> str:
        """Returns a path for the unfinished file that will become `path`. Readers of folders skip its name.

        writer   what names the program that writes it, one at a time, and finds what it left; None for a new path
        """
        folder, _, name = path.rpartition("/")
        code = secrets.token_hex(_HIDDEN_BYTES)
        if writer is not None:
            code = blake2b(writer.encode(), digest_size=_HIDDEN_BYTES).hexdigest()
        return f"{folder}/{HIDDEN}{code}-{name}{_UNFINISHED}".lstrip("/")

    def read(self, path: str) -> bytes | None:
        """Returns the content of a file; None if it does not exist."""
        try:
            with self._advising(path), self._filesystem.open_input_stream(self.path(path)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def size(self, path: str) -> int | None:
        """Returns the number of bytes of a file; None if it does not exist."""
        found = self._filesystem.get_file_info(self.path(path))
        return found.size if found.type == pafs.FileType.File else None

    def has(self, path: str) -> bool:
        """Whether a file exists."""
        return self.size(path) is not None

    def exists(self, path: str) -> bool:
        """Whether a file, a folder or a device has this path."""
        return bool(self._filesystem.get_file_info(self.path(path)).type != pafs.FileType.NotFound)

    def is_parquet(self, path: str) -> bool:
        """Whether a file exists that has the footer of a Parquet file."""
        try:
            pq.read_metadata(self.path(path), filesystem=self._filesystem)
        except (OSError, pa.ArrowException):
            return False
        return True

    def parquet(self, path: str) -> pq.ParquetFile:
        """Returns a Parquet file, to read it."""
        return pq.ParquetFile(self._filesystem.open_input_file(self.path(path)))

    def write(self, path: str, data: bytes) -> None:
        """Writes or replaces a file, which readers see only when it is complete. Raises OSError."""
        unfinished = self.hidden(path) if self.moves else path
        self.make_folder_of(path)
        try:
            self.append(unfinished, data)
            self.flush(unfinished)
            if self.moves:
                self.move(unfinished, path)
            self.flush_names(path)
        except BaseException:
            if self.moves:
                self.delete(unfinished)
            raise

    def note(self, path: str, data: bytes) -> None:
        """Writes or replaces a small file, under its own name from the beginning. Raises OSError."""
        self.make_folder_of(path)
        self.append(path, data)
        self.flush(path)
        self.flush_names(path)

    def append(self, path: str, data: bytes, size: int = 0) -> None:
        """Adds bytes to a file of this machine. Elsewhere, writes a complete file.

        size   of the file so far; 0 makes the file

        Raises OSError, and LakeConflict if the file is gone.
        """
        if self.is_local:
            with self._advising(path), self._opened(path, size) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
            return
        with self._filesystem.open_output_stream(self.path(path)) as file:
            file.write(data)

    def _opened(self, path: str, size: int) -> io.FileIO:
        """Opens a file of this machine at its end; see `append`."""
        if size:
            try:
                file = io.FileIO(self.path(path), "r+")
            except FileNotFoundError:
                gone = self.path(_without_partition(path))
                message = f"another process has removed {gone} before it was complete: write again"
                raise LakeConflict(message) from None
            file.seek(size)
            return file
        try:
            return io.FileIO(self.path(path), "w")
        except FileNotFoundError:  # the folder was empty, and the write that had made it has removed it
            self.make_folder_of(path)
            return io.FileIO(self.path(path), "w")

    def flush(self, path: str) -> None:
        """Waits until the bytes of a file are on the disk of a durable store."""
        if self.is_durable:
            _flush(self.path(path))

    def flush_names(self, path: str) -> None:
        """Waits until the name of a file, and those of the folders above it, are on the disk of a durable store."""
        if not self.is_durable or os.name != "posix":  # elsewhere a folder cannot be opened
            return
        folders = path.split("/")[:-1]
        for length in range(len(folders), -1, -1):
            _flush(self.path("/".join(folders[:length])))
        with suppress(PermissionError):  # this user may not be allowed to open the folder above the lake
            _flush(os.path.dirname(self._root) or "/")  # noqa: PTH120 - a path of the file system

    def open(self, path: str) -> pa.NativeFile:
        """Returns a stream that writes a file."""
        with self._advising(path):
            return self._filesystem.open_output_stream(self.path(path))

    def make_folder_of(self, path: str) -> None:
        """Makes the folder of a file."""
        self._make_folder(path.rpartition("/")[0])

    def _make_folder(self, path: str) -> None:
        folder = self.path(path).rstrip("/")
        if not self.is_local:
            if folder:
                self._filesystem.create_dir(folder, recursive=True)
            return
        local = Path(folder or "/")
        with self._advising(path):
            missing = [one for one in (local, *local.parents) if not one.exists()]
            local.mkdir(parents=True, exist_ok=True)
        self._made += reversed(missing)

    def move(self, path: str, target: str) -> None:
        """Renames a file, and replaces another one of the new name."""
        if self.is_local:
            with self._advising(target):
                os.replace(self.path(path), self.path(target))  # noqa: PTH105 - paths of the file system
        else:
            self._filesystem.move(self.path(path), self.path(target))

    def delete(self, path: str) -> None:
        """Removes a file if it exists."""
        with suppress(OSError):
            self._filesystem.delete_file(self.path(path))

    def flush_all(self) -> None:
        """Waits until everything that earlier writes have written is on the disk of a durable store."""
        if self.is_durable and os.name == "posix":
            os.sync()

    @property
    def is_empty(self) -> bool:
        """Whether the folder does not exist, or has only unfinished files."""
        selector = pafs.FileSelector(self.path("") or "/", allow_not_found=True)
        return all(found.base_name.startswith(HIDDEN) for found in self._filesystem.get_file_info(selector))

    def files(self, folder: str = "") -> Iterator[str]:
        """Yields the files below a folder; none if it does not exist."""
        selector = pafs.FileSelector(self.path(folder) or "/", recursive=True, allow_not_found=True)
        begin = len(self._root) + 1 if self._root else 0
        for found in self._filesystem.get_file_info(selector):
            if found.type == pafs.FileType.File:
                yield found.path[begin:] if self._root else found.path.lstrip("/")


def shown_name(path: str) -> str:
    """Returns the name of a file without its folders; of an unfinished one, the name that it was to get."""
    name = path.rpartition("/")[2]
    shown = name[len(HIDDEN) + 2 * _HIDDEN_BYTES + 1 :].removesuffix(_UNFINISHED)
    return shown if name.startswith(HIDDEN) else name


def is_of_this_machine(folder: str) -> bool:
    """Whether a path or URI is one of this machine."""
    return "://" not in folder or folder.startswith("file://")


def _flush(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
