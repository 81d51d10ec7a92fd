"""The SQL functions: wal_changes and wal_transactions return tables, wal_decode and wal_decode_pandas arrays.

The arrays have the rows of a message, for inline and LATERAL VIEW. Options are given by position or by name, as Spark
passes them to Python. wal_transactions has one task per stream, which writes large open transactions to files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.errors import add_hint, counted
from wireformat.options.table import nearest
from wireformat.sources.columns import is_binary

from ..decoding.batches import rows_with_kept
from ..decoding.task import DecodingPlan, Kept, Task
from ..decoding.unconverted import series_of
from ..positions import check_positions, out_of_order
from ..schemas import change_names, change_struct, committed_table
from ..workers import log_unknown_prepared

OPTIONS = ("mode", "encoding", "encoding_errors", "heartbeat_unit", "tables", "kinds", "known_tables", "dialect")
"""The options of `wireformat.ReadOptions`, in the order in which they follow `format`."""


def read_arguments(
    function: str, format: pa.Array | None, given: Sequence[pa.Array], named: Mapping[str, pa.Array]
) -> Any:
    """Returns `format` and the options as `DecodingPlan.check` takes them; NULL is the default.

    Each argument is an array with one item per row, all of them equal. As in SQL, the case of names does not matter.
    Raises OptionError.
    """
    if len(given) > len(OPTIONS):
        raise wf.OptionError(f"{function}: expected at most {len(OPTIONS)} options: {', '.join(OPTIONS)}")
    by_position = {"format": format, **dict.fromkeys(OPTIONS), **dict(zip(OPTIONS, given, strict=False))}
    columns = _by_name(function, by_position, named)
    if "format" not in columns:
        raise wf.OptionError(f"{function}: expected the name of a format, as in format => 'gaussdb-binary'")
    values = {name: _one_value(function, name, column) for name, column in columns.items()}
    return {name: value for name, value in values.items() if value is not None or name == "format"}


def _by_name(
    function: str, by_position: Mapping[str, pa.Array | None], named: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    """Returns the arguments that are given, by name; raises OptionError for one that is unknown, or given twice.

    by_position   all that are known; None for one that is not given by position
    """
    found = {name: column for name, column in by_position.items() if column is not None}
    for name, column in named.items():
        option = name.lower()
        if option not in by_position:
            near = nearest(option, by_position)
            raise wf.OptionError(f"{function}: unknown option {name!r}{near}; known are {', '.join(by_position)}")
        if option in found:
            raise wf.OptionError(f"{function}: option {option} is given twice, by position or in another case")
        found[option] = column
    return found


def _one_value(function: str, name: str, column: pa.Array) -> Any:
    values = column.to_pylist() if pa.types.is_nested(column.type) else pc.unique(column).to_pylist()
    if any(value != values[0] for value in values):
        raise wf.OptionError(f"{function}: {name} must be the same in all rows, not a column")
    return values[0]


def check_table(function: str, given: Any) -> None:
    """Raises OptionError unless a table was given."""
    if not isinstance(given, pa.RecordBatch):
        raise wf.OptionError(f"{function}: expected a table, as in {function}(TABLE(SELECT …)), got a value")


RESULT_BYTES = 0x7FFFFFFF
"""The size limit of the rows of one batch: a scalar function returns one array per batch, and an Arrow string column
holds 2 GiB."""


def wal_decode(value: pa.Array, format: pa.Array = None, *given: pa.Array, **named: pa.Array) -> pa.Array:
    """Returns the rows of each message as a list of structs; null for null."""
    return _decoded("wal_decode", value, format, given, named)


def wal_decode_pandas(
    value: pd.Series,
    format: pd.Series = None,  # Spark takes no signature with `| None`
    *given: pd.Series,
    **named: pd.Series,
) -> pd.Series:
    """Returns the rows of each message as a list of structs; null for null."""
    options = [pa.array(column, from_pandas=True) for column in given]
    by_name = {name: pa.array(column, from_pandas=True) for name, column in named.items()}
    messages = pa.array(value, from_pandas=True)  # of the type that it has: numbers are no bytes
    named_format = None if format is None else pa.array(format)
    return series_of(_decoded("wal_decode_pandas", messages, named_format, options, by_name))


def _decoded(
    function: str, messages: pa.Array, format: pa.Array | None, given: Sequence[pa.Array], named: Mapping[str, pa.Array]
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


class WalChanges:
    """Returns the rows of the messages of a table with the columns seq and payload; seq comes back first.

    Spark creates one instance per partition. `SELECT * FROM wal_changes(TABLE(...), format => '...', mode => '...')`;
    the options are those of `OPTIONS`.
    """

    def __init__(self) -> None:
        self._task: Task | None = None

    def eval(
        self, messages: pa.RecordBatch, format: pa.Array | None = None, *given: pa.Array, **named: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one batch. Each argument is an array of equal values."""
        check_table("wal_changes", messages)
        if not messages.num_rows:
            return iter(())
        if self._task is None:
            options = read_arguments("wal_changes", format, given, named)
            self._task = Task(DecodingPlan.check(**options, keep=[Kept("seq", is_shown=True)]))
        seq = _column(messages, "seq")
        payload = _column(messages, "payload")
        if not pa.types.is_integer(seq.type):
            raise wf.OptionError(f"wal_changes: seq must be an integer, it is {seq.type}")
        if not (pa.types.is_binary(payload.type) or pa.types.is_large_binary(payload.type)):
            raise wf.OptionError(f"wal_changes: payload must be binary, it is {payload.type}")
        return rows_with_kept(self._task, payload, [pa.field("seq", pa.int64())], [seq.cast(pa.int64())])

    def terminate(self) -> None:
        """Called after the last batch."""
        if self._task is not None:
            self._task.close()


