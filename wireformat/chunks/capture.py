"""`ChunkCapture`: a chunk of a capture, which answers the questions of `Capture` for its own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar

import pyarrow as pa

from ..arrow.change_table import checked_schema
from ..arrow.columns.known_layouts import KnownLayouts
from ..arrow.committed.assembler import Transactions
from ..arrow.noted.rows import NotedRows
from ..arrow.schemas import widened
from ..arrow.typed_tables.table import TypedPart
from ..arrow.unread import without_unread
from ..capture import Capture
from ..capture_reading import Rows
from ..errors import BadRows, counted
from ..formats.pgoutput.relations import Relations
from ..lake.lake import Lake
from ..lake.options import Choice
from ..lake.rejects import Rejects
from ..lake.result import TableFiles
from ..lake.write import LakeWriter
from ..options.table_names import TableName, one_table
from ..sources.decoding import SourceDecoder
from ..sources.find import NamedBegin, SourceOrder
from ..sources.known_relations import KnownRelations
from ..sources.resumption import Resumption
from ..sources.source import SourceMessages
from ..stream.chunk_plan import ChunkPlan
from ..stream.records_before import NOTHING_BEFORE, RecordsBefore


class ChunkCapture(Capture):
    """A chunk of a stream of messages, read without the others.

    messages    of the chunk: what Capture takes
    plan        what the chunk needs of the others for `committed`, `typed`, `messages` and `open`
    relations   of pgoutput, before the chunk
    known       makes what the position at the end of the chunk needs of them; see `known_before`
    before      the records before the chunk, which `strict` and the filters of whole transactions need
    skips_unread   whether records that could not be read are left out, because rejects take them

    What returns committed rows returns those of this chunk, also where their transactions are committed in a later one;
    nothing if the plan has no start. Whether any message could be read is not judged. The other options are those of
    Capture. Reading raises BadRows if there are more or fewer messages than the plan says.
    """

    _is_whole: ClassVar[bool] = False
    _layouts = KnownLayouts()  # a process reads many chunks of the same tables
    _versions_before: Mapping[TableName, int] = MappingProxyType({})

    def __init__(
        self,
        messages: Any,
        format: str,
        *,
        plan: ChunkPlan | None = None,
        relations: Relations | None = None,
        known: Callable[[], KnownRelations] = KnownRelations,
        before: RecordsBefore = NOTHING_BEFORE,
        skips_unread: bool = False,
        **options: Any,
    ) -> None:
        self._skips_unread = skips_unread
        self._records_before = before
        super().__init__(messages, format, **options)
        self._plan = ChunkPlan() if plan is None else plan
        self._relations_before, self._known_before = relations, known

    def noted(self, tables: Sequence[str] | None = None) -> Iterator[pa.RecordBatch | NotedRows]:
        """Yields the rows of all messages; each is valid until the next is requested.

        tables   patterns: steps over row changes of other tables, whose cells may be bad
        """
        self._begin_reading()
        needed = None if tables is None else self._options.filtered(tables=tables)
        return super()._noted(self._make_decoder(self._options, needed))

    def all_records(self, columns: Sequence[str], tables: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yields all records, whatever their order and transactions.

        columns   of the row-change table
        tables    patterns: only row changes of these tables
        """
        options = replace(
            self._options.filtered(tables=tables), strict=False, exclude_users=frozenset(), skip_empty_xacts=False
        )
        self._begin_reading()
        return self._decoded(options, widened(checked_schema(columns, self._name), "kind", *SourceOrder.COLUMNS))

    @property
    def source_begins(self) -> tuple[NamedBegin, ...]:
        """Where the first and the last source with positions begin, as far as the last reading came."""
        first, last = self._order.first, self._order.last
        return () if first is None or last is None else (first, last)

    @property
    def messages_read(self) -> int:
        """The number of messages, when all were read."""
        return self._messages or 0

    @property
    def open_changes(self) -> dict[TableName, int]:
        """How many changes of each table have not ended in the stream; known when `write_files` has returned."""
        return self._open_changes

    @property
    def rows_dropped(self) -> int:
        """The number of records and rows that DROPMALFORMED skipped so far."""
        return self._dropped or 0

    def write_files(
        self,
        lake: Lake,
        listed: pa.Table,
        tables: Sequence[str] | None,
        schemas: Mapping[str, Any],
        mode: str | None = None,
        rejects: Rejects | None = None,
        versions_before: Mapping[TableName, int] = MappingProxyType({}),
    ) -> list[TableFiles]:
        """Writes the committed changes of all tables to files that are not visible yet; see `wireformat.lake.chunks`.

        lake      of this chunk
        listed    the list of the tables of the whole stream
        mode      for values that do not fit; None for that of the capture, which is PERMISSIVE if there are rejects
        versions_before   of tables with several versions: the index in the list of the one before the first row

        The other options are those of `Capture.write`.
        """
        self._listed, self._versions_before = listed, versions_before
        self._begin_reading()
        filtered = self._options.filtered(tables=tables)
        stream = self.stream_of(filtered, mode or self._options.mode)
        try:
            choice = Choice(filtered, None, schemas, is_batch=True)
            return LakeWriter(stream, lake, choice, rejects, self._memory_limit).write_files()
        except BaseException:
            if rejects is not None:
                rejects.discard()
            raise

    def typed_by(self, part: TypedPart, table: str) -> Iterator[pa.RecordBatch]:
        """Yields the committed changes of a table, as `part` reads them."""
        self._begin_reading()
        return self._typed(one_table(table), part, ())

    def _noted(self, decoder: SourceDecoder) -> Iterator[pa.RecordBatch | NotedRows]:
        if self._plan.start is None:  # the chunk in which the order of the stream broke raises the error
            return iter(())
        return super()._noted(decoder)

    def _read(self, decoder: SourceDecoder, rows_of: Callable[[SourceMessages], Iterator[Rows]]) -> Iterator[Rows]:
        for rows in chain(super()._read(decoder, rows_of), decoder.held_rows()):
            yield without_unread(rows) if self._skips_unread else rows
        if self._plan.messages not in (None, self.messages_read):
            raise BadRows(
                f"{counted(self._plan.messages or 0, 'message')} in a chunk, as when it was looked through",
                counted(self.messages_read, "message"),
                hint="the input gives other rows each time it is read: save it in files that stay as they are",
            )

    def _version_before(self, table: TableName) -> int:
        return self._versions_before.get(table, -1)

    def _relations(self) -> Relations | None:
        return None if self._relations_before is None else self._relations_before.copy()

    def _known(self) -> KnownRelations:
        return self._known_before()

    def _resumption(self) -> Resumption:
        return Resumption(None) if self._plan.resumption is None else deepcopy(self._plan.resumption)

    def _transactions(self, *, steps_over: bool, has_outside: bool) -> Transactions:
        found = super()._transactions(steps_over=steps_over, has_outside=has_outside)
        if self._plan.start is not None:
            found.start_chunk(self._plan.start)
        return found

    def _later(self, transactions: Transactions) -> Iterator[pa.RecordBatch]:
        return transactions.settle_later(self._plan.fates)
