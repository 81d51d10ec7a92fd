"""capture: the questions of `wireformat.Capture` about a DataFrame of raw messages, in batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.arrow.schemas import committed_schema
from wireformat.arrow.typed_tables.listed import (
    check_listed,
    identities,
    lasting_identity,
    replica_identity,
    rows_of,
    states_identity,
)
from wireformat.formats.registry import find_format_name
from wireformat.limits import OPEN_TRANSACTIONS_BYTES
from wireformat.options.checks import one_of, texts
from wireformat.options.keywords import checks_keywords
from wireformat.options.table_names import one_table, written
from wireformat.stream.capture_position import CapturePosition
from wireformat.stream.transactions import TWO_PHASE

from .capture_answers import CaptureAnswers
from .chunks.groups import stream_key
from .chunks.light_pass import collected, with_streams
from .chunks.questions import ask_changes, ask_committed, ask_messages, ask_open, ask_typed
from .chunks.reading import PARTS
from .chunks.writing import current_batches, file_batches
from .given_messages import messages_of_files, messages_of_frame, positions_after
from .schemas import arrow_schema, arrow_types, change_names, frame_of
from .streams import StreamAnswers, check_stream
from .tables.latest import checked_rows, latest_rows
from .tables.latest_by_key import rows_of_steps

_UNKEYED = {"full", "nothing"}
"""The replica identities of rows of which there may be equal ones; see RowFacts."""


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

    df          a DataFrame; or give paths. Where it does nothing but read local Parquet files, the workers read those
    payload     the binary column with the messages, `value` if it is None. Nulls are skipped. With paths, None finds
                the column
    format      the name of the format
    paths       files of one stream that the workers read themselves: a path, a pattern, a folder or a list of paths, as
                in `wireformat.Capture`, or with `file:` before it. The driver and all workers must be able to read
                them. A message's position is its index in all files, `message`
    order_by    columns of df (integers or strings) that order the messages; their values must be unique within a stream
    stream_by   columns (integers or strings) that identify a stream, if df has more than one
    after       the `position` of an earlier capture, to go on after it: with stream_by, a dict of tuples of the
                streams' values to positions
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
    messages = messages_of_frame(df, "value" if payload is None else payload, name, order_by, stream_by, chunks)
    if df.isStreaming:
        check_stream(after=after, chunks=chunks)
    make = StreamCapture if df.isStreaming else Capture
    return make(messages, name, options, positions_after(after, name, messages.positions.stream_by))


class Capture(CaptureAnswers):
    """Streams of messages on Spark, and questions about them; `capture` returns one.

    A light pass over the messages finds the control records and the tables, once for all questions; its result on the
    driver grows with chunks, tables and open transactions, not with rows. What returns rows returns a DataFrame that
    reads the messages once more when it is computed: from bytes to the result in the worker. The columns stream_by come
    first in each result.

    A call raises OptionError, and what is wrong with the messages as far as the light pass finds it: DecodeError (in
    FAILFAST), OrderError or BadRows. Other errors, such as BadCell, end the query that computes a result; it has their
    text.
    """

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
        asked = self._of_tables(tables) if self._options["mode"] == "FAILFAST" else self  # else no record is an error
        return asked._answer(ask, schema, None, tables=tables)

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
        return frame_of(self._spark, self._light.listed_of_each)

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
        was dropped and added again, one task reads all messages of a stream, and holds its table in memory. Raises
        OptionError, also if keys is None and the streams do not state the replica identity, and BadRows.
        """
        own = self._of_tables([written(one_table(table))])
        if own is not self:
            return own.latest(table, keys=keys, schema=schema)
        asked = self._typed_table(table, schema)
        part = asked.part()
        whole = part.schema
        facts = self._light.row_facts(one_table(table))
        if schema is not None:
            for names in [texts("keys", keys)] if keys else identities(self._listed, table):
                part.check_has_keys(names or ())
        if not keys:
            check_listed(self._listed, table, self._format)
            if keys is None and not states_identity(self._listed, table):
                replica_identity(self._listed, table)  # raises what is wrong
            keys = lasting_identity(self._listed, table)
            kinds = {kind for one in facts for kind in one.identities}
            if keys == [] and kinds - _UNKEYED:  # all columns are a key: updates may have no old row
                keys = None if kinds & _UNKEYED else rows_of(self._listed, table)[-1]["columns"]
                part.check_has_keys(keys or ())
            if keys is None:
                return self._latest_in_order(asked, ())
        typed = self._answer(partial(ask_typed, asked), whole, self._plans)
        rows = checked_rows(typed, keys, [field.name for field in self._messages.positions.stream_by])
        if any(one.loses_values(keys) for one in facts):
            return self._latest_in_order(asked, keys)
        if not rows.keys or not all(one.are_whole(field.name for field in rows.fields) for one in facts):
            return latest_rows(rows)
        return rows_of_steps(self._steps(asked, rows), rows)

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
        INFO, what was read, written, left open and dropped. Raises OptionError, LakeConflict, MissingExtra, OSError and
        StateError; errors in a worker, such as BadCell, end the query that this call runs, with their text.
        """
        from wireformat.lake.options import LakeOptions
        from wireformat.lake.result import RESULT

        from .chunks.lakes import StreamLakes, log_written
        from .chunks.light_pass import LightPass

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
        with ExitStack() as locks:
            lakes = StreamLakes(locks, folder, options, self._format, self._messages.streams, self._after, mode, order)
            permissive = {**self._options, "mode": "PERMISSIVE"}
            lakes.find_starts(lambda after: LightPass(self._messages, self._format, permissive, after))
            after, reads = {**self._after, **lakes.after}, self._options
            if rejects is not None:
                reads = permissive
            capture = self
            if after != self._after or rejects is not None:
                capture = Capture(self._messages, self._format, reads, after, rejects is not None)
            capture = capture._of_tables(tables)
            light, writes = capture._light, lakes.writes(capture._light, tables)
            if state == "latest":
                answer = partial(current_batches, light.reading_in_streams, writes)
                rows = self._messages.map_streams(light.plans_of_streams, answer, PARTS)
                parts = sorted(collected(rows.collect()).items())
                done = {key: found for key, of_stream in parts for found in of_stream.values()}
            else:
                reading = capture._reading_with(capture._plans)
                rows = self._messages.map_chunks(partial(file_batches, reading, writes), PARTS, capture._plans)
                try:
                    written, positions = light.parts_of(rows.collect()), capture._positions
                except BaseException:
                    lakes.discard()
                    raise
                done = lakes.publish(written, light, positions)
        log_written(done, light)
        streams = arrow_types(StructType([*self._messages.positions.stream_by]))
        return frame_of(self._spark, with_streams(done, streams, RESULT))

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
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions that ended without a known PREPARE."""
        found: list[str] = []
        self._light.check_order()
        for plan in self._light.planned.values():
            found += plan.planned.machine.unknown_prepared
        return tuple(found)

    @property
    def dropped(self) -> int:
        """The number of records that DROPMALFORMED skipped."""
        return sum(map(self._light.dropped_of, self._light.summaries))


class StreamCapture(StreamAnswers, Capture):
    """Streams of messages in a streaming DataFrame; `capture` makes it. See StreamAnswers for what is different."""
