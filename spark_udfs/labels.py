"""Labels of rows and summaries of chunks, computed in the worker from narrow rows.

A label gives a row's segment and the row's position in it; the fate of the segment decides whether the row is
delivered. Narrow rows have only the columns that assign a row to its transaction. The values of the rows never leave
the JVM, because moving them to Python and back is most of the cost of a pass over whole rows.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.arrow.committed.batch import NEEDED_COLUMNS, NEEDED_DETAILS
from wireformat.arrow.committed.chunk import Chunk
from wireformat.arrow.committed.fates import FATES, UNKNOWN_PREPARED, segment_fates
from wireformat.arrow.schemas import SEGMENT
from wireformat.arrow.unread import ReadSummary
from wireformat.errors import add_hint
from wireformat.stream.attempts import TransactionFacts

from .position_errors import not_unique

RECORD_COLUMNS = tuple(name for name in NEEDED_COLUMNS if name != "detail")
"""Columns of the row-change table that are sent to the worker as they are. Each key of `detail` is sent as a column,
because Spark is slow at sending maps."""

TIE = "_tie"
FACT_COLUMNS = TransactionFacts._fields[1:]
"""The columns of the result that hold transaction facts, besides `sequence`."""

FATE_COLUMNS = tuple(name for name in FATES.names if name not in ("chunk", SEGMENT.name))
"""The columns of FATES besides those that identify the segment."""

ChunkKey = tuple[pa.Scalar, ...]
"""The number of a chunk, and the values of stream_by."""


@dataclass(frozen=True)
class NarrowRows:
    """The layout of narrow rows, and the options for putting them into transactions.

    The columns are: chunk; stream_by and order_by; record and TIE, which identify the rows of a message;
    RECORD_COLUMNS; NEEDED_DETAILS; the first bytes of rows that could not be read.

    streams     the number of columns stream_by
    positions   the names of the columns stream_by and order_by
    controls    whether control records have labels too
    format      the format of the rows; None if it is not known
    """

    streams: int
    positions: tuple[str, ...]
    two_phase: str
    drop_resent: bool
    controls: bool = False
    format: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that identify a row, as errors show them."""
        taken = set(wf.arrow.CHANGES.names)
        return (*(f"{name}_" if name in taken else name for name in self.positions), "record", TIE)


