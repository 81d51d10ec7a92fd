"""Writers of a table: Parquet, Arrow IPC, CSV, JSON lines."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json.encoder import encode_basestring
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ..printable import STEERING, printable
from .exits import BAD_USAGE, Failed

ROW_GROUP_BYTES = 64 << 20
"""The bytes in memory of a row group: large enough for readers in parallel. No more rows wait than these."""


Write = Callable[[pa.RecordBatch], None]
"""Adds the next rows."""


@contextmanager
def parquet_rows(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """Yields what writes Parquet, with row groups of about ROW_GROUP_BYTES."""
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        groups = RowGroups(writer, schema)
        yield groups.write
        groups.flush()


class RowGroups:
    """Collects record batches and writes them as row groups of about ROW_GROUP_BYTES."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that still wait."""
        table = pa.Table.from_batches(self._batches, schema=self._schema)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._batches, self._bytes = [], 0


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

    Raises Failed for a single column that may be null: its nulls would be empty lines, which readers leave out.
    """
    if len(schema) == 1 and schema[0].nullable:
        text = f"a null in CSV of the single column {schema.names[0]} is an empty line, which readers leave out: "
        raise Failed(f"{text}add another column, or write JSON lines", BAD_USAGE)
    names = [printable(name) if on_screen else name for name in schema.names]

    def write(batch: pa.RecordBatch, *, include_header: bool = False) -> None:
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
