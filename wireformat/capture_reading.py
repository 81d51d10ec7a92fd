"""How the messages of a capture are read: once for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from .arrow.change_table import checked_schema
from .arrow.columns.rows_from_events import build
from .arrow.committed.assembler import Transactions
from .arrow.noted.changes import CommittedRows, take_rows
from .arrow.noted.rows import NotedRows, other_records_of
from .arrow.noted.tables import NotedTables
from .arrow.typed_tables.batch import TypedOptions
from .arrow.typed_tables.listed import check_listed, of_table, replica_identity, rows_of
from .arrow.typed_tables.rows import ChangeRows
from .arrow.typed_tables.table import TypedPart
from .arrow.typed_tables.tables import POSITION, TablesFound
from .arrow.unread import judged_rows
from .errors import OptionError, OrderError, add_hint
from .formats.base import Format
from .formats.pgoutput.relations import Relations
from .formats.registry import find_format, find_format_name, find_row
from .limits import OPEN_TRANSACTIONS_BYTES
from .options import ReadOptions
from .options.checks import flag, number, one_of, shown
from .options.keywords import checks_keywords
from .options.table_names import one_table, written
from .sources.decoding import SourceDecoder
from .sources.find import find_sources
from .sources.groups import Table, groups_of_tables
from .sources.handed_rows import HandedRows, grouped_rows, joined_parts, rows_of_loose_messages
from .sources.identities import Identities
from .sources.resumption import KnownRelations, Resumption
from .sources.source import SourceMessages
from .sources.source_order import SourceOrder
from .stream.capture_position import CapturePosition, SlotPosition
from .stream.judged import wrong_format
from .stream.reader import Located
from .stream.records_before import NOTHING_BEFORE
from .stream.transactions import TWO_PHASE

Rows = TypeVar("Rows", pa.RecordBatch, Any)

BEFORE_ALL = -1
"""The message of rows that were known before the first message."""


class CaptureReading:
    """The messages of a capture, with all that is known of them; each question reads them from the beginning.

    The options are those of `Capture`. A chunk of a capture replaces what is known before its first message, and what
    comes after its last one.
    """

    _is_whole: ClassVar[bool] = True
    """Whether these are all messages; only then it is judged whether any could be read."""

    _records_before = NOTHING_BEFORE
    """The records before the first message."""

    @checks_keywords
    def __init__(
        self,
        messages: Any,
        format: str,
        *,
        column: str | None = None,
        order_by: Sequence[str] | None = None,
        mode: str = "FAILFAST",
        encoding: str = "utf-8",
        encoding_errors: str = "strict",
        heartbeat_unit: str | None = None,
        known_tables: Iterable[str] | None = None,
        exclude_users: Iterable[str] | None = None,
        skip_empty_xacts: bool = False,
        strict: bool = False,
        dialect: str = "postgresql",
        two_phase: str = "commit",
        drop_resent: bool = True,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        after: CapturePosition | str | None = None,
        slot: SlotPosition | None = None,
        threads: int | None = None,
        engine: str = "scan",
        progress: Callable[[int], Any] | None = None,
    ) -> None:
        self._format: Format = find_format(format)
        self._name = find_format_name(format)
        self._schema = checked_schema(None, self._name)
        self._options = ReadOptions.check(
            mode=mode,
            encoding=encoding,
            encoding_errors=encoding_errors,
            heartbeat_unit=heartbeat_unit,
            known_tables=known_tables,
            exclude_users=exclude_users,
            skip_empty_xacts=skip_empty_xacts,
            strict=strict,
            dialect=dialect,
        )
        self._two_phase = one_of("two_phase", two_phase, TWO_PHASE)
        self._drop_resent = flag("drop_resent", drop_resent)
        self._memory_limit = number("memory_limit", memory_limit, 0)
        self._after = _checked_position(after, self._name)
        self._slot = _checked_slot(slot, self._after)
        self._make_decoder: Callable[[ReadOptions, ReadOptions | None], SourceDecoder] = lambda options, counted: (
            SourceDecoder(
                self._format, options, engine=engine, threads=threads, counted=counted, before=self._records_before
            )
        )
        self._make_decoder(self._options, None)  # raises what is wrong with threads and engine now
        self._sources = find_sources(messages, self._format, column, order_by)
        self._progress = progress
        self._threads = pa.cpu_count() if threads is None else threads
        self._was_read = False
        self._listed: pa.Table | None = None
        self._was_listed_early = False
        self._listed_alone: dict[tuple[str, str], pa.Table] = {}
        self._position: CapturePosition | None = self._after
        self._unknown_prepared: tuple[str, ...] | None = None
        self._dropped: int | None = None
        self._messages: int | None = None
        self._open_changes: dict[Table, int] = {}

    def _begin_reading(self) -> None:
        if self._was_read:
            self._check_repeatable("it has been read")
        self._was_read = True

    def _check_repeatable(self, reason: str) -> None:
        """Raises OptionError if the messages can be read only once."""
        for source in self._sources:
            if not source.is_repeatable:
                raise OptionError(
                    f"messages: {source.name} can be read only once; {reason}, or give a list, an Arrow table or files"
                )

    def _decoded(self, options: ReadOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of all sources, with the columns of the schema."""
        decoder = self._make_decoder(options, None)
        return self._read(decoder, lambda given: decoder.batches(given, schema))

    def _noted(self, decoder: SourceDecoder) -> Iterator[pa.RecordBatch | NotedRows]:
        """Yields the rows of all sources with all columns, as the scan noted them or as record batches."""
        return self._read(decoder, lambda given: decoder.rows(given, self._schema))

    def _read(self, decoder: SourceDecoder, rows_of: Callable[[SourceMessages], Iterator[Rows]]) -> Iterator[Rows]:
        """Yields the rows of the messages of all sources."""
        relations = self._relations()
        if relations is not None:
            decoder.set_relations(relations)
        order = SourceOrder(self._name)
        for source in self._sources:
            for given in source.read():
                for rows in rows_of(given):
                    order.take(other_records_of(rows), source.name)
                    yield rows
                if self._progress is not None:
                    self._progress(given.read_bytes)
        guess = decoder.other_format() if self._is_whole and self._options.mode == "FAILFAST" else None
        if guess is not None:
            raise wrong_format(self._name, "no record that could be read", guess)
        if decoder.messages < (self._messages or 0):
            raise OptionError(
                f"messages: expected as many as an earlier reading had, at least {self._messages}, got "
                f"{decoder.messages}; give a list, an Arrow table or files that stay as they are"
            )
        self._messages = decoder.messages
        self._dropped = decoder.dropped

    def _relations(self) -> Relations | None:
        """Returns the relations of pgoutput before the first message."""
        if self._after is None or not self._after.relations:
            return None
        return KnownRelations(self._after.relations).copy()

    def _known(self) -> KnownRelations:
        return KnownRelations(() if self._after is None else self._after.relations)

    def _transactions(self, steps_over: bool) -> Transactions:
        """Returns the transactions before the first message."""
        found = Transactions(
            two_phase=self._two_phase,
            drop_resent=self._drop_resent,
            memory_limit=self._memory_limit,
            steps_over=steps_over,
        )
        if self._after is not None:
            streamed = {one.xid for one in self._after.open if one.stage in ("block", "streamed")}
            found.continue_after(self._after.delivered, streamed)
        return found

    def _judged(self, rows: Iterator[Any]) -> AbstractContextManager[Iterator[Any]]:
        return judged_rows(rows) if self._is_whole else nullcontext(rows)

    def _later(self, transactions: Transactions) -> Iterator[pa.RecordBatch]:
        """Yields rows of transactions that are committed after the last message."""
        return iter(())

    def _known_relations(self) -> Iterator[pa.RecordBatch]:
        """Yields the relations of the position, as rows before the first message."""
        known = () if self._after is None else self._after.relations
        located = [Located(BEFORE_ALL, record, relation) for record, relation in enumerate(known)]
        return build(located, self._schema, 0) if located else iter(())

    def _committed(
        self,
        options: ReadOptions,
        *,
        loose_messages: bool = False,
        at_end: Callable[[Transactions], Any] | None = None,
        through: Callable[[Iterable[Any]], Iterator[Any]] | None = None,
    ) -> Iterator[HandedRows]:
        """Yields committed rows, with the position after them.

        options          of whose `tables` the rows are needed; there may be others
        loose_messages   also yields messages that belong to no transaction, as rows of the row-change table
        at_end           is called with the transactions when all rows have been taken
        through          takes all rows, and returns those to read
        """
        after = self._after or CapturePosition(self._name)
        resumption, relations = Resumption(self._after), self._known()
        decoder = self._make_decoder(self._options, None if options.tables is None else options)
        with (
            self._judged(self._noted(decoder) if through is None else through(self._noted(decoder))) as found,
            self._transactions(decoder.steps_over) as transactions,
        ):
            try:
                for item in found:
                    others = other_records_of(item)
                    resumption.take(others)
                    relations.take(others)
                    if loose_messages:
                        yield HandedRows(rows_of_loose_messages(others), None)
                    last: CommittedRows | None = None
                    for rows in take_rows(transactions, item):
                        if last is not None:
                            yield HandedRows(last, None)
                        last = rows
                    yield HandedRows(last, _position(transactions, resumption, relations, after))
            except OrderError as error:
                add_hint(error, resumption.hint())
                raise
            yield from (HandedRows(rows, None) for rows in self._later(transactions))
            reached = after._replace(slot=self._slot or after.slot)
            yield HandedRows(None, _position(transactions, resumption, relations, reached))
            self._unknown_prepared = transactions.unknown_prepared
            if at_end is not None:
                at_end(transactions)

    def _note_open(self, transactions: Transactions) -> None:
        self._open_changes = transactions.open_changes()

    def _handed_out(self, found: Iterator[HandedRows]) -> Iterator[CommittedRows]:
        """Yields the rows, each time after the position has been set to what is then handed out."""
        for rows, position in found:
            if position is not None:
                self._position = position
            if rows is not None:
                yield rows

    def _typed(self, table: tuple[str, str], part: TypedPart, keep: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for _, found in self._typed_groups(table, part, keep):
            yield found

    def _typed_groups(
        self,
        table: tuple[str, str],
        part: TypedPart,
        keep: Sequence[str],
        through: Callable[[Iterable[Any]], Iterator[Any]] | None = None,
    ) -> Iterator[tuple[ChangeRows, pa.RecordBatch]]:
        """Yields the changes of a table, and their typed rows, which may be fewer; see `_committed`."""
        all_dropped = 0
        of_table = replace(self._options, tables=(table,))
        for rows, position in grouped_rows(self._committed(of_table, through=through), table, keep):
            found, dropped = (None, 0) if rows is None else part.read(rows)
            if position is not None:
                self._position = position
            all_dropped += dropped
            if rows is not None and found is not None and len(found):
                yield rows, found
        self._dropped = (self._dropped or 0) + all_dropped

    def _typed_all(self, filtered: ReadOptions, options: TypedOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
        reached, all_dropped = self._position, 0
        parts: dict[Table, TypedPart] = {}

        def committed() -> Iterator[CommittedRows | None]:
            nonlocal reached
            for rows, position in self._committed(filtered, through=self._listing_of(filtered)):
                reached = position or reached
                yield rows

        groups = groups_of_tables(
            committed(),
            (),
            filtered.keeps_table,
            self._memory_limit,
            is_listed=lambda: self._listed is not None,
            make_list=self._all_tables,
        )
        for table, rows in groups:
            if table not in parts:
                parts[table] = self._typed_part(written(table), options)
            found, dropped = parts[table].read(joined_parts(rows, table, ()))
            all_dropped += dropped
            if len(found):
                yield written(table), found
        self._position = reached
        self._dropped = (self._dropped or 0) + all_dropped

    def _typed_part(self, table: str, options: TypedOptions, schema: Any = None) -> TypedPart:
        schema = self._listed_table(table) if schema is None else schema
        return TypedPart(table, schema=schema, options=options, evolution="union", kept=(), format=self._name)

    def _all_tables(self) -> pa.Table:
        """Returns the list of tables. It is kept."""
        if self._listed is None:
            self._listed = self._list(None)
        return self._listed

    def _list(self, counted: ReadOptions | None) -> pa.Table:
        """Reads the capture and returns the list of tables.

        counted   options of whose `tables` the list is needed; what it says of others may be incomplete
        """
        self._begin_reading()
        found = TablesFound()
        tables = NotedTables(found)
        noted = self._noted(self._make_decoder(self._options, counted))
        with judged_rows(chain(self._known_relations(), noted)) as all_rows:
            for rows in all_rows:
                tables.take(rows)
        tables.finish()
        return found.listed(self._name, POSITION)

    def _list_early(self) -> pa.Table:
        """Returns a list of tables that has their columns, before all changes were read.

        Where the stream describes its tables, only that is read again: the list counts no changes.
        """
        if self._listed is None and find_row(self._name).has_relation_ids:
            self._begin_reading()
            found = TablesFound()
            described = self._decoded(self._options.filtered(kinds=["RELATION"]), self._schema)
            for batch in chain(self._known_relations(), described):
                found.take_batch(batch)
            self._listed, self._was_listed_early = found.listed(self._name, POSITION), True
        return self._all_tables()

    def _listing_of(self, options: ReadOptions) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """Returns what makes the list of tables of all rows that pass, if they are those of all tables."""
        return self._listing if options.tables is None else iter

    def _listing(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields all rows of the capture; after the last one, the list of tables is there."""
        found = TablesFound()
        tables = NotedTables(found)
        for known in self._known_relations():
            tables.take(known)
        for item in rows:
            if self._listed is None:  # nor has another reading made it
                tables.take(item)
            yield item
        if self._listed is None:
            tables.finish()
            self._listed = found.listed(self._name, POSITION)

    def _list_alone(self, wanted: tuple[str, str]) -> pa.Table:
        """Returns the list of tables, or what it says of one table if the capture has that; see `_list`."""
        if self._listed is None and wanted not in self._listed_alone:
            listed = self._list(replace(self._options, tables=(wanted,)))
            self._listed_alone[wanted] = of_table(listed, wanted)
        alone = self._listed_alone.get(wanted)
        return alone if alone is not None and alone.num_rows and self._listed is None else self._all_tables()

    def _listed_table(self, table: str) -> pa.Table:
        """Returns the list of tables; raises BadRows if it does not have the table, or not the types of its columns."""
        listed = self._list_alone(one_table(table))
        check_listed(listed, table, self._name)
        return listed

    def _replica_identity(self, table: str) -> list[str]:
        """Returns the columns of the replica identity; [] if it is the whole row. Raises BadRows and OptionError."""
        return replica_identity(self._listed_table(table), table)

    def _states_identity(self, table: str) -> bool:
        """Whether the stream states the replica identity of a table. Raises BadRows if there is no such table."""
        return any(row["key_columns"] is not None for row in rows_of(self._listed_table(table), table))

    def _identities(self) -> Identities:
        """Returns the replica identities before the first message."""
        return Identities(() if self._after is None else self._after.relations)


def _checked_position(after: CapturePosition | str | None, format: str) -> CapturePosition | None:
    if isinstance(after, str):
        after = CapturePosition.from_json(after)
    if after is None:
        return None
    if not isinstance(after, CapturePosition):
        raise OptionError(f"option after: expected the position of a capture, or its JSON, got {shown(after)}")
    if after.format != format:
        raise OptionError(f"option after: expected a position of {format}, got one of {after.format}")
    return after


def _checked_slot(slot: SlotPosition | None, after: CapturePosition | None) -> SlotPosition | None:
    if slot is not None and not isinstance(slot, SlotPosition):
        raise OptionError(f"option slot: expected a SlotPosition, got {shown(slot)}")
    there = None if after is None else after.slot
    if slot is not None and there is not None and (slot.system, slot.slot) != (there.system, there.slot):
        raise OptionError(
            f"option after: expected a position of slot {slot.slot} of system {slot.system}, got one of slot "
            f"{there.slot} of system {there.system}"
        )
    return slot


def _position(
    transactions: Transactions, resumption: Resumption, relations: KnownRelations, stream: CapturePosition
) -> CapturePosition:
    """Returns the position that was reached. `stream` is one of the same stream, with its format and slot."""
    described = transactions.describe_open()
    messages = [message for _, message in described if message is not None]
    open = (*(one for one, _ in described), *resumption.unseen)
    known = relations.before(min(messages) if messages else None)
    return CapturePosition(stream.format, transactions.position, open, known, stream.slot)
