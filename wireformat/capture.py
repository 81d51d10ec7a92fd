"""`Capture`: a stream of messages as one object, with a method for each question that users ask about it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .arrow.change_table import checked_schema
from .arrow.logical_messages import MESSAGES, message_rows
from .arrow.schemas import committed_schema, widened
from .arrow.typed_tables.batch import TypedOptions
from .arrow.typed_tables.listed import check_one_version
from .arrow.typed_tables.table import TypedPart, kept_fields
from .capture_tables import CaptureTables
from .errors import OptionError, StateError, counted
from .options import ReadOptions
from .options.checks import once, one_of, shown, texts
from .options.keywords import checks_keywords
from .options.table_names import TableName, one_table
from .printable import printable
from .sources.find import SourceOrder
from .sources.handed_rows import HandedRows, as_batch, rows_of_patterns
from .sources.identities import Definition, IdentifiedRows
from .sources.resumption import going_on, naming_overlaps
from .stream.capture_position import CapturePosition

if TYPE_CHECKING:
    from .lake.chunks import LakePlan
    from .lake.options import LakeInput, LakeOptions
    from .lake.rejects import Rejects


class Capture(CaptureTables):
    """A stream of messages. It lists the tables, and returns their committed changes or their current rows.

    messages        a path of a Parquet file or of a file of messages, a pattern such as `captures/*.parquet`, a folder,
                    or a list of paths; Arrow data of a binary type or with a binary column; an iterable of bytes.
                    Files are read in the natural order of their names, a list of paths in its own order
    format          the name of the format
    column          the column with the messages; None takes `payload` or `value`, or the only binary column
    order_by        the columns that order the messages, such as the offset of a topic; their values must be unique
    two_phase       "commit" delivers a prepared transaction when it is committed, "prepare" when it is prepared
    drop_resent     whether to drop transactions that the server sent again after a restart
    memory_limit    the number of bytes of rows of open transactions that stay in memory; the rest go to temporary
                    files. `write` holds up to half as many bytes of rows until it writes them, and up to as many
                    again while its threads do. A small limit also makes what is decoded together smaller
    after           the `position` of an earlier capture of the stream, to continue after it
    slot            for messages of a slot that end with a whole transaction: a SlotPosition with the LSN up to which
                    the messages go. It becomes part of the `position` at their end
    threads         the number of threads; None for as many as Arrow uses
    engine          `scan`, or `declaration`, which is slow and reads every record by the declaration of its format
    progress        is called with the number of bytes of the sources that were read since the call before

    The other options are those of `wireformat.ReadOptions`, but tables and kinds belong to the methods. Methods that
    return rows return a `pyarrow.RecordBatchReader`, which reads while you ask for rows, in constant memory. Raises
    OptionError, TypeError, OSError, and StateError for a damaged `after`. When called, the methods raise OptionError
    for a wrong argument, or if messages that can be read only once would be read again. Reading raises DecodeError (in
    FAILFAST), OrderError, LimitExceeded, TypeError, and BadRows if no record can be read. docs/capture.md explains it
    with examples.
    """

    def __repr__(self) -> str:
        names = [source.name for source in self._sources]
        shown_names = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"<wireformat.Capture of {printable(shown_names)}, {self._name}>"

    def _repr_html_(self) -> str:
        names = [source.name for source in self._sources]
        shown_names = "".join(f"<li>{escape(printable(name))}</li>" for name in names[:10])
        more = f"<li>and {len(names) - 10} more</li>" if len(names) > 10 else ""
        return f"<b>Capture</b> of {escape(self._name)}<ul>{shown_names}{more}</ul>"

    @checks_keywords
    def changes(
        self,
        *,
        columns: Sequence[str] | None = None,
        tables: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Returns every record as a row of the row-change table.

        columns   the columns to return, at least one; None for all
        tables    patterns `schema.table`: only row changes of these tables
        kinds     only these kinds of records
        Raises OptionError.
        """
        schema = checked_schema(columns, self._name)
        options = self._options.filtered(tables=tables, kinds=kinds)
        self._begin_reading()

        def rows() -> Iterator[pa.RecordBatch]:
            if options.kinds is None and self._after is not None and self._after.open:
                read = self._naming_open(self._decoded(options, self._schema))
            else:
                read = self._decoded(options, widened(schema, *SourceOrder.COLUMNS))
            for batch in read:
                yield batch.select(schema.names)

        return pa.RecordBatchReader.from_batches(schema, rows())

    @checks_keywords
    def committed(self, *, tables: Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Returns the row changes of committed transactions, in commit order, with the facts of their transactions.

        tables    patterns `schema.table`: only row changes of these tables. `sequence` counts all row changes
        returns   sequence (commit_lsn, ordinal), the columns of the row-change table, username and origin of the
                  transaction; docs/transactions.md explains them
        Raises OptionError.
        """
        options = self._options.filtered(tables=tables)
        self._begin_handing_out()

        def rows() -> Iterator[pa.RecordBatch]:
            for committed in self._handed_out(self._committed(options)):
                found = rows_of_patterns(as_batch(committed), options)
                if len(found):
                    yield found

        return pa.RecordBatchReader.from_batches(committed_schema(self._schema), rows())

    @checks_keywords
    def messages(self, *, prefix: str | None = None) -> pa.RecordBatchReader:
        """Returns what was written with `pg_logical_emit_message`, such as the events of an outbox.

        prefix    only messages with this prefix
        returns   _sequence, _xid, _commit_time; transactional, prefix, content. A transactional message comes with its
                  committed transaction. Any other message comes where it was written, and has no _sequence
        Raises OptionError.
        """
        if prefix is not None and not isinstance(prefix, str):
            raise OptionError(f"option prefix: expected a text, got {shown(prefix)}")
        self._begin_handing_out()

        def rows() -> Iterator[pa.RecordBatch]:
            no_tables = replace(self._options, tables=())
            for committed in self._handed_out(self._committed(no_tables, has_outside=True)):
                found = message_rows(as_batch(committed, "MESSAGE"), self._options.encoding, prefix)
                if len(found):
                    yield found

        return pa.RecordBatchReader.from_batches(MESSAGES, rows())

    def tables(self) -> pa.Table:
        """Returns the tables of the stream, with a row for each version of a table's columns.

        The columns are those of `wireformat.arrow.tables`: names, version, columns, types, typmods, key_columns of the
        replica identity, first and last (message and record), changes. The changes include those of transactions that
        were rolled back, which a server sends if it streams transactions. The first call reads the capture once, and
        the result is kept. Raises the errors of reading; see the class.
        """
        return self._whole_list()

    @checks_keywords
    def typed(
        self,
        table: str,
        *,
        schema: Any = None,
        images: str = "new",
        evolution: str = "union",
        complete: bool = False,
        split_key_changes: bool = False,
        keys: Sequence[str] | None = None,
        keep: Sequence[str] = (),
    ) -> pa.RecordBatchReader:
        """Returns the committed changes of one table, with real column types.

        table    a name such as `public.orders`; parts with a dot are in double quotes
        schema   the columns of the result: a mapping of column to SQL type, a pyarrow Schema, or the result of
                 `tables`. None reads the capture to find them, unless `tables` has done so. The changes found in this
                 reading are kept for the result if they fit into an eighth of `memory_limit`; otherwise the capture is
                 read once more

        The other options, the columns and the types are those of `wireformat.arrow.typed`. The mode of the capture
        says what happens with values that do not fit. evolution is "union" or "error". Raises OptionError, BadCell (in
        FAILFAST) and BadRows.
        """
        one_of("evolution", evolution, ("union", "error"))
        kept = kept_fields(keep, committed_schema(self._schema))
        names = [field.name for field in kept]
        current, listed = -1, None
        if schema is None:
            self._check_repeatable("this call may read them twice without a schema", "schema")
            schema = self._listed_table(table, names)
            listed = self._messages
            current = self._version_before(one_table(table))
            if evolution == "error":
                check_one_version(schema, table)
        part = TypedPart(
            table,
            schema=schema,
            options=TypedOptions(self._options.mode, images, complete, split_key_changes, keys),
            evolution=evolution,
            kept=kept,
            format=self._name,
            current=current,
        )
        self._begin_handing_out()
        wanted = one_table(table)
        held = self._take_held(wanted, names)
        rows = self._typed(wanted, part, names, held, listed)
        return pa.RecordBatchReader.from_batches(part.schema, rows)

    @checks_keywords
    def typed_all(
        self, *, tables: Iterable[str] | None = None, images: str = "new", complete: bool = False
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields the committed changes of all tables, with real column types.

        tables   patterns `schema.table`: only these tables
        images, complete   as in `wireformat.arrow.typed`
        yields   the name of a table, as `typed` takes it, and rows as `typed` returns them. The rows of a table are in
                 commit order. They are yielded when a table has many, or when those of all tables fill `memory_limit`

        The messages are read once, or twice if `tables` was not called and their rows fill `memory_limit` before the
        last message was read. `position` is known when all were read. Raises what `typed` raises.
        """
        filtered = self._options.filtered(tables=tables)
        options = TypedOptions(self._options.mode, images, complete, False, None)
        self._check_repeatable("this call may read them twice")
        self._begin_handing_out()
        return self._typed_all(filtered, options)

    @checks_keywords
    def latest(self, table: str, *, keys: Sequence[str] | None = None, schema: Any = None) -> pa.Table:
        """Returns the rows that a table has at the end of the capture.

        keys     the columns that identify a row. None takes the replica identity that the stream states, for each
                 change the one with which it was made; if that is the whole row, equal rows are counted. [] stands for
                 the whole row, unless the stream states another identity
        schema   as in `typed`

        The columns and rules are those of `wireformat.arrow.latest`. In PERMISSIVE mode, values that do not fit are
        null, and a warning counts the changes that have such. The table must fit into memory. Raises OptionError if
        keys is None and the stream does not state the replica identity, BadCell and BadRows.
        """
        if keys is None:
            self._check_repeatable("this call reads them twice without keys", "keys and schema")
            keys = () if self._states_identity(table) else self._replica_identity(table)
        keys = once("keys", texts("keys", keys))
        if schema is None:
            self._check_repeatable("this call may read them twice without a schema", "schema")
        with self._handing_out_all():
            part = self._typed_part(table, TypedOptions(self._options.mode, "new", False, False, None), schema)
            listed = self._messages if schema is None else None
            found = self.latest_by(part, table, keys)
            self._check_is_listed(listed)
            return found

    def latest_by(self, part: TypedPart, table: str, keys: Sequence[str]) -> pa.Table:
        """Returns the rows that a table has at the end of the capture; see `latest`.

        part   reads the changes of the table
        keys   the columns that identify a row. [] stands for the identity that the stream states, or for the whole row
        """
        wanted = one_table(table)
        with self._handing_out_all():
            self._begin_handing_out()
            held = self._take_held(wanted, ())
            identities = self._identities(wanted) if held is None else held.identities
            current = IdentifiedRows()
            is_empty, misfits = True, 0
            for rows, typed in self._typed_groups(wanted, part, (), held, identities.through):
                if self._options.mode == "PERMISSIVE":
                    misfits += len(typed) - typed["_error"].null_count
                for definition, batch in identities.cut(wanted, rows, typed, tuple(keys)):
                    part.check_has_keys(definition.keys)
                    current.take(definition, batch, part.dropped)
                    is_empty = False
            if is_empty:
                part.check_has_keys(keys)
                current.take(Definition(tuple(keys)), _empty(part.schema))
            if misfits:
                logging.getLogger("wireformat").warning(
                    f"latest: {counted(misfits, 'change')} of {table} had values that do not fit their types. Where "
                    "such a change is the last one of its row, they are null. `typed` names them in `_error`"
                )
            return current.result()

    @checks_keywords
    def write(
        self,
        folder: Any,
        *,
        format: str = "parquet",
        state: str = "changes",
        tables: Iterable[str] | None = None,
        partition_by: str | Mapping[str, str] | None = None,
        keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        schemas: Mapping[str, Any] | None = None,
        rejects: Any = None,
        durable: bool = False,
        filesystem: Any = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """Writes all tables to a lake, each to a folder of its own. A table is written completely or not at all.

        folder           a path or URI. An existing lake is continued: the transactions that it already has are skipped
        format           parquet, or delta (extra `delta`)
        state            changes: what `typed` returns; latest: what `latest` returns, which is merged into an existing
                         Delta table
        tables           patterns `schema.table`: only these tables
        partition_by     a column, or `commit_date`: the date of `_commit_time`; or a mapping of table to such a name
        keys             for latest: the key columns, or a mapping of table to key columns, [] for the whole row. None
                         takes the replica identity
        schemas          a mapping of table to what `typed` takes as `schema`
        rejects          the path of a Parquet file, in PERMISSIVE and DROPMALFORMED: it takes the records that could
                         not be read, which are then skipped, and the rows with values that do not fit
        durable          waits until everything is on the disk of this machine, so that a power cut loses nothing
        filesystem       of pyarrow or fsspec; paths are then paths in it
        storage_options  of deltalake, for folder and rejects
        returns          a row for each table: table_schema, table_name; folder, null without a Delta table, which the
                         first row makes; rows and files that were written;
                         open: changes of transactions that have not ended; dropped: rows that DROPMALFORMED left out;
                         corrupt: rows with values that do not fit. A last row without a table counts the other open
                         changes, and the records that were dropped or could not be read (corrupt)

        The messages are read once. If rows must be written before the last message was read, and the method `tables`
        was not called or the lake has tables, they may be read once more: for tables whose columns changed after that,
        or that have values which do not fit; with state='latest' or rejects, to list the tables. Cells of tables that
        are left out are not read.
        docs/lake_files.md describes the files. Raises OptionError, also for a lake of another kind, or one that this
        capture does not continue; LakeConflict, MissingExtra, OSError, BadCell, BadRows and StateError.
        """
        from .lake.options import LakeOptions

        patterns = self._options.filtered(tables=tables).tables
        options = LakeOptions.check(
            format=format,
            state=state,
            tables=patterns,
            partition_by=partition_by,
            keys=keys,
            schemas=schemas,
            rejects=rejects,
            durable=durable,
            filesystem=filesystem,
            storage_options=storage_options,
            mode=self._options.mode,
        )
        return self.write_some(folder, options, patterns)

    def write_some(
        self, folder: Any, options: LakeOptions, patterns: Collection[tuple[str | None, str | None]] | None
    ) -> pa.Table:
        """Does what `write` does, for programs that leave out the changes of some tables of the lake.

        options    the options of `write`, with the patterns of all tables of the lake
        patterns   the patterns of the tables to write now, as ReadOptions has them; None for all
        """
        from .lake.result import with_open_changes
        from .lake.write import write_lake

        filtered = replace(self._options.filtered(), tables=None if patterns is None else tuple(patterns))
        with options.locked(folder, self._name) as lake:
            self._check_repeatable("this call may read them twice")
            capture = copy(self)
            position = going_on(self._after, lake.position, self._name, self._controls)
            if position is not self._after:
                capture._after, capture._position = position, position
                capture._forget_lists()
            capture._known_versions = lake.known_versions()
            if capture._known_versions:  # an earlier list does not have them
                capture._forget_lists()
            if options.rejects is not None:
                capture._options = replace(self._options, mode="PERMISSIVE")
            stream = capture.stream_of(filtered, self._options.mode)
            with naming_overlaps(self._after, lake.position, capture._controls):
                written, self._position = write_lake(lake, stream, filtered, options)
        written = with_open_changes(written, capture._open_changes)
        self._was_read, self._unknown_prepared = True, capture._unknown_prepared
        if capture._after is self._after and not capture._known_versions and not capture._was_listed_early:
            if capture._messages != self._messages:
                self._forget_lists()
            self._listed, self._messages = capture._listed, capture._messages
        self._dropped = sum(written["dropped"].to_pylist())
        return written

    def write_listed(
        self,
        plan: LakePlan,
        listed: pa.Table,
        tables: Iterable[str] | None,
        mode: str | None = None,
        rejects: Rejects | None = None,
    ) -> pa.Table:
        """Writes all tables to a lake in one pass; returns what `write` returns.

        plan      the lake and the options
        listed    the list of tables, which another reading has made
        tables    patterns `schema.table`: only these tables
        mode      for values that do not fit; None for the mode of the capture, which is PERMISSIVE if there are rejects
        rejects   takes the rejects; the option `rejects` of the plan is not used
        """
        from .lake.options import Choice
        from .lake.result import RESULT, with_open_changes
        from .lake.write import LakeWriter

        self._listed = listed
        self._begin_reading()
        filtered = self._options.filtered(tables=tables)
        with plan.locked() as lake:
            if lake is None:
                return RESULT.empty_table()
            self._known_versions = lake.known_versions()
            stream = self.stream_of(filtered, mode or self._options.mode)
            choice = Choice(filtered, plan.options.keys, plan.options.schemas, is_batch=True)
            written, self._position = LakeWriter(stream, lake, choice, rejects, stream.memory).write()
        return with_open_changes(written, self._open_changes)

    def stream_of(self, filtered: ReadOptions, mode: str) -> LakeInput:
        """Returns the stream as a lake takes it, for programs that write the lake themselves.

        filtered   options with the patterns of the tables to write
        mode       for values that do not fit, and records that cannot be read
        """
        from .lake.options import LakeInput

        identities = self._identities()

        def rows(through: Callable[[Iterable[Any]], Iterator[Any]] | None) -> Iterator[HandedRows]:
            options = replace(filtered, mode=self._options.mode)

            def through_all(found: Iterable[Any]) -> Iterator[Any]:
                seen = identities.through(self._while_listing(filtered, found))
                return seen if through is None else through(seen)

            return self._committed(options, through=through_all, at_end=self._note_open)

        def again(tables: Collection[TableName]) -> Iterator[HandedRows]:
            found = self._dropped, self._unknown_prepared  # records of other tables are not all looked at again
            yield from self._committed(replace(filtered, mode=self._options.mode, tables=tuple(tables)))
            self._dropped, self._unknown_prepared = found

        return LakeInput(
            format=self._name,
            mode=mode,
            schema=self._schema,
            listed=partial(self._early_list, filtered),
            is_listed=lambda: self._known_list(filtered) is not None,
            all_tables=partial(self._all_tables, filtered),
            found=self._versions_found,
            so_far=self._found_so_far,
            rows=rows,
            again=again,
            keys=self._replica_identity,
            identities=identities,
            schema_of=self._listed_table,
            known=self._known_versions,
            version_before=self._version_before,
            dropped=lambda: self._dropped or 0,
            threads=self._threads,
            memory=self._memory_limit,
        )

    @checks_keywords
    def open(self) -> pa.Table:
        """Returns the rows of transactions that have not ended, with their control records, in input order.

        The columns are those of the row-change table. To deliver these transactions, a later capture must begin at the
        first `message` or before it. Raises the errors of reading; see the class.
        """
        self._begin_reading()
        found: list[pa.Table] = []
        for _ in self._committed(self._options, at_end=lambda transactions: found.append(transactions.open)):
            pass
        return found[0]

    @property
    def position(self) -> CapturePosition:
        """The position after the rows that the last reading has returned, where another capture can continue.

        It covers the rows that `committed`, `typed`, `latest` or `messages` have returned, not rows that were read
        ahead. Raises StateError if none of them was called, and the capture has no `after`. After a `read_all` that
        raised an error, which has returned none of the rows, do not use it.
        """
        if self._position is None:
            raise StateError("position: no rows have been handed out; read `committed`, `typed` or `latest` first")
        if not isinstance(self._position, CapturePosition):
            self._position = self._position()
        return self._position

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions that ended without a known PREPARE.

        Raises StateError before all rows were read.
        """
        if self._unknown_prepared is None:
            raise StateError("unknown_prepared: expected rows that were read to the end; read `committed` first")
        return self._unknown_prepared

    @property
    def dropped(self) -> int:
        """The number of records that DROPMALFORMED skipped. Raises StateError before all rows were read."""
        if self._dropped is None:
            raise StateError("dropped: expected rows that were read to the end; read `changes` or `committed` first")
        return self._dropped


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)
