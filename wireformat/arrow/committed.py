"""Row changes to those of committed transactions, in the order of their commits."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import OrderError
from ..limits import OPEN_TRANSACTIONS_BYTES
from ..stream.transactions import Attempt, Facts, Machine, Position
from .compiled import Array
from .held_rows import HeldRows, Store
from .schemas import CHANGES, committed_schema
from .transaction_facts import committed, facts_batch, stretch_facts, whole
from .transaction_rows import At, Rows, Run, Stretch, check_columns

POSITION = b"wireformat.position"
"""Key of the metadata of open rows that says how far the stream was delivered; who goes on with them goes on there."""

_ROW = pa.field("_row", pa.int64())
"""In held rows, the place of each in the input."""


class Here(NamedTuple):
    """Rows of the batch that is being read, from start to stop."""

    start: int
    stop: int


class Held(NamedTuple):
    """Rows in the store."""

    handle: Any


Handle = Here | Held


class Transactions:
    """Takes the row changes of one stream, batch by batch, and gives back those of committed transactions.

    two_phase       "commit": a prepared transaction is delivered when it is committed; "prepare": when it is prepared
    drop_resent     leave out what was delivered before and came again after a restart
    memory_limit    bytes of rows of open transactions held in memory; more go to files in a temporary folder
    store           where to hold them instead; see `Store`
    state           of another one, whose stream this goes on with; its rows must be in the store
    after           how far the stream was delivered before, if there is no state

    Raises OrderError at a row that cannot be there, OptionError; it is not to be used after that.
    """

    def __init__(
        self,
        *,
        two_phase: str = "commit",
        drop_resent: bool = True,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        store: Store | None = None,
        state: bytes | None = None,
        after: Position | None = None,
    ) -> None:
        self._machine: Machine[Handle] = Machine(two_phase=two_phase, drop_resent=drop_resent, after=after)
        self._seen = 0
        self._fresh = state is None and after is None
        if state is not None:
            self._machine, self._seen = pickle.loads(state)
        self._own = HeldRows(memory_limit) if store is None else None
        self._store: Store = self._own or store
        self._schema: pa.Schema | None = None

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The committed rows that a batch settles, in the order of the commits; to be read to its end."""
        schema = self._check(batch.schema)
        rows = Rows.of(batch)
        output = Output(rows, schema)
        for item in rows.items():
            try:
                yield from self._item(item, rows, output)
            except OrderError as error:
                raise error.add(**rows.place(rows.row_of(item))) from None
        yield from output.flush()
        self._hold(rows)
        self._seen += len(batch)

    @property
    def open(self) -> pa.Table:
        """The rows of the input that belong to transactions that have not ended, control records too, in input order.

        Followed by the rest of the stream they give what the stream in one piece gives.
        """
        found = [self._store.get(handle.handle) for handle in _held(self._machine.open)]
        if self._schema is None and found:  # with a state, no batch was seen here yet
            self._schema = found[0].schema.remove(len(found[0].schema) - 1)
        schema = self.schema
        held = pa.Table.from_batches(found, schema=schema.remove_metadata().append(_ROW))
        places = held.column(len(schema))  # by place: a kept column may have its name
        table = held.select(range(len(schema))).take(pc.sort_indices(places))
        return table.replace_schema_metadata({**(schema.metadata or {}), POSITION: json.dumps(self.position).encode()})

    @property
    def schema(self) -> pa.Schema:
        """Of the input: that of the first batch; of the row-change table as long as there was none."""
        return CHANGES if self._schema is None else self._schema

    @property
    def position(self) -> Position:
        """How far the stream was delivered."""
        return self._machine.position

    @property
    def state(self) -> bytes:
        """Everything but the rows: who is open, with handles to the rows in the store."""
        return pickle.dumps((self._machine, self._seen))

    def close(self) -> None:
        """Forget what is open, and remove the files; a store that was given keeps its rows."""
        self._machine.forget()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Transactions:
        """Closes at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _check(self, schema: pa.Schema) -> pa.Schema:
        is_first = self._schema is None
        self._schema = check_columns(schema, self._schema)
        position = (schema.metadata or {}).get(POSITION)
        if is_first and self._fresh and position is not None:
            self._machine.go_on(_position(position))
        return committed_schema(self._schema)

    def _item(self, item: At | Run | Stretch, rows: Rows, output: Output) -> Iterator[pa.RecordBatch]:
        machine = self._machine
        if isinstance(item, Stretch):
            found = stretch_facts(rows, item, machine.position)
            for fate in machine.whole(whole(rows, item, found.highest)):
                self._drop(fate.attempt)
            resent = found.resent if machine.drop_resent else np.zeros(len(found.resent), bool)
            output.add_stretch(item, found.facts, resent)
            return
        if isinstance(item, Run):
            fates = machine.run(Here(item.start, item.stop), item.count, item.lone)
        else:
            fates = machine.control(item.control, Here(item.row, item.row + 1))
        for fate in fates:
            if fate.facts is not None:
                yield from self._deliver(fate.attempt, fate.facts, rows, output)
            self._drop(fate.attempt)

    def _deliver(self, attempt: Attempt[Handle], facts: Facts, rows: Rows, output: Output) -> Iterator[pa.RecordBatch]:
        here = []
        for handle, first in attempt.firsts():
            if isinstance(handle, Here):
                here.append((handle, first))
                continue
            yield from output.flush()
            batch = self._store.get(handle.handle)
            held = Rows.of(batch.select(range(len(batch.schema) - 1)))
            stored = Output(held, output.schema)
            stored.add([(Here(0, len(batch)), first)], attempt.undone, facts)
            yield from stored.flush()
        output.add(here, attempt.undone, facts)

    def _drop(self, attempt: Attempt[Handle]) -> None:
        for held in _held([attempt]):
            self._store.drop(held.handle)

    def _hold(self, rows: Rows) -> None:
        """What is open moves out of the batch into the store."""
        for attempt in self._machine.open:
            pieces = attempt.pieces
            start = len(pieces)
            while start and isinstance(pieces[start - 1][0], Here):
                start -= 1
            if start < len(pieces):
                ranges = [handle for handle, _ in pieces[start:]]
                places = np.concatenate([np.arange(*found) for found in ranges])
                places = places[rows.kept[places]]
                batch = rows.batch.take(pa.array(places))
                columns = [*batch.columns, pa.array(places + self._seen)]
                held = pa.RecordBatch.from_arrays(columns, schema=self.schema.remove_metadata().append(_ROW))
                count = sum(count for _, count in pieces[start:])
                pieces[start:] = [(Held(self._store.put(held)), count)]


class Output:
    """Committed rows of one batch that wait to be built together.

    schema    that of what is built; with `_segment`, transactions say theirs
    """

    def __init__(self, rows: Rows, schema: pa.Schema) -> None:
        self._rows = rows
        self.schema = schema
        self._places: list[Array] = []
        self._ordinals: list[Array] = []
        self._counts: list[Array] = []
        self._facts: list[pa.RecordBatch] = []
        self._said: list[Facts] = []
        self._segments: list[Array] = []

    def add(self, ranges: list[tuple[Here, int]], undone: set[int], facts: Facts, segment: int = 0) -> None:
        """The rows of one transaction in these ranges, each with the ordinal of its first row."""
        if not ranges:
            return
        rows = self._rows
        places = np.concatenate([np.arange(start, stop) for (start, stop), _ in ranges])
        offsets = np.concatenate([np.full(stop - start, first - rows.before[start]) for (start, stop), first in ranges])
        wanted = rows.delivered[places]
        if undone:
            own = rows.xids
            wanted &= ~(own.valid[places] & np.isin(own.values[places].view(np.uint64), np.array([*undone], np.uint64)))
        places, offsets = places[wanted], offsets[wanted]
        self._places.append(places)
        self._ordinals.append(rows.before[places] + offsets)
        self._counts.append(np.array([len(places)]))
        self._said.append(facts)
        self._segments.append(np.array([segment]))

    def add_stretch(self, stretch: Stretch, facts: pa.RecordBatch, resent: Array, segment: int = 0) -> None:
        """The rows of whole transactions, but for those that were sent before."""
        self._say()
        rows = self._rows
        first, last = int(stretch.begins[0]), int(stretch.commits[-1])
        before = rows.before[stretch.begins]
        counts = rows.before[stretch.commits] - before
        places = first + np.flatnonzero(rows.delivered[first:last])
        ordinals = rows.before[places] - np.repeat(before, counts)
        if resent.any():
            kept = np.repeat(~resent, counts)
            places, ordinals, counts = places[kept], ordinals[kept], np.where(resent, 0, counts)
        self._places.append(places)
        self._ordinals.append(ordinals)
        self._counts.append(counts)
        self._facts.append(facts)
        self._segments.append(np.full(len(counts), segment))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows that wait, as a batch, if there are any."""
        self._say()
        if not self._places:
            return
        places, ordinals, counts = (np.concatenate(found) for found in (self._places, self._ordinals, self._counts))
        facts = pa.Table.from_batches(self._facts).combine_chunks().to_batches()[0]
        segments = np.concatenate(self._segments)
        self._places, self._ordinals, self._counts, self._facts, self._segments = [], [], [], [], []
        if len(places):
            of = np.repeat(np.arange(len(counts)), counts)
            yield committed(taken(self._rows.batch, places), facts, of, ordinals, self.schema, segments[of])

    def _say(self) -> None:
        if self._said:
            self._facts.append(facts_batch(self._said))
            self._said = []


