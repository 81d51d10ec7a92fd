"""Files of a stream as chunks: each is read without the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrow.typed_tables.observations import tables_of_observations
from ..arrow.typed_tables.tables import POSITION
from ..arrow.unread import ReadSummary
from ..formats.pgoutput.relations import Relations
from ..formats.registry import find_format, find_format_name
from ..options import ReadOptions
from ..sources.files import file_source
from ..sources.find import paths_of
from ..stream.chunk_plan import ChunkPlan, plan_chunks
from ..stream.transactions import TransactionMachine
from .capture import ChunkCapture
from .relations import needed_messages, relations_before, said_of_stream
from .summary import summarized


@dataclass(frozen=True)
class FileChunk:
    """A file of a stream.

    plan        what it needs of the others
    relations   of pgoutput, before its first message
    """

    path: Path
    plan: ChunkPlan
    relations: Relations | None

    def capture(self, format: str, **options: Any) -> ChunkCapture:
        """Returns the capture of the file."""
        return ChunkCapture([self.path], format, plan=self.plan, relations=self.relations, threads=1, **options)


@dataclass(frozen=True)
class Survey:
    """What a look through all files of a stream finds.

    chunks   the files, in order
    listed   the list of the tables
    """

    chunks: list[FileChunk]
    listed: pa.Table


def survey(path: Any, format: str, *, column: str | None = None, **options: Any) -> Survey:
    """Looks through the files of a stream, in the natural order of their names.

    path      of a file or a folder, or a pattern; a list of paths keeps its order
    options   of wf.Capture

    Raises the first error of the messages; one of their order is raised by the chunk that has it.
    """
    name = find_format_name(format)
    paths = paths_of(path)
    known: list[Relations | None] = [None] * len(paths)
    if name == "pgoutput":
        needed = ((number, needed_messages(_messages(one, name, column))) for number, one in enumerate(paths))
        reading = {key: options[key] for key in ("encoding", "encoding_errors", "dialect") if key in options}
        said = [*said_of_stream(needed, ReadOptions.check(mode="PERMISSIVE", **reading))]
        known = [relations_before(number, said) for number in range(len(paths))]
    summaries = []
    seen = ReadSummary()
    for one, relations in zip(paths, known, strict=True):
        summary = summarized(ChunkCapture([one], name, relations=relations, column=column, **options))
        if summary.error is not None:
            raise summary.error
        seen = seen.and_these(summary.seen)
        summaries.append(summary)
    seen.check(name)
    planned = plan_chunks([summary.items for summary in summaries], TransactionMachine())
    plans = [plan._replace(messages=summary.messages) for plan, summary in zip(planned.plans, summaries, strict=True)]
    observed = chain.from_iterable(summary.observed for summary in summaries)
    return Survey(
        [FileChunk(*of_file) for of_file in zip(paths, plans, known, strict=True)],
        tables_of_observations(observed, name, POSITION),
    )


def _messages(path: Path, format: str, column: str | None) -> Iterable[bytes]:
    for given in file_source(path, str(path), find_format(format), column).read():
        messages = given.messages.to_pylist() if isinstance(given.messages, pa.Array) else given.messages
        yield from (bytes(message) for message in messages if message is not None)
