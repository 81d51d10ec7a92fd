"""The items of a chunk of a stream, whose rows and plain transactions are only counted; what it leaves for the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from ...errors import OrderError
from ...stream.attempts import Attempt, AttemptKey, ChunkStart, OpenAtStart, facts_of, key_of
from ...stream.chunk_plan import ChunkItem, CountedRows, LaterFate
from ...stream.controls import Control
from ...stream.positions import Position
from ...stream.transactions import CountedTransactions, TransactionMachine
from ..row_changes import RowSource
from .batch import ControlRow, InputRows, PlainTransactions, RowsBetween
from .cells import is_plain
from .facts import counted_transactions, plain_transactions_facts
from .row_ranges import RowRange


class ChunkItems:
    """Takes the rows of a chunk, in order.

    delivered   how far the stream was delivered before, if it goes on after a position
    items       see wireformat.stream.chunk_plan. Plain transactions that follow each other are one item, but where the
                first one begins that was not delivered before, another item begins. After an OrderError nothing more
                is taken
    """

    def __init__(self, delivered: Position | None = None) -> None:
        self.items: list[ChunkItem] = []
        self._delivered = delivered

    def take(self, rows: pa.RecordBatch | RowSource) -> None:
        """Takes the next rows."""
        if not (self.items and isinstance(self.items[-1], OrderError)):
            try:
                self._take(InputRows.of(rows) if isinstance(rows, pa.RecordBatch) else InputRows.of_source(rows))
            except OrderError as error:
                self.items.append(error)

    def _take(self, rows: InputRows) -> None:
        for item in rows.items(one_block=False):
            if isinstance(item, RowsBetween):
                self._take_rows(CountedRows(item.count, item.lone))
            elif isinstance(item, ControlRow):
                self._take_control(item.control)
            else:
                self._take_plain_transactions(rows, item)

    def _take_plain_transactions(self, rows: InputRows, plain: PlainTransactions) -> None:
        count = len(plain.begins)
        known = 0
        if self._delivered is not None:
            is_new = ~plain_transactions_facts(rows, plain, self._delivered).resent
            known = int(is_new.argmax()) if is_new.any() else count
        for part in (slice(0, known), slice(known, count)):
            own = PlainTransactions(plain.begins[part], plain.commits[part])
            if len(own.begins):
                self._take_transactions(
                    counted_transactions(rows, own, plain_transactions_facts(rows, own, Position()).highest)
                )

    def _take_rows(self, rows: CountedRows) -> None:
        last = self.items[-1] if self.items else None
        if isinstance(last, CountedRows) and not (last.lone or rows.lone):
            self.items[-1] = CountedRows(last.rows + rows.rows)
        else:
            self.items.append(rows)

    def _take_control(self, control: Control) -> None:
        if control.kind == "COMMIT":
            first = len(self.items) - 1
            while first > 0 and not _may_begin(self.items[first]):
                first -= 1
            begin = self.items[first] if first >= 0 else None
            if isinstance(begin, Control) and begin.kind == "BEGIN" and is_plain(begin, control):
                del self.items[first:]
                facts = facts_of(begin, control, 1)
                self._take_transactions(CountedTransactions(begin, 1, facts.commit_lsn, facts.csn))
                return
        self.items.append(control)

    def _take_transactions(self, counted: CountedTransactions) -> None:
        last = self.items[-1] if self.items else None
        is_new = self._delivered is None or not self._delivered.covers(counted.lsn, counted.csn)
        if isinstance(last, CountedTransactions) and not (is_new and self._delivered is not None):
            highest = Position(0, last.lsn, last.csn).advanced(counted.lsn, counted.csn)
            self.items[-1] = CountedTransactions(
                last.begin, last.transactions + counted.transactions, highest.lsn, highest.csn
            )
        else:
            self.items.append(counted)
        if is_new:
            self._delivered = None  # the others need not be told apart


def _may_begin(item: ChunkItem) -> bool:
    """Whether this cannot stand between BEGIN and COMMIT of a plain transaction."""
    if isinstance(item, CountedRows):
        return item.lone
    return not isinstance(item, Control) or item.kind != "ORIGIN"


class OpenAtEnd(NamedTuple):
    """A transaction that is open at the end of a chunk.

    was        its index in the `open` of the chunk's start; None if it began in the chunk
    key        what `Transactions.settle_later` knows it by
    has_rows   whether the chunk has rows of it that are delivered if the transaction is
    """

    was: int | None
    key: AttemptKey
    has_rows: bool


class ChunkEnd(NamedTuple):
    """What a chunk leaves for the next one.

    start   of the next chunk
    open    of each transaction in `start.open`, in their order
    ended   how transactions ended that were open at the start of the chunk, by their index there
    """

    start: ChunkStart
    open: tuple[OpenAtEnd, ...]
    ended: Mapping[int, LaterFate]


def end_of_chunk(
    machine: TransactionMachine[RowRange],
    start: ChunkStart,
    indices: Mapping[Attempt[RowRange], int],
    ended: Mapping[int, LaterFate],
) -> ChunkEnd:
    """Returns the end of a chunk that the machine has taken.

    start     of the chunk
    indices   of the attempts in `start.open`
    ended     see ChunkEnd
    """
    staged = [*machine.staged()]
    xids = {attempt.begin.xid for _, _, attempt in staged} | machine.without_first_block | (start.open_before or set())
    found = machine.begin_of_chunk(
        {xid for xid in xids if xid is not None}, {gid for gid, _ in machine.position.prepared}
    )
    open, open_at_end = [], []
    for stage, gid, attempt in staged:
        was = indices.get(attempt)
        before = 0 if was is None else start.open[was].before
        open.append(OpenAtStart(stage, gid, attempt.begin, attempt.delivered, frozenset(attempt.undone)))
        open_at_end.append(OpenAtEnd(was, key_of(stage, gid, attempt), attempt.delivered > before))
    return ChunkEnd(found._replace(open=tuple(open)), tuple(open_at_end), ended)
