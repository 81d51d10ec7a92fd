"""For your own pandas functions: a Series of messages becomes a DataFrame of row changes, or of one table's changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.limits import OPEN_TRANSACTIONS_BYTES
from wireformat.options.checks import flag, shown
from wireformat.options.keywords import checks_keywords
from wireformat.sources.columns import is_binary

from ..tables.typed_rows import spark_columns
from .unconverted import frame_of

_PAYLOAD = pa.schema([pa.field("payload", pa.binary())])


class FrameReader:
    """Decodes messages inside of a pandas function: in mapInPandas, applyInPandas or a pandas UDF.

    schema    the Spark schema of the frames, for functions that return them as they are

    Make it on the driver with `change_reader` or `typed_reader`; Spark pickles it to the workers. Every column of a
    frame is of a pandas ArrowDtype, so nulls, large integers, decimals and instants stay what they are.
    """

    def __init__(self, read: Callable[[Any], pa.RecordBatchReader], fields: pa.Schema) -> None:
        self._read = read
        self._fields = fields

    def __repr__(self) -> str:
        return f"<spark_udfs.FrameReader of {', '.join(self._fields.names)}>"

    @property
    def schema(self) -> StructType:
        """The Spark schema of the frames."""
        return from_arrow_schema(self._fields)

    def __call__(self, messages: pd.Series) -> pd.DataFrame:
        """Returns the rows of these messages. They are read as a stream of their own, from its beginning.

        messages   bytes, or None, in the order of the stream

        Raises TypeError, and what `wireformat.Capture` raises when it is read.
        """
        return frame_of(pa.Table.from_batches(self._read(_arrow(messages)), self._fields))

    def each(self, messages: Iterable[pd.Series]) -> Iterator[pd.DataFrame]:
        """Yields the rows of one stream whose messages come in several Series, for mapInPandas over whole streams.

        messages   Series of bytes, or None, in the order of the stream

        A transaction may begin in one Series and end in another. Raises the errors of a call while iterating.
        """
        arrays = (pa.record_batch([_arrow(one)], schema=_PAYLOAD) for one in messages)
        for batch in self._read(pa.RecordBatchReader.from_batches(_PAYLOAD, arrays)):
            yield frame_of(pa.Table.from_batches([batch], self._fields))


@checks_keywords
def change_reader(
    format: str = "gaussdb-binary",
    *,
    columns: Sequence[str] | None = None,
    tables: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    mode: str = "FAILFAST",
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    dialect: str = "postgresql",
    engine: str = "scan",
) -> FrameReader:
    """Returns a function from a pandas Series of messages to a DataFrame of the row-change table.

    tables, kinds   as in `wireformat.Capture.changes`
    columns   columns of the row-change table; None for all. `message` is the index of the message, in a call its index
              in the Series
    tables    patterns `schema.table`: only row changes of these tables
    kinds     only these kinds of records

    The other options are those of `wireformat.Capture`. Raises OptionError.
    """
    options: dict[str, Any] = {
        "mode": mode,
        "encoding": encoding,
        "encoding_errors": encoding_errors,
        "heartbeat_unit": heartbeat_unit,
        "known_tables": known_tables,
        "exclude_users": exclude_users,
        "skip_empty_xacts": skip_empty_xacts,
        "strict": strict,
        "dialect": dialect,
        "engine": engine,
    }
    wf.Capture([], format, **options)  # checks them
    read = partial(_changes, format, options, {"columns": columns, "tables": tables, "kinds": kinds})
    return FrameReader(read, _fields_of(read))


@checks_keywords
def typed_reader(
    table: str,
    schema: Mapping[str, str] | pa.Schema,
    format: str = "gaussdb-binary",
    *,
    committed: bool = True,
    images: str = "new",
    complete: bool = False,
    mode: str = "FAILFAST",
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    dialect: str = "postgresql",
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    engine: str = "scan",
) -> FrameReader:
    """Returns a function from a pandas Series of messages to a DataFrame of the typed changes of one table.

    table       `public.orders`; names with a dot in double quotes. Changes of other tables are left out
    schema      the columns: a mapping of column to SQL type, or a pyarrow Schema
    committed   True returns the changes of transactions that are committed in the messages of a call, in commit order.
                False returns every change in the order of the messages, also one whose transaction begins or ends
                elsewhere, or is rolled back; `_sequence` is then null

    images and complete, the columns and the types are those of `wireformat.Capture.typed`, except that a time of day is
    the text as sent. The other options are those of `wireformat.Capture`. Raises OptionError.
    """
    options: dict[str, Any] = {
        "mode": mode,
        "encoding": encoding,
        "encoding_errors": encoding_errors,
        "heartbeat_unit": heartbeat_unit,
        "known_tables": known_tables,
        "exclude_users": exclude_users,
        "skip_empty_xacts": skip_empty_xacts,
        "strict": strict,
        "dialect": dialect,
        "two_phase": two_phase,
        "drop_resent": drop_resent,
        "memory_limit": memory_limit,
        "engine": engine,
    }
    wf.Capture([], format, **options)  # checks them
    if not isinstance(schema, (Mapping, pa.Schema)):
        raise wf.OptionError(
            f"option schema: expected a mapping of column to SQL type, or a pyarrow Schema, got {shown(schema)}"
        )
    typed = {"schema": spark_columns(schema, table, format), "images": images, "complete": complete}
    rows = _committed_rows if flag("committed", committed) else _all_rows
    read = partial(rows, format, options, table, typed)
    return FrameReader(read, _fields_of(read))


def _fields_of(read: Callable[[Any], pa.RecordBatchReader]) -> pa.Schema:
    """Returns the schema of the rows, without metadata, which pandas does not keep."""
    return read(pa.array([], pa.binary())).schema.remove_metadata()


def _arrow(messages: pd.Series) -> pa.Array:
    if not isinstance(messages, pd.Series):
        raise TypeError(f"messages: expected a pandas Series of bytes, got {type(messages).__name__}")
    try:
        array = pa.array(messages, from_pandas=True)  # of the type that it has: numbers are no bytes
    except (pa.ArrowException, TypeError):  # whose text may show a message
        found = sorted({type(one).__name__ for one in messages})
        raise TypeError(f"messages: expected a pandas Series of bytes, got one of {', '.join(found)}") from None
    if array.null_count < len(array) and not is_binary(array.type):
        raise TypeError(f"messages: expected a pandas Series of bytes, got one of {array.type}")
    if (
        messages.dtype == object
        and pd.api.types.infer_dtype(messages) != "bytes"
        and any(isinstance(one, str) for one in messages)
    ):
        raise TypeError("messages: expected a pandas Series of bytes, got str among them")  # Arrow would encode it
    array = array.cast(pa.binary()) if is_binary(array.type) else pa.nulls(len(array), pa.binary())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _capture(messages: Any, format: str, options: Mapping[str, Any]) -> wf.Capture:
    return wf.Capture(messages, format, threads=1, **options)  # Spark runs a task for each core


def _changes(format: str, options: Mapping[str, Any], chosen: Mapping[str, Any], messages: Any) -> pa.RecordBatchReader:
    return _capture(messages, format, options).changes(**chosen)


def _committed_rows(
    format: str, options: Mapping[str, Any], table: str, typed: Mapping[str, Any], messages: Any
) -> pa.RecordBatchReader:
    return _capture(messages, format, options).typed(table, **typed)


def _all_rows(
    format: str, options: Mapping[str, Any], table: str, typed: Mapping[str, Any], messages: Any
) -> pa.RecordBatchReader:
    from wireformat.arrow.typed_tables.table import typed_part  # loads numba

    changes = _capture(messages, format, options).changes(tables=[table])

    def rows_of(batches: Sequence[pa.RecordBatch]) -> pa.Table:
        own = pa.Table.from_batches(batches, changes.schema)
        return typed_part(own, table, mode=options["mode"], format=format, **typed)

    schema = rows_of([]).schema
    batches = (batch for changed in changes for batch in rows_of([changed]).to_batches())
    return pa.RecordBatchReader.from_batches(
        schema, (batch.replace_schema_metadata(schema.metadata) for batch in batches)
    )
