"""`LightPass`: what the control records and tables of all chunks say, found once for all questions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, StructField, StructType

import wireformat as wf
from wireformat.errors import add_hint
from wireformat.sources.resumption import OpenBefore
from wireformat.stream.capture_position import CapturePosition
from wireformat.stream.chunk_plan import ChunkPlan, controls_of

from ..schemas import arrow_types
from .files import FileMessages, Read
from .frames import Messages
from .groups import NotSorted, OtherPartitions, stream_key
from .plan import StreamPlan, plan_stream
from .reading import (
    NO_MESSAGES,
    PARTITION_ERRORS,
    PARTS,
    Reading,
    error_batches,
    needed_batches,
    other_rows,
    record_batches,
    summary_batches,
)

if TYPE_CHECKING:
    from wireformat.arrow.typed_tables.observations import Observation
    from wireformat.arrow.typed_tables.versions import TableVersions
    from wireformat.arrow.unread import ReadSummary
    from wireformat.chunks.summary import ChunkSummary, RowFacts
    from wireformat.formats.pgoutput.undelivered import Described, Descriptions

OF_TRANSACTIONS = ("strict", "exclude_users", "skip_empty_xacts")
"""The options for which a chunk must know the records of the others."""


class LightPass:
    """What a look through all messages finds, each part of it when it is first asked for.

    messages   of all streams
    format     name of the format
    options    of wf.Capture
    after      the positions after which the streams go on
    skips_unread   leaves out records that could not be read
    tables     patterns: steps over row changes of other tables

    has_empty  whether some partitions have no messages; known after the summaries

    The streams are named by texts, see `stream_key`. Raises the first error of the messages, and BadRows.
    """

    def __init__(
        self,
        messages: Messages | FileMessages,
        format: str,
        options: Mapping[str, Any],
        after: Mapping[str, CapturePosition],
        skips_unread: bool = False,
        tables: Sequence[str] | None = None,
    ) -> None:
        self._skips_unread = skips_unread
        self._tables = tables
        self.has_empty = False
        self._bad_row: wf.DecodeError | None = None
        self._others: dict[tuple[str, ...], LightPass] = {}
        self._messages = messages
        self._format = format
        self._options = options
        self._after = after
        self._descriptions: dict[str, Descriptions] = {}

    @property
    def first_reading(self) -> Reading:
        """How the workers read the messages before the relations are known."""
        positions = self._messages.positions
        streams, order = (tuple(f.name for f in fields) for fields in (positions.stream_by, positions.order_by))
        delivered = {stream: position.delivered for stream, position in self._after.items()}
        ranges, from_files = self._messages.ranges, isinstance(self._messages, FileMessages)
        return Reading(
            self._format,
            self._options,
            streams,
            order,
            delivered=delivered,
            ranges=ranges,
            from_files=from_files,
            skips_unread=self._skips_unread,
        )

    @cached_property
    def reading(self) -> Reading:
        """How the workers read the messages, with what they must know of other chunks."""
        return self.reading_of(self._tables)

    def stepping_over(self, tables: Sequence[str] | None) -> LightPass:
        """Returns this pass, or one that steps over other tables than these if a row could not be read.

        An answer steps over them, too, and counts such a row. With options OF_TRANSACTIONS that is an OrderError.
        """
        if tables is None or self._tables is not None:
            return self
        if self._options["mode"] != "FAILFAST" and any(self._options[name] for name in OF_TRANSACTIONS):
            self.check_order()
            return self
        if not self._skips_unread:
            try:
                if self._bad_row is None and not self._lacks_rows:
                    return self
            except wf.DecodeError as error:
                self._bad_row = error
        if self._bad_row is not None:
            names = self._bad_row.names
            if names is None or wf.ReadOptions.check(tables=tables).keeps_table(names):
                raise self._bad_row
        arguments = (self._messages, self._format, self._options, self._after, self._skips_unread, tables)
        return self._others.setdefault(tuple(tables), LightPass(*arguments))

    def reading_of(self, tables: Sequence[str] | None) -> Reading:
        """Returns how the workers read the messages if only row changes of these tables are wanted.

        tables   patterns. They decide which transactions are empty, if those are left out
        """
        from wireformat.chunks.records import needs_records, records_before

        options = wf.ReadOptions.check(**{name: self._options[name] for name in OF_TRANSACTIONS})
        if not needs_records(options):
            return self._reading
        parts = self._parts(lambda: partial(record_batches, self._reading, tables), is_whole=True)
        self._messages.count(seen.messages for seen in parts.get(stream_key(()), {}).values())
        before = {
            stream: dict(zip(chunks, records_before(chunks.values(), self._format, options), strict=True))
            for stream, chunks in parts.items()
        }
        return replace(self._reading, before=before)

    @cached_property
    def _reading(self) -> Reading:
        """How the workers read the messages, with what messages of pgoutput change of relations."""
        if self._format != "pgoutput":
            return self.first_reading
        from wireformat.chunks.relations import relation_changes
        from wireformat.formats.pgoutput.undelivered import Descriptions

        parts = self._parts(lambda: partial(needed_batches, self.first_reading), relations_only=True)
        reading = self.first_reading
        options = wf.ReadOptions.check(
            encoding=self._options["encoding"],
            encoding_errors=self._options["encoding_errors"],
            dialect=self._options["dialect"],
            mode="PERMISSIVE",
        )
        streams = {*parts, *self._after}
        self._descriptions = {stream: Descriptions() for stream in streams}
        changes = {
            stream: tuple(
                relation_changes(
                    [(reading.rank(stream, chunk), found) for chunk, found in parts.get(stream, {}).items()],
                    options,
                    self._after[stream].first_relations if stream in self._after else (),
                    descriptions,
                )
            )
            for stream, descriptions in self._descriptions.items()
        }
        return replace(reading, relation_changes=changes)

    @cached_property
    def summaries(self) -> dict[str, dict[int, ChunkSummary]]:
        """The summary of each chunk of each stream; raises DecodeError or BadRows if no row could be read."""
        self.check()
        self._seen.check(self._format)
        return self._all_summaries

    @cached_property
    def _all_summaries(self) -> dict[str, dict[int, ChunkSummary]]:
        found = self._parts(lambda: partial(summary_batches, self.reading, self._tables), is_whole=True)
        try:
            self._messages.check(self._format, found)
        except wf.DecodeError as error:  # rows of a block look damaged without its beginning
            add_hint(error, self._open_before(found, error))
            raise
        return found

    def _open_before(self, found: Mapping[str, Mapping[int, ChunkSummary]], error: wf.DecodeError) -> str | None:
        """Returns what was open at the position of a stream, and has not come again before an error of a chunk."""
        for stream, summaries in found.items():
            open_before = OpenBefore(self._after.get(stream))
            for summary in summaries.values():
                open_before.take_controls(controls_of(summary.items))
                if summary.error is error:
                    return open_before.hint()
        return None

    @property
    def _lacks_rows(self) -> bool:
        """Whether a record could not be read, in PERMISSIVE or DROPMALFORMED."""
        found = (one for chunks in self._all_summaries.values() for one in chunks.values())
        return any(one.dropped or (one.items and isinstance(one.items[-1], wf.OrderError)) for one in found)

    @cached_property
    def _seen(self) -> ReadSummary:
        from wireformat.chunks.summary import seen_in

        return seen_in(summary for chunks in self._all_summaries.values() for summary in chunks.values())

    def check(self) -> None:
        """Raises what `wireformat.Capture.changes` raises for the same messages."""
        self._seen.check_format(self._format, str(self._options["mode"]))

    @cached_property
    def planned(self) -> dict[str, StreamPlan]:
        """The plan of each stream; raises OrderError, DecodeError or BadRows if no row could be read."""
        self.check()
        try:
            found = {
                stream: plan_stream(
                    summaries,
                    self._after.get(stream),
                    str(self._options["two_phase"]),
                    bool(self._options["drop_resent"]),
                )
                for stream, summaries in self._all_summaries.items()
            }
            self._check_order(found, every=not self._seen.is_read)
        except wf.OrderError as error:
            add_hint(error, self._seen.hint())
            raise
        self._seen.check(self._format)
        return found

    def check_order(self) -> None:
        """Raises the first OrderError of a stream, which names its message."""
        self._check_order(self.planned, every=True)

    def _check_order(self, planned: Mapping[str, StreamPlan], *, every: bool) -> None:
        """Raises the first OrderError of a stream as the chunk raises it in which it is: plans do not know messages.

        every   also those that the answers raise; otherwise only those of streams that cannot go on after a position
        """
        for stream, plan in planned.items():
            error = plan.error if every else plan.refused
            if error is not None:
                chunk = plan.last_read
                plans = {chunk: {key: one.plans[chunk] for key, one in planned.items() if chunk in one.plans}}
                own = plans if self._messages.are_chunks else None
                reading = replace(self.reading, is_planned=True, plans=own, has_empty=self.has_empty)
                find = partial(error_batches, reading, self._tables)
                rows = self._messages.map_chunks(find, PARTS, plans, only_planned=True)
                raise self.parts_of(rows.collect()).get(stream, {}).get(chunk, error)

    @cached_property
    def plans(self) -> dict[int, dict[str, ChunkPlan]]:
        """The plans of all chunks: of each number, those of its streams."""
        found: dict[int, dict[str, ChunkPlan]] = {}
        for stream, plan in self.planned.items():
            for chunk, one in plan.plans.items():
                found.setdefault(chunk, {})[stream] = one
        return found

    @cached_property
    def counts(self) -> dict[int, dict[str, ChunkPlan]]:
        """Plans of all chunks that say only how many messages they have, for a question that needs no more."""
        found: dict[int, dict[str, ChunkPlan]] = {}
        for stream, chunks in self._all_summaries.items():
            for chunk, summary in chunks.items():
                found.setdefault(chunk, {})[stream] = ChunkPlan(messages=summary.messages)
        return found

    @property
    def reading_in_streams(self) -> Reading:
        """How tasks read whole streams, not the ranges of chunks."""
        return replace(
            self.first_reading, ranges=None, stream_messages={key: self.messages_of(key) for key in self.summaries}
        )

    @property
    def plans_of_streams(self) -> dict[str, ChunkPlan]:
        """Plans that say only how many messages each stream has."""
        return {key: ChunkPlan(messages=self.messages_of(key)) for key in self.summaries}

    @cached_property
    def listed(self) -> pa.Table:
        """The list of the tables of all streams; `first` and `last` have the columns order_by and the record."""
        return self._list(self.all_streams)

    @property
    def listed_with_others(self) -> pa.Table:
        """The same, also of tables that this pass steps over."""
        if self._tables is None:
            return self.listed
        options = {**self._options, "mode": "PERMISSIVE"}
        return LightPass(self._messages, self._format, options, self._after).listed

    @cached_property
    def listed_of_each(self) -> pa.Table:
        """The lists of the tables of each stream, with the columns stream_by first."""
        fields = arrow_types(StructType([*self._messages.positions.stream_by]))
        if not fields:
            return self.listed
        found = {stream: self.listed_of(stream) for stream in self.all_streams}
        return with_streams(found, fields, self._list([]).schema)

    def listed_of(self, stream: str, known: Mapping[tuple[str, str], TableVersions] | None = None) -> pa.Table:
        """Returns the list of the tables of a stream.

        known   the versions that tables had before
        """
        return self._list([stream], known)

    def dropped_of(self, stream: str) -> int:
        """Returns the number of records of a stream that DROPMALFORMED skipped."""
        return sum(summary.dropped for summary in self.summaries.get(stream, {}).values())

    def messages_of(self, stream: str) -> int:
        """Returns the number of messages of a stream."""
        return sum(summary.messages for summary in self.summaries.get(stream, {}).values())

    @property
    def all_streams(self) -> list[str]:
        """The streams, as the list of all tables takes them."""
        return sorted({*self.summaries, *self._after}, key=json.loads)

    def _list(self, streams: Iterable[str], known: Mapping[tuple[str, str], TableVersions] | None = None) -> pa.Table:
        from wireformat.arrow.typed_tables.observations import tables_of_observations

        order = arrow_types(StructType([*self._messages.positions.order_by, StructField("record", IntegerType())]))
        streams = [*streams]
        observed = [one for stream in streams for one in self._observed(stream, order.names)]
        left_out = self._undelivered(streams)
        position = pa.struct([field.with_nullable(True) for field in order])  # null before the first message
        return tables_of_observations(observed, self._format, position, known or {}, left_out)

    def _undelivered(self, streams: Iterable[str]) -> frozenset[Described]:
        """Returns what some of these streams describe, and none of them in a committed transaction.

        Known after the summaries.
        """
        from wireformat.formats.pgoutput.undelivered import undelivered

        return undelivered(self._descriptions[stream] for stream in streams if stream in self._descriptions)

    def versions_before(
        self, streams: Sequence[str], known: Mapping[tuple[str, str], TableVersions] | None = None
    ) -> dict[tuple[str, str], dict[tuple[str, int | None], int]]:
        """Returns the index of the version that a table with several ones has at its first row in each chunk.

        streams, known   of the list of tables that has the versions

        By the table, and by stream and chunk.
        """
        from wireformat.arrow.typed_tables.observations import first_versions

        observed = [((stream, chunk), one) for stream in streams for chunk, one in self._observed_in_chunks(stream, ())]
        return first_versions(observed, self._format, known or {}, self._undelivered(streams))

    def _observed(self, stream: str, order: Sequence[str]) -> Iterator[Observation]:
        """Yields what is known of the tables of a stream, in the order of its messages."""
        return (one for _, one in self._observed_in_chunks(stream, order))

    def _observed_in_chunks(self, stream: str, order: Sequence[str]) -> Iterator[tuple[int | None, Observation]]:
        """Yields the same with the number of the chunk; None before the first one."""
        from wireformat.chunks.summary import observed_before

        after = self._after.get(stream)
        for one in () if after is None else observed_before(after.first_relations, self._format):
            before_all = {**dict.fromkeys(order), "record": one.first["record"]}
            yield None, one._replace(first=before_all, last=before_all)
        for chunk, summary in self.summaries.get(stream, {}).items():
            for one in summary.observed:
                yield chunk, one

    def row_facts(self, table: tuple[str, str]) -> list[RowFacts]:
        """Returns what all changes of a table have in common, of each stream, also of those that are not committed."""
        from wireformat.chunks.summary import RowFacts, facts_before

        found = []
        for stream, summaries in self.summaries.items():
            known = self._after[stream].first_relations if stream in self._after else ()
            before = facts_before(one for one in known if (one.table_schema, one.table_name) == table)
            of_chunks = (one.row_facts.get(table, RowFacts()) for one in summaries.values())
            found.append(reduce(RowFacts.and_those, of_chunks, before))
        return found

    def check_whole(self, parts: Mapping[str, Mapping[int, Any]]) -> None:
        """Raises BadRows unless there is a part for each chunk."""
        if not _are_in(self.summaries, parts):
            raise other_rows("the same partitions as before", "less of them")

    def parts_of(self, parts: Iterable[Row]) -> dict[str, dict[int, Any]]:
        """Returns the contents of rows of PARTS, by stream and number of the chunk, in the order of the stream."""
        rank = self.first_reading.rank
        return {
            stream: dict(sorted(chunks.items(), key=lambda item: rank(stream, item[0])))
            for stream, chunks in collected(parts).items()
        }

    def _parts(
        self, find: Callable[[], Read], *, relations_only: bool = False, is_whole: bool = False
    ) -> dict[str, dict[int, Any]]:
        """Returns what `find` finds in each chunk. Partitions that are no chunks are sorted, or sorted into chunks.

        find             makes what looks through the rows of a task; its result has the columns PARTS
        relations_only   looks at the messages that describe relations only
        is_whole         finds something in each chunk
        """
        for _ in range(4):  # each remedy helps, unless the DataFrame is another one each time it is read
            try:
                found = find()  # may sort the messages, so it comes first
                rows = self._messages.map_chunks(found, PARTS, relations_only=relations_only).collect()
                parts = self.parts_of(row for row in rows if row["stream"] != NO_MESSAGES)
                self.has_empty |= any(row["stream"] == NO_MESSAGES for row in rows)
                if is_whole and not _are_in(self._messages.ranges or {}, parts):
                    raise OtherPartitions
                return parts
            except (NotSorted, OtherPartitions) as error:
                remedy = self._messages.sort if isinstance(error, NotSorted) else self._messages.shuffle
                remedy()
                for name in ("_reading", "reading"):
                    self.__dict__.pop(name, None)
        raise other_rows("messages that Spark sorts by stream and position", "another order after it has sorted them")


def _are_in(chunks: Mapping[str, Mapping[int, Any]], parts: Mapping[str, Mapping[int, Any]]) -> bool:
    """Whether there is a part for each chunk of each stream."""
    return all(of_stream.keys() <= parts.get(stream, {}).keys() for stream, of_stream in chunks.items())


def collected(parts: Iterable[Row]) -> dict[str, dict[int, Any]]:
    """Returns the contents of rows of PARTS, by stream and number of the chunk."""
    found: dict[str, dict[int, Any]] = {}
    for row in parts:
        if row["stream"] in PARTITION_ERRORS:
            raise PARTITION_ERRORS[row["stream"]]
        of_stream = found.setdefault(row["stream"], {})
        if row["chunk"] in of_stream:
            raise OtherPartitions  # Spark has given two partitions one number, as of rows that lie in the plan
        of_stream[row["chunk"]] = pickle.loads(row["found"])
    return found


def with_streams(found: Mapping[str, pa.Table], fields: pa.Schema, schema: pa.Schema) -> pa.Table:
    """Returns the rows of all streams, with the columns stream_by first.

    fields   stream_by
    schema   of the rows of a stream
    """
    tables = [pa.schema([*fields, *schema]).empty_table()]
    for stream, rows in found.items():
        for index, (field, value) in enumerate(zip(fields, json.loads(stream), strict=True)):
            rows = rows.add_column(index, field, pa.repeat(pa.scalar(value, field.type), len(rows)))
        tables.append(rows)
    return pa.concat_tables(tables).combine_chunks()  # Spark loses the rows after an empty chunk
