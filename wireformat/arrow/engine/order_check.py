"""An engine that wraps another one and checks the order of the records, in events and in record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import DecodeError
from ...formats.pgoutput.relations import Relations
from ...formats.record_facts import RecordFacts
from ...lsn import unsigned
from ...stream.order import Order
from ...stream.reader import Located
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..schemas import FLAG_OF_TEXT, widened
from .row_only_transactions import row_only_transactions

if TYPE_CHECKING:
    from .interface import Engine

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
