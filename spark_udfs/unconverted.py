"""Arrow columns that our pandas functions return to Spark without making Python objects of their values."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa


class Unconverted(pd.arrays.ArrowExtensionArray):  # type: ignore[misc]
    """A nested Arrow column that goes through Spark's conversion of pandas results as it is.

    Spark converts each value of a nested column with `Series.apply`, which calls `map`, and only then asks for
    `__arrow_array__`. Such an array is for Spark alone: its `map` ignores the function, so users must never hold one.
    """

    def map(self, mapper: Any, na_action: Any = None) -> Unconverted:
        """Returns this array: its values have the declared type already."""
        return self

    def __getitem__(self, item: Any) -> Any:
        """A single value stays an Arrow scalar: pandas looks at the first one, which can hold thousands of rows."""
        return self._pa_array[item] if isinstance(item, int) else super().__getitem__(item)

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        """Returns the column in one piece. Spark's type differs in the time zone, and if it prefers large types."""
        column = self._pa_array.combine_chunks()
        column = column if isinstance(column, pa.Array) else column.chunk(0)
        return column if type is None or column.type == type else column.cast(type)


class Pairs(list[Any]):
    """A map as a list of pairs. Spark only calls `items`; a dict would lose a name that occurs twice."""

    def items(self) -> Pairs:
        """Returns the pairs, in order."""
        return self


@lru_cache
def is_open() -> bool:
    """Returns whether the installed Spark and pandas let an Unconverted through; otherwise values become objects."""
    probe = pa.array([[{"name": 1}]])
    try:
        from pyspark.sql.pandas.types import _create_converter_from_pandas, from_arrow_type

        convert = _create_converter_from_pandas(from_arrow_type(probe.type), timezone="UTC")
        converted = convert(pd.Series(Unconverted(probe)))
        return isinstance(converted.array, Unconverted) and pa.Array.from_pandas(converted, type=probe.type) == probe
    except Exception:  # another Spark's conversion may fail in any way, and there is a slow one that works
        return False


def series_of(column: pa.Array) -> pd.Series:
    """Returns a column as a series for Spark. Flat values stay Arrow values: nulls and time zones change nothing."""
    if not pa.types.is_nested(column.type):
        return pd.Series(column, dtype=pd.ArrowDtype(column.type))
    if is_open() and len(column):  # pandas makes an empty result of its own
        return pd.Series(Unconverted(column))
    return pd.Series(python_values(column), dtype=object)


def python_values(column: pa.Array) -> list[Any]:
    """Returns a nested column as the Python values that Spark converts: structs as tuples, maps as Pairs."""
    kind = column.type
    if pa.types.is_struct(kind):
        found: Any = list(zip(*[python_values(column.field(index)) for index in range(kind.num_fields)], strict=True))
    elif pa.types.is_map(kind):
        keys, items = column.keys, column.items
        pairs = list(zip(python_values(keys), python_values(items), strict=True))
        found = [Pairs(pairs[start:stop]) for start, stop in _ranges(column)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = python_values(column.values)
        found = [values[start:stop] for start, stop in _ranges(column)]
    else:
        return column.to_pylist()  # type: ignore[no-any-return]
    return [None if null else value for null, value in zip(column.is_null().to_pylist(), found, strict=True)]


def _ranges(lists: pa.Array) -> list[tuple[int, int]]:
    """Returns where the values of each list begin and end."""
    return list(pairwise(lists.offsets.to_pylist()))
