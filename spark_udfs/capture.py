"""capture: the questions of `wireformat.Capture` about a DataFrame of raw messages, in batches."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.arrow.schemas import committed_schema
from wireformat.arrow.typed_tables.listed import (
    check_listed,
    check_one_version,
    lasting_identity,
    of_table,
    replica_identity,
    rows_of,
    states_identity,
)
from wireformat.events import Relation
from wireformat.formats.registry import find_format_name
from wireformat.limits import OPEN_TRANSACTIONS_BYTES
from wireformat.options.checks import one_of
from wireformat.options.keywords import checks_keywords
from wireformat.options.table_names import one_table, written
from wireformat.stream.capture_position import CapturePosition
from wireformat.stream.transactions import TWO_PHASE

from .chunks.files import FileMessages
from .chunks.frames import Messages
from .chunks.groups import Plans, stream_key
from .chunks.light_pass import LightPass, collected, with_streams
from .chunks.work import (
    PARTS,
    Ask,
    Reading,
    TypedTable,
    answer_batches,
    ask_changes,
    ask_committed,
    ask_keyed,
    ask_messages,
    ask_open,
    ask_position,
    ask_typed,
    keyed_rows,
    latest_batches,
    other_rows,
)
from .chunks.writing import current_batches, file_batches
from .given_messages import messages_of_files, messages_of_frame, positions_after
from .schemas import arrow_schema, arrow_types, change_names, with_format
from .streams.answers import StreamAnswers, check_stream
from .tables.latest import checked_rows, latest_of_whole_rows, latest_rows
from .tables.typed_columns import arrow_columns, spark_columns
from .tables.typed_rows import TypedRows


@checks_keywords
def capture(
    df: DataFrame | None = None,
    payload: str | None = None,
    format: str = "gaussdb-binary",
    *,
    paths: Any = None,
    order_by: Sequence[str] | None = None,
    stream_by: Sequence[str] = (),
    mode: str = "FAILFAST",
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Sequence[str] | None = None,
    exclude_users: Sequence[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    dialect: str = "postgresql",
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Any = None,
    chunks: int | None = None,
) -> Capture:
    """Returns a `Capture` of the messages in a batch or streaming DataFrame, or in files.

    df          a DataFrame; or give paths
    payload     the binary column with the messages, `value` if it is None; null is no message. In files, None finds it
    paths       files of one stream that the workers read themselves: a path, a pattern, a folder or a list of paths, as
                in `wireformat.Capture`. The driver and all workers must be able to read them. A message's position is
                its index in all files, `message`
    order_by    columns of df (integers or strings) that order the messages; their values must be unique within a stream
    stream_by   columns (integers or strings) that identify a stream, if df has more than one
    after       the `position` of an earlier capture, to go on after it
    chunks      the number of parts that the messages are sorted into, each of which a task reads alone. None takes the
                partitions of df as they are, without a shuffle, if each has ranges of its own of the streams, as
                files and Kafka have; otherwise it is spark.sql.shuffle.partitions. It does not affect the results

    The other options are those of `wireformat.Capture`. In a batch, the first question looks at the positions of all
    messages. With exclude_users, skip_empty_xacts or strict, all records are looked at once more before the first
    question. A streaming DataFrame takes neither `after` nor `chunks`, and answers fewer questions.
    Raises OptionError, TypeError and OSError. docs/spark_capture.md has examples.
    """
    if (df is None) is (paths is None):
        raise wf.OptionError("option paths: expected either df or paths, got " + ("none" if df is None else "both"))
    options: dict[str, Any] = {
        "mode": mode,
        "encoding": encoding,
        "encoding_errors": encoding_errors,
        "heartbeat_unit": heartbeat_unit,
        "known_tables": known_tables,
        "exclude_users": exclude_users,
        "skip_empty_xacts": skip_empty_xacts,
        "strict": strict,
        "dialect": dialect,
        "two_phase": one_of("two_phase", two_phase, TWO_PHASE),
        "drop_resent": drop_resent,
        "memory_limit": memory_limit,
    }
    name = find_format_name(format)
    wf.Capture([], name, **options)  # raises what is wrong with the options
    if df is None:
        files = messages_of_files(paths, name, payload, order_by=order_by, stream_by=stream_by, chunks=chunks)
        return Capture(files, name, options, positions_after(after, name, ()))
    messages = messages_of_frame(df, "value" if payload is None else payload, order_by, stream_by, chunks)
    if df.isStreaming:
        check_stream(after=after, chunks=chunks)
    make = StreamCapture if df.isStreaming else Capture
    return make(messages, name, options, positions_after(after, name, messages.positions.stream_by))


class Capture:
    """Streams of messages on Spark, and questions about them; `capture` returns one.

    A light pass over the messages finds the control records and the tables, once for all questions; its result on the
    driver grows with chunks, tables and open transactions, not with rows. What returns rows returns a DataFrame that
    reads the messages once more when it is computed: from bytes to the result in the worker. The columns stream_by come
    first in each result. Errors of the messages are raised by the light pass, or when a result is computed.
    """

    def __init__(
        self,
        messages: Messages | FileMessages,
        format: str,
        options: Mapping[str, Any],
        after: Mapping[str, CapturePosition],
        skips_unread: bool = False,
    ) -> None:
        self._messages = messages
        self._format = format
        self._options = options
        self._after = after
        self._light = LightPass(messages, format, options, after, skips_unread)
        self._spark = messages.session

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self._messages.positions.fields)
        return f"<spark_udfs.Capture of {self._format}, by {names}>"

    @checks_keywords
    def changes(
        self,
        *,
        columns: Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> DataFrame:
        """Returns every record as a row of the row-change table, after the columns stream_by and order_by.

        Columns of order_by that have the name of a column of the row-change table are left out. The options are those
        of `wireformat.Capture.changes`; `message` is not among the columns.
        """
        names = change_names(columns)
        wf.ReadOptions.check(tables=tables, kinds=kinds)
        order = self._messages.positions.order_by
        kept = [field for field in order if field.name.lower() not in {name.lower() for name in names}]
        ask = partial(ask_changes, names, [field.name for field in kept], {"tables": tables, "kinds": kinds})
        own = arrow_types(StructType(kept))
        schema = pa.schema([*own, *wf.arrow.change_schema(names)])
        return self._of_tables(tables)._answer(ask, schema, None, tables=tables)

    @checks_keywords
    def committed(self, *, tables: Sequence[str] | None = None) -> DataFrame:
        """Returns the row changes of committed transactions with the facts of their transactions, in no order.

        tables   patterns `schema.table`: only row changes of these tables
        """
        wf.ReadOptions.check(tables=tables)
        schema = committed_schema(arrow_schema(change_names()))
        schema = schema.remove(schema.get_field_index("message"))
        own = self._of_tables(tables)
        return own._answer(partial(ask_committed, tables), schema, own._plans)

    @checks_keywords
    def messages(self, *, prefix: str | None = None) -> DataFrame:
        """Returns what was written with `pg_logical_emit_message`; see `wireformat.Capture.messages`."""
        schema = wf.Capture([], self._format).messages(prefix=prefix).schema
        sequence = pa.field("_sequence", pa.struct([field.with_nullable(True) for field in schema.field(0).type]))
        own = self._of_tables(())
        return own._answer(partial(ask_messages, prefix), schema.set(0, sequence), own._plans)

    def open(self) -> DataFrame:
        """Returns the rows of transactions that have not ended, with their control records."""
        return self._answer(ask_open, arrow_schema(change_names()).remove(0), self._plans)

    def tables(self) -> DataFrame:
        """Returns the tables of each stream, with a row for each version of a table's columns.

        The columns are those of `wireformat.arrow.tables`. `first` and `last` have the columns order_by and the record.
        """
        from wireformat.arrow.typed_tables.tables import tables_schema  # loads numba

        self._messages.positions.check_result(tables_schema(pa.null()).names)
        return self._spark.createDataFrame(self._light.listed_of_each)

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
    ) -> DataFrame:
        """Returns the committed changes of one table, with real column types, in no order.

        table    `public.orders`; names with a dot in double quotes
        schema   the columns of the result. None takes those of the streams. Otherwise a mapping of column to SQL type,
                 or a pyarrow or Spark schema

        The other options, the columns and the types are those of `wireformat.Capture.typed`, except that a time of day
        is the text as sent.
        """
        own = self._of_tables([written(one_table(table))])
        asked = own._typed_table(
            table,
            schema,
            images=images,
            evolution=evolution,
            complete=complete,
            split_key_changes=split_key_changes,
            keys=keys,
        )
        return own._answer(partial(ask_typed, asked), asked.part().schema, own._plans)

    @checks_keywords
    def latest(self, table: str, *, keys: Sequence[str] | None = None, schema: Any = None) -> DataFrame:
        """Returns the rows of a table as it stands at the end of the capture; of each stream if there are several.

        keys     the columns that identify a row. None takes the replica identity that the streams state, each change by
                 the one that it was made with; where it is the whole row, equal rows are counted. []: the whole row,
                 unless the streams state another identity
        schema   as in `typed`

        The columns and rules are those of `spark_udfs.latest`. If the table has a key, was never truncated, and every
        change has the whole new row, nothing but the light pass runs at this call. Otherwise it runs small queries
        over the changes. If the replica identity changed, or it is the whole row and the columns changed, or a column
        was dropped and added again, one task reads all messages of a stream, and holds its table in memory.
        """
        own = self._of_tables([written(one_table(table))])
        if own is not self:
            return own.latest(table, keys=keys, schema=schema)
        asked = self._typed_table(table, schema)
        whole = asked.part().schema
        facts = self._light.row_facts(one_table(table))
        if not keys:
            check_listed(self._listed, table, self._format)
            if keys is None and not states_identity(self._listed, table):
                replica_identity(self._listed, table)  # raises what is wrong
            keys = lasting_identity(self._listed, table)
            if keys is None:
                return self._latest_in_order(asked, ())
        typed = self._answer(partial(ask_typed, asked), whole, self._plans)
        rows = checked_rows(typed, keys, [field.name for field in self._messages.positions.stream_by])
        if facts.adds_again:
            return self._latest_in_order(asked, keys)
        if not rows.keys or not facts.are_whole(field.name for field in rows.fields):
            return latest_rows(rows)
        schema = keyed_rows(pa.RecordBatch.from_pylist([], whole), rows.keys).schema
        changes = self._answer(partial(ask_keyed, asked, rows.keys), schema, self._plans)
        return latest_of_whole_rows(TypedRows(changes, rows.keys, rows.streams, rows.fields))

    @checks_keywords
    def write(
        self,
        folder: Any,
        *,
        format: str = "parquet",
        state: str = "changes",
        tables: Sequence[str] | None = None,
        partition_by: str | Mapping[str, str] | None = None,
        keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        schemas: Mapping[str, Any] | None = None,
        rejects: Any = None,
        filesystem: Any = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Writes all tables to a lake, a folder each. It is all or nothing for each table.

        folder   a path or URI that the driver and all workers can write to. A lake that is there goes on. With
                 stream_by, each stream has a lake of its own below the folder: `topic/0`
        rejects  a folder for what cannot be read or does not fit, in PERMISSIVE and DROPMALFORMED: a Parquet file for
                 each chunk that has some. The columns order_by are in place of `message`. Unless the messages are in
                 files (paths), records that are there from an earlier write are left out

        With state="changes", the workers write a file for each table and chunk, in one pass, and the driver publishes
        the files of the tasks that succeeded. With state="latest", one task reads all messages of a stream and writes
        the tables as they stand; its memory is that of `wireformat.Capture.write`, which describes the other options,
        the files and what is returned; the columns stream_by come first. The logger `spark_udfs.chunks` says, at level
        INFO, what was read, written, left open and dropped.
        """
        from wireformat.lake.options import LakeOptions
        from wireformat.lake.write import RESULT

        from .chunks.lakes import StreamLakes, log_written

        self._messages.positions.check_result(RESULT.names)
        options = LakeOptions.check(
            format=format,
            state=state,
            tables=wf.ReadOptions.check(tables=tables).tables,
            partition_by=partition_by,
            keys=keys,
            schemas=schemas,
            rejects=rejects,
            filesystem=filesystem,
            storage_options=storage_options,
            mode=str(self._options["mode"]),
        )
        mode = str(self._options["mode"])
        order = arrow_types(StructType([*self._messages.positions.order_by]))
        lakes = StreamLakes(folder, options, self._format, self._messages.streams, self._after, mode, order)
        after, reads = {**self._after, **lakes.after}, self._options
        if rejects is not None:
            reads = {**self._options, "mode": "PERMISSIVE"}
        capture = self
        if after != self._after or rejects is not None:
            capture = Capture(self._messages, self._format, reads, after, rejects is not None)
        light, writes = capture._light, lakes.writes(capture._light, tables)
        if state == "latest":
            answer = partial(current_batches, light.reading_in_streams, writes)
            parts = sorted(collected(self._messages.in_streams().mapInArrow(answer, PARTS).collect()).items())
            done = {key: found for key, of_stream in parts for found in of_stream.values()}
        else:
            reading = capture._reading_with(capture._plans)
            rows = self._messages.in_chunks(capture._plans).mapInArrow(partial(file_batches, reading, writes), PARTS)
            done = lakes.publish(light.parts_of(rows.collect()), light, capture._positions)
        log_written(done, light)
        streams = arrow_types(StructType([*self._messages.positions.stream_by]))
        return self._spark.createDataFrame(with_streams(done, streams, RESULT))

    @property
    def position(self) -> Any:
        """Where to go on: a CapturePosition, or with stream_by a dict of the streams' values to their positions.

        It covers all transactions that have ended. Streams of `after` without new messages stay where they were.
        """
        found = self._positions
        if self._messages.positions.stream_by:
            return {tuple(json.loads(key)): position for key, position in found.items()}
        return found.get(stream_key(()), CapturePosition(self._format))

    @property
    def _positions(self) -> dict[str, CapturePosition]:
        """The positions by stream."""
        planned = self._light.planned
        oldest = {key: plan.oldest_open for key, plan in planned.items()}
        relations = self._relations_in({chunk for chunk in oldest.values() if chunk is not None})
        found = dict(self._after)
        for key, plan in planned.items():
            changes = self._light.reading.relation_changes.get(key, ())
            reached = plan.position(self._format, changes, relations.get((oldest[key], key)))
            found[key] = reached._replace(slot=found[key].slot) if key in found else reached
        return found

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions that ended without a known PREPARE."""
        found: list[str] = []
        for plan in self._light.planned.values():
            plan.check()
            found += plan.planned.machine.unknown_prepared
        return tuple(found)

    @property
    def dropped(self) -> int:
        """The number of records that DROPMALFORMED skipped."""
        return sum(map(self._light.dropped_of, self._light.summaries))

    @property
    def _listed(self) -> pa.Table:
        return self._light.listed

    def _of_tables(self, tables: Sequence[str] | None) -> Capture:
        """Returns this capture, or one that steps over other tables than these if a row of those cannot be read."""
        light = self._light.stepping_over(tables)
        if light is self._light:
            return self
        found = copy(self)
        found._light = light
        return found

    def _typed_table(
        self,
        table: str,
        schema: Any,
        *,
        images: str = "new",
        evolution: str = "union",
        complete: bool = False,
        split_key_changes: bool = False,
        keys: Sequence[str] | None = None,
    ) -> TypedTable:
        """Returns the checked arguments of `typed`."""
        one_of("evolution", evolution, ("union", "error"))
        one_table(table)
        if schema is None:
            check_listed(self._listed, table, self._format)
            if evolution == "error":
                check_one_version(self._listed, table)
        given = arrow_columns(schema) if isinstance(schema, StructType) else self._listed if schema is None else schema
        return TypedTable(
            table,
            spark_columns(given, table, self._format),
            self._versions(table),
            self._versions_before(table),
            self._format,
            str(self._options["mode"]),
            {
                "images": images,
                "evolution": evolution,
                "complete": complete,
                "split_key_changes": split_key_changes,
                "keys": keys,
            },
        )

    def _versions(self, table: str) -> pa.Table | None:
        """Returns the list of the tables, of which a chunk sees only some versions; None if it lacks this one."""
        return self._listed if rows_of(self._listed, table) else None

    def _latest_in_order(self, asked: TypedTable, keys: Sequence[str]) -> DataFrame:
        """Returns the current rows of a table, in a task for each stream.

        keys   (): the identities that the stream states
        """
        from wireformat.arrow.typed_tables.latest import latest as current_rows  # loads numba

        empty = pa.Table.from_batches([], asked.part().schema)
        schema, fields = self._schema_of_answer(current_rows(empty, ()).schema)
        reading = self._light.reading_in_streams
        own = {key: of_table(self._light.listed_of(key), one_table(asked.table)) for key in self._light.summaries}
        answer = partial(latest_batches, reading, self._after, asked, keys, own, schema)
        return self._messages.in_streams().mapInArrow(answer, fields)

    def _versions_before(self, table: str) -> Mapping[tuple[str, int | None], int]:
        return self._light.versions_before(self._light.all_streams).get(one_table(table), {})

    @property
    def _plans(self) -> Plans:
        return self._light.plans

    def _relations_in(self, chunks: Collection[int]) -> dict[tuple[int | None, str], tuple[Relation, ...]]:
        """Returns the relations before the oldest message that is needed at the end of each chunk, by its streams."""
        if not chunks:
            return {}
        count = len(self._messages.positions.stream_by)
        plans = {chunk: self._plans[chunk] for chunk in chunks}
        schema = pa.schema([("chunk", pa.int32()), ("position", pa.string())])
        rows = self._answer(ask_position, schema, plans, only_planned=True).collect()
        found = {
            (row[count], stream_key(row[:count])): CapturePosition.from_json(row[count + 1]).relations for row in rows
        }
        if any((chunk, stream) not in found for chunk, of_streams in plans.items() for stream in of_streams):
            raise other_rows("the same partitions as before", "less of them")
        return found

    def _answer(
        self,
        ask: Ask,
        schema: pa.Schema,
        plans: Plans | None,
        *,
        only_planned: bool = False,
        tables: Sequence[str] | None = None,
    ) -> DataFrame:
        """Returns the answers of all chunks, with the columns stream_by first.

        schema         of an answer
        plans          of the chunks, by number; None if the question is about records, and not about transactions
        only_planned   reads only the chunks of these plans
        tables         patterns: only row changes of these tables are read at all
        """
        given, fields = self._schema_of_answer(schema)
        if plans is None:  # otherwise the light pass has judged the messages
            self._light.check()
            plans = self._light.counts
        answer = partial(answer_batches, self._reading_with(plans, tables), ask, given)
        rows = self._messages.in_chunks(plans, only_planned=only_planned)
        return rows.mapInArrow(answer, fields)

    def _schema_of_answer(self, schema: pa.Schema) -> tuple[pa.Schema, StructType]:
        """Returns the schema of an answer with the columns stream_by first, for Arrow and for Spark."""
        streams = self._messages.positions.stream_by
        self._messages.positions.check_result(schema.names)
        fields = with_format(from_arrow_schema(schema.remove_metadata()).fields, self._format)
        return pa.schema([*arrow_types(StructType([*streams])), *schema]), StructType([*streams, *fields])

    def _reading_with(self, plans: Plans, tables: Sequence[str] | None = None) -> Reading:
        """Returns the reading with the plans of chunks, if they are not among the messages."""
        own = plans if self._messages.are_chunks else None
        reading = self._light.reading if tables is None else self._light.reading_of(tables)
        return replace(reading, is_planned=True, plans=own, has_empty=self._light.has_empty)


class StreamCapture(StreamAnswers, Capture):
    """Streams of messages in a streaming DataFrame; `capture` makes it. See StreamAnswers for what is different."""
