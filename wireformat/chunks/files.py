"""Files of a stream as chunks: each is read without the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from ..arrow.typed_tables.observations import first_versions, tables_of_observations
from ..arrow.typed_tables.tables import POSITION
from ..errors import OrderError
from ..formats.pgoutput.relations import Relations
from ..formats.pgoutput.undelivered import Descriptions, undelivered
from ..formats.registry import find_format_name
from ..options import ReadOptions
from ..options.table_names import TableName
from ..sources.find import SourceOrder, Sources
from ..stream.chunk_plan import ChunkPlan, plan_chunks
from ..stream.transactions import TransactionMachine
from .capture import ChunkCapture
from .file_ranges import RANGE_BYTES, FileRange, file_ranges, first_messages, packed
from .relations import needed_messages, of_needed_kinds, relation_changes, relations_before
from .summary import ChunkSummary, counted_from, seen_in, summarized


def needed_of_files(files: Iterable[FileRange], format: str) -> list[bytes]:
    """Returns the messages of pgoutput in files that describe relations and blocks, without repetitions."""
    arrays = chain.from_iterable(file.arrays(format) for file in files)
    return needed_messages(chain.from_iterable(map(of_needed_kinds, arrays)))


def check_summaries(format: str, chunks: Sequence[Sequence[FileRange]], summaries: Iterable[ChunkSummary]) -> None:
    """Raises the first error of the messages in files, also if the files are not in the order of the stream."""
    order, first = SourceOrder(format), 0
    for files, summary in zip(chunks, summaries, strict=True):
        for begin in summary.begins[:1]:
            try:
                order.take_begin(begin)
            except OrderError as error:
                if len(files) > 1:
                    error.add(source=begin.source, source_message=begin.begin.message - begin.first)
                raise counted_from(error, first, files) from None
        for begin in summary.begins[1:]:  # the chunk has looked at those between
            order.go_on(begin)
        if summary.error is not None:
            raise summary.error
        first += summary.messages


def count_through(chunks: Sequence[Sequence[FileRange]], summaries: Sequence[ChunkSummary]) -> list[int]:
    """Numbers the messages in the findings through all files; returns the index of the first message of each chunk."""
    firsts = first_messages(summary.messages for summary in summaries) or []
    for first, files, summary in zip(firsts, chunks, summaries, strict=True):
        summary.count_from(first, files)
    return firsts


@dataclass(frozen=True)
class FileChunk:
    """A range of a file of a stream, or some small files.

    files       in order
    first       index of its first message in the stream
    plan        what it needs of the others
    relations   of pgoutput, before its first message
    versions    of tables with several versions: the index in the list of tables of the one of the first row
    """

    files: Sequence[FileRange]
    first: int
    plan: ChunkPlan
    relations: Relations | None
    versions: Mapping[TableName, int]

    def capture(self, format: str, **options: Any) -> ChunkCapture:
        """Returns the capture of the chunk."""
        sources = Sources(file.source(format) for file in self.files)
        return ChunkCapture(sources, format, plan=self.plan, relations=self.relations, threads=1, **options)


@dataclass(frozen=True)
class Survey:
    """What looking through all files of a stream has found.

    chunks   in order
    listed   the list of the tables
    """

    chunks: list[FileChunk]
    listed: pa.Table


def survey(
    paths: Any,
    format: str,
    *,
    column: str | None = None,
    range_bytes: int = RANGE_BYTES,
    tables: Sequence[str] | None = None,
    is_typed: bool = True,
    **options: Any,
) -> Survey:
    """Looks through the files of a stream, in the natural order of their names.

    paths         of a file or a folder, or a pattern; a list of paths keeps its order
    range_bytes   about the size of a chunk
    tables        patterns: steps over row changes of other tables, of which the list then says nothing
    is_typed      whether rows that could be read are needed
    options       of wf.Capture

    Raises the first error of the messages; one of their order within a file is raised by the chunk that has it.
    """
    name = find_format_name(format)
    chunks = packed(file_ranges(paths, name, column, range_bytes))
    known: list[Relations | None] = [None] * len(chunks)
    descriptions = Descriptions()
    if name == "pgoutput":
        needed = ((number, needed_of_files(files, name)) for number, files in enumerate(chunks))
        reading = {key: options[key] for key in ("encoding", "encoding_errors", "dialect") if key in options}
        changes = [*relation_changes(needed, ReadOptions.check(mode="PERMISSIVE", **reading), (), descriptions)]
        known = [relations_before(number, changes) for number in range(len(chunks))]
    summaries = [
        summarized(
            ChunkCapture(Sources(file.source(name) for file in files), name, relations=relations, **options),
            tables=tables,
        )
        for files, relations in zip(chunks, known, strict=True)
    ]
    firsts = count_through(chunks, summaries)
    check_summaries(name, chunks, summaries)
    seen = seen_in(summaries)
    seen.check_format(name, options.get("mode", "FAILFAST"))
    if is_typed:
        seen.check(name)
    planned = plan_chunks([summary.items for summary in summaries], TransactionMachine())
    plans = [plan._replace(messages=summary.messages) for plan, summary in zip(planned.plans, summaries, strict=True)]
    observed = [(number, one) for number, summary in enumerate(summaries) for one in summary.observed]
    versions: list[dict[TableName, int]] = [{} for _ in chunks]
    left_out = undelivered([descriptions])
    for table, of_chunks in first_versions(observed, name, undelivered=left_out).items():
        for number, version in of_chunks.items():
            versions[number][table] = version
    return Survey(
        [FileChunk(*of_chunk) for of_chunk in zip(chunks, firsts, plans, known, versions, strict=True)],
        tables_of_observations((one for _, one in observed), name, POSITION, undelivered=left_out),
    )
