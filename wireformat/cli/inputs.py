"""The inputs of a command: Parquet files, files of concatenated messages and standard input, as parts in order."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DecodeError, OptionError
from ..formats.base import Format
from ..formats.guess import guess_format
from ..formats.registry import find_format
from ..framing.buffer import MessageBuffer
from ..limits import CHUNK_BYTES
from .exits import BAD_DATA, BAD_USAGE, Failed

STDIN = "-"
PARQUET_MAGIC = b"PAR1"
"""How a Parquet file begins. As the length of a record it would be 1.3 GB, which no server sends."""

READ_BYTES = 1 << 20
"""How much is read from a file at once."""

MOST_ROWS = 1 << 14
"""How many messages one part of a Parquet file holds at most."""

LINES = "test-decoding"
"""The format whose messages are found in a file by their line feeds."""

LINES_HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""


class InputPart(NamedTuple):
    """Some messages of an input, in order.

    source         name of the input
    messages       a list of bytes, or a pyarrow binary array
    read_bytes     how many bytes of the input they stand for
    stream_offset  byte of the input where the first message begins; None in Parquet
    is_lost        the framing is broken, here or in an earlier part: the bytes are as they came, and are no messages
    error          why, where it is broken here
    """

    source: str
    messages: Any
    read_bytes: int
    stream_offset: int | None = None
    is_lost: bool = False
    error: DecodeError | None = None


class Input(Protocol):
    """A source of messages; size in bytes, None where it is not known before the end."""

    @property
    def name(self) -> str:
        """As the user gave it."""

    @property
    def size(self) -> int | None:
        """In bytes."""

    def parts(self) -> Iterator[InputPart]:
        """Its messages, a few megabytes at a time. Raises Failed."""


@contextmanager
def find_inputs(paths: Sequence[str], format: Format, column: str) -> Iterator[list[Input]]:
    """Look at every input before the first is read; raises Failed for one that cannot be.

    paths   files, or "-" for standard input; a Parquet file is known by its first bytes
    column  the binary column of Parquet files that holds the messages
    """
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    with ExitStack() as held:
        yield [_find_input(path, format, column, held) for path in paths]


def all_parts(inputs: Iterable[Input]) -> Iterator[InputPart]:
    """The parts of all inputs, one input after the other."""
    return chain.from_iterable(input.parts() for input in inputs)


class ParquetInput:
    """Messages in a binary column of a Parquet file."""

    def __init__(self, name: str, source: Path | BinaryIO, size: int, column: str) -> None:
        self.name = name
        self.size = size
        self._source = source
        self._column = column
        with _errors_of(name), pq.ParquetFile(source) as file:
            _check_column(name, file.schema_arrow, column)

    def parts(self) -> Iterator[InputPart]:
        """See Input.parts."""
        column = self._column
        with _errors_of(self.name), pq.ParquetFile(self._source, buffer_size=READ_BYTES, pre_buffer=False) as file:
            if not file.metadata.num_rows:
                yield InputPart(self.name, [], self.size)
            bytes_per_row = self.size / max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):
                rows = _rows_at_once(file.metadata.row_group(group), column)
                for batch in file.iter_batches(rows, row_groups=[group], columns=[column]):
                    yield InputPart(self.name, batch.column(0), round(len(batch) * bytes_per_row))


class MessageInput:
    """Messages one after the other, as they came from the server."""

    def __init__(self, name: str, size: int | None, chunks: Callable[[], Iterable[bytes]], format: Format) -> None:
        self.name = name
        self.size = size
        self._chunks = chunks
        self._format = format

    def parts(self) -> Iterator[InputPart]:
        """See Input.parts."""
        separator = self._format.separator
        buffer = MessageBuffer(self._format.find_end, separator)
        offset = 0
        with _errors_of(self.name):
            for chunk in chain(self._chunks(), [None]):
                is_lost = buffer.lost is not None
                messages = buffer.close() if chunk is None else self._fed(buffer, chunk)
                unframed = [messages.pop()] if separator and messages and buffer.is_unframed and not is_lost else []
                yield InputPart(self.name, messages, len(chunk or b""), offset, is_lost)
                offset += sum(map(len, messages)) + len(messages) * len(separator)
                if unframed:
                    yield InputPart(self.name, unframed, 0, offset, True, buffer.lost)
                    offset += len(unframed[0])

    def _fed(self, buffer: MessageBuffer, chunk: bytes) -> list[bytes]:
        """The messages that are complete now. Raises Failed for a format that has no bounds in a file."""
        try:
            return buffer.feed(chunk)
        except OptionError:
            hint = line_file_hint(chunk, self._format.name) or "give a Parquet file with one message per row"
            raise Failed(
                f"{self.name}: messages of {self._format.name} do not say where they end, so none can be found in a "
                f"file of them; {hint}",
                BAD_USAGE,
            ) from None


def line_file_hint(head: bytes, format: str) -> str | None:
    """The advice for a file that begins with lines of test-decoding and is read as another format; else None."""
    if format == LINES:
        return None
    lines = find_format(LINES)
    found = MessageBuffer(lines.find_end, lines.separator)
    guess = guess_format(found.feed(head[:LINES_HEAD_BYTES]))
    if found.lost is not None or guess.messages < 2 or LINES not in guess.candidates:
        return None
    return f"the file looks like one of pg_recvlogical with lines of {LINES}; pass --format {LINES}"


def _find_input(path: str, format: Format, column: str, held: ExitStack) -> Input:
    """The input of this path; what has to stay open until it is read goes to `held`."""
    if path == STDIN:
        return _stream_input("standard input", sys.stdin.buffer, format, column, held)
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - a pipe stays open until it is read
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", BAD_USAGE) from None
    facts = os.fstat(file.fileno())
    if not stat.S_ISREG(facts.st_mode):
        return _stream_input(path, held.enter_context(file), format, column, held)
    with file, _errors_of(path):
        is_parquet = file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    if is_parquet:
        return ParquetInput(path, Path(path), facts.st_size, column)
    return MessageInput(path, facts.st_size, partial(_chunks_of_file, Path(path)), format)


def _stream_input(name: str, file: BinaryIO, format: Format, column: str, held: ExitStack) -> Input:
    """An input that can be read only once and only forward; Parquet, which begins at its end, is copied to a file."""
    with _errors_of(name):
        head = file.read(len(PARQUET_MAGIC))
        if head != PARQUET_MAGIC:
            return MessageInput(name, None, lambda: _chunks_after(head, file), format)
        copy = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        copy.write(head)
        shutil.copyfileobj(file, copy)
        return ParquetInput(name, copy, copy.tell(), column)


def _chunks_of_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _chunks(file)


def _chunks_after(head: bytes, file: Any) -> Iterator[bytes]:
    """What is there, after a head that has been read and is a part of the first chunk."""
    yield head + file.read1(READ_BYTES)
    yield from _chunks(file)


def _chunks(file: Any) -> Iterator[bytes]:
    """What is there, READ_BYTES at most, so that a slow pipe is shown as it flows."""
    while chunk := file.read1(READ_BYTES):
        yield chunk


def _check_column(name: str, schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        raise Failed(f"{name}: no column {column!r}; there are {', '.join(schema.names)}", BAD_USAGE)
    found = schema.field(column).type
    if not any(is_type(found) for is_type in _BINARY):
        raise Failed(f"{name}: column {column!r}: expected binary, got {found}", BAD_USAGE)


_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)


def _rows_at_once(group: pq.RowGroupMetaData, column: str) -> int:
    """How many rows hold about CHUNK_BYTES of messages."""
    chunks = (group.column(place) for place in range(group.num_columns))
    size: int = next(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == column)
    rows: int = group.num_rows
    return max(1, min(MOST_ROWS, CHUNK_BYTES * rows // max(size, 1)))


@contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Errors of reading an input, with its name."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        text = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise Failed(f"{name}: {text}", BAD_DATA) from None
