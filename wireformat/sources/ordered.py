"""Sources whose messages are ordered by columns, as the offsets of a topic order its messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..arrow.scan.message_batches import size_of
from ..errors import BadRows, OptionError
from ..limits import MESSAGE_BATCH_BYTES
from ..options.checks import once
from ..options.table import nearest
from .arrow_data import ArraySource, arrow_source
from .columns import find_column
from .files import is_parquet
from .parquet_files import ParquetSource
from .source import Source, SourceMessages, errors_of


class OrderedSource:
    """Tables whose positions overlap, or whose rows are not in order: they are sorted in memory.

    tables     functions that return the tables, each with the order columns and the messages
    """

    is_repeatable = True

    def __init__(self, name: str, tables: Sequence[_OrderedInput], column: str, order_by: Sequence[str]) -> None:
        self.name = name
        self.size = None
        self._tables = tables
        self._column = column
        self._order_by = order_by

    def read(self) -> Iterator[SourceMessages]:
        """See Source.read."""
        rows = pa.concat_tables([table.read([*self._order_by, self._column]) for table in self._tables])
        if not _is_sorted(rows.select(self._order_by)):
            rows = rows.sort_by([(name, "ascending") for name in self._order_by])
        step = max(1, MESSAGE_BATCH_BYTES * rows.num_rows // max(size_of(rows), 1))
        for begin in range(0, rows.num_rows, step):
            messages = rows[self._column].slice(begin, step)
            yield SourceMessages(self.name, messages, size_of(messages))


class _OrderedInput:
    """A Parquet file or Arrow table, and the range of its positions."""

    def __init__(self, data: Any, column: str | None, order_by: Sequence[str]) -> None:
        self._data = _as_table(data)
        self.name = str(data) if isinstance(data, Path) else "the table"
        schema = self._schema()
        self.column = find_column(self.name, schema, column)
        for name in order_by:
            _check_order_column(self.name, schema, name)
        types = ((name, schema.field(name).type) for name in (*order_by, self.column))
        self.columns = [(name, _SORTED_AS.get(type, type)) for name, type in types]
        keys = self.read(order_by)
        for name in order_by:
            if keys[name].null_count:
                raise BadRows("messages that have a position", f"one without {name!r} in {self.name}")
        self.rows = keys.num_rows
        self.is_sorted = _is_sorted(keys)
        in_order = keys if self.is_sorted else keys.sort_by([(name, "ascending") for name in order_by])
        _check_unique(self.name, in_order, order_by)
        ends = in_order.take([0, self.rows - 1]).to_pylist() if self.rows else []
        self.first: tuple[Any, ...]
        self.last: tuple[Any, ...]
        self.first, self.last = (tuple(row.values()) for row in ends) if ends else ((), ())

    def _schema(self) -> pa.Schema:
        if isinstance(self._data, Path):
            if not is_parquet(self._data, self.name):
                raise OptionError(f"option order_by: {self.name}: expected a Parquet file, which has columns")
            with errors_of(self.name, pa.ArrowException):
                return pq.read_schema(self._data)
        return self._data.schema

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Returns some columns."""
        if isinstance(self._data, Path):
            with errors_of(self.name, pa.ArrowException), pq.ParquetFile(self._data) as file:  # a dataset costs more
                table = file.read([*columns]).select(columns)
        elif isinstance(self._data, ds.Dataset):
            table = self._data.to_table(columns=[*columns])
        else:
            table = self._data.select(columns)
        for index, type in enumerate(table.schema.types):
            if type in _SORTED_AS:
                table = table.set_column(index, table.schema.names[index], table[index].cast(_SORTED_AS[type]))
        return table

    def source(self) -> ParquetSource | ArraySource | None:
        """Returns the source of the messages as they come, which takes little memory."""
        if isinstance(self._data, Path):
            return ParquetSource(self.name, self._data, self._data.stat().st_size, self.column)
        return arrow_source(self._data, self.column)


