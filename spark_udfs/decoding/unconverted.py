"""Arrow columns that pandas functions return to Spark without making Python objects of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from inspect import signature
from itertools import pairwise
from typing import Any, TypeVar

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark import TaskContext

Function = TypeVar("Function", bound=Callable[..., Any])


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
        column = _one_array(self._pa_array)
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


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Returns a table as a frame for users: every column is of an ArrowDtype.

    Spark takes columns of one piece alone, so those of several are put together, unless they are too large for that.
    """
    table = table.combine_chunks() if len(table) else pa.Table.from_pylist([], table.schema)
    columns = {name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names}
    return pd.DataFrame(columns, index=range(len(table)), copy=False)


def arrow_results(function: Function) -> Function:
    """Lets a pandas function return columns of ArrowDtype to Spark without making Python objects of nested values.

    function   for mapInPandas, applyInPandas or pandas_udf: returns a Series, a DataFrame, or an iterator of them

    Without it, Spark makes a Python object of each nested value, refuses maps of ArrowDtype, and refuses a column that
    pandas has put together from pieces. Columns of other dtypes go the usual way. Outside of a task of Spark,
    nothing changes.
    """

    @wraps(function)
    def returned(*args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        if TaskContext.get() is None:  # the caller may go on with the columns
            return result
        return map(_for_spark, result) if isinstance(result, Iterator) else _for_spark(result)

    returned.__signature__ = signature(function)  # type: ignore[attr-defined] # Spark counts the parameters
    return returned  # type: ignore[return-value]


def _for_spark(result: Any) -> Any:
    """Returns a Series or DataFrame with its Arrow columns as `series_of` makes them."""
    if isinstance(result, pd.DataFrame):
        whole = result.reset_index(drop=True)
        columns = {index: _for_spark(whole.iloc[:, index]) for index in range(whole.shape[1])}
        return pd.DataFrame(columns, index=whole.index, copy=False).set_axis(whole.columns, axis=1)
    if isinstance(result, pd.Series) and isinstance(result.dtype, pd.ArrowDtype):
        return series_of(_one_array(result.array.__arrow_array__()))
    return result


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else whole.chunk(0)
