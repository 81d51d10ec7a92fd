"""The columns of a typed table: their types, from the table's versions or as given, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...options.table import nearest
from ...pgtypes.columns import MAX_DIGITS, TEXT, ColumnType, column_type
from ...pgtypes.sql_types import SqlType, is_known, known_names, parse_sql_type
from ..arrays import Array
from .casts import Misfits, Reader, TextReader, arrow_type, list_type, reader_of
from .versions import Version


@dataclass(frozen=True)
class TypedColumn:
    """A column and how its texts are read.

    type     of the column
    sql      its SQL type, in words for errors
    readers  one for each version of the table, or one for all
    """

    name: str
    type: pa.DataType
    sql: str
    readers: tuple[Reader, ...]

    def read(self, texts: pa.StringArray, versions: Array) -> tuple[pa.Array, Misfits]:
        """The values of a column; what does not fit is null, and is listed.

        versions   int64[n], the version of each row
        """
        used = np.unique(versions).tolist() if len(self.readers) > 1 else [0]
        readers = {version: self.readers[min(version, len(self.readers) - 1)] for version in used}
        if len(set(map(id, readers.values()))) <= 1:
            return self._read_with(readers[used[0]] if used else self.readers[0], texts)
        pieces = []
        order = np.empty(len(texts), np.int64)
        misfits: Misfits = {}
        done = 0
        for version, reader in readers.items():
            places = np.flatnonzero(versions == version)
            column, wrong = self._read_with(reader, texts.take(pa.array(places)))
            pieces.append(column)
            order[places] = done + np.arange(len(places))
            misfits |= {int(places[place]): words for place, words in wrong.items()}
            done += len(places)
        return pa.concat_arrays(pieces).take(pa.array(order)), dict(sorted(misfits.items()))

    def _read_with(self, reader: Reader, texts: pa.StringArray) -> tuple[pa.Array, Misfits]:
        column, misfits = reader.read(texts)
        return (column if column.type == self.type else column.cast(self.type)), misfits


def columns_of_versions(versions: Sequence[Version]) -> list[TypedColumn]:
    """All columns of all versions, in the order in which they came, each of the widest of its types."""
    names = list(dict.fromkeys(name for version in versions for name in version.types))
    return [_column_of_versions(name, [version.sql_type(name) for version in versions]) for name in names]


def _column_of_versions(name: str, types: Sequence[SqlType | None]) -> TypedColumn:
    known = list(dict.fromkeys(type for type in types if type is not None))
    if not known:
        return TypedColumn(name, pa.string(), "unknown", (TextReader(),))
    sources = {sql: column_type(sql) for sql in known}
    widest = arrow_type(sources[known[0]].arrow)
    for source in sources.values():
        widest = wider(widest, arrow_type(source.arrow))
    readers = {sql: _reader(source, widest) for sql, source in sources.items()}
    latest = readers[known[-1]]
    if len(set(sources.values())) == 1:
        return TypedColumn(name, widest, str(known[-1]), (latest,))
    each = tuple(latest if sql is None else readers[sql] for sql in types)
    return TypedColumn(name, widest, " or ".join(map(str, known)), each)


def _reader(source: ColumnType, target: pa.DataType) -> Reader:
    """How texts of a type go into a column: by their own type, if Arrow casts what comes out, else as texts."""
    own = arrow_type(source.arrow)
    type = target if _leaf(target) == pa.string() else own
    reader = reader_of(type, source.reading, source.delimiter)
    assert reader is not None  # all types of the table have one
    return reader


def _leaf(type: pa.DataType) -> pa.DataType:
    while pa.types.is_list(type):
        type = type.value_type
    return type


WIDER = (
    (pa.int16(), pa.int32(), pa.int32()),
    (pa.int16(), pa.int64(), pa.int64()),
    (pa.int32(), pa.int64(), pa.int64()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int16(), pa.float64(), pa.float64()),
    (pa.int32(), pa.float64(), pa.float64()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
)
"""Two types and the one that holds the values of both; other pairs of scalar types have none but string."""

_DIGITS = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""The decimal digits of integers."""


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds the values of both without loss: string where there is no other."""
    if one == other:
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return list_type(wider(one.value_type, other.value_type))
    for first, second, both in WIDER:
        if {one, other} == {first, second}:
            return both
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        sizes = [_before_and_after(type) for type in (one, other)]
        if None not in sizes:
            before, after = (max(parts) for parts in zip(*sizes, strict=True))
            if before + after <= MAX_DIGITS:
                return pa.decimal128(before + after, after)
    return pa.string()


def _before_and_after(type: pa.DataType) -> tuple[int, int] | None:
    """Digits before and after the point, of decimals and integers."""
    if pa.types.is_decimal(type):
        return type.precision - type.scale, type.scale
    return (_DIGITS[type], 0) if type in _DIGITS else None


def given_columns(schema: Any, versions: Sequence[Version]) -> list[TypedColumn]:
    """The columns as the caller wants them; raises OptionError for a type that no text is read into.

    versions   of the table, which tell a binary column how its texts are written
    """
    if isinstance(schema, pa.Schema):
        return [_column_of_field(field, versions) for field in schema]
    if not isinstance(schema, Mapping):
        raise OptionError(
            f"option schema: expected a mapping, a pyarrow Schema or what tables() returns, got {type(schema).__name__}"
        )
    return [_column_of_sql(name, text) for name, text in schema.items()]


def check_named(columns: Sequence[TypedColumn], versions: Sequence[Version], table: str) -> None:
    """Raises OptionError for a column that no row of the table names, where a row names all columns."""
    named = list(dict.fromkeys(name for version in versions for name in version.types))
    missing = [column.name for column in columns if column.name not in named]
    if missing and any(version.is_complete for version in versions):
        raise no_such_column(missing[0], named, table)


_NUMBER = re.compile(r"\$\d+")
"""The name of a value without one, which the rows of an INSERT of sql-decoding have."""


def check_has_all(columns: Sequence[TypedColumn], versions: Sequence[Version], table: str) -> None:
    """Raises OptionError for a column that rows name and the schema lacks, where other rows name no columns.

    The schema then has all columns in their order, so a name that it lacks is spelled in another way.
    """
    named = dict.fromkeys(name for version in versions for name in version.types)
    check_no_column_lost([column.name for column in columns], named, table)


def check_no_column_lost(given: Sequence[str], names: Iterable[str], table: str) -> None:
    """`check_has_all`, of the names in the schema and the names in the rows."""
    lost = [name for name in names if name not in given and not _NUMBER.fullmatch(name)]
    if lost:
        raise OptionError(
            f"option schema: rows of {table} name a column {lost[0]!r}, which is not in the schema"
            f"{nearest(lost[0], given)}; the INSERTs name no columns, so the schema must have all of them in order"
        )


def no_such_column(name: str, named: Sequence[str], table: str) -> OptionError:
    """The error for a column of a schema that the rows of the table do not name."""
    return OptionError(
        f"option schema: no row of {table} names a column {name!r}{nearest(name, named)}; there are {', '.join(named)}"
    )


def _column_of_sql(name: str, text: Any) -> TypedColumn:
    if not isinstance(text, str):
        raise OptionError(f"option schema: expected an SQL type as text for column {name}, got {type(text).__name__}")
    sql = parse_sql_type(text)
    if not is_known(sql):
        raise OptionError(
            f"option schema: unknown type {text!r} of column {name}{nearest(text, known_names())}; a type that is not "
            "built in, as an enum or a domain, is text"
        )
    source = column_type(sql)
    type_ = arrow_type(source.arrow)
    return TypedColumn(name, type_, text, (_reader(source, type_),))


def _column_of_field(field: pa.Field, versions: Sequence[Version]) -> TypedColumn:
    sources = [TEXT if (sql := version.sql_type(field.name)) is None else column_type(sql) for version in versions]
    type_ = list_type(_leaf(field.type), _depth(field.type))
    readers = []
    for source in sources or [TEXT]:
        is_own = _leaf(arrow_type(source.arrow)) == _leaf(type_)
        reader = reader_of(type_, source.reading if is_own else "", source.delimiter)
        if reader is None:
            raise OptionError(f"option schema: no text is read into the type {field.type} of column {field.name}")
        readers.append(reader)
    same = len({id(reader) for reader in readers}) == 1
    return TypedColumn(field.name, field.type, str(field.type), tuple(readers[:1] if same else readers))


def _depth(type: pa.DataType) -> int:
    depth = 0
    while pa.types.is_list(type):
        type, depth = type.value_type, depth + 1
    return depth
