"""`Transactions`: takes row changes, and returns those of committed transactions in commit order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionError, OrderError, StateError
from ...limits import OPEN_TRANSACTIONS_BYTES
from ...options.keywords import checks_keywords
from ...stream.attempts import Attempt, AttemptKey, ChunkStart, Fate, key_of
from ...stream.capture_position import OpenTransaction, open_transaction
from ...stream.chunk_plan import LaterFate
from ...stream.controls import DELIVERED_KINDS
from ...stream.positions import Position, read_position, write_position
from ...stream.transactions import TransactionMachine
from ..arrays import Array
from ..row_changes import RowSource, record_batches
from ..schemas import CHANGES, POSITION, check_columns, committed_schema
from ..unread import judged_rows
from .batch import ControlRow, InputRows, Item, OutsideMessage, RowsBetween
from .cells import NumberColumn
from .chunk_items import ChunkEnd, end_of_chunk
from .facts import SettledRows, counted_transactions, plain_transactions_facts
from .open_rows import ORDINAL, ROW, OpenRows
from .output import OUTPUT_BYTES, CommittedOutput
from .row_ranges import CURRENT_BATCH, RowRange, gathered, row_indices
from .spill import RowSpill, RowStore
from .state import read_state, write_state


class Transactions:
    """Takes the row changes of one stream batch by batch, and returns those of committed transactions.

    two_phase       "commit" delivers a prepared transaction when it is committed, "prepare" when it is prepared
    drop_resent     drop transactions that have been delivered before and are sent again after a restart
    memory_limit    how many bytes of rows of open transactions stay in memory; the rest go to temporary files
    store           holds the rows of open transactions instead of memory and temporary files; see `RowStore`
    state           the state of another object with the same options, to continue its stream; the store must have its
                    rows
    after           how far the stream has been delivered before, if there is no state
    steps_over      whether sources may have stepped over row changes. Held rows then have their ordinals, which `state`
                    does not know
    has_outside     whether messages that belong to no transaction are delivered where they are, without facts

    Raises OptionError, StateError and TypeError; `take` also raises OrderError at a row that is out of order, and
    BadRows at a row of an unknown kind. Do not use the object after an error.
    """

    def __init__(
        self,
        *,
        two_phase: str = "commit",
        drop_resent: bool = True,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        store: RowStore | None = None,
        state: bytes | None = None,
        after: Position | None = None,
        steps_over: bool = False,
        has_outside: bool = False,
    ) -> None:
        self._machine: TransactionMachine[RowRange] = TransactionMachine(
            two_phase=two_phase, drop_resent=drop_resent, after=after
        )
        self._rows_taken = 0
        self._held_fields = [ORDINAL, ROW] if steps_over else [ROW]
        self._has_outside = has_outside
        self._is_taking = self._is_closed = False
        self._columns: list[str] = []
        self._is_new = state is None and after is None
        self._own_store = RowSpill(memory_limit) if store is None else None
        self._open_rows = OpenRows(self._own_store or store)
        if state is not None:
            if not isinstance(state, (bytes, bytearray, memoryview, pa.Buffer)):
                raise TypeError(f"state: expected the bytes of an earlier `state`, got {type(state).__name__}")
            self._rows_taken, self._columns = read_state(state, self._machine, self._open_rows)
        self._schema: pa.Schema | None = None
        self._firsts: dict[Attempt[RowRange], int | None] = {}
        self._start = ChunkStart()
        self._open_at_start: dict[Attempt[RowRange], int] = {}
        self._ended: dict[int, LaterFate] = {}

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Returns the committed rows that a batch completes, in commit order. Read the iterator to its end."""
        if not isinstance(batch, pa.RecordBatch):
            raise TypeError(f"row changes: expected a pyarrow record batch, got {type(batch).__name__}")
        schema = self._check(batch.schema)
        found: Iterator[Any] = self._taken(lambda: InputRows.of(batch, has_outside=self._has_outside), schema)
        return found  # rows of a batch are copied

    def take_noted(self, source: RowSource, schema: pa.Schema) -> Iterator[pa.RecordBatch | SettledRows]:
        """Returns the committed rows that the rows of a source complete; those of the source itself are not copied.

        schema   of the rows with all columns
        """
        return self._taken(lambda: InputRows.of_source(source, has_outside=self._has_outside), self._check(schema))

    def _taken(self, read: Callable[[], InputRows], schema: pa.Schema) -> Iterator[pa.RecordBatch | SettledRows]:
        self._check_is_read("take")
        self._is_taking = True
        return self._committed(read(), schema)

    def _committed(self, rows: InputRows, schema: pa.Schema) -> Iterator[pa.RecordBatch | SettledRows]:
        output = CommittedOutput(rows, schema, self._rows_of_held, self._open_rows.row_bytes)
        ended: list[RowRange] = []
        for item in rows.items():
            try:
                fates = self._item(item, rows, output)
            except OrderError as error:
                raise error.add(**rows.position_of_item(item)) from None
            for attempt, facts in fates:
                if attempt in self._open_at_start:
                    fate = LaterFate(False, facts, frozenset(attempt.undone))
                    self._ended[self._open_at_start[attempt]] = fate
                if facts is not None:
                    output.add(attempt, facts)
                ended += [row_range for row_range, _ in attempt.handles if row_range[0] != CURRENT_BATCH]
        yield from output.settled()
        self._open_rows.release(ended)
        self._hold(rows)
        self._rows_taken += len(rows.kind_codes)
        self._is_taking = False

    @property
    def open(self) -> pa.Table:
        """The rows of transactions that have not ended, with their control records, in input order.

        Prepend them to the rest of the stream to get the same result as from the whole stream.
        """
        self._check_is_read("open")
        found = [*_in_order(self._open_rows.rows_of(self._machine.open))]
        if self._schema is None and found:  # restored from a state, and no batch has been taken yet
            self._schema = pa.schema([*found[0].schema][: -len(self._held_fields)])
        schema = self.schema
        table = pa.Table.from_batches([batch.select(range(len(schema))) for batch in found], schema.remove_metadata())
        return table.replace_schema_metadata({**(schema.metadata or {}), POSITION: write_position(self.position)})

    def open_changes(self) -> dict[tuple[str, str], int]:
        """Returns how many row changes of each table are in transactions that have not ended."""
        self._check_is_read("open")
        found: Counter[tuple[str, str]] = Counter()
        for batch in self._open_rows.rows_of(self._machine.open):
            kinds = pa.array(DELIVERED_KINDS)
            rows = batch.filter(pc.and_(pc.is_in(batch["kind"], kinds), batch["table_name"].is_valid()))
            names = pa.table({name: rows[name] for name in ("table_schema", "table_name")})
            counts = names.group_by(names.column_names).aggregate([([], "count_all")])
            for schema, table, count in zip(*(column.to_pylist() for column in counts.columns), strict=True):
                found[schema, table] += count
        return dict(found)

    def continue_after(self, after: Position, open_xids: Collection[int | None]) -> None:
        """Continues after a position at which these streamed transactions were open; see TransactionMachine."""
        self._is_new = False
        self._machine.continue_after(after, open_xids)

    def is_behind(self, position: Position) -> bool:
        """Whether all that was taken comes before this position; see TransactionMachine."""
        return self._machine.is_behind(position)

    def start_chunk(self, start: ChunkStart) -> None:
        """Begins with a chunk of the stream, before which `start` was left; call it before anything is taken."""
        self._is_new = False
        self._machine.start_chunk(start)
        self._start = start
        self._open_at_start = {attempt: index for index, (_, _, attempt) in enumerate(self._machine.staged())}

    def end_chunk(self) -> ChunkEnd:
        """Returns what a chunk leaves for the next one; call it at the end of the chunk, before `settle_later`."""
        self._check_is_read("the end of a chunk")
        return end_of_chunk(self._machine, self._start, self._open_at_start, self._ended)

    def settle_later(self, fates: Mapping[AttemptKey, LaterFate]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of open transactions that later chunks have committed; call it at the end of a chunk.

        fates   of the open transactions with rows in the chunk. Those that have not ended stay open
        """
        self._check_is_read("later fates")
        machine = self._machine
        rows = InputRows.of(pa.RecordBatch.from_pylist([], self.schema.remove_metadata()))
        output = CommittedOutput(rows, committed_schema(self.schema), self._rows_of_held, self._open_rows.row_bytes)
        open: list[tuple[str, str | None, Attempt[RowRange]]] = []
        for stage, gid, attempt in machine.staged():
            fate = fates.get(key_of(stage, gid, attempt))
            if fate is not None and fate.is_open:
                open.append((stage, gid, attempt))
            elif fate is not None and fate.facts is not None:
                attempt.undone |= fate.undone
                output.add(attempt, fate.facts)
        yield from output.batches()
        machine.forget()
        machine.restore(open, machine.unknown_prepared)

    def describe_open(self) -> list[tuple[OpenTransaction, int | None]]:
        """Returns the transactions that have not ended, each with the message of its first row, if rows name it.

        Call it between batches.
        """
        self._check_is_read("open")
        firsts, self._firsts = self._firsts, {}
        found = []
        for stage, gid, attempt in self._machine.staged():
            if attempt.begin.xid in self._machine.without_first_block:
                continue
            first = self._firsts[attempt] = firsts[attempt] if attempt in firsts else self._first_message(attempt)
            changes = sum(count for _, count in attempt.handles)
            found.append((open_transaction(stage, gid, attempt.begin, changes), first))
        return found

    def _first_message(self, attempt: Attempt[RowRange]) -> int | None:
        if not attempt.handles or "message" not in self.schema.names:
            return None
        ((number, start, _), _) = attempt.handles[0]  # they are in input order
        return int(self._open_rows.get(number)["message"][start].as_py())

    @property
    def schema(self) -> pa.Schema:
        """The schema of the first batch, or of the row-change table before the first batch."""
        return CHANGES if self._schema is None else self._schema

    @property
    def position(self) -> Position:
        """How far the stream has been delivered."""
        return self._machine.position

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions that ended without a known PREPARE; see docs/transactions.md.

        Complete when the whole stream has been taken. `state` includes them.
        """
        return self._machine.unknown_prepared

    @property
    def state(self) -> bytes:
        """The open transactions, the handles of their rows in the store, and how far the stream has been delivered.

        The state is plain data with a version, and later releases can read it; docs/transactions.md describes it. Read
        it between batches.
        """
        self._check_is_read("saved state")
        return write_state(self._machine, self._open_rows, self._rows_taken, self._columns)

    def _check_is_read(self, what: str) -> None:
        """Raises StateError while a batch is being read: row ranges then refer to the current batch. Or after close."""
        if self._is_closed:
            raise StateError(f"{what}: expected open transactions, but they were closed")
        if self._is_taking:
            raise StateError(f"{what}: the rows of the last batch were not read to their end; read them first")

    def close(self) -> None:
        """Drops the open transactions and deletes the files; a store that was passed keeps its rows."""
        self._is_closed = True
        self._machine.forget()
        if self._own_store is not None:
            self._own_store.close()

    def __enter__(self) -> Transactions:
        """Returns the object, which is closed at the end of the block."""
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the object."""
        self.close()

    def _check(self, schema: pa.Schema) -> pa.Schema:
        is_first = self._schema is None
        self._schema = check_columns(schema, self._schema)
        position = (schema.metadata or {}).get(POSITION)
        if is_first and self._is_new and position is not None:
            self._machine.continue_after(read_position(position))
        if is_first:
            self._check_open_rows()
        return committed_schema(self._schema)

    def _check_open_rows(self) -> None:
        """Raises OptionError if the open rows of the state have columns with other names."""
        names = self.schema.names
        if self._open_rows.saved and self._columns != names:
            raise OptionError(
                f"row changes: expected the columns of the open rows in the state, {', '.join(self._columns)}, "
                f"got {', '.join(names)}; change columns when no transaction is open, or start over without the state"
            )
        self._columns = names
        self._open_rows.schema = pa.schema([*self.schema, *self._held_fields])

    def _item(self, item: Item, rows: InputRows, output: CommittedOutput) -> list[Fate[RowRange]]:
        machine = self._machine
        if isinstance(item, OutsideMessage):
            output.add_outside(item.row)
            return []
        if isinstance(item, ControlRow):
            return machine.take_control(item.control, (CURRENT_BATCH, item.row, item.row + 1))
        if isinstance(item, RowsBetween):
            has_rows = rows.delivered[item.start : item.stop].any()  # otherwise all were stepped over
            return machine.take_rows(
                (CURRENT_BATCH, item.start, item.stop) if has_rows else None, item.count, item.lone
            )
        found = plain_transactions_facts(rows, item, machine.position)
        output.add_plain_transactions(item, found.facts, found.resent & machine.drop_resent)
        streamed = machine.streamed_xids
        sent_again = streamed & {*found.facts["xid"].view(pa.uint64()).to_pylist()} if streamed else ()
        return machine.take_transactions(counted_transactions(rows, item, found.highest), sent_again)

    def _rows_of_held(self, number: int) -> InputRows:
        """Returns a held batch without its last columns, since a kept column may have the same name."""
        batch = self._open_rows.get(number)
        own = batch.num_columns - len(self._held_fields)
        ordinals = NumberColumn.of(batch.column(own)).values if ORDINAL in self._held_fields else None
        return InputRows.of(batch.select(range(own)), ordinals)

    def _hold(self, rows: InputRows) -> None:
        """Moves the rows of open transactions from the batch into the store."""
        touched = self._machine.take_touched()
        ordinals = _ordinals(rows, touched) if touched and ORDINAL in self._held_fields else None

        def numbered(batch: pa.RecordBatch, chosen: Array) -> pa.RecordBatch:
            """Returns a batch of these rows as they are held: with their ordinals, if asked for, and their numbers."""
            columns = [*batch.columns, *([] if ordinals is None else [pa.array(ordinals[chosen])])]
            columns.append(pa.array(self._rows_taken + chosen))
            return pa.RecordBatch.from_arrays(columns, schema=self._open_rows.schema)

        if touched and rows.source is None:
            self._open_rows.hold(numbered(rows.batch, np.arange(len(rows.kind_codes))), rows.kept, touched)
        elif touched:
            self._open_rows.hold_taken(lambda chosen: numbered(rows.batch_of(chosen), chosen), rows.kept, touched)
        self._open_rows.compact(lambda: self._machine.open)


@checks_keywords
def transactions(
    changes: Any,
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> pa.Table:
    """Returns the row changes of committed transactions, in commit order, with the facts of their transactions.

    changes     the row-change table of one stream, in order: a table, a record batch, or an iterable of them; other
                columns are passed through

    The options are those of `Transactions`. docs/transactions.md explains what is delivered, and when. Raises
    OrderError, OptionError, TypeError, and BadRows at a row of an unknown kind, or if several messages were given and
    none could be read.
    """
    with (
        judged_rows(record_batches(changes)) as source,
        Transactions(two_phase=two_phase, drop_resent=drop_resent, memory_limit=memory_limit, after=after) as found,
    ):
        committed = list(chain.from_iterable(map(found.take, source)))
        return pa.Table.from_batches(committed, schema=committed_schema(found.schema))


@checks_keywords
def open_transactions(
    changes: Any,
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> pa.Table:
    """Returns the rows that `transactions` does not deliver because their transactions have not ended.

    If you put them before the rows that follow, no transaction is lost. The metadata of the table says how far the
    stream has been delivered, so that transactions that are sent again are recognised. The arguments and errors are
    those of `transactions`.
    """
    with (
        judged_rows(record_batches(changes)) as source,
        Transactions(two_phase=two_phase, drop_resent=drop_resent, memory_limit=memory_limit, after=after) as found,
    ):
        for batch in source:
            for _ in found.take(batch):
                pass
        return found.open


def _ordinals(rows: InputRows, attempts: Iterable[Attempt[RowRange]]) -> Array:
    """Returns int64[n]: the ordinals of the rows of these attempts that are delivered, and anything for other rows."""
    ordinals = np.zeros(len(rows.kind_codes), np.int64)
    ranges = []
    for attempt in attempts:
        first = attempt.before
        for (number, start, stop), count in attempt.handles:
            if number == CURRENT_BATCH:
                ranges.append((start, stop, first))
            first += count
    starts, stops, firsts = np.array(ranges, np.int64).reshape(-1, 3).T
    indices, range_of = row_indices(starts, stops)
    ordinals[indices] = (firsts - rows.counted_through[starts])[range_of] + rows.counted_before[indices]
    return ordinals


def _in_order(held: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields held rows in input order. Batches whose row numbers do not overlap stay separate."""
    overlapping: list[tuple[pa.RecordBatch, Array]] = []
    last = -1
    for batch, numbers in sorted(((batch, _row_numbers(batch)) for batch in held), key=lambda found: found[1].min()):
        if overlapping and numbers.min() > last:
            yield from _merged(overlapping)
            overlapping = []
        overlapping.append((batch, numbers))
        last = max(last, numbers.max())
    if overlapping:
        yield from _merged(overlapping)


def _merged(held: list[tuple[pa.RecordBatch, Array]]) -> Iterator[pa.RecordBatch]:
    """Yields the rows in the order of their numbers, a few megabytes at a time, since all may not fit in one batch."""
    batch_of = np.repeat(np.arange(len(held)), [len(numbers) for _, numbers in held])
    rows = np.concatenate([np.arange(len(numbers)) for _, numbers in held])
    order = np.argsort(np.concatenate([numbers for _, numbers in held]))
    size = sum(batch.nbytes for batch, _ in held)
    for chosen in np.array_split(order, min(len(order), 1 + size // OUTPUT_BYTES)):
        yield from gathered({number: batch for number, (batch, _) in enumerate(held)}, batch_of[chosen], rows[chosen])


def _row_numbers(held: pa.RecordBatch) -> Array:
    return NumberColumn.of(held.columns[-1]).values


__all__ = ["Transactions", "open_transactions", "transactions"]