def _as_table(data: Any) -> Path | pa.Table | ds.Dataset:
    """Returns files and datasets unchanged, and other data with Arrow's C interface as a table; raises OptionError."""
    if isinstance(data, (Path, ds.Dataset)):
        return data
    table = data if isinstance(data, pa.Table) else None
    if table is None and hasattr(data, "__arrow_c_stream__"):
        with suppress(pa.ArrowException, TypeError):  # a stream of arrays, such as a Series
            table = pa.RecordBatchReader.from_stream(data).read_all()
    if table is None:
        raise OptionError(
            "option order_by: expected Parquet files, or a table, dataset or DataFrame with Arrow's C interface, got "
            f"{type(data).__name__}; other messages are in order as they come"
        )
    return table


_SORTED_AS = {pa.binary_view(): pa.large_binary(), pa.string_view(): pa.large_string()}
"""Types that pyarrow does not sort."""


def ordered_sources(tables: Sequence[Any], column: str | None, order_by: Sequence[str]) -> list[Source]:
    """Returns the sources of tables in the order of their positions; tables that overlap become one source.

    tables   paths of Parquet files, or Arrow tables

    Raises OptionError for columns that are missing, or neither integers nor strings; BadRows for messages without a
    position, or with the same one.
    """
    if not order_by:
        raise OptionError("option order_by: expected at least one column")
    order_by = once("order_by", tuple(order_by))
    found = [table for table in (_OrderedInput(one, column, order_by) for one in tables) if table.rows]
    for table in found[1:]:
        if [*map(type, table.first)] != [*map(type, found[0].first)]:
            raise _not_alike(found[0], table)
    found.sort(key=lambda table: table.first)
    groups: list[list[_OrderedInput]] = []
    last: tuple[Any, ...] | None = None
    for table in found:
        if last is not None and table.first == last:
            raise _not_unique(f"{groups[-1][-1].name} and {table.name}", order_by)
        if last is None or table.first > last:
            groups.append([])
        groups[-1].append(table)
        last = table.last if last is None else max(last, table.last)
    for group in groups:
        if len(group) > 1:
            for table in group[1:]:
                if table.columns != group[0].columns:
                    raise _not_alike(group[0], table)
            keys = pa.concat_tables([table.read(order_by) for table in group])
            names = " and ".join(table.name for table in group[:2])
            _check_unique(names, keys.sort_by([(name, "ascending") for name in order_by]), order_by)
    return [
        (group[0].source() if len(group) == 1 and group[0].is_sorted else None)
        or OrderedSource(", ".join(table.name for table in group), group, group[0].column, order_by)
        for group in groups
    ]


def _not_alike(first: _OrderedInput, other: _OrderedInput) -> OptionError:
    """Returns the error for two tables whose rows cannot be put into one order."""
    expected, got = (", ".join(f"{name} {type}" for name, type in one.columns) for one in (first, other))
    return OptionError(f"option order_by: {other.name}: expected {expected}, as in {first.name}, got {got}")


def _check_order_column(source: str, schema: pa.Schema, name: str) -> None:
    if name not in schema.names:
        near = nearest(name, schema.names)
        raise OptionError(f"option order_by: {source}: no column {name!r}{near}; there are {', '.join(schema.names)}")
    if schema.names.count(name) > 1:
        raise OptionError(f"option order_by: {source}: expected one column {name!r}, got several")
    type = _SORTED_AS.get(schema.field(name).type, schema.field(name).type)
    if not (pa.types.is_integer(type) or pa.types.is_string(type) or pa.types.is_large_string(type)):
        raise OptionError(f"option order_by: {source}: expected integers or strings in {name!r}, got {type}")


def _is_sorted(keys: pa.Table) -> bool:
    indices = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    return bool(indices.equals(pa.array(np.arange(len(indices), dtype=np.uint64))))


def _check_unique(source: str, in_order: pa.Table, order_by: Sequence[str]) -> None:
    if in_order.num_rows < 2:
        return
    same = None
    for name in order_by:
        column = in_order[name].combine_chunks()
        equal = pc.equal(column.slice(1), column.slice(0, len(column) - 1))
        same = equal if same is None else pc.and_(same, equal)
    if pc.any(same).as_py():
        raise _not_unique(source, order_by)


def _not_unique(source: str, order_by: Sequence[str]) -> BadRows:
    return BadRows(
        "messages with unique positions",
        f"two with the same {', '.join(order_by)} in {source}",
        hint="name columns whose values are unique in a stream",
    )
