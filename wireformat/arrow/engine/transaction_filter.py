"""An engine that wraps another one and filters whole transactions, in events and in record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DecodeError
from ...events import RecordFacts
from ...formats.pgoutput.relations import Relations
from ...lsn import unsigned
from ...options import ReadOptions
from ...stream.reader import Located
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from ...stream.transaction_filter import CHANGE_KINDS, TransactionFilter
from ..arrays import Array
from ..schemas import widened
from .order_check import NO_TRANSACTIONS, row_only_transactions

if TYPE_CHECKING:
    from .declaration_engine import Engine


_ANOTHERS = -1
"""In place of a row: one that waits, and that another engine has read."""


class FilteredTransactions:
    """Filters the transactions of another engine, which must read all kinds: any record may decide what is kept.

    The option `kinds` is applied after this filter. The option `tables` is applied before it, so that a transaction
    without rows of the requested tables is empty.

    before   the records before the first one. Those of them that wait are returned only if their rows are given
    """

    def __init__(self, engine: Engine, options: ReadOptions, before: RecordsBefore = NOTHING_BEFORE) -> None:
        self._engine = engine
        self._options = options
        users, skips_empty = options.exclude_users, options.skip_empty_xacts
        self._events: TransactionFilter[Located] = TransactionFilter(users, skips_empty, before.filter)
        self._rows: TransactionFilter[int] = TransactionFilter(users, skips_empty, before.filter)
        self._held: pa.RecordBatch | None = before.held_rows
        count = before.filter.held if before.filter is not None else 0
        self._rows.hold((_ANOTHERS,) * count if self._held is None else tuple(range(count)))
        self._keeps_held = before.keeps_held
        self._names: list[str] = []

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._engine.dropped

    @property
    def before_next(self) -> RecordsBefore:
        """See Engine.before_next."""
        return self._engine.before_next._replace(filter=self._rows.before_next, held_rows=self._held)

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
        wider = widened(schema, "kind", "xid", "detail")
        self._names = schema.names
        if self._held is not None:
            self._held = self._held.select(wider.names)
        for batch in self._engine.batches(messages, wider, first):
            yield self._kept_rows(batch).select(schema.names)

    def held_rows(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that wait at the end of a part of a stream, if later records keep them."""
        if self._keeps_held and self._held is not None:
            kinds = self._held["kind"].to_pylist()
            wanted = pa.array([self._options.keeps(kind, None) for kind in kinds], pa.bool_())
            yield self._held.filter(wanted).select(self._names)

    def _kept(self, records: Iterable[Located]) -> Iterator[Located]:
        for record in records:
            username = getattr(record.event, "username", None)
            for located in self._events.take(RecordFacts.of(record.event), username, record):
                if self._options.keeps(located.event.kind, None):
                    yield located

    def _kept_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows to keep, after those of earlier batches that were held back and are kept.

        Rows at the end on which later rows decide are held back, as a batch of their own.
        """
        begin = 0
        if self._held is not None:
            begin = len(self._held)
            batch = pa.concat_batches([self._held, batch])
            anothers = (_ANOTHERS,) * self._rows.held.count(_ANOTHERS)
            self._rows.hold((*anothers, *range(begin)))
        encoded = batch["kind"].dictionary_encode()
        present, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        is_kept = {kind: self._options.keeps(kind, None) for kind in present}
        row_only = row_only_transactions(batch.slice(begin)) if self._rows.may_pass_transactions else NO_TRANSACTIONS
        wanted = np.array([is_kept[kind] for kind in present], np.bool_)[codes]
        if self._options.skip_empty_xacts:
            empty = begin + row_only.begins[row_only.commits == row_only.begins + 1]
            wanted[empty] = wanted[empty + 1] = False
        kinds: list[str] = []
        facts: Callable[[int], RecordFacts] | None = None
        names: list[str | None] = []
        runs: list[Array] = []
        kept: list[int] = []
        row = begin
        while row < len(batch):
            end = row_only.runs.get(row - begin)
            if end is not None:
                self._rows.pass_transactions()
                runs += [np.array(kept, np.int64), row + np.flatnonzero(wanted[row : begin + end])]
                kept = []
                row = begin + end
                continue
            if not kinds:
                kinds = batch["kind"].to_pylist()
            if kinds[row] in CHANGE_KINDS and self._rows.passes_changes:
                taken: tuple[int, ...] = (row,)
            else:
                if facts is None:
                    facts = _facts(batch, kinds, present)
                    names = _texts(batch, "username") if self._options.exclude_users else [None] * len(kinds)
                taken = self._rows.take(facts(row), names[row], row)
            kept += [one for one in taken if one != _ANOTHERS and is_kept[kinds[one]]]
            row += 1
        held = [one for one in self._rows.held if one != _ANOTHERS]
        self._held = batch.take(pa.array(held, pa.int64())) if held else None
        rows = np.concatenate([*runs, np.array(kept, np.int64)])
        return batch if np.array_equal(rows, np.arange(len(batch))) else batch.take(pa.array(rows))


def _facts(batch: pa.RecordBatch, kinds: list[str], present: list[str]) -> Callable[[int], RecordFacts]:
    """Returns what gives the facts of a row, as far as the filters need them.

    present   each of the kinds once
    """
    nothing = [None] * len(kinds)
    columns = [nothing if asked.isdisjoint(present) else read(batch, name) for name, asked, read in _ASKED]
    return lambda row: RecordFacts(kinds[row], *(column[row] for column in columns))


def _xids(batch: pa.RecordBatch, name: str) -> list[int | None]:
    return [None if xid is None else unsigned(xid) for xid in batch[name].to_pylist()]


def _texts(batch: pa.RecordBatch, name: str) -> list[str | None]:
    found: list[str | None] = pc.map_lookup(batch["detail"], name, "first").to_pylist()
    return found


def _numbers(batch: pa.RecordBatch, name: str) -> list[int | None]:
    return [None if text is None else int(text) for text in _texts(batch, name)]


def _flags(batch: pa.RecordBatch, name: str) -> list[bool | None]:
    return [None if text is None else text == "true" for text in _texts(batch, name)]


_ASKED: tuple[tuple[str, frozenset[str], Callable[[pa.RecordBatch, str], list[Any]]], ...] = (
    ("xid", frozenset({"STREAM_START", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE"}), _xids),
    ("gid", frozenset({"BEGIN"}), _texts),
    ("subxid", frozenset({"STREAM_ABORT"}), _numbers),
    ("first_segment", frozenset({"STREAM_START"}), _flags),
    ("transactional", frozenset({"MESSAGE"}), _flags),
)
"""The fields of RecordFacts after `kind`: the kinds of which the filters ask for it, and how rows say it."""
