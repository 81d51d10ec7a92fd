"""The columns of a typed table: their types, from the versions of the table or from the caller, and their readers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...options.checks import once, shown
from ...options.table import listed, nearest
from ...pgtypes.columns import MAX_DIGITS, TEXT, ColumnType, column_type
from ...pgtypes.sql_types import SqlType, is_known, known_names, parse_sql_type
from ..arrays import Array
from ..readers.reader import Misfits, TextReader, Texts, ValueReader, as_noted
from .casts import arrow_type, list_type, reader_of
from .versions import Version


@dataclass(frozen=True)
class TypedColumn:
    """A column of a typed table.

    sql      its SQL type, for errors
    readers  the readers of its texts: one for each version of the table, or one for all versions
    """

    name: str
    type: pa.DataType
    sql: str
    readers: tuple[ValueReader, ...]

    def read(self, texts: Texts, version_indices: Array) -> tuple[pa.Array, Misfits]:
        """Returns the values of the column, and the values that do not fit, which are null.

        version_indices   int64[n]: the index of the version of each row
        """
        occurring = np.unique(version_indices).tolist() if len(self.readers) > 1 else [0]
        readers = {version: self.readers[version] for version in occurring}
        if len(set(map(id, readers.values()))) <= 1:
            return self._read_with(readers[occurring[0]] if occurring else self.readers[0], texts)
        noted = as_noted(texts)
        columns = []
        order = np.empty(len(noted.pairs), np.int64)
        misfits: Misfits = {}
        done = 0
        for version, reader in readers.items():
            rows = np.flatnonzero(version_indices == version)
            column, misfits_of_version = self._read_with(reader, noted.chosen(rows))
            columns.append(column)
            order[rows] = done + np.arange(len(rows))
            misfits |= {int(rows[row]): found for row, found in misfits_of_version.items()}
            done += len(rows)
        return pa.concat_arrays(columns).take(pa.array(order)), dict(sorted(misfits.items()))

    def _read_with(self, reader: ValueReader, texts: Texts) -> tuple[pa.Array, Misfits]:
        column, misfits = reader.read(texts)
        return (column if column.type == self.type else column.cast(self.type)), misfits


def columns_of_versions(versions: Sequence[Version]) -> list[TypedColumn]:
    """Returns the columns of all versions, in the order in which they first occur. Each has the widest of its types."""
    names = list(dict.fromkeys(name for version in versions for name in version.types))
    return [_column_of_versions(name, tuple(version.sql_type(name) for version in versions)) for name in names]


def with_later_versions(columns: list[TypedColumn], versions: Sequence[Version], listed: int) -> list[TypedColumn]:
    """Returns the columns of the first, listed versions, with readers of the texts of later ones."""
    if len(versions) <= listed:
        return columns
    found = []
    for column in columns:
        readers = [*column.readers] * (listed if len(column.readers) == 1 else 1)
        for version in versions[listed:]:
            readers.append(_given_reader(column.type, version.sql_type(column.name), column.readers[-1]))
        found.append(replace(column, readers=_without_same(readers)))
    return found


@lru_cache(maxsize=4096)  # on Spark, the columns of a table are asked for in each chunk
def _column_of_versions(name: str, types: tuple[SqlType | None, ...]) -> TypedColumn:
    different = list(dict.fromkeys(type for type in types if type is not None))
    if not different:
        return TypedColumn(name, pa.string(), "unknown", (TextReader(),))
    sources = {sql: column_type(sql) for sql in different}
    last = different[-1]
    # doubles first: they hold the values of both int32 and float32, which no other type does
    widest = reduce(wider, sorted(map(_own_type, sources.values()), key=lambda type: _leaf(type) != pa.float64()))
    of_names: dict[SqlType, pa.DataType] = {}  # rows name types without modifiers: a reader takes all of a name
    for sql, source in sources.items():
        name_alone, own = replace(sql, modifiers=()), _own_type(source)
        of_names[name_alone] = wider(of_names.get(name_alone, own), own)
    readers = {sql: _reader(source, widest, of_names[replace(sql, modifiers=())]) for sql, source in sources.items()}
    of_versions = [readers[last if sql is None else sql] for sql in types]
    shown_types = different if len({*sources.values()}) > 1 else [last]
    return TypedColumn(name, widest, " or ".join(map(str, shown_types)), _without_same(of_versions))


def _reader(source: ColumnType, target: pa.DataType, own: pa.DataType) -> ValueReader:
    """Returns a reader of the texts of a type, for a column of another type that holds its values.

    own   the type of the values that it reads

    It reads values of this type, which Arrow then casts, except where the column holds texts.
    """
    reader = reader_of(target if _leaf(target) == pa.string() else own, source.reading, source.delimiter)
    assert reader is not None, "every type in the table of column types has a reader"
    return reader


def _given_reader(type: pa.DataType, sql: SqlType | None, default: ValueReader) -> ValueReader:
    """Returns a reader of the texts of a type, for a column of a type that was given.

    sql       the type that the stream names; None if it names none
    default   the reader of texts of which the stream does not say how they are written
    """
    source = TEXT if sql is None else column_type(sql)
    if source.arrow == TEXT.arrow or type == pa.string():
        return default
    # a real and a double precision with the same text have different values
    is_real = (_leaf(_own_type(source)), _leaf(type)) == (pa.float32(), pa.float64())
    leaf = pa.float32() if is_real else _leaf(type)
    return reader_of(list_type(leaf, _depth(type)), source.reading, source.delimiter) or default


def _without_same(readers: Sequence[ValueReader]) -> tuple[ValueReader, ...]:
    """Returns one reader if all versions have the same."""
    return tuple(readers if len({*map(id, readers)}) > 1 else readers[:1])


def _own_type(source: ColumnType) -> pa.DataType:
    return arrow_type(source.arrow)


def _leaf(type: pa.DataType) -> pa.DataType:
    """Returns the type of the innermost elements of nested lists, or the type itself."""
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
"""Two types, and the type that holds the values of both. For other pairs of scalar types it is string."""

_INTEGER_DIGITS = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""How many decimal digits the largest value of an integer type has."""


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Returns the type that holds the values of both types without loss: string if there is no other."""
    if one == other:
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return list_type(wider(one.value_type, other.value_type))
    for first, second, both in WIDER:
        if {one, other} == {first, second}:
            return both
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        sizes = [_digits(type) for type in (one, other)]
        if None not in sizes:
            before, after = (max(digits) for digits in zip(*sizes, strict=True))
            if before + after <= MAX_DIGITS:
                return pa.decimal128(before + after, after)
    return pa.string()


def _digits(type: pa.DataType) -> tuple[int, int] | None:
    """Returns how many digits a decimal or integer type has before and after the point; None for other types."""
    if pa.types.is_decimal(type):
        return type.precision - type.scale, type.scale
    return (_INTEGER_DIGITS[type], 0) if type in _INTEGER_DIGITS else None


def given_columns(schema: Any, versions: Sequence[Version]) -> list[TypedColumn]:
    """Returns the columns of a schema that the caller gives; raises OptionError for a type without a reader.

    versions   the versions of the table. Their SQL types tell how the texts are written
    """
    if not isinstance(schema, (pa.Schema, Mapping)):
        raise OptionError(
            f"option schema: expected a mapping, a pyarrow Schema or what tables() returns, got {type(schema).__name__}"
        )
    if isinstance(schema, Mapping) and not schema:
        raise OptionError("option schema: expected at least one column, got none; None takes the columns of the rows")
    if isinstance(schema, Mapping):
        columns = [_column_of_sql(name, text) for name, text in schema.items()]
    else:
        once("schema", tuple(schema.names))
        columns = [_column_of_field(field) for field in schema]
    return with_later_versions(columns, versions, 0)


def check_named(columns: Sequence[TypedColumn], versions: Sequence[Version], table: str) -> None:
    """Raises OptionError for a column that no row of the table names, if some row names all columns."""
    named = list(dict.fromkeys(name for version in versions for name in version.types))
    missing = [column.name for column in columns if column.name not in named]
    if missing and any(version.is_complete for version in versions):
        raise no_such_column(missing[0], named, table)


_NUMBER = re.compile(r"\$\d+")
"""The number that sql-decoding writes in place of a column name, in an INSERT."""


def check_has_all(columns: Sequence[TypedColumn], versions: Sequence[Version], table: str) -> None:
    """Raises OptionError for a column that the schema lacks, if other rows do not name their columns.

    The values of those rows are assigned in order, so the schema must list all columns.
    """
    names = dict.fromkeys(name for version in versions for name in version.types)
    check_no_column_lost([column.name for column in columns], names, table)


def check_no_column_lost(given: Sequence[str], names: Iterable[str], table: str) -> None:
    """Does what `check_has_all` does, for the names in the schema and the names in the rows."""
    missing = [name for name in names if name not in given and not _NUMBER.fullmatch(name)]
    if missing:
        raise OptionError(
            f"option schema: rows of {table} name a column {missing[0]!r}, which is not in the schema"
            f"{nearest(missing[0], given)}; the INSERTs name no columns, so the schema must have all of them in order"
        )


def no_such_column(name: str, named: Sequence[str], table: str) -> OptionError:
    """Returns the error for a column of a schema that no row of the table names."""
    return OptionError(f"option schema: no row of {table} names a column {name!r}{nearest(name, named)}{listed(named)}")


def _column_of_sql(name: str, text: Any) -> TypedColumn:
    if not isinstance(name, str):
        raise OptionError(f"option schema: expected names of columns, got {shown(name)}")
    if not isinstance(text, str):
        raise OptionError(f"option schema: expected an SQL type as text for column {name}, got {type(text).__name__}")
    sql = parse_sql_type(text)
    if not is_known(sql):
        raise OptionError(
            f"option schema: unknown type {text!r} of column {name}{nearest(text, known_names())}; a type that is not "
            "built in, such as an enum or a domain, is text"
        )
    source = column_type(sql)
    type_ = _own_type(source)
    return TypedColumn(name, type_, text, (_reader(source, type_, type_),))


def _column_of_field(field: pa.Field) -> TypedColumn:
    reader = reader_of(list_type(_leaf(field.type), _depth(field.type)))
    if reader is None:
        raise OptionError(f"option schema: texts cannot be read as the type {field.type} of column {field.name}")
    return TypedColumn(field.name, _nullable(field.type), str(field.type), (reader,))


def _nullable(type: pa.DataType) -> pa.DataType:
    """Returns the type with elements that may be null, as those of a server's arrays."""
    if not pa.types.is_list(type):
        return type
    return pa.list_(type.value_field.with_type(_nullable(type.value_type)).with_nullable(True))


def _depth(type: pa.DataType) -> int:
    depth = 0
    while pa.types.is_list(type):
        type, depth = type.value_type, depth + 1
    return depth
