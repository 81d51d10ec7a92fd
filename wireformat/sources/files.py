"""Files of consecutive messages, and how a Parquet file is told from them. Loads pyarrow only for Parquet files."""

from __future__ import annotations

import os
import select
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import OptionError, counted
from ..formats.base import Format
from ..formats.guess import guess_format
from ..formats.registry import find_format
from ..framing.buffer import FindEnds, MessageBuffer
from ..temporary import naming_the_folder
from .source import Source, SourceMessages, errors_of

if TYPE_CHECKING:
    from .parquet_files import ParquetSource

PARQUET_MAGIC = b"PAR1"
"""The first bytes of a Parquet file. As the length of a record they would be 1.3 GB, which no server sends."""

READ_BYTES, LARGE_READ_BYTES = 1 << 20, 8 << 20
"""The number of bytes that are read from a file at once, and of one that has turned out to be large."""

LARGE_BYTES, LARGE_IF_LOADED_BYTES = 2 << 20, 1 << 18
"""In a larger file, compiled code finds the ends of messages. Loading that code takes longer than these bytes; less if
the compiler has been loaded."""

OTHER_FILES = {
    b"\x1f\x8b\x08": "is compressed with gzip; decompress it first",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it first",
    b"\xfd7zX": "is compressed with xz; decompress it first",
    b"BZh": "is compressed with bzip2; decompress it first",
    b"\x04\x22\x4d\x18": "is compressed with lz4; decompress it first",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"ARRO": "is an Arrow file; write it as Parquet, or in Python pass the table that pyarrow reads from it",
    b"Obj\x01": "is an Avro file; write it as Parquet",
}
"""The first bytes of files that people try, and the advice. As the length of a record, each would be 500 MB or more,
or, of lz4, 69,356,824 bytes."""

LINES = "test-decoding"
"""The format whose messages end at line feeds in a file."""

FOLLOW_SECONDS = 0.2
"""How often a growing file is checked for more."""

ARRIVAL_SECONDS, READY_SECONDS = 0.05, 0.002
"""How long bytes of a pipe are collected that come one after the other, and how long the next ones are waited for. What
is decoded at once costs as much as thousands of messages."""

_TEXT = frozenset(string.printable.encode())

LINES_HEAD_BYTES = 1 << 16
"""How many bytes of a file are examined for such lines."""


class MessageSource:
    """Consecutive messages, as they came from the server.

    read_data   returns the bytes, cut anywhere
    path        of the file, if it is a regular one
    start       the byte of the file that they begin with; a message begins there
    """

    def __init__(
        self,
        name: str,
        size: int | None,
        read_data: Callable[[], Iterable[bytes]],
        format: Format,
        *,
        is_repeatable: bool = True,
        path: Path | None = None,
        start: int = 0,
    ) -> None:
        self.name = name
        self.size = size
        self.is_repeatable = is_repeatable
        self.path = path
        self.start = start
        self._read_data = read_data
        self.format = format

    def read(self) -> Iterator[SourceMessages]:
        """See Source.read."""
        separator = self.format.separator
        buffer = MessageBuffer(self.format.find_end, separator)
        offset, read_bytes = self.start, 0
        with errors_of(self.name):
            for data in chain(self._read_data(), [None]):
                is_lost = buffer.lost is not None
                read_bytes += len(data or b"")
                if buffer.find_ends is None and read_bytes > (
                    LARGE_IF_LOADED_BYTES if "numba" in sys.modules else LARGE_BYTES
                ):
                    buffer.find_ends = _ends_finder(self.format)
                messages = buffer.close() if data is None else self._fed(buffer, data)
                is_unframed = messages and buffer.is_unframed and not is_lost
                # a file of a format without separators may be one message that does not say where it ends
                may_be_message = not separator and offset == self.start and len(messages) == 1
                unframed = [messages.pop()] if is_unframed and not may_be_message else []
                yield SourceMessages(self.name, messages, len(data or b""), offset, is_lost)
                offset += sum(map(len, messages)) + len(messages) * len(separator)
                if unframed:
                    yield SourceMessages(self.name, unframed, 0, offset, True, buffer.lost)
                    offset += len(unframed[0])

    def _fed(self, buffer: MessageBuffer, data: bytes) -> list[bytes]:
        """Returns the messages that are complete. Raises OptionError for a format without bounds in a file."""
        try:
            return buffer.feed(data)
        except OptionError:
            hint = line_file_hint(data, self.format.name) or "give a Parquet file with one message per row"
            raise OptionError(
                f"option format: {self.name}: messages of {self.format.name} do not say where they end, so none can "
                f"be found in a file of them; {hint}"
            ) from None


def _ends_finder(format: Format) -> FindEnds | None:
    from .splitting import ends_finder  # loads numba

    return ends_finder(format)


def line_file_hint(head: bytes, format: str) -> str | None:
    """Returns the advice for a file that begins with lines of test-decoding and is read as another format."""
    if format == LINES:
        return None
    lines = find_format(LINES)
    found = MessageBuffer(lines.find_end, lines.separator)
    guess = guess_format(found.feed(head[:LINES_HEAD_BYTES]))
    if found.lost is not None or guess.messages < 2 or LINES not in guess.candidates:
        return None
    return f"the file looks like one of pg_recvlogical with lines of {LINES}; pass the format {LINES}"


def text_file_hint(head: bytes) -> str | None:
    """Returns the advice for a file that begins with text, such as CSV, and is read as messages that do not."""
    if len(head) < len(PARQUET_MAGIC) or not all(byte in _TEXT for byte in head[:16]):
        return None
    return (
        "the file begins with text, which does not say where messages end; give a Parquet file with one message per row"
    )


