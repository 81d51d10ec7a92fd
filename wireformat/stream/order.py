"""The order of records in the streams of each family of formats: a table, and the check that follows it.

Sources: PostgreSQL manual, "Streaming of Large Transactions for Logical Decoding" and "Logical Replication Message
Flow"; the lines that PostgreSQL's and openGauss's plugins print; captures of openGauss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import LimitExceeded, OrderError
from ..events import ROW_CHANGES, RecordFacts, aborts_whole
from ..formats.registry import find_row
from ..formats.row import ORDERS
from ..limits import STREAMED_TRANSACTIONS
from .controls import may_be_same
from .records_before import OrderBefore, index_of_message

PARALLEL, SERIAL, TEXT, PGOUTPUT = ((family,) for family in ORDERS)
POSTGRESQL = (*TEXT, *PGOUTPUT)
ALL = ORDERS

START = "start"
BETWEEN = "between transactions"
BEGUN = "after BEGIN"
TRANSACTION = "in a transaction"
BLOCK_BEGUN = "after STREAM_START"
BLOCK = "in a block"
AREA = "in an area of the log"
STATES = (START, BETWEEN, BEGUN, TRANSACTION, BLOCK_BEGUN, BLOCK, AREA)

_ROWS = tuple(ROW_CHANGES)
_SERIAL_CHANGES = (*_ROWS, "TRUNCATE", "DDL")
_PGOUTPUT_CHANGES = (*_ROWS, "TRUNCATE", "MESSAGE", "RELATION", "TYPE")


class Step(NamedTuple):
    """A row of the table: records that are allowed in some states.

    families    the families of formats that the row applies to
    states      the states in which the records are allowed
    kinds       the kinds of the records
    next        the state after the record; None if it does not change
    needs       conditions of the record: keys of NEEDS
    """

    families: tuple[str, ...]
    states: tuple[str, ...]
    kinds: tuple[str, ...]
    next: str | None
    needs: tuple[str, ...] = ()


TABLE: tuple[Step, ...] = (
    Step(ALL, STATES, ("HEARTBEAT", "UNKNOWN", "CORRUPT"), None),
    Step(PARALLEL, (START, BETWEEN), ("BEGIN",), TRANSACTION),
    Step(PARALLEL, (TRANSACTION,), _ROWS, TRANSACTION),
    Step(PARALLEL, (TRANSACTION,), ("COMMIT",), BETWEEN, ("open",)),
    Step(SERIAL, (START, BETWEEN), ("BEGIN",), TRANSACTION),
    Step(SERIAL, (TRANSACTION,), _SERIAL_CHANGES, TRANSACTION),
    Step(SERIAL, (TRANSACTION,), ("COMMIT",), BETWEEN, ("open",)),
    Step(SERIAL, (START, AREA), (*_SERIAL_CHANGES, "COMMIT", "ABORT", "PREPARE"), AREA),
    Step(TEXT, (START, BETWEEN), ("BEGIN",), TRANSACTION),
    Step(TEXT, (START, BETWEEN), ("MESSAGE",), BETWEEN),
    Step(TEXT, (TRANSACTION,), (*_ROWS, "TRUNCATE", "MESSAGE"), TRANSACTION),
    Step(TEXT, (TRANSACTION,), ("COMMIT", "PREPARE"), BETWEEN, ("open",)),
    Step(TEXT, (START, BETWEEN), ("STREAM_START",), BLOCK),
    Step(TEXT, (BLOCK,), ("TRUNCATE", "MESSAGE"), BLOCK),
    Step(TEXT, (BLOCK,), ("STREAM_CHANGE",), BLOCK, ("open",)),
    Step(TEXT, (BLOCK,), ("STREAM_STOP",), BETWEEN, ("open",)),
    Step(TEXT, (START, BETWEEN), ("STREAM_ABORT",), BETWEEN),
    Step(PGOUTPUT, (START, BETWEEN), ("BEGIN",), BEGUN),
    Step(PGOUTPUT, (START, BETWEEN), ("MESSAGE",), BETWEEN, ("not transactional",)),
    Step(PGOUTPUT, (BEGUN,), ("ORIGIN",), TRANSACTION),
    Step(PGOUTPUT, (BEGUN, TRANSACTION), (*_PGOUTPUT_CHANGES, "DDL"), TRANSACTION),
    Step(PGOUTPUT, (BEGUN, TRANSACTION), ("COMMIT",), BETWEEN, ("open", "without gid")),
    Step(PGOUTPUT, (BEGUN, TRANSACTION), ("PREPARE",), BETWEEN, ("open", "with gid")),
    Step(PGOUTPUT, (START, BETWEEN), ("STREAM_START",), BLOCK_BEGUN, ("first segment",)),
    Step(PGOUTPUT, (BLOCK_BEGUN,), ("ORIGIN",), BLOCK),
    Step(PGOUTPUT, (BLOCK_BEGUN, BLOCK), _PGOUTPUT_CHANGES, BLOCK),
    Step(PGOUTPUT, (BLOCK_BEGUN, BLOCK), ("STREAM_STOP",), BETWEEN, ("open",)),
    Step(PGOUTPUT, (START, BETWEEN), ("STREAM_ABORT",), BETWEEN, ("subtransaction or streamed",)),
    Step(POSTGRESQL, (BETWEEN,), ("STREAM_COMMIT", "STREAM_PREPARE"), BETWEEN, ("streamed",)),
    Step(POSTGRESQL, (START, BETWEEN), ("PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED"), BETWEEN),
)
"""All other records are out of order. A stream begins in the state START: between transactions, or in an area."""


class Order:
    """Checks the order of the records of a stream, or of a part of it.

    before      the state before the first record, unless the stream begins there
    name        returns what names a message in errors
    open        the record that began the open transaction or block, and the index of its message, or what names it
    streamed    xid of each streamed transaction that has not ended, to the message in which it began
    """

    def __init__(
        self, format: str, before: OrderBefore | None = None, name: Callable[[int], str] = index_of_message
    ) -> None:
        self._format = format
        self._steps = _steps(format)
        self._state = START if before is None else before.state
        self._allowed = self._steps[self._state]
        self._name = name
        self.open: tuple[RecordFacts, int | str] | None = None if before is None else before.open
        self.streamed: dict[int | None, int | str] = {} if before is None else dict(before.streamed)

    @property
    def before_next(self) -> OrderBefore:
        """The state before the next record."""
        open = None if self.open is None else (self.open[0], self._named(self.open[1]))
        return OrderBefore(self._state, open, {xid: self._named(begun) for xid, begun in self.streamed.items()})

    def passes(self, kind: str) -> bool:
        """Whether a record of this kind is allowed and changes nothing, so that `take` need not be called."""
        step = self._allowed.get(kind)
        return (
            step is not None and step.next in (None, self._state) and not step.needs and kind not in _MAY_END_STREAMED
        )

    def pass_transactions(self) -> bool:
        """Passes row-only transactions: BEGIN, row changes and a COMMIT of the same transaction, without gid.

        Returns whether they are allowed here; if not, their first record is to be taken, which raises.
        """
        if self._state not in (START, BETWEEN):
            return False
        self._state, self._allowed = BETWEEN, self._steps[BETWEEN]
        return True

    def take(self, record: RecordFacts, *, message: int | str, number: int, lsn: int | None) -> None:
        """Takes the next record. At a record that is out of order it raises OrderError and keeps its state.

        message  its index, or what names it
        number   index of the record in its message
        """
        step = self._allowed.get(record.kind)
        if step is None:
            raise self._error(" or ".join(self._allowed), record, message, number, lsn)
        for need in step.needs:
            if not NEEDS[need].holds(self, record):
                raise self._error(f"{record.kind} {NEEDS[need].text}", record, message, number, lsn)
        if record.kind == "STREAM_START":
            self._stream(record.xid, message)
        elif record.xid is not None and _ends_streamed(record):  # without an xid it may belong to any of them
            self.streamed.pop(record.xid, None)
        if step.next is not None:
            if record.kind in ("BEGIN", "STREAM_START"):
                self.open = record, message
            elif step.next in (BETWEEN, AREA):
                self.open = None
            self._state, self._allowed = step.next, self._steps[step.next]

    def _stream(self, xid: int | None, message: int | str) -> None:
        if len(self.streamed) >= STREAMED_TRANSACTIONS and xid not in self.streamed:
            raise LimitExceeded(
                f"limits.STREAMED_TRANSACTIONS is {STREAMED_TRANSACTIONS}, {self._named(message)} begins one more"
            )
        self.streamed.setdefault(xid, message)

    def _named(self, message: int | str) -> str:
        return message if isinstance(message, str) else self._name(message)

    def _error(
        self, expected: str, record: RecordFacts, message: int | str, number: int, lsn: int | None
    ) -> OrderError:
        return OrderError(
            expected,
            str(record),
            format=self._format,
            message=message if isinstance(message, int) else None,
            record=number,
            record_lsn=lsn,
            state=self._state,
            open=None if self.open is None else f"{self.open[0]} since {self._named(self.open[1])}",
            streamed=tuple(f"xid {xid} since {self._named(begun)}" for xid, begun in self.streamed.items()),
        )


_MAY_END_STREAMED = ("STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE")


def _ends_streamed(record: RecordFacts) -> bool:
    """Whether the record ends a whole streamed transaction, not only a subtransaction."""
    return record.kind in _MAY_END_STREAMED and aborts_whole(record.xid, record.subxid)


def _steps(format: str) -> dict[str, dict[str, Step]]:
    """Returns the steps of a format, by state and kind."""
    family = find_row(format).order
    steps: dict[str, dict[str, Step]] = {state: {} for state in STATES}
    for step in TABLE:
        if family in step.families:
            for state in step.states:
                steps[state].update(dict.fromkeys(step.kinds, step))
    return steps


class Need(NamedTuple):
    """A condition of a record.

    text   follows the kind of the record, in errors and in the docs
    """

    text: str
    holds: Callable[[Order, RecordFacts], bool]


def _is_of_open(order: Order, record: RecordFacts) -> bool:
    if order.open is None:
        return False
    open, _ = order.open
    return may_be_same(open.xid, record.xid) and may_be_same(open.gid, record.gid)


def _is_streamed(order: Order, record: RecordFacts) -> bool:
    return bool(order.streamed) if record.xid is None else record.xid in order.streamed


NEEDS: Mapping[str, Need] = {
    "open": Need("with the xid and gid of the open transaction, if both records have them", _is_of_open),
    "without gid": Need(
        "after a BEGIN without gid", lambda order, record: order.open is None or order.open[0].gid is None
    ),
    "with gid": Need(
        "after a BEGIN with gid", lambda order, record: order.open is not None and order.open[0].gid is not None
    ),
    "streamed": Need(
        "of a streamed transaction that has not ended",
        _is_streamed,
    ),
    "subtransaction or streamed": Need(
        "of a subtransaction, or of a streamed transaction that has not ended",
        lambda order, record: not aborts_whole(record.xid, record.subxid) or _is_streamed(order, record),
    ),
    "first segment": Need(
        "with first_segment only for the first block of a transaction",
        lambda order, record: record.first_segment in (None, record.xid not in order.streamed),
    ),
    "not transactional": Need("that is not transactional", lambda order, record: not record.transactional),
}
