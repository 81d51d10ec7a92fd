"""How the messages of a capture are read: once for each question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from .arrow.change_table import checked_schema
from .arrow.columns.known_layouts import KnownLayouts
from .arrow.columns.rows_from_events import build
from .arrow.committed.assembler import Transactions
from .arrow.noted.changes import CommittedRows, newly_committed
from .arrow.noted.rows import NotedRows, other_records_of
from .arrow.unread import judged_rows
from .errors import BadRows, DecodeError, OptionError, OrderError, add_hint
from .events import Relation
from .formats.pgoutput.relations import Relations, describing_events
from .formats.registry import find_format, find_format_name
from .limits import OPEN_TRANSACTIONS_BYTES
from .options import ReadOptions
from .options.checks import flag, number, one_of, shown
from .options.keywords import checks_keywords
from .options.table_names import TableName
from .sources.decoding import SourceDecoder
from .sources.find import SourceOrder, find_sources
from .sources.handed_rows import KEEP_MESSAGES, HandedRows, Reached
from .sources.known_relations import KnownRelations
from .sources.resumption import OpenBefore, Resumption, controls_in
from .sources.source import SourceMessages
from .sources.together import pieces
from .stream.capture_position import CapturePosition, SlotPosition
from .stream.controls import CONTROL_KINDS, Control
from .stream.judged import wrong_format
from .stream.reader import BEFORE_ALL, Located
from .stream.records_before import NOTHING_BEFORE
from .stream.transactions import TWO_PHASE

Rows = TypeVar("Rows", pa.RecordBatch, Any)


class CaptureReading:
    """The messages of a capture, with all that is known of them; each question reads them from the beginning.

    The options are those of `Capture`. A chunk of a capture replaces what is known before its first message, and what
    comes after its last one.
    """

    _is_whole: ClassVar[bool] = True
    """Whether these are all messages; only then it is judged whether any could be read."""

    _records_before = NOTHING_BEFORE
    """The records before the first message."""

    _layouts: KnownLayouts | None = None
    """The layouts that were read before, maybe by other captures."""

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
        self._layouts = self._layouts or KnownLayouts()
        self._engine = engine, threads
        self._make_decoder(self._options, None)  # raises what is wrong with threads and engine now
        self._sources = find_sources(messages, find_format(format), column, order_by)
        self._are_files = order_by is None and len(self._sources) > 1
        self._order = SourceOrder(self._name)
        self._firsts: list[int] = []
        if progress is not None and not callable(progress):
            raise OptionError(f"option progress: expected a function, got {shown(progress)}")
        self._progress = progress
        self._threads = pa.cpu_count() if threads is None else threads
        self._was_read = False
        self._position: CapturePosition | Reached | None = self._after
        self._unknown_prepared: tuple[str, ...] | None = None
        self._dropped: int | None = None
        self._messages: int | None = None
        self._open_changes: dict[TableName, int] = {}

    def _make_decoder(self, options: ReadOptions, needed: ReadOptions | None) -> SourceDecoder:
        engine, threads = self._engine
        return SourceDecoder(
            find_format(self._name),
            options,
            engine=engine,
            threads=threads,
            needed=needed,
            before=self._records_before,
            layouts=self._layouts,
        )

    def _begin_reading(self) -> None:
        if self._was_read:
            self._check_repeatable("were read before")
        self._was_read = True

    def _begin_handing_out(self) -> None:
        """Begins a reading whose rows the position covers."""
        self._begin_reading()
        self._forget_reading()

    def _forget_reading(self) -> None:
        """Forgets how far the last reading came: no rows have been handed out."""
        self._position = self._after
        self._unknown_prepared = self._dropped = None

    @contextmanager
    def _handing_out_all(self) -> Iterator[None]:
        """Forgets the reading at an error, for questions that hand out their rows only at the end."""
        try:
            yield
        except BaseException:
            self._forget_reading()
            raise

    def _check_repeatable(self, reason: str, remedy: str = "") -> None:
        """Raises OptionError if the messages can be read only once.

        reason   why they must be read more than once
        remedy   the options with which once is enough
        """
        advice = "give a list, an Arrow table or files"
        if remedy:
            advice = f"pass {remedy}, or {advice}"
        if not all(source.is_repeatable for source in self._sources):
            raise OptionError(f"messages can be read only once, and {reason}: {advice}")

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
        self._order = order = SourceOrder(self._name)
        known = 0
        for given, begins in pieces(self._sources, self._memory_limit):
            for index, before in begins:
                first = decoder.messages + before
                self._firsts += [first] * (index + 1 - len(self._firsts))
                if index >= known:
                    known = index + 1
                    order.add(first, self._sources[index].name)
            with self._naming_sources():
                for rows in rows_of(given):
                    order.take(other_records_of(rows))
                    yield rows
            if self._progress is not None:
                self._progress(given.read_bytes)
        guess = decoder.other_format() if self._is_whole and self._options.mode == "FAILFAST" else None
        if guess is not None:
            raise wrong_format(self._name, "no record that could be read", guess)
        earlier, self._messages = self._messages, max(decoder.messages, self._messages or 0)
        if decoder.messages < self._messages:
            raise BadRows(
                f"as many messages as an earlier reading had, at least {self._messages}",
                f"{decoder.messages}",
                hint=KEEP_MESSAGES,
            )
        if earlier is not None and earlier < self._messages:
            self._forget_lists()
        self._dropped = decoder.dropped

    def _forget_lists(self) -> None:
        """Forgets what was listed of fewer messages."""

    def _naming_open(self, rows: Iterable[Rows]) -> Iterator[Rows]:
        """Yields all rows. Adds to an error of damaged ones what was open at the position and has not come again."""
        open_before = OpenBefore(self._after)
        try:
            for item in rows:
                open_before.take(other_records_of(item))
                yield item
        except DecodeError as error:  # rows of a block look damaged without its beginning
            add_hint(error, open_before.hint())
            raise

    @contextmanager
    def _naming_sources(self) -> Iterator[None]:
        """Adds the file to errors, and the index of the message in it, if there are several files."""
        try:
            yield
        except (DecodeError, OrderError) as error:
            if self._are_files and error.message is not None and error.message >= 0:
                index = bisect_right(self._firsts, error.message) - 1
                name = self._sources[index].name
                while index and self._sources[index - 1].name == name:  # ranges of one file
                    index -= 1
                error.add(source=name, source_message=error.message - self._firsts[index])
            raise

    def _relations(self) -> Relations | None:
        """Returns the relations of pgoutput before the first message."""
        if self._after is None or not self._after.first_relations:
            return None
        return Relations.of_known(self._after.first_relations)

    def _known(self) -> KnownRelations:
        return KnownRelations(self._relations())

    def _resumption(self) -> Resumption:
        """Returns what looks for the transactions that were open at the position."""
        return Resumption(self._after)

    def _transactions(self, *, steps_over: bool, has_outside: bool) -> Transactions:
        """Returns the transactions before the first message; the options are those of `Transactions`."""
        found = Transactions(
            two_phase=self._two_phase,
            drop_resent=self._drop_resent,
            memory_limit=self._memory_limit,
            steps_over=steps_over,
            has_outside=has_outside,
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

    def _controls(self) -> Iterator[Control]:
        """Yields control records. Other records are not checked, and how far this reading comes does not matter."""
        options = replace(self._options.filtered(kinds=CONTROL_KINDS), mode="PERMISSIVE")
        decoder = self._make_decoder(options, None)
        for given, _ in pieces(self._sources, self._memory_limit):
            yield from controls_in(decoder.batches(given, self._schema))

    def _known_relations(self) -> Iterator[pa.RecordBatch]:
        """Yields the relations of the position, as rows before the first message."""
        known = () if self._after is None else self._after.first_relations
        located = [Located(BEFORE_ALL, record, event) for record, event in enumerate(describing_events(known))]
        return build(located, self._schema, 0) if located else iter(())

    def _committed(
        self,
        options: ReadOptions,
        *,
        has_outside: bool = False,
        at_end: Callable[[Transactions], Any] | None = None,
        through: Callable[[Iterable[Any]], Iterator[Any]] | None = None,
    ) -> Iterator[HandedRows]:
        """Yields committed rows, with the position after them.

        options       of whose `tables` the rows are needed; there may be others
        has_outside   whether messages that belong to no transaction are among the rows, where they were written
        at_end        is called with the transactions when all rows have been taken
        through       takes all rows, and returns those to read
        """
        after = self._after or CapturePosition(self._name)
        resumption, relations = self._resumption(), self._known()
        decoder = self._make_decoder(self._options, None if options.tables is None else options)
        with (
            self._judged(self._noted(decoder) if through is None else through(self._noted(decoder))) as found,
            self._transactions(steps_over=decoder.steps_over, has_outside=has_outside) as transactions,
            self._naming_sources(),
        ):
            try:
                for item in found:
                    others = other_records_of(item)
                    resumption.take(others)
                    relations.take(others)
                    last: CommittedRows | None = None
                    for rows in newly_committed(transactions, item):
                        if last is not None:
                            yield HandedRows(last, None)
                        last = rows
                    yield HandedRows(last, _position(transactions, resumption, relations, after))
                if self._is_whole:
                    resumption.finish()
            except (DecodeError, OrderError) as error:  # rows of a block look damaged without its beginning
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
) -> Reached:
    """Returns the position that was reached.

    stream   the position after which the input is read. It stays as it is while the input only repeats what comes
             before it: what was open and known there, in the middle, is not what is open and known at the position
    """
    if transactions.is_behind(stream.delivered):
        return partial(stream._replace, relations_of_input=None)
    described = transactions.describe_open()
    messages = [message for _, message in described if message is not None]
    open = (*(one for one, _ in described), *resumption.unseen)
    known = relations.before(min(messages) if messages else None)
    reached = CapturePosition(stream.format, transactions.position, open, (), stream.slot)
    return partial(_with_relations, reached, known)


def _with_relations(reached: CapturePosition, known: Callable[[], tuple[Relation, ...]]) -> CapturePosition:
    return reached._replace(relations=known())
