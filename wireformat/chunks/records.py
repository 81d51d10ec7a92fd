"""What `strict` and the filters of whole transactions must know in each chunk of the records before it and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow.engine.order_check import record_facts, row_only_transactions
from ..errors import LimitExceeded, OrderError, WireformatError
from ..events import ROW_CHANGES, RecordFacts
from ..options import ReadOptions
from ..stream.order import Order
from ..stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..stream.transaction_filter import TransactionFilter
from .capture import ChunkCapture

COLUMNS = ("message", "record", "kind", "xid", "detail")
"""The columns of the records that are read."""

_REPEATABLE = (*ROW_CHANGES, "TRUNCATE", "DDL", "RELATION", "TYPE", "STREAM_CHANGE", "UNKNOWN", "CORRUPT")
"""Kinds of records that change nothing if one of the same kind came before, with only such records between them."""


class SeenRecord(NamedTuple):
    """A record of a chunk that may matter in later chunks.

    facts      None: any number of whole transactions
    username   of BEGIN
    message    index of its message in the chunk, or what names it in errors
    """

    facts: RecordFacts | None
    username: str | None = None
    message: int | str = 0


@dataclass
class SeenRecords:
    """The records of a chunk that may matter in later chunks; they grow with control records, not with rows.

    messages   the number of messages
    """

    records: list[SeenRecord] = field(default_factory=list)
    messages: int = 0


def needs_records(options: ReadOptions) -> bool:
    """Whether chunks need to know the records before them."""
    return bool(options.strict or options.exclude_users or options.skip_empty_xacts)


def seen_records(capture: ChunkCapture, tables: Sequence[str] | None) -> SeenRecords:
    """Reads a chunk, up to its first error, which another reading raises.

    tables   patterns: row changes of other tables do not count
    """
    found = SeenRecords()
    with suppress(WireformatError):
        for batch in capture.all_records(COLUMNS, tables):
            for one in _seen(batch):
                _take(found.records, one)
    found.messages = capture.messages_read
    return found


def _take(records: list[SeenRecord], one: SeenRecord) -> None:
    """Adds a record, unless it adds nothing new. A whole transaction becomes a record without facts."""
    after_whole = bool(records) and records[-1].facts is None
    if one.facts is None:
        if not after_whole:
            records.append(one)
    elif one.facts.kind == "COMMIT" and (first := _begin(records)) is not None:
        del records[first:]
        _take(records, SeenRecord(None))
    elif not (after_whole and one.facts.kind == "MESSAGE") and one not in _repeatable_end(records):
        records.append(one)


def _begin(records: Sequence[SeenRecord]) -> int | None:
    """Returns the index of the BEGIN of the transaction that a COMMIT after these records would complete."""
    for index in range(len(records) - 1, -1, -1):
        facts = records[index].facts
        if facts is None:
            return None
        if facts.kind == "BEGIN":
            return index if facts.gid is None else None
        if facts.kind not in (*_REPEATABLE, "MESSAGE", "ORIGIN"):
            return None
    return None


def _repeatable_end(records: Sequence[SeenRecord]) -> Iterator[SeenRecord]:
    """Yields the last records, all of kinds in _REPEATABLE."""
    for one in reversed(records):
        if one.facts is None or one.facts.kind not in _REPEATABLE:
            return
        yield one


def _seen(batch: pa.RecordBatch) -> Iterator[SeenRecord]:
    """Yields the records of a batch, without some that add nothing new."""
    whole = row_only_transactions(batch).runs
    kinds = np.asarray(batch["kind"])
    repeats = np.zeros(len(kinds), np.bool_)
    repeats[1:] = np.isin(kinds[1:], _REPEATABLE) & (kinds[1:] == kinds[:-1])
    rows = np.flatnonzero(~repeats & (kinds != "HEARTBEAT"))
    row = 0
    for at in rows.tolist():
        if at < row:
            continue
        if at in whole:
            row = whole[at]
            yield SeenRecord(None)
        elif kinds[at] in _REPEATABLE:
            yield SeenRecord(RecordFacts(kinds[at]))
        else:
            cells = {column: batch[column][at].as_py() for column in COLUMNS}
            username = dict(cells["detail"] or ()).get("username")
            yield SeenRecord(record_facts(cells), username, cells["message"])


def records_before(chunks: Iterable[SeenRecords], format: str, options: ReadOptions) -> Iterator[RecordsBefore]:
    """Yields what each chunk of a stream must know, in order. Messages without names are counted through all chunks.

    format    name of the format
    options   whose strict, exclude_users and skip_empty_xacts are applied
    """
    order = Order(format)
    filter: TransactionFilter[int] = TransactionFilter(options.exclude_users, options.skip_empty_xacts)
    found: list[RecordsBefore] = []
    first = 0
    for number, chunk in enumerate(chunks):
        found.append(RecordsBefore(order.before_next, filter.before_next) if number else NOTHING_BEFORE)
        for one in chunk.records:
            message = one.message if isinstance(one.message, str) else first + one.message
            for kept in {*_take_record(order, filter, one._replace(message=message), number)} - {number}:
                found[kept] = found[kept]._replace(keeps_held=True)
        first += chunk.messages
    yield from found


def _take_record(order: Order, filter: TransactionFilter[int], one: SeenRecord, chunk: int) -> Iterator[int]:
    """Yields the chunks of the records that are kept, now that this one is known."""
    if one.facts is None:
        order.pass_transactions()
        filter.pass_transactions()
        return
    with suppress(OrderError, LimitExceeded):  # the chunk raises it
        order.take(one.facts, message=one.message, number=0, lsn=None)
    yield from filter.take(one.facts, one.username, chunk)
