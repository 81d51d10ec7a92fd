"""The items of a chunk of a stream: its control records, with its rows and plain transactions only counted."""

from __future__ import annotations

from ...stream.attempts import facts_of
from ...stream.chunk_plan import ChunkItem, CountedRows
from ...stream.controls import Control
from ...stream.positions import Position
from ...stream.transactions import WholeTransactions
from .batch import ControlRow, Rows, RowsBetween
from .facts import stretch_facts, whole_transactions
from .plain_transactions import is_plain


class ChunkItems:
    """Takes the rows of a chunk, in order.

    items   see wireformat.stream.chunk_plan. Plain transactions that follow each other are one item
    """

    def __init__(self) -> None:
        self.items: list[ChunkItem] = []

    def take(self, rows: Rows) -> None:
        """Takes the next rows."""
        for item in rows.items():
            if isinstance(item, RowsBetween):
                self._take_rows(CountedRows(item.count, item.lone))
            elif isinstance(item, ControlRow):
                self._take_control(item.control)
            else:
                self._take_whole(whole_transactions(rows, item, stretch_facts(rows, item, Position()).highest))

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
                self._take_whole(WholeTransactions(begin, 1, facts.commit_lsn, facts.csn))
                return
        self.items.append(control)

    def _take_whole(self, whole: WholeTransactions) -> None:
        last = self.items[-1] if self.items else None
        if isinstance(last, WholeTransactions):
            highest = Position(0, last.lsn, last.csn).advanced(whole.lsn, whole.csn)
            self.items[-1] = WholeTransactions(
                last.begin, last.transactions + whole.transactions, highest.lsn, highest.csn
            )
        else:
            self.items.append(whole)


def _may_begin(item: ChunkItem) -> bool:
    """Whether this cannot stand between BEGIN and COMMIT of a plain transaction."""
    if isinstance(item, CountedRows):
        return item.lone
    return not isinstance(item, Control) or item.kind != "ORIGIN"
