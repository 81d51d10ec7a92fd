"""wal_decode and wal_decode_pandas: return the rows of a message as an array, for inline and LATERAL VIEW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

import wireformat as wf
from wireformat.errors import counted
from wireformat.sources.columns import is_binary

from ..decoding.task import DecodingPlan, Task
from ..decoding.unconverted import series_of
from ..schemas import change_names, change_struct
from .arguments import read_arguments

RESULT_BYTES = 0x7FFFFFFF
"""The size limit of the rows of one batch: a scalar function returns one array per batch, and an Arrow string column
holds 2 GiB."""


def wal_decode(value: pa.Array, format: pa.Array, *given: pa.Array, **named: pa.Array) -> pa.Array:
    """Returns the rows of each message as a list of structs; null for null."""
    return _decoded("wal_decode", value, format, given, named)


def wal_decode_pandas(value: pd.Series, format: pd.Series, *given: pd.Series, **named: pd.Series) -> pd.Series:
    """Returns the rows of each message as a list of structs; null for null."""
    options = [pa.array(column, from_pandas=True) for column in given]
    by_name = {name: pa.array(column, from_pandas=True) for name, column in named.items()}
    messages = pa.array(value, from_pandas=True)  # of the type that it has: numbers are no bytes
    return series_of(_decoded("wal_decode_pandas", messages, pa.array(format), options, by_name))


def _decoded(
    function: str, messages: pa.Array, format: pa.Array, given: Sequence[pa.Array], named: Mapping[str, pa.Array]
) -> pa.ListArray:
    """Returns the rows of each message as a list of structs; null for null."""
    kind = change_struct(change_names())
    lists = pa.list_(pa.field("element", kind))
    if not len(messages):
        return pa.array([], lists)
    if pa.types.is_null(messages.type):
        messages = messages.cast(pa.binary())
    if not is_binary(messages.type):
        hint = "; CAST(… AS BINARY) has the bytes of a text" if pa.types.is_string(messages.type) else ""
        raise wf.OptionError(f"{function}: the messages must be binary, they are {messages.type}{hint}")
    plan = DecodingPlan.check(**read_arguments(function, format, given, named))
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
    mask = messages.is_null() if messages.null_count else None
    offsets = pa.array(np.cumsum(counts), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(arrays), type=lists, mask=mask)