def taken(batch: pa.RecordBatch, places: Array) -> pa.RecordBatch:
    """The rows at these places; a filter is quicker, where it does."""
    if (np.diff(places) > 0).all():
        wanted = np.zeros(len(batch), bool)
        wanted[places] = True
        return batch.filter(pa.array(wanted))
    return batch.take(pa.array(places))


def transactions(
    changes: Any,
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> pa.Table:
    """The row changes of committed transactions, in the order of the commits, with the facts of their transactions.

    changes     the row-change table of one stream, in its order: a table, a record batch, or an iterable of them;
                further columns pass through
    The options are those of `Transactions`. docs/transactions.md says what is delivered, and when.
    Raises OrderError, OptionError.
    """
    source = batches_of(changes)
    with Transactions(two_phase=two_phase, drop_resent=drop_resent, memory_limit=memory_limit, after=after) as found:
        committed = list(chain.from_iterable(map(found.take, source)))
        return pa.Table.from_batches(committed, schema=committed_schema(found.schema))


def open_transactions(
    changes: Any,
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> pa.Table:
    """The rows that `transactions` does not deliver since their transactions have not ended, as they came.

    Put before the rows that follow they lose nothing; the metadata of the table says how far the stream was delivered,
    so that what is sent again is recognised there too.
    """
    with Transactions(two_phase=two_phase, drop_resent=drop_resent, memory_limit=memory_limit, after=after) as found:
        for batch in batches_of(changes):
            for _ in found.take(batch):
                pass
        return found.open


def batches_of(changes: Any) -> Iterator[pa.RecordBatch]:
    """Record batches of row changes; an empty one where a table has no rows, for its schema."""
    if isinstance(changes, pa.RecordBatch):
        yield changes
    elif isinstance(changes, pa.Table):
        yield from changes.to_batches() or [pa.RecordBatch.from_pylist([], changes.schema)]
    elif isinstance(changes, Iterable) and not isinstance(changes, (str, bytes, dict)):
        for part in changes:
            yield from batches_of(part)
    else:
        raise TypeError(f"row changes: expected a pyarrow table or record batch, or some, got {type(changes).__name__}")


def _held(attempts: Iterable[Attempt[Handle]]) -> Iterator[Held]:
    for attempt in attempts:
        for handle, _ in attempt.pieces:
            if isinstance(handle, Held):
                yield handle


def _position(text: bytes) -> Position:
    transactions, lsn, csn, prepared = json.loads(text)
    return Position(transactions, lsn, csn, tuple((gid, lsn) for gid, lsn in prepared))


__all__ = ["Transactions", "open_transactions", "transactions"]
