"""An engine that wraps another one and checks the order of the records, in events and in record batches.

It takes many transactions at once if they have only BEGIN, row changes and COMMIT; so do the filters of transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DecodeError
from ...events import ROW_CHANGES, RecordFacts
from ...formats.pgoutput.relations import Relations
from ...lsn import unsigned
from ...stream.order import Order
from ...stream.reader import Located
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..arrays import Array
from ..schemas import FLAG_OF_TEXT, widened

if TYPE_CHECKING:
    from .declaration_engine import Engine

_COLUMNS = ("message", "record", "kind", "lsn", "xid", "detail")


class OrderChecked:
    """Raises OrderError at the first record of another engine that is out of order. The engine must read all kinds.

    before   the records before the first one

    Events and rows each keep their own state of the stream from call to call.
    """

    def __init__(self, engine: Engine, format: str, before: RecordsBefore = NOTHING_BEFORE) -> None:
        self._engine = engine
        self._events, self._rows = (Order(format, before.order, before.name) for _ in range(2))

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._engine.set_relations(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._engine.dropped

    @property
    def before_next(self) -> RecordsBefore:
        """See Engine.before_next."""
        return self._engine.before_next._replace(order=self._rows.before_next)

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events; raises OrderError after the events before the error."""
        return self._checked(self._engine.events(messages, first))

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """See Engine.unframed."""
        return self._checked(self._engine.unframed(data, index, stream_offset, error))

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches; raises OrderError."""
        for batch in self._engine.batches(messages, widened(schema, *_COLUMNS), first):
            self._check_rows(batch)
            yield batch.select(schema.names)

    def _checked(self, records: Iterable[Located]) -> Iterator[Located]:
        order = self._events
        for located in records:
            event = located.event
            if not order.passes(event.kind):
                order.take(RecordFacts.of(event), message=located.message, number=located.record, lsn=event.lsn)
            yield located

    def _check_rows(self, batch: pa.RecordBatch) -> None:
        runs = row_only_transactions(batch).runs
        kinds: list[str] = batch["kind"].to_pylist() if runs != {0: len(batch)} else ["BEGIN"]
        row = 0
        while row < len(kinds):
            end = runs.get(row)
            if end is not None and self._rows.pass_transactions():
                row = end
                continue
            if not self._rows.passes(kinds[row]):
                cells = {name: batch[name][row].as_py() for name in _COLUMNS}
                lsn = None if cells["lsn"] is None else unsigned(cells["lsn"])
                self._rows.take(record_facts(cells), message=cells["message"], number=cells["record"], lsn=lsn)
            row += 1


def record_facts(row: Mapping[str, Any]) -> RecordFacts:
    """Returns the facts of a row with the columns kind, xid and detail."""
    detail = dict(row["detail"] or ())
    return RecordFacts(
        row["kind"],
        None if row["xid"] is None else unsigned(row["xid"]),
        detail.get("gid"),
        int(detail["subxid"]) if "subxid" in detail else None,
        *(FLAG_OF_TEXT.get(detail.get(name, "")) for name in ("first_segment", "transactional")),
    )


_KINDS = pa.array(["BEGIN", "COMMIT", *ROW_CHANGES])
_BEGIN, _COMMIT = 0, 1


class RowOnlyTransactions(NamedTuple):
    """The row-only transactions of a batch, in order, as runs of neighbours.

    begins, commits   int64[n]: the rows of their BEGIN and COMMIT
    runs              the row with which each run begins, and the row after its end
    """

    begins: Array
    commits: Array
    runs: dict[int, int]


NO_TRANSACTIONS = RowOnlyTransactions(np.zeros(0, np.int64), np.zeros(0, np.int64), {})


def row_only_transactions(batch: pa.RecordBatch) -> RowOnlyTransactions:
    """Finds the transactions that a batch holds from BEGIN to COMMIT: no gid, one xid if both ends have it.

    batch   its columns kind, xid and detail are read

    Unlike plain transactions (see `..committed.cells`), they have no ORIGIN and no other record between
    their ends. Their commit LSNs do not matter: neither the order nor the filters depend on them.
    """
    if not len(batch):
        return NO_TRANSACTIONS
    indexes = pc.fill_null(pc.index_in(batch["kind"], _KINDS), len(_KINDS))
    codes = np.frombuffer(indexes.buffers()[1], np.int32, len(batch))
    controls = np.flatnonzero((codes <= _COMMIT) | (codes == len(_KINDS)))
    pairs = np.flatnonzero((codes[controls[:-1]] == _BEGIN) & (codes[controls[1:]] == _COMMIT))
    begins, commits = controls[pairs], controls[pairs + 1]
    if len(begins):
        xids, other_xids = (batch["xid"].take(pa.array(rows)) for rows in (begins, commits))
        without_gid = pc.is_null(pc.map_lookup(batch["detail"].take(pa.array(begins)), "gid", "first"))
        chosen = pc.indices_nonzero(pc.and_(pc.fill_null(pc.equal(xids, other_xids), True), without_gid))
        pairs = np.frombuffer(chosen.buffers()[1], np.uint64, len(chosen)) if len(chosen) else np.zeros(0, np.uint64)
        begins, commits = begins[pairs], commits[pairs]
    if not len(begins):
        return NO_TRANSACTIONS
    breaks = np.flatnonzero(begins[1:] != commits[:-1] + 1)
    firsts = begins[np.concatenate([[0], breaks + 1])]
    ends = commits[np.concatenate([breaks, [len(commits) - 1]])] + 1
    return RowOnlyTransactions(begins, commits, dict(zip(firsts.tolist(), ends.tolist(), strict=True)))
