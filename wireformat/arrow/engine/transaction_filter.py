"""An engine around an engine: leaves out whole transactions, in events and in record batches alike."""

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
    """Lets another engine read every kind of record, since what stays depends on records that are not wanted.

    The kinds that are wanted are applied behind the filter; tables before it, so that a transaction without rows of the
    tables that are wanted is empty.
    """

    def __init__(self, engine: Engine, options: ReadOptions) -> None:
        self._engine = engine
        self._options = options
        self._events: TransactionFilter[Located] = _make_filter(options)
        self._rows: TransactionFilter[int] = _make_filter(options)
        self._held: pa.RecordBatch | None = None

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

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """See Engine.lost."""
        return self._kept(self._engine.lost(data, index, stream_offset, error))

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        wider = widened(schema, "kind", "detail")
        for batch in self._engine.batches(messages, wider, first):
            yield self._kept_rows(batch).select(schema.names)

    def _kept(self, records: Iterable[Located]) -> Iterator[Located]:
        for found in records:
            kind, username = found.event.kind, getattr(found.event, "username", None)
            for located in self._events.take(kind, username, found):
                if self._options.keeps(located.event.kind, None):
                    yield located

    def _kept_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that stay, a BEGIN that was held before them; a BEGIN may be held again, as a batch of one row."""
        begin = 0
        if self._rows.held is not None and self._held is not None:
            batch, begin, self._rows.held = _joined(self._held, batch), 1, 0
        kinds = batch["kind"].to_pylist()
        names = (
            pc.map_lookup(batch["detail"], "username", "first").to_pylist() if self._options.exclude_users else kinds
        )
        kept = [
            row
            for candidate in range(begin, len(kinds))
            for row in self._rows.take(kinds[candidate], names[candidate], candidate)
            if self._options.keeps(kinds[row], None)
        ]
        self._held = None if self._rows.held is None else batch.take(pa.array([self._rows.held]))
        return batch.take(pa.array(kept, pa.int64())) if kept != list(range(len(kinds))) else batch


def _make_filter(options: ReadOptions) -> TransactionFilter[Any]:
    return TransactionFilter(options.exclude_users, options.skip_empty_xacts)


def _joined(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pa.concat_arrays(pair) for pair in zip(first.columns, second.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=second.schema)