def _column(messages: pa.RecordBatch, name: str) -> pa.Array:
    """Returns the column of this name; as in SQL, the case does not matter."""
    indices = [index for index, found in enumerate(messages.schema.names) if found.lower() == name]
    if len(indices) != 1:
        there = ", ".join(messages.schema.names)
        raise wf.OptionError(
            f"wal_changes: the table must have one column {name}, it has {there}; rename with AS {name}"
        )
    return messages.column(indices[0])


if TYPE_CHECKING:
    from wireformat.arrow.unread import ReadSummary

STREAM = "stream"
ORDER = ("seq", "record")
KEY = [STREAM, *ORDER, "table_schema", "table_name"]
"""The columns that differ from row to row: a TRUNCATE has a row for each of its tables."""


class WalTransactions:
    """Returns the rows of committed transactions, from a table with the columns of `wal_changes` in stream order.

    Spark creates one instance per value of PARTITION BY. `SELECT * FROM wal_transactions(TABLE(...) PARTITION BY stream
    ORDER BY (seq, record), two_phase => 'prepare', drop_resent => false)`. Raises OrderError, also if the rows are not
    sorted.
    """

    def __init__(self) -> None:
        self._transactions: wf.arrow.Transactions | None = None
        self._last: pa.Table | None = None
        self._seen: ReadSummary | None = None

    def eval(
        self,
        changes: pa.RecordBatch,
        two_phase: pa.Array | None = None,
        drop_resent: pa.Array | None = None,
        **named: pa.Array,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows that one batch commits. Each argument is an array of equal values.

        named   options whose names SQL has in another case
        """
        from wireformat.arrow.unread import ReadSummary

        check_table("wal_transactions", changes)
        if not changes.num_rows:
            return
        if self._transactions is None:
            by_position = {"two_phase": two_phase, "drop_resent": drop_resent}
            columns = _by_name("wal_transactions", by_position, named)
            given = {name: column[0].as_py() for name, column in columns.items()}
            self._transactions = wf.arrow.Transactions(
                **{name: value for name, value in given.items() if value is not None}
            )
        rows = self._in_order(_rows(changes))
        self._seen = (self._seen or ReadSummary()).and_of(rows)
        try:
            for committed in self._transactions.take(rows):
                wanted = committed_table()
                yield pa.RecordBatch.from_arrays([committed[f.name].cast(f.type) for f in wanted], schema=wanted)
        except wf.OrderError as error:
            add_hint(error, "without PARTITION BY and ORDER BY (seq, record), a task gets any rows of a stream")
            raise

    def terminate(self) -> None:
        """Called after the last row of a stream. Open transactions are not delivered. Raises BadRows if no row could be
        read."""
        if self._transactions is not None:
            log_unknown_prepared(self._transactions.unknown_prepared, "wal_transactions")
            self._transactions.close()
        if self._seen is not None:
            self._seen.check(None)

    def _in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows.

        Raises OrderError unless they are sorted by seq and record, BadRows if one of these is null or a row comes
        twice, and OptionError for rows of several streams.
        """
        check_positions([rows[name] for name in ORDER], ORDER)
        last = [] if self._last is None else [self._last]
        keys = pa.concat_tables([*last, pa.Table.from_batches([rows]).select(KEY)])
        if len(pc.unique(keys[STREAM])) > 1:
            raise wf.OptionError(
                "wal_transactions: one call reads one stream, got rows of several: write TABLE(...) PARTITION BY "
                "stream ORDER BY (seq, record)"
            )
        seq, record = (keys[name] for name in ORDER)
        ascends, stays = (compare(seq[1:], seq[:-1]) for compare in (pc.greater, pc.equal))
        follows = pc.or_(ascends, pc.and_(stays, pc.greater_equal(record[1:], record[:-1])))
        if not pc.all(follows, min_count=0).as_py():
            write = "write TABLE(...) PARTITION BY ... ORDER BY (seq, record)"
            raise out_of_order("wal_transactions: rows sorted by seq and record", f"rows in another order; {write}")
        if pc.any(pc.and_(stays, pc.equal(record[1:], record[:-1]))).as_py():
            counts = keys.group_by(KEY, use_threads=False).aggregate([([], "count_all")])
            for twice in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
                raise wf.BadRows(
                    "wal_transactions: positions that are unique within a stream",
                    f"two rows of a record at seq={twice['seq']}, record={twice['record']}",
                    hint="give each message once, with a seq of its own; PARTITION BY stream if there are several",
                )
        self._last = keys.filter(pc.and_(pc.equal(seq, seq[-1]), pc.equal(record, record[-1])))
        return rows


def _rows(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the columns by name; as in SQL, the case does not matter. `stream` is null if there is none."""
    names = [name.lower() for name in changes.schema.names]
    wanted = ["seq", *change_names()]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise wf.OptionError(
            f"wal_transactions: the table must have the columns of wal_changes, it has no {', '.join(missing)}"
        )
    for name in (*wanted, STREAM):
        if names.count(name) > 1:
            raise wf.OptionError(f"wal_transactions: the table must have one column {name}, it has several")
    indices = {name: index for index, name in enumerate(names)}
    columns = [changes.column(indices[name]) for name in wanted]
    if not pa.types.is_integer(columns[0].type):
        raise wf.OptionError(f"wal_transactions: seq must be an integer, it is {columns[0].type}")
    columns[0] = columns[0].cast(pa.int64())
    stream = changes.column(indices[STREAM]) if STREAM in indices else pa.nulls(len(changes))
    try:
        stream = stream.cast(pa.string())
    except pa.ArrowException:  # whose text may have a value
        raise wf.OptionError(
            f"wal_transactions: stream must be a text or a number, it is {stream.type}; of several columns, write "
            "concat_ws('/', topic, partition) AS stream"
        ) from None
    return pa.RecordBatch.from_arrays([*columns, stream], names=[*wanted, STREAM])
