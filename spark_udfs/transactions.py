"""transactions: the row changes of committed transactions, for batch and streaming DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

import wireformat as wf
from wireformat.arrow.committed.batch import NEEDED_COLUMNS
from wireformat.extras import needs
from wireformat.options.checks import flag, one_of, shown
from wireformat.options.table import nearest
from wireformat.stream.transactions import TWO_PHASE

from .carriers import ARROW_CANNOT, carrier, is_text, packed, unpacked
from .fields import check_frame
from .packing import PACKED, Layout, pack_batches, unpack_batches
from .positions import MOST_CHUNKS, PositionColumns
from .schemas import added_fields, change_fields
from .session import ROCKSDB, STATE_STORE
from .streaming import Processor

NEEDED = ("record", *NEEDED_COLUMNS, "table_schema", "table_name")
"""The columns of the row-change table that `transactions` needs."""


def transactions(
    changes: DataFrame,
    *,
    order_by: Sequence[str],
    stream_by: Sequence[str] = (),
    two_phase: str = "commit",
    drop_resent: bool = True,
    chunks: int | None = None,
) -> DataFrame:
    """Returns the row changes of committed transactions, with the facts of their transactions.

    changes     rows of all kinds, from `decode`; batch or streaming
    order_by    columns (integers or strings) that order the messages; their values must be unique within a stream
    stream_by   columns (integers or strings) that identify a stream, if there are several
    two_phase   "commit" delivers a prepared transaction when it is committed, "prepare" when it is prepared
    drop_resent drop transactions that have been delivered before and are sent again after a restart
    chunks      the number of parts of a batch; None for spark.sql.shuffle.partitions. It does not affect the result
    returns     `sequence`, the columns of changes, `username`, `origin`; see docs/transactions.md

    Raises OptionError when called. For a batch, the call samples positions to decide where to split the stream. The
    query ends with the text of an OrderError if a record is out of order, and of a BadRows if a position is null or not
    unique.
    """
    check_frame("changes", changes)
    positions = _checked(changes, order_by, stream_by, two_phase, drop_resent)
    fields = committed_fields(changes)
    if changes.isStreaming:
        return _streamed(changes, positions, fields, {"two_phase": two_phase, "drop_resent": drop_resent})
    from .chunked import committed_rows  # loads numba, which is slow and needed only here

    return committed_rows(changes, positions, fields, _chunks(changes, chunks), two_phase, drop_resent)


def open_transactions(
    changes: DataFrame,
    *,
    order_by: Sequence[str],
    stream_by: Sequence[str] = (),
    two_phase: str = "commit",
    drop_resent: bool = True,
    chunks: int | None = None,
) -> DataFrame:
    """Returns the rows that `transactions` does not deliver because their transactions have not ended.

    Batch only: for a stream, the state of the query holds these rows. If you put them before the rows that follow
    (`union`), nothing is lost. Arguments and errors are those of `transactions`.
    """
    check_frame("changes", changes)
    if changes.isStreaming:
        raise wf.OptionError(
            "open_transactions: expected a batch; for a stream, the state of the query holds these rows"
        )
    positions = _checked(changes, order_by, stream_by, two_phase, drop_resent)
    from .chunked import open_rows

    return open_rows(changes, positions, _chunks(changes, chunks), two_phase, drop_resent)


def unknown_prepared(
    changes: DataFrame,
    *,
    order_by: Sequence[str],
    stream_by: Sequence[str] = (),
    two_phase: str = "commit",
    drop_resent: bool = True,
    chunks: int | None = None,
) -> DataFrame:
    """Returns stream_by and `gid` of the prepared transactions that ended without a known PREPARE.

    `transactions` delivers nothing of them; docs/transactions.md explains them. Batch only: a streaming query writes
    them to the log of the worker. Arguments and errors are those of `transactions`.
    """
    check_frame("changes", changes)
    if changes.isStreaming:
        raise wf.OptionError("unknown_prepared: expected a batch; for a stream, the workers log the gids")
    positions = _checked(changes, order_by, stream_by, two_phase, drop_resent)
    from .chunked import unknown_prepared_rows

    return unknown_prepared_rows(changes, positions, _chunks(changes, chunks), two_phase, drop_resent)


def _checked(
    changes: DataFrame, order_by: Sequence[str], stream_by: Sequence[str], two_phase: str, drop_resent: bool
) -> PositionColumns:
    """Raises OptionError."""
    _check_columns(changes)
    one_of("two_phase", two_phase, TWO_PHASE)
    flag("drop_resent", drop_resent)
    return PositionColumns.check(changes, order_by, stream_by)


def _chunks(changes: DataFrame, given: int | None) -> int:
    if given is None:
        given = int(str(changes.sparkSession.conf.get("spark.sql.shuffle.partitions")))
        return min(given, MOST_CHUNKS)
    if type(given) is not int or not 1 <= given <= MOST_CHUNKS:
        raise wf.OptionError(f"option chunks: expected a number from 1 to {MOST_CHUNKS}, got {shown(given)}")
    return given


def _check_columns(changes: DataFrame) -> None:
    """Raises OptionError if a needed column is missing or of another type, or if an added column exists."""
    types = {field.name: field.dataType for field in change_fields(NEEDED)}
    for name in NEEDED:
        found = [field for field in changes.schema if field.name == name]
        if len(found) != 1 or found[0].dataType != types[name]:
            got = ", ".join(field.simpleString() for field in found) or f"none{nearest(name, changes.columns)}"
            raise wf.OptionError(
                f"row changes: expected one column {name} of type {types[name].simpleString()}, got {got}"
            )
    seen: dict[str, str] = {field.name: "it is added" for field in added_fields()}
    for name in changes.columns:
        if name.lower() in seen:
            raise wf.OptionError(f"row changes: column {name!r}: {seen[name.lower()]}; rename the one in the input")
        seen[name.lower()] = "it occurs twice"


def committed_fields(changes: DataFrame) -> list[StructField]:
    """Returns the columns of the result."""
    sequence, *facts = added_fields()
    return [sequence, *[StructField(f.name, f.dataType, True, f.metadata) for f in changes.schema], *facts]


def _streamed(
    changes: DataFrame, positions: PositionColumns, fields: Sequence[StructField], options: dict[str, Any]
) -> DataFrame:
    provider = changes.sparkSession.conf.get(STATE_STORE, None)
    if provider != ROCKSDB:
        raise wf.OptionError(
            f"transactions of a streaming DataFrame need a RocksDB state store: set {STATE_STORE} to {ROCKSDB}, "
            f"got {provider}"
        )
    with needs("spark", "transactions of a streaming DataFrame"):
        import google.protobuf  # type: ignore[import-untyped]  # noqa: F401 - Spark's state needs it in the workers
    layout = Layout(
        tuple(changes.columns),
        tuple(field.name for field in positions.stream_by),
        tuple(field.name for field in positions.order_by),
    )
    sent = [packed(field, ARROW_CANNOT).alias(str(index)) for index, field in enumerate(changes.schema)]
    held = changes.select(*sent).mapInArrow(partial(pack_batches, layout), PACKED)
    committed = held.groupBy("stream").transformWithStateInPandas(
        Processor(layout, options), "rows binary", outputMode="Append", timeMode="None"
    )
    carried = StructType([carrier(field, ARROW_CANNOT) for field in fields])
    rows = committed.mapInArrow(unpack_batches, carried)
    if any(is_text(field, ARROW_CANNOT) for field in fields):
        return rows.select(*[unpacked(field, ARROW_CANNOT) for field in fields])
    return rows