def label_batches(narrow: NarrowRows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow over rows sorted by chunk and key.

    Yields chunk, key, the two numbers of the sequence, transaction facts, segment.
    """
    for key, chunk, chunk_rows in _chunks(narrow, batches):
        for rows in _labelled(chunk, chunk_rows):
            facts = [rows[name] for name in (*FACT_COLUMNS, SEGMENT.name)]
            keys = [rows[name] for name in narrow.keys]
            number = pa.repeat(key[0], rows.num_rows)
            yield _positional([number, *keys], rows["sequence"].flatten(), facts)


def summary_batches(narrow: NarrowRows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow over the same rows: yields chunk, stream, summary of the chunk's stream, Verdict.

    An error is returned in the Verdict and raised by `check_batches`. If it were raised here, it would be lost whenever
    Spark drops this branch of the plan.
    """
    key_types: list[pa.DataType] = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            key_types[:] = batch.schema.types[: 1 + narrow.streams]
            yield batch

    try:
        for key, chunk, chunk_rows in _chunks(narrow, noted()):
            for _ in _labelled(chunk, chunk_rows):
                pass
            results = [pa.array([chunk.summary], pa.binary()), Verdict(chunk_rows.seen).packed()]
            yield _positional([*[pa.repeat(value, 1) for value in key], *results])
    except wf.WireformatError as error:
        no_key = [pa.nulls(1, type) for type in key_types]
        yield _positional([*no_key, pa.nulls(1, pa.binary()), Verdict(ReadSummary(is_read=True), error).packed()])


class Verdict(NamedTuple):
    """What rows contribute to errors that are raised once for all rows.

    seen     whether any row could be read
    error    the first error of the rows
    """

    seen: ReadSummary
    error: wf.WireformatError | None = None

    def packed(self) -> pa.Array:
        """Returns the verdict as one value, for other tasks of the same query."""
        return pa.array([pickle.dumps(self)], pa.binary())

    def and_these(self, other: Verdict) -> Verdict:
        """Returns the verdict on these rows and others."""
        return Verdict(self.seen.and_these(other.seen), self.error or other.error)

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> Verdict:
        """Returns the verdict on the rows of all these."""
        return reduce(cls.and_these, map(pickle.loads, packed), cls(ReadSummary()))


def fates_of_stream(narrow: NarrowRows, summaries: pa.Table) -> pa.Table:
    """The function for applyInArrow over the summaries of one stream.

    Returns chunk, stream, segment, the FATE_COLUMNS, and the Verdict, which is null except in a last row that has only
    it. After an error there are no fates.
    """
    (number, *stream), verdict, fates = _fates(narrow, summaries)
    keys = [column.take(fates["chunk"]) for column in (number, *stream)]
    columns = [*keys, *[fates[name] for name in (SEGMENT.name, *FATE_COLUMNS)]]
    results = [pa.concat_arrays([column.combine_chunks(), pa.nulls(1, column.type)]) for column in columns]
    results.append(pa.concat_arrays([pa.nulls(len(fates), pa.binary()), verdict.packed()]))
    return pa.table(results, names=[str(index) for index in range(len(results))])


def unknown_of_stream(narrow: NarrowRows, summaries: pa.Table) -> pa.Table:
    """The function for applyInArrow over the same: stream and gid of each end of an unknown prepared transaction."""
    (_, *stream), verdict, fates = _fates(narrow, summaries)
    if verdict.error is not None:
        raise verdict.error
    gids = pa.array(json.loads(fates.schema.metadata[UNKNOWN_PREPARED]), pa.string())
    columns = [*[column.take(pa.array([0] * len(gids), pa.int64())) for column in stream], gids]
    return pa.table(columns, names=[str(index) for index in range(len(columns))])


def _fates(narrow: NarrowRows, summaries: pa.Table) -> tuple[list[pa.ChunkedArray], Verdict, pa.Table]:
    """Returns chunk and stream_by of one stream's summaries, its verdict, and its fates (none after an error)."""
    summaries = summaries.sort_by("0")
    *keys, packed_summaries, verdicts = summaries.columns
    verdict, fates = Verdict.of(verdicts.to_pylist()), FATES.empty_table()
    if verdict.error is None:
        try:
            fates = segment_fates(
                packed_summaries.to_pylist(), two_phase=narrow.two_phase, drop_resent=narrow.drop_resent
            )
        except wf.WireformatError as error:
            verdict = verdict._replace(error=error)
    return keys, verdict, fates


def check_batches(narrow: NarrowRows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow over the verdicts of all streams. Yields no rows; raises their error, or BadRows."""
    verdict = Verdict.of(packed for batch in batches for packed in batch.column(0).to_pylist())
    if verdict.error is not None:
        raise verdict.error
    verdict.seen.check(narrow.format)
    yield from ()


class _ChunkRows:
    """The rows of a stream in a chunk, and whether any of those that were iterated could be read."""

    def __init__(self, slices: Iterator[tuple[ChunkKey, pa.RecordBatch]]) -> None:
        self._slices = slices
        self.seen = ReadSummary()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for _, rows in self._slices:
            self.seen = self.seen.and_of(rows)
            yield rows.drop_columns(["raw"])


def _chunks(narrow: NarrowRows, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[ChunkKey, Chunk, _ChunkRows]]:
    """Yields each chunk and stream with its rows, which must be read before the next one."""
    for key, slices in groupby(_slices(narrow, batches), itemgetter(0)):
        yield key, Chunk(drop_resent=narrow.drop_resent, controls=narrow.controls), _ChunkRows(slices)


def _labelled(chunk: Chunk, chunk_rows: _ChunkRows) -> Iterator[pa.RecordBatch]:
    try:
        for rows in chunk_rows:
            yield from chunk.take(rows)
        yield from chunk.finish()
    except wf.OrderError as error:
        add_hint(error, chunk_rows.seen.hint())
        raise
    finally:
        chunk.close()


def _slices(narrow: NarrowRows, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
    """Yields chunk and stream with some of their rows, as `Chunk` takes them."""
    before: list[pa.Scalar] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        chunk, *others = batch.columns
        keys, facts = others[: len(narrow.keys)], others[len(narrow.keys) :]
        given, details, raw = facts[: len(RECORD_COLUMNS)], facts[len(RECORD_COLUMNS) : -1], facts[-1]
        rows = pa.RecordBatch.from_arrays(
            [*keys, *given, _details(details), raw], names=[*narrow.keys, *RECORD_COLUMNS, "detail", "raw"]
        )
        is_new = [
            _differs(column, value)
            for column, value in zip([chunk, *keys], before or [None] * (1 + len(keys)), strict=True)
        ]
        _check_unique(narrow, keys, is_new)
        bounds = np.flatnonzero(np.logical_or.reduce(is_new[: 1 + narrow.streams]))
        for start, stop in pairwise([0, *bounds[bounds > 0].tolist(), len(chunk)]):
            key = tuple(column[start] for column in (chunk, *keys[: narrow.streams]))
            yield key, rows.slice(start, stop - start)
        before = [column[-1] for column in (chunk, *keys)]


def _differs(column: pa.Array, before: pa.Scalar | None) -> Any:
    """Returns bool[n]: whether each value differs from the previous one; `before` precedes the first."""
    found = np.ones(len(column), bool)
    found[0] = before is None or column[0] != before
    found[1:] = pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return found


def _check_unique(narrow: NarrowRows, keys: Sequence[pa.Array], is_new: Sequence[Any]) -> None:
    """Raises BadRows if two rows have the same key, because joining the labels back by key could swap them."""
    same = np.flatnonzero(~np.logical_or.reduce(is_new))
    if len(same):
        shown = zip(narrow.keys, keys, strict=True)
        where = ", ".join(f"{name.rstrip('_')}={column[int(same[0])].as_py()}" for name, column in shown if name != TIE)
        raise not_unique(f"two rows at {where}")


def _details(columns: Sequence[pa.Array]) -> pa.Array:
    """Returns the map `detail` with these keys."""
    is_set = np.stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], axis=1)
    counts = is_set.sum(axis=1)
    rows, keys = np.nonzero(is_set)
    indices = pa.array(keys * len(is_set) + rows)
    values = pa.concat_arrays(columns).take(indices)
    names = pa.array(NEEDED_DETAILS).take(pa.array(keys))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), names, values)


def _positional(
    columns: Sequence[pa.Array], never_null: Sequence[pa.Array] = (), nullable: Sequence[pa.Array] = ()
) -> pa.RecordBatch:
    """Returns a batch whose columns are named by their positions: 0, 1, …"""
    arrays = [*columns, *never_null, *nullable]
    required = range(len(columns), len(columns) + len(never_null))
    fields = [pa.field(str(index), array.type, index not in required) for index, array in enumerate(arrays)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
