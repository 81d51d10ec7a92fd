"""`delta_files`: the files of a folder that deltalake opens, as a file system of pyarrow."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import LakeError, needs

_ASKED = (
    "create_dir",
    "delete_file",
    "get_file_info",
    "get_file_info_selector",
    "open_input_file",
    "open_input_stream",
    "open_output_stream",
)
"""What pyarrow asks a file system for."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|↳")
"""What deltalake's errors contain besides words: colours, and arrows."""

_DOCUMENT = re.compile(r"<(?:.|\n)*")
"""The answer of an object store, in XML, with which they end."""


def delta_files(uri: str, storage_options: Mapping[str, str]) -> pafs.FileSystem:
    """Returns the file system of a URI, whose errors are LakeErrors that name it; raises MissingExtra."""
    with needs("delta", "storage_options"):
        from deltalake.fs import DeltaStorageHandler

    class Handler(DeltaStorageHandler):
        """Its streams take only bytes, but pyarrow passes buffers to them."""

        def open_output_stream(self, path: str, metadata: Any = None) -> pa.PythonFile:
            return pa.PythonFile(_BytesStream(self._handler.open_output_stream(path, metadata)), "w")

    for name in _ASKED:
        setattr(Handler, name, _naming(uri, getattr(Handler, name)))
    return pafs.PyFileSystem(Handler(uri, dict(storage_options)))


def one_line(error: OSError) -> str:
    """Returns the text of deltalake's own OSError, which has several lines with colours."""
    lines = (line.strip() for line in _DOCUMENT.sub("", _COLOURS.sub("", str(error))).split("\n"))
    return ": ".join(line for line in lines if line)


def _naming(uri: str, ask: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ask)
    def asked(*given: Any) -> Any:
        try:
            return ask(*given)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LakeError(
                f"expected an object store that reads and writes {uri}, got its error {one_line(error)!r}; check the "
                "bucket, the network and storage_options"
            ) from error

    return asked


class _BytesStream(io.RawIOBase):
    """A stream that passes what is written to another one, as bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
