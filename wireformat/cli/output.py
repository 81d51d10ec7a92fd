"""The output of a command: a file, whose ending selects the format, or standard output; and rows in each format."""

from __future__ import annotations

import io
import json
import math
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ..errors import OptionError
from ..printable import STEERING, printable
from ..sources.find import paths_of
from .exits import BAD_USAGE, Failed
from .options import STDIN, STDOUT

ROW_GROUP_BYTES = 64 << 20
"""The bytes in memory of a row group: large enough for readers in parallel. No more rows wait than these."""

Write = Callable[[pa.RecordBatch], None]
"""Adds the next rows."""


@contextmanager
def parquet_rows(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """Yields what writes Parquet, with row groups of about ROW_GROUP_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = 0

    def flush() -> None:
        nonlocal size
        table = pa.Table.from_batches(waiting, schema=schema)
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
        waiting.clear()
        size = 0

    def write(batch: pa.RecordBatch) -> None:
        nonlocal size
        waiting.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            flush()

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        yield write
        flush()


@contextmanager
def arrow_file(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """Yields what writes Arrow's IPC file format, which is read from its end."""
    with pa.ipc.new_file(file, schema) as writer:
        yield writer.write_batch


@contextmanager
def arrow_stream(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """Yields what writes Arrow's IPC stream format, which is read from its beginning."""
    with pa.ipc.new_stream(file, schema) as writer:
        yield writer.write_batch


@contextmanager
def csv_rows(file: BinaryIO, schema: pa.Schema, *, on_screen: bool = False) -> Iterator[Write]:
    r"""Yields what writes CSV with a line of names.

    A null is an empty cell, an empty text is "", a map or list is JSON, bytes are `\x…`.

    on_screen   whether a terminal shows it; names and texts are then as `printable` returns them

    Raises Failed for a null in a single column: it would be an empty line, which readers leave out.
    """
    names = [printable(name) if on_screen else name for name in schema.names]

    def write(batch: pa.RecordBatch, *, include_header: bool = False) -> None:
        if len(names) == 1 and batch[0].null_count:
            text = f"a null in CSV of the single column {schema.names[0]} is an empty line, which readers leave out: "
            raise Failed(f"{text}add another column, or write JSON lines", BAD_USAGE)
        columns = [_csv_cells(column, on_screen) for column in batch.columns]
        sink = pa.BufferOutputStream()
        options = pa.csv.WriteOptions(include_header=include_header)
        pa.csv.write_csv(pa.RecordBatch.from_arrays(columns, names), sink, options)
        file.write(sink.getvalue().to_pybytes().replace(b'"%b' % _BARE, b"").replace(b'%b"' % _BARE, b""))

    write(pa.RecordBatch.from_pylist([], schema), include_header=True)
    yield write


_BARE = secrets.token_hex(8).encode()
"""What begins and ends a cell that is written without its quotes. No capture has it, since it is random."""


def _csv_cells(column: pa.Array, on_screen: bool) -> pa.Array:
    kind = column.type
    if pa.types.is_decimal(kind) and kind.scale > 6:  # of which Arrow writes some with an exponent
        return pc.binary_join_element_wise(_BARE, pc.cast(_texts(column), pa.binary()), _BARE, b"")
    if pa.types.is_binary(kind):
        return _texts(column)
    if pa.types.is_nested(kind):
        cells = json_cells(column)
    elif on_screen and pa.types.is_string(kind):
        cells = (printable(text or "") for text in column.to_pylist())
    else:
        return column
    valid = column.is_valid().to_pylist()
    return pa.array([cell if is_there else None for cell, is_there in zip(cells, valid, strict=True)], pa.string())


@contextmanager
def json_rows(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    r"""Yields what writes JSON lines: an object with all columns for each row.

    A map is an object, bytes are the text `\x…`, a time is text.
    """
    names = [f"{_json_text(name)}: " for name in schema.names]

    def write(batch: pa.RecordBatch) -> None:
        columns = [
            [name + cell for cell in json_cells(column)] for name, column in zip(names, batch.columns, strict=True)
        ]
        file.write("".join(f"{{{', '.join(row)}}}\n" for row in zip(*columns, strict=True)).encode())

    yield write


_UNSAFE = re.compile(f"[{STEERING}]")
"""Characters that JSON does not escape, but that would steer a terminal."""


def json_cells(column: pa.Array) -> Iterator[str]:
    """Returns the JSON text of each cell. A name that a map has twice is also twice in its object."""
    kind = column.type
    if pa.types.is_map(kind):
        keys, items = [*json_cells(column.keys)], [*json_cells(column.items)]
        return _nested(column, [f"{key}: {item}" for key, item in zip(keys, items, strict=True)], "{", "}")
    if pa.types.is_list(kind):
        return _nested(column, [*json_cells(column.values)], "[", "]")
    if pa.types.is_struct(kind):
        return _objects(column)
    if pa.types.is_integer(kind):
        return ("null" if number is None else str(number) for number in column.to_pylist())
    if kind == pa.float32():  # Python has doubles only: 0.1 would be 0.10000000149011612
        column = pc.cast(_texts(column), pa.float64())
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return (json.dumps(value if is_json(value) else str(value)) for value in column.to_pylist())
    return ("null" if text is None else _json_text(text) for text in _texts(column).to_pylist())


def _texts(column: pa.Array) -> pa.Array:
    r"""Returns values as text: bytes as `\x…`, decimals without an exponent, as servers print them."""
    if pa.types.is_binary(column.type):
        return pa.array([None if raw is None else rf"\x{raw.hex()}" for raw in column.to_pylist()], pa.string())
    texts = pc.cast(column, pa.string())
    if not pa.types.is_decimal(column.type):
        return texts
    has_exponent = pc.match_substring(texts, "E")
    plain = [f"{value:f}" for value in column.filter(has_exponent).to_pylist()]
    return pc.replace_with_mask(texts, has_exponent, pa.array(plain, pa.string()))


def is_json(value: float | None) -> bool:
    """Whether JSON has this number: it has no NaN and no infinities."""
    return value is None or math.isfinite(value)


def cell_texts(column: pa.Array) -> Iterator[str]:
    """Returns the text of each cell, for a screen; a null is empty."""
    cells = json_cells(column) if pa.types.is_nested(column.type) else _texts(column).to_pylist()
    valid = column.is_valid().to_pylist()
    return ((cell or "") if is_there else "" for cell, is_there in zip(cells, valid, strict=True))


def _objects(column: pa.Array) -> Iterator[str]:
    names = [f"{_json_text(field.name)}: " for field in column.type]
    columns = [[name + cell for cell in json_cells(child)] for name, child in zip(names, column.flatten(), strict=True)]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(column))
    for row, is_there in zip(rows, column.is_valid().to_pylist(), strict=True):
        yield f"{{{', '.join(row)}}}" if is_there else "null"


def _nested(column: pa.Array, elements: list[str], opening: str, closing: str) -> Iterator[str]:
    offsets = column.offsets.to_pylist()
    for row, is_there in enumerate(column.is_valid().to_pylist()):
        inner = ", ".join(elements[offsets[row] : offsets[row + 1]])
        yield f"{opening}{inner}{closing}" if is_there else "null"


def _json_text(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", encode_basestring(text))


Writer = Callable[..., AbstractContextManager[Write]]
"""A writer of one of the formats."""

ENDINGS: dict[str, Writer] = {".parquet": parquet_rows, ".arrow": arrow_file, ".csv": csv_rows, ".jsonl": json_rows}
"""The writer for a file, by the end of its name."""

STREAMS: dict[str, Writer] = {"csv": csv_rows, "jsonl": json_rows, "arrow": arrow_stream}
"""The writers for standard output, by the name of their format."""


class CheckedOutput(NamedTuple):
    """An output that was checked.

    name     its name in messages
    path     the path of the file; None for standard output
    writer   writes its format
    """

    name: str
    path: Path | None
    writer: Writer

    @property
    def is_screen(self) -> bool:
        """Whether the table is shown on a terminal."""
        return self.path is None and sys.stdout.isatty()


def find_output(path: Path, to: str | None, inputs: Sequence[str]) -> CheckedOutput:
    """Returns the output that the options name.

    to       a key of STREAMS, only for standard output
    inputs   the files, folders and patterns that are read

    Raises Failed if the output is one of the inputs, or if its format is not known.
    """
    if str(path) == STDOUT:
        return CheckedOutput("standard output", None, _stream_writer(to))
    if to is not None:
        raise Failed(f"--to says what `-o -` writes; of {path} its ending says it: {', '.join(ENDINGS)}", BAD_USAGE)
    writer = ENDINGS.get(path.suffix.lower())
    if writer is None:
        raise Failed(f"{path}: expected a name that ends in {', '.join(ENDINGS)}, or -", BAD_USAGE)
    check_is_no_input(path, inputs)
    return CheckedOutput(str(path), path, writer)


def check_is_no_input(path: Path, inputs: Sequence[str]) -> None:
    """Raises Failed if a file is one of the inputs: files, folders and patterns."""
    for name in inputs if path.exists() else ():
        with suppress(OptionError, OSError):  # the command reports inputs that cannot be read later
            if name != STDIN and any(file.exists() and path.samefile(file) for file in paths_of(name)):
                raise Failed(f"{path}: is an input, and would be overwritten", BAD_USAGE)


def _stream_writer(to: str | None) -> Writer:
    """Returns the writer for standard output; raises Failed."""
    writer = STREAMS.get(to.lower()) if to is not None else None
    if writer is None:
        got = "" if to is None else f", got {to!r}"
        raise Failed(f"-o {STDOUT} needs --to {', '.join(STREAMS)}{got}", BAD_USAGE)
    if not sys.stdout.isatty():
        return writer
    if writer is arrow_stream:
        raise Failed("standard output is a terminal, and Arrow is binary: write to a file or a pipe", BAD_USAGE)
    return partial(writer, on_screen=True) if writer is csv_rows else writer


@contextmanager
def open_output(output: CheckedOutput, schema: pa.Schema) -> Iterator[Write]:
    """Yields the function that takes the rows; see `open_file`. Raises Failed if the file cannot be created."""
    with open_file(output.path) as file, output.writer(file, schema) as write:
        yield write


@contextmanager
def open_file(path: Path | None) -> Iterator[BinaryIO]:
    """Yields a new file, or standard output for None.

    The file has another name in the same folder until the end; after an error nothing is left. It has the mode of the
    file that it replaces. Raises Failed if it cannot be created.
    """
    if path is None:
        yield cast(BinaryIO, _StandardOutput())
        sys.stdout.buffer.flush()  # before the command says what it has written
        return
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise Failed(f"{path} exists and is not a regular file", BAD_USAGE)
    unfinished = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")  # 210 bytes at most
    try:
        with _created(unfinished, str(path)) as file:
            with suppress(OSError):  # there is no such file, or it has no mode
                shutil.copymode(target, unfinished)
            yield file
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):  # it may not exist
            unfinished.unlink()
        raise


class _StandardOutput(io.RawIOBase):
    """Standard output. It writes everything that it is given, also if Python does not buffer it. It stays open."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]
        return size


class _NamedFile(io.FileIO):
    """A new file whose errors have a name: the operating system knows none when it writes to an open file."""

    def __init__(self, path: Path, shown: str) -> None:
        super().__init__(path, "x")
        self._shown = shown

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._shown) from None


def _created(unfinished: Path, name: str) -> BinaryIO:
    """Returns a new file; raises Failed, which names it `name`."""
    try:
        return io.BufferedWriter(_NamedFile(unfinished, name))
    except FileNotFoundError:
        raise Failed(f"{name}: there is no folder {Path(name).parent}", BAD_USAGE) from None
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}", BAD_USAGE) from None
