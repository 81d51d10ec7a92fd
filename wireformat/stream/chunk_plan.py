"""Plans of the chunks of a stream: what each chunk needs of the others to find its own committed rows.

A stream is cut into chunks, each of which is read without the others. A light reading makes a list of items of each
chunk; `plan_chunks` reads the lists in order. The plan of a chunk says what was open at its start, and how the
transactions end that are open at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import OrderError
from .attempts import Attempt, AttemptKey, ChunkStart, Fate, TransactionFacts
from .controls import Control
from .transactions import CountedTransactions, TransactionMachine


class CountedRows(NamedTuple):
    """Rows between two control records.

    rows    how many of them are delivered if their transaction is
    lone    whether this is one transactional message, which may be sent without BEGIN and COMMIT
    """

    rows: int
    lone: bool = False


ChunkItem = CountedTransactions | Control | CountedRows | OrderError
"""An OrderError is the last item: a record that could not be read, with its place."""


class LaterFate(NamedTuple):
    """How a transaction ended, or did not, after a chunk at whose end it was open.

    is_open   it has not ended
    facts     of a delivered transaction; None: its rows are dropped, unless it is open
    undone    xids of its subtransactions that were rolled back
    """

    is_open: bool
    facts: TransactionFacts | None = None
    undone: frozenset[int] = frozenset()


_OPEN = LaterFate(True)


class ChunkPlan(NamedTuple):
    """What a chunk needs of the others.

    start     of the transactions; None if the order of the stream breaks in an earlier chunk: nothing is delivered
    fates     of the transactions with rows in this chunk that are open at its end
    messages  the number of messages of the chunk, if it is known
    resumption   see wireformat.sources.resumption; None if nothing is awaited that was open at a position
    """

    start: ChunkStart | None = ChunkStart()
    fates: dict[AttemptKey, LaterFate] = {}  # noqa: RUF012 - never changed
    messages: int | None = None
    resumption: Any = None


class PlannedStream(NamedTuple):
    """The plans of all chunks, and the stream at its end.

    machine   each of its open attempts has one handle, the index of its first chunk, with the rows of all its chunks
    error     an OrderError in a chunk, which the chunk raises too, with the place
    """

    plans: list[ChunkPlan]
    machine: TransactionMachine[int]
    error: OrderError | None


def plan_chunks(chunks: Iterable[Sequence[ChunkItem]], machine: TransactionMachine[int]) -> PlannedStream:
    """Returns the plans of the chunks of a stream.

    chunks    the items of each chunk, in order
    machine   of the beginning of the stream
    """
    plans: list[ChunkPlan] = []
    waiting: dict[Attempt[int], list[tuple[dict[AttemptKey, LaterFate], AttemptKey]]] = {}

    def settle(fates: Iterable[Fate[int]]) -> None:
        for attempt, facts in fates:
            later = LaterFate(False, facts, frozenset(attempt.undone))
            for found, key in waiting.pop(attempt, ()):
                found[key] = later

    error: OrderError | None = None
    for number, items in enumerate(chunks):
        if error is not None:
            plans.append(ChunkPlan(None))
            continue
        xids, gids = _named(items)
        plan = ChunkPlan(machine.begin_of_chunk(xids, gids), {})
        plans.append(plan)
        try:
            for fates in _taken(machine, number, items):
                settle(fates)
        except OrderError as raised:
            error = raised
            continue
        touched = machine.take_touched()
        for attempt, key in zip(touched, machine.keys_of(touched, gids), strict=True):
            attempt.handles[:] = [(attempt.handles[0][0], sum(rows for _, rows in attempt.handles))]
            waiting.setdefault(attempt, []).append((plan.fates, key))
    for attempt, chunks_of in waiting.items():
        later = LaterFate(True, None, frozenset(attempt.undone)) if attempt.undone else _OPEN
        for found, key in chunks_of:
            found[key] = later
    return PlannedStream(plans, machine, error)


def _taken(machine: TransactionMachine[int], number: int, items: Sequence[ChunkItem]) -> Iterator[list[Fate[int]]]:
    for item in items:
        if isinstance(item, OrderError):
            raise item
        if isinstance(item, CountedRows):
            yield machine.take_rows(number, item.rows, item.lone)
        elif isinstance(item, Control):
            yield machine.take_control(item, number)
        else:
            yield machine.take_transactions(item)


def controls_of(items: Iterable[ChunkItem]) -> Iterator[Control]:
    """Yields the control records, of plain transactions that follow each other the first BEGIN."""
    for item in items:
        if isinstance(item, Control):
            yield item
        elif isinstance(item, CountedTransactions):
            yield item.begin


def _named(items: Sequence[ChunkItem]) -> tuple[set[int], set[str]]:
    """Returns the xids and the gids that the control records name."""
    controls = [*controls_of(items)]
    xids = {control.xid for control in controls if control.xid is not None}
    return xids, {control.gid for control in controls if control.gid is not None}
