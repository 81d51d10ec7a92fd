"""wal_transactions: the Arrow table function; one task per stream, which writes large open transactions to files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.errors import add_hint
from wireformat.options.table import nearest

from ..logs import log_unknown_prepared
from ..position_errors import check_positions, out_of_order
from ..schemas import change_names, committed_table

if TYPE_CHECKING:
    from wireformat.arrow.unread import ReadSummary

NAME = "wal_transactions"
STREAM = "stream"
ORDER = ("seq", "record")


class WalTransactions:
    """Returns the rows of committed transactions, from a table with the columns of `wal_changes` in stream order.

    Spark creates one instance per value of PARTITION BY. `SELECT * FROM wal_transactions(TABLE(...) PARTITION BY stream
    ORDER BY (seq, record), two_phase => 'prepare', drop_resent => false)`. Raises OrderError, also if the rows are not
    sorted.
    """

    def __init__(self) -> None:
        self._transactions: wf.arrow.Transactions | None = None
        self._last: tuple[Any, ...] | None = None
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

        if not changes.num_rows:
            return
        if self._transactions is None:
            options = {"two_phase": two_phase, "drop_resent": drop_resent}
            for name, column in named.items():
                if name.lower() not in options:
                    raise wf.OptionError(f"{NAME}: unknown option {name!r}{nearest(name.lower(), [*options])}")
                options[name.lower()] = column
            given = {name: value[0].as_py() for name, value in options.items() if value is not None}
            self._transactions = wf.arrow.Transactions(
                **{name: value for name, value in given.items() if value is not None}
            )
        rows = self._in_order(_rows(changes))
        self._seen = (self._seen or ReadSummary()).and_of(rows)
        try:
            for committed in self._transactions.take(rows):
                wanted = committed_table()
                yield pa.RecordBatch.from_arrays([committed[name] for name in wanted.names], schema=wanted)
        except wf.OrderError as error:
            add_hint(error, "without PARTITION BY and ORDER BY (seq, record), a task gets any rows of a stream")
            raise

    def terminate(self) -> None:
        """Called after the last row of a stream. Open transactions are not delivered. Raises BadRows if no row could be
        read."""
        if self._transactions is not None:
            log_unknown_prepared(self._transactions.unknown_prepared, NAME)
            self._transactions.close()
        if self._seen is not None:
            self._seen.check(None)

    def _in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Raises OrderError unless rows are sorted by seq and record, and BadRows if one of these is null."""
        seq, record = (rows[name] for name in ORDER)
        check_positions([seq, record], ORDER)
        first, last = ((seq[index].as_py(), record[index].as_py()) for index in (0, -1))
        ascends, stays = (compare(seq[1:], seq[:-1]) for compare in (pc.greater, pc.equal))
        follows = pc.or_(ascends, pc.and_(stays, pc.greater_equal(record[1:], record[:-1])))
        if (self._last is not None and first < self._last) or not pc.all(follows, min_count=0).as_py():
            write = "write TABLE(...) PARTITION BY ... ORDER BY (seq, record)"
            raise out_of_order(f"{NAME}: rows sorted by seq and record", f"rows in another order; {write}")
        self._last = last
        return rows


def _rows(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the columns by name; as in SQL, the case does not matter. `stream` is null if there is none."""
    indices = {name.lower(): index for index, name in enumerate(changes.schema.names)}
    wanted = ["seq", *change_names()]
    missing = [name for name in wanted if name not in indices]
    if missing:
        raise wf.OptionError(f"{NAME}: the table must have the columns of wal_changes, it has no {', '.join(missing)}")
    columns = [changes.column(indices[name]) for name in wanted]
    if not pa.types.is_integer(columns[0].type):
        raise wf.OptionError(f"{NAME}: seq must be an integer, it is {columns[0].type}")
    columns[0] = columns[0].cast(pa.int64())
    stream = changes.column(indices[STREAM]) if STREAM in indices else pa.nulls(len(changes))
    return pa.RecordBatch.from_arrays([*columns, stream.cast(pa.string())], names=[*wanted, STREAM])