def is_parquet(path: Path, name: str) -> bool:
    """Whether the first bytes of a file are those of a Parquet file; raises OSError."""
    with path.open("rb") as file, errors_of(name):
        return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def file_source(path: Path, name: str, format: Format, column: str | None) -> Source:
    """Returns the source of a regular file, which is a Parquet file if its first bytes say so.

    Raises OSError if the file cannot be read, and OptionError for one of OTHER_FILES, for a file that is called
    `.parquet` and has no first bytes, for a Parquet file whose name is not UTF-8, for a pipe, and for a column that is
    missing or not binary.
    """
    if path.exists() and not path.is_file():
        raise OptionError(f"{name} is not a regular file, and can be read only once: save what comes from it in a file")
    with path.open("rb") as file, errors_of(name):
        head = file.read(len(PARQUET_MAGIC))
    if head == PARQUET_MAGIC:
        _check_is_utf8(path)
        return _parquet(name, path, path.stat().st_size, column)
    if len(head) < len(PARQUET_MAGIC) and path.suffix.lower() == ".parquet":
        size = f"only {counted(len(head), 'byte')}" if head else "no bytes"
        raise OptionError(
            f"{name} has {size}, so it is not a Parquet file: its writer was probably stopped; write it again, or "
            "remove it"
        )
    _check_is_no_other_file(name, head)
    return message_file(path, name, format)


def _check_is_no_other_file(name: str, head: bytes) -> None:
    """Raises OptionError for a file of OTHER_FILES."""
    for magic, advice in OTHER_FILES.items():
        if head.startswith(magic):
            raise OptionError(f"{name} {advice}")


def _check_is_utf8(path: Path) -> None:
    """Raises OptionError for a name that pyarrow does not take."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OptionError(f"{path}: expected a name in UTF-8, since it is a Parquet file: rename it") from None


def _parquet(name: str, file: Path | BinaryIO, size: int, column: str | None) -> ParquetSource:
    from .parquet_files import ParquetSource

    return ParquetSource(name, file, size, column)


def message_file(path: Path, name: str, format: Format, start: int = 0) -> MessageSource:
    """Returns the source of a file of messages from a byte on where a message begins."""
    size = path.stat().st_size - start
    return MessageSource(name, size, partial(_data_of_file, path, start), format, path=path, start=start)


def growing_source(path: Path, name: str, format: Format) -> Source:
    """Returns the source of a file of messages that another process writes to; it never ends."""
    return MessageSource(name, None, partial(_data_of_growing, path), format, is_repeatable=False)


def stream_source(name: str, file: BinaryIO, format: Format, column: str | None, held: ExitStack) -> Source:
    """Returns the source of a file that can be read only once and only forward, such as a pipe.

    held   what must stay open until the source has been read; a Parquet file, which is read from its end, is copied to
           a temporary file
    """
    with errors_of(name):
        head = file.read(len(PARQUET_MAGIC))
        if head != PARQUET_MAGIC:
            _check_is_no_other_file(name, head)
            return MessageSource(name, None, lambda: _data_after(head, file), format, is_repeatable=False)
    with naming_the_folder():
        copy = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        copy.write(head)
        for data in _data_of_stream(name, file):
            copy.write(data)
        copy.flush()
    return _parquet(name, copy, copy.tell(), column)


def _data_of_file(path: Path, start: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        yield from _read_data(file)


def _data_of_growing(path: Path) -> Iterator[bytes]:
    """Yields what is appended. Raises OSError if the file is cut, removed or replaced: nothing would come any more."""
    with path.open("rb") as file:
        while True:
            is_there = path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))
            yield from _read_data(file)
            is_cut = os.fstat(file.fileno()).st_size < file.tell()
            if is_cut or not is_there:
                found = f"fewer than {counted(file.tell(), 'byte')}" if is_cut else "another one of this name, or none"
                raise OSError(f"expected a file that only grows, got {found}: start again")
            time.sleep(FOLLOW_SECONDS)


def _data_of_stream(name: str, file: BinaryIO) -> Iterator[bytes]:
    with errors_of(name):
        yield from _read_data(file)


def _data_after(head: bytes, file: Any) -> Iterator[bytes]:
    """Yields the head, which has been read already, and the rest."""
    yield head + _arrived(file, READ_BYTES)
    yield from _read_data(file)


def _read_data(file: Any) -> Iterator[bytes]:
    """Yields what has arrived, so that a slow pipe is shown as it flows: READ_BYTES at most, later LARGE_READ_BYTES."""
    read_bytes = 0
    while data := _arrived(file, READ_BYTES if read_bytes <= LARGE_BYTES else LARGE_READ_BYTES):
        yield data
        read_bytes += len(data)


def _arrived(file: Any, most: int) -> bytes:
    """Returns what has arrived, or arrives before long: a pipe gives a few kilobytes at a time."""
    parts = [file.read1(most)]
    size, end = len(parts[0]), time.monotonic() + ARRIVAL_SECONDS
    with suppress(OSError):  # the next call raises it: what has arrived is not lost
        while parts[-1] and size < most and time.monotonic() < end and _is_ready(file):
            parts.append(file.read1(most - size))
            size += len(parts[-1])
    return b"".join(parts)


def _is_ready(file: Any) -> bool:
    """Whether bytes can be read from a file now; False if the system does not tell."""
    try:
        return bool(select.select([file.fileno()], [], [], READY_SECONDS)[0])
    except (AttributeError, OSError, ValueError):
        return False
