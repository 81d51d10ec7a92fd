"""The messages of a capture as a DataFrame: each partition is a chunk of the streams."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from wireformat.chunks.relations import NEEDED_TAGS

from ..decoding.relations import is_of_kind
from ..positions import MOST_CHUNKS, PositionColumns, chunk_from, chunk_of
from .extents import Extent, of_partitions, overlap, ranges_of
from .files import Read
from .frame_files import FrameFiles, is_local
from .groups import Range

if TYPE_CHECKING:
    from wireformat.chunks.summary import ChunkSummary
    from wireformat.stream.chunk_plan import ChunkPlan

MOST_PARTITIONS = 20_000
"""The largest number of partitions that are taken as chunks: each task gets the plans of all of them."""


FILES_PER_PARTITION = 8
"""If what a partition has of a file is a chunk, partitions have at most this many files on average. Each chunk has
a summary and a plan of its own, so the messages of many small files are sorted into fewer chunks."""


class Messages:
    """The messages of a capture.

    df          with the columns of `positions`, and others
    payload     the binary column with the messages
    positions   the columns that give stream and position of a message
    chunks      the number of chunks that the messages are sorted into. None takes the partitions of df as they are if
                each has ranges of its own of the streams; otherwise it is spark.sql.shuffle.partitions
    files       that the tasks read themselves if each has ranges of its own, in order: chunks are ranges of the files
    """

    def __init__(
        self,
        df: DataFrame,
        payload: Column,
        positions: PositionColumns,
        chunks: int | None,
        files: FrameFiles | None = None,
    ) -> None:
        self.df = df
        self.positions = positions
        self.payload = payload
        self._given = chunks
        self._files = files
        self._is_sorted = False
        self._starts: list[tuple[Any, ...]] | None = None
        """The first stream and position of each chunk, if chunks are what partitions have of files."""

    @property
    def session(self) -> SparkSession:
        """The session of the DataFrame."""
        return self.df.sparkSession

    def count(self, messages: Iterable[int]) -> None:
        """Does nothing: messages have positions of their own."""

    def check(self, format: str, summaries: Mapping[str, Mapping[int, ChunkSummary]]) -> None:
        """Raises the first error of the messages."""
        for of_stream in summaries.values():
            for summary in of_stream.values():
                if summary.error is not None:
                    raise summary.error

    @property
    def fields(self) -> list[StructField]:
        """The columns of a chunk: chunk, stream_by, order_by, message. A plan has nulls in place of a position."""
        types = [IntegerType(), *(field.dataType for field in self.positions.fields), BinaryType()]
        return [StructField(str(index), type) for index, type in enumerate(types)]

    @property
    def are_chunks(self) -> bool:
        """Whether the partitions of df are taken as chunks."""
        return self.ranges is not None

    @cached_property
    def ranges(self) -> dict[str, dict[int, Range]] | None:
        """Where partitions or files are taken as chunks: what each has of each stream; otherwise None.

        Spark puts files into partitions by their sizes. If partitions have no ranges of their own, but what each has of
        a file does, that is a chunk. The numbers of these chunks ascend with the positions; those of files that the
        tasks read ascend with the names of the files.
        """
        if self._given is not None:
            return None
        if self._files is not None:
            of_ranges = self._files.extents() or []
            extents = [extent for extent, _ in of_ranges]
            if extents and not overlap(extents):
                return ranges_of(extents, [number for _, number in of_ranges])
            self._files = None
        of_files = self._extents(MOST_PARTITIONS, F.input_file_name(), F.input_file_block_start())
        found = self._extents(MOST_PARTITIONS) if of_files is None else of_partitions(of_files)
        if found is None or overlap(found):
            return self._ranges_of_files(of_files or [])
        if all(one.partition == 0 for one in found) and is_local(self.df):
            # Of a local relation, Spark computes the column `partition` before it makes partitions.
            self.df = self.df.coalesce(1)
        return self._ranges(found, [one.partition for one in found])

    def _ranges_of_files(self, found: Sequence[Extent]) -> dict[str, dict[int, Range]] | None:
        most = min(MOST_CHUNKS - 1, max(self._chunks, FILES_PER_PARTITION * len({one.partition for one in found})))
        if not found or len(found) > most or overlap(found):
            return None
        self._starts = [(*one.stream, *one.first) for one in found]
        if self._streams:
            self.sort()  # the rows of streams may alternate in a file
        return self._ranges(found, range(len(found)))

    def _extents(self, most: int, *parts: Column) -> list[Extent] | None:
        """Returns the first and the last position that each partition has of each stream, in the order of stream and
        position; None if there are too many of them, or no such parts.

        parts   divide the rows of a partition
        """
        streams = [column.alias(f"s{index}") for index, column in enumerate(self._streams)]
        position = F.struct(*[column.alias(f"o{index}") for index, column in enumerate(self._order)])
        divided = [part.alias(f"p{index}") for index, part in enumerate((F.spark_partition_id(), *parts))]
        names = [f"s{index}" for index in range(len(streams))]
        row = F.monotonically_increasing_id().alias("row")
        # the columns of groups are asked for: a setting of the session leaves them out
        kept = [f"first({name}) AS of_{name}" for name in (*names, "p0")]
        try:
            found = (
                self.df.select(*streams, *divided, row, position.alias("at"))
                .groupBy(*names, *[f"p{index}" for index in range(len(divided))])
                .agg(
                    *[F.expr(text) for text in (*kept, "min(at) AS first", "max(at) AS last", "min(row) AS row")],
                    *[F.expr(text) for text in ("first(at) <> min(at)", "last(at) <> max(at)")],
                )
                .orderBy(*[f"of_{name}" for name in names], "first")
                .limit(most)
                .collect()
            )
        except AnalysisException:  # Spark names no file where a DataFrame has several sources
            if not parts:
                raise
            return None
        if len(found) == most:
            return None
        return [
            Extent(
                tuple(row[f"of_{name}"] for name in names),
                tuple(row["first"]),
                tuple(row["last"]),
                row["of_p0"],
                row["row"],
                *row[-2:],
            )
            for row in found
        ]

    def _ranges(self, found: Sequence[Extent], numbers: Sequence[int]) -> dict[str, dict[int, Range]]:
        """Returns these extents as the ranges of chunks with these numbers."""
        if any(one.begins_later or one.ends_earlier for one in found):
            self.sort()  # as where Spark has put files into a partition by their sizes: no task need find it out
        return ranges_of(found, numbers)

    @property
    def _streams(self) -> list[Column]:
        return self.positions.columns[: len(self.positions.stream_by)]

    @property
    def _order(self) -> list[Column]:
        return self.positions.columns[len(self.positions.stream_by) :]

    @cached_property
    def _chunks(self) -> int:
        if self._given is not None:
            return self._given
        return min(int(str(self.df.sparkSession.conf.get("spark.sql.shuffle.partitions"))), MOST_CHUNKS)

    @cached_property
    def _chunk(self) -> Column:
        """The number of a message's chunk. It is sampled once, so each reading has the same chunks."""
        if self.are_chunks:
            return F.spark_partition_id() if self._starts is None else chunk_from(self.positions, self._starts[1:])
        return chunk_of(self.df, self.positions, self._chunks)

    def sort(self) -> None:
        """From now on, sorts the messages of each partition. Files that the tasks have read, Spark reads instead."""
        self._is_sorted = self._files is None
        if self._files is not None:
            self._files = None
            self.__dict__.pop("ranges", None)

    def shuffle(self) -> None:
        """From now on, sorts the messages into chunks. The partitions of a DataFrame can differ from query to query."""
        self._given, self._starts, self._files = self._chunks, None, None
        for name in ("ranges", "_chunk"):
            self.__dict__.pop(name, None)

    @property
    def streams(self) -> list[tuple[Any, ...]]:
        """The values of stream_by of each stream, sorted."""
        if not self._streams:
            return [()]
        if self.ranges is not None:
            return sorted(tuple(json.loads(key)) for key in self.ranges)
        return sorted(tuple(row) for row in self.df.select(*self._streams).distinct().collect())

    def map_streams(self, plans: Mapping[str, ChunkPlan], read: Read, schema: Any) -> DataFrame:
        """Returns what a function makes of the messages of each stream, which are in one partition, sorted.

        plans   by the stream. Each precedes the messages of its stream, whose task would not know that it has lost all
        """
        columns = [F.lit(0), *self.positions.columns, self.payload]
        rows = self.df.select(*[column.alias(field.name) for column, field in zip(columns, self.fields, strict=True)])
        streams = [field.name for field in self.fields[1 : 1 + len(self._streams)]]
        nothing = [None] * len(self._order)
        given = [(0, *json.loads(key), *nothing, pickle.dumps({key: plan})) for key, plan in plans.items()]
        rows = rows.unionAll(self.session.createDataFrame(given, StructType(self.fields)))
        parts = rows.repartition(self._chunks, *streams) if streams else rows.repartition(1)
        return parts.sortWithinPartitions(*[field.name for field in self.fields[:-1]]).mapInArrow(read, schema)

    def map_chunks(
        self,
        read: Read,
        schema: Any,
        plans: Mapping[int, Any] | None = None,
        *,
        relations_only: bool = False,
        only_planned: bool = False,
    ) -> DataFrame:
        """Returns what a function makes of the messages of each chunk, in the order of stream and position.

        read             takes chunk, stream_by, order_by and message
        plans            what the task of a chunk gets before its first message, by the number of the chunk. Where
                         partitions or files are chunks, the tasks must get it otherwise
        relations_only   only messages that describe relations of pgoutput, and that begin or end their validity
        only_planned     only the chunks of `plans`

        Where partitions are chunks, their order is that of df until `sort` is called.
        """
        if self.are_chunks and self._files is not None:
            only = (plans or ()) if only_planned else None
            return self._files.map(read, schema, relations_only=relations_only, only=only)
        return self._in_chunks(plans, relations_only, only_planned).mapInArrow(read, schema)

    def _in_chunks(self, plans: Mapping[int, Any] | None, relations_only: bool, only_planned: bool) -> DataFrame:
        """Returns the messages, a chunk in each partition; see `map_chunks`."""
        df = self.df.where(is_of_kind(self.payload, NEEDED_TAGS)) if relations_only else self.df
        columns = [self._chunk, *self.positions.columns, self.payload]
        rows = df.select(*[column.alias(field.name) for column, field in zip(columns, self.fields, strict=True)])
        order = [field.name for field in self.fields[:-1]]
        if only_planned:
            rows = rows.where(F.col(order[0]).isin([*(plans or ())]))
        if self.are_chunks:
            return rows.sortWithinPartitions(*order) if self._is_sorted else rows
        if plans is not None:
            nothing = [None] * len(self.positions.fields)
            given = [(number, *nothing, pickle.dumps(plan)) for number, plan in plans.items()]
            rows = rows.unionAll(self.df.sparkSession.createDataFrame(given, StructType(self.fields)))
        return rows.repartitionById(self._chunks, "0").sortWithinPartitions(*order)
