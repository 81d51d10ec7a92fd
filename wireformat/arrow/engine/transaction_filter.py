"""An engine that wraps another one and filters whole transactions, in events and in record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DecodeError
from ...formats.pgoutput.relations import Relations
from ...options import ReadOptions
from ...stream.reader import Located
from ...stream.transaction_filter import TransactionFilter
from ..schemas import widened

if TYPE_CHECKING:
    from .interface import Engine


class FilteredTransactions:
    """Filters the transactions of another engine, which must read all kinds: any record may decide what is kept.

    The option `kinds` is applied after this filter. The option `tables` is applied before it, so that a transaction
    without rows of the requested tables is empty.
    """

    def __init__(self, engine: Engine, options: ReadOptions) -> None:
        self._engine = engine
        self._options = options
        self._events: TransactionFilter[Located] = _make_filter(options)
        self._rows: TransactionFilter[int] = _make_filter(options)
        self._held_begin: pa.RecordBatch | None = None

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._engine.dropped

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._engine.set_relations(relations)

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events."""
        return self._kept(self._engine.events(messages, first))

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """See Engine.unframed."""
        return self._kept(self._engine.unframed(data, index, stream_offset, error))

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        wider = widened(schema, "kind", "detail")
        for batch in self._engine.batches(messages, wider, first):
            yield self._kept_rows(batch).select(schema.names)

    def _kept(self, records: Iterable[Located]) -> Iterator[Located]:
        for record in records:
            kind, username = record.event.kind, getattr(record.event, "username", None)
            for located in self._events.take(kind, username, record):
                if self._options.keeps(located.event.kind, None):
                    yield located

    def _kept_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows to keep, after the BEGIN of an earlier batch if it was held back and is kept.

        A BEGIN at the end is held back, as a batch of one row, until the rows that follow decide about it.
        """
        first = 0
        if self._rows.held is not None and self._held_begin is not None:
            batch, first, self._rows.held = _joined(self._held_begin, batch), 1, 0
        kinds = batch["kind"].to_pylist()
        usernames = (
            pc.map_lookup(batch["detail"], "username", "first").to_pylist() if self._options.exclude_users else kinds
        )
        kept = [
            row
            for candidate in range(first, len(kinds))
            for row in self._rows.take(kinds[candidate], usernames[candidate], candidate)
            if self._options.keeps(kinds[row], None)
        ]
        self._held_begin = None if self._rows.held is None else batch.take(pa.array([self._rows.held]))
        return batch.take(pa.array(kept, pa.int64())) if kept != list(range(len(kinds))) else batch


def _make_filter(options: ReadOptions) -> TransactionFilter[Any]:
    return TransactionFilter(options.exclude_users, options.skip_empty_xacts)


def _joined(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pa.concat_arrays(pair) for pair in zip(first.columns, second.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=second.schema)
