"""wal_decode and wal_decode_pandas: return the rows of a message as an array, for inline and LATERAL VIEW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

import wireformat as wf
from wireformat.errors import counted

from .arguments import read_arguments
from .frames import python_values
from .schemas import change_names, change_struct
from .task import Plan, Task

RESULT_BYTES = 0x7FFFFFFF
"""The size limit of the rows of one batch: a scalar function returns one array per batch, and an Arrow string column
holds 2 GiB."""


def wal_decode(value: pa.Array, format: pa.Array, *given: pa.Array, **named: pa.Array) -> pa.Array:
    """Returns the rows of each message as a list of structs; null for null."""
    offsets, rows = _decoded("wal_decode", value, format, given, named)
    lists = pa.list_(pa.field("element", rows.type))
    mask = value.is_null() if value.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows, type=lists, mask=mask)


def wal_decode_pandas(value: pd.Series, format: pd.Series, *given: pd.Series, **named: pd.Series) -> pd.Series:
    """Returns the rows of each message as a list of tuples; null for null."""
    messages = pa.array(value, pa.binary(), from_pandas=True)
    options = [pa.array(column, from_pandas=True) for column in given]
    by_name = {name: pa.array(column, from_pandas=True) for name, column in named.items()}
    offsets, rows = _decoded("wal_decode_pandas", messages, pa.array(format), options, by_name)
    tuples = list(zip(*map(python_values, rows.flatten()), strict=True))
    lists = [tuples[start:stop] for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    return pd.Series(
        [None if null else rows for null, rows in zip(messages.is_null().to_pylist(), lists, strict=True)], dtype=object
    )


def _decoded(
    function: str, messages: pa.Array, format: pa.Array, given: Sequence[pa.Array], named: Mapping[str, pa.Array]
) -> tuple[np.ndarray[Any, Any], pa.StructArray]:
    """Returns offsets and rows; those of message i are rows[offsets[i]:offsets[i + 1]]."""
    kind = change_struct(change_names())
    if not len(messages):
        return np.zeros(1, np.int64), pa.array([], kind)
    plan = Plan.check(**read_arguments(function, format, given, named))
    if wf.FORMATS[plan.format].relations is not None:
        raise wf.OptionError(
            f"{function}: a row of {plan.format} depends on earlier messages, which a scalar function does not see; "
            "use the table function wal_changes, or spark_udfs.decode"
        )
    task = Task(plan)
    counts = np.zeros(len(messages) + 1, np.int64)
    arrays = [pa.array([], kind)]
    for message_of_row, rows in task.rows(messages):
        counts[1:] += np.bincount(message_of_row, minlength=len(messages))
        arrays.append(rows.to_struct_array())
    task.close()
    if sum(array.nbytes for array in arrays) > RESULT_BYTES:
        raise wf.LimitExceeded(
            f"{function}: the rows of {counted(len(messages), 'message')} take more than {RESULT_BYTES} bytes; "
            "lower spark.sql.execution.arrow.maxBytesPerBatch"
        )
    return np.cumsum(counts), pa.concat_arrays(arrays)
