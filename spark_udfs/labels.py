"""In the worker: narrow rows of chunks in, labels out, which say what becomes of each row; and summaries of the chunks.

Only what says to which transaction a row belongs comes here. The values of the rows never leave the JVM: taking them to
Python and back is most of what a pass over whole rows costs.
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
from wireformat.arrow.unread import Seen
from wireformat.errors import add_hint
from wireformat.stream.attempts import TransactionFacts

RECORD_COLUMNS = tuple(name for name in NEEDED_COLUMNS if name != "detail")
"""Columns of the row-change table that go to the worker as they are. Of `detail` each key goes as a column, since Spark
is slow to send maps."""

TIE = "_tie"
FACT_COLUMNS = TransactionFacts._fields[1:]
"""The columns of the result that come from the transaction of a row, besides `sequence`."""

FATE = tuple(name for name in FATES.names if name not in ("chunk", SEGMENT.name))

Place = tuple[pa.Scalar, ...]
"""A chunk, and the values of stream_by."""


@dataclass(frozen=True)
class Narrow:
    """The columns of narrow rows: chunk; places; record and TIE, which tell rows of a message apart; RECORD_COLUMNS;
    NEEDED_DETAILS.
    The last one has the beginning of the bytes of rows that could not be read.

    streams     how many of the places tell streams apart
    places      their names
    controls    whether control records have labels too
    format      that the rows were read from; None where it is not known
    """

    streams: int
    places: tuple[str, ...]
    two_phase: str
    drop_resent: bool
    controls: bool = False
    format: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that tell rows apart, as errors show them."""
        taken = set(wf.arrow.CHANGES.names)
        return (*(f"{name}_" if name in taken else name for name in self.places), "record", TIE)


def label_batches(narrow: Narrow, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs over rows sorted by chunk and key: chunk, key, sequence as two numbers, facts, segment."""
    for place, chunk, parts in _chunks(narrow, batches):
        for rows in _labelled(chunk, parts):
            told = [rows[name] for name in (*FACT_COLUMNS, SEGMENT.name)]
            keys = [rows[name] for name in narrow.keys]
            number = pa.repeat(place[0], rows.num_rows)
            yield _numbered([number, *keys], rows["sequence"].flatten(), told)


def summary_batches(narrow: Narrow, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs over the same rows: chunk, stream, the summary of the stream's part of the chunk, a Verdict.

    An error is not raised here, where it would end one of several branches of the plan, but told: see `check_batches`.
    """
    places: list[pa.DataType] = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            places[:] = batch.schema.types[: 1 + narrow.streams]
            yield batch

    try:
        for place, chunk, parts in _chunks(narrow, noted()):
            for _ in _labelled(chunk, parts):
                pass
            said = [pa.array([chunk.summary], pa.binary()), Verdict(parts.seen).packed()]
            yield _numbered([*[pa.repeat(value, 1) for value in place], *said])
    except wf.WireformatError as error:
        nowhere = [pa.nulls(1, type) for type in places]
        yield _numbered([*nowhere, pa.nulls(1, pa.binary()), Verdict(Seen(is_read=True), error).packed()])


class Verdict(NamedTuple):
    """What is to be judged over all rows.

    seen     whether any of them could be read
    error    the first one that rows gave
    """

    seen: Seen
    error: wf.WireformatError | None = None

    def packed(self) -> pa.Array:
        """As one value, for other tasks of the same query."""
        return pa.array([pickle.dumps(self)], pa.binary())

    def and_these(self, other: Verdict) -> Verdict:
        """Of these rows and others."""
        return Verdict(self.seen.and_these(other.seen), self.error or other.error)

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> Verdict:
        """The one of all these."""
        return reduce(cls.and_these, map(pickle.loads, packed), cls(Seen()))


def fates_of_stream(narrow: Narrow, summaries: pa.Table) -> pa.Table:
    """What applyInArrow runs over the summaries of one stream: chunk, stream, segment, FATE, and a null.

    One more row has nulls, and the Verdict of the stream. Where there is an error, there are no fates.
    """
    (number, *stream), verdict, fates = _fates(narrow, summaries)
    places = [column.take(fates["chunk"]) for column in (number, *stream)]
    columns = [*places, *[fates[name] for name in (SEGMENT.name, *FATE)]]
    said = [pa.concat_arrays([column.combine_chunks(), pa.nulls(1, column.type)]) for column in columns]
    said.append(pa.concat_arrays([pa.nulls(len(fates), pa.binary()), verdict.packed()]))
    return pa.table(said, names=[str(place) for place in range(len(said))])


def unknown_of_stream(narrow: Narrow, summaries: pa.Table) -> pa.Table:
    """What applyInArrow runs over the same: stream and gid of each end of what the stream has not prepared."""
    (_, *stream), verdict, fates = _fates(narrow, summaries)
    if verdict.error is not None:
        raise verdict.error
    gids = pa.array(json.loads(fates.schema.metadata[UNKNOWN_PREPARED]), pa.string())
    columns = [*[column.take(pa.array([0] * len(gids), pa.int64())) for column in stream], gids]
    return pa.table(columns, names=[str(place) for place in range(len(columns))])


def _fates(narrow: Narrow, summaries: pa.Table) -> tuple[list[pa.ChunkedArray], Verdict, pa.Table]:
    """Chunk and the values of stream_by of one stream's summaries; its verdict; its fates, none with an error."""
    summaries = summaries.sort_by("0")
    *places, texts, verdicts = summaries.columns
    verdict, fates = Verdict.of(verdicts.to_pylist()), FATES.empty_table()
    if verdict.error is None:
        try:
            fates = segment_fates(texts.to_pylist(), two_phase=narrow.two_phase, drop_resent=narrow.drop_resent)
        except wf.WireformatError as error:
            verdict = verdict._replace(error=error)
    return places, verdict, fates


def check_batches(narrow: Narrow, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs over the verdicts of all streams: no rows. Raises their error, or BadRows."""
    verdict = Verdict.of(packed for batch in batches for packed in batch.column(0).to_pylist())
    if verdict.error is not None:
        raise verdict.error
    verdict.seen.check(narrow.format)
    yield from ()


class _Parts:
    """The rows of a chunk and stream, and whether any of those that were taken could be read."""

    def __init__(self, parts: Iterator[tuple[Place, pa.RecordBatch]]) -> None:
        self._parts = parts
        self.seen = Seen()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for _, rows in self._parts:
            self.seen = self.seen.and_of(rows)
            yield rows.drop_columns(["raw"])


def _chunks(narrow: Narrow, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Place, Chunk, _Parts]]:
    """Each chunk and stream, with its rows; those are to be read before the next one."""
    for place, parts in groupby(_parts(narrow, batches), itemgetter(0)):
        yield place, Chunk(drop_resent=narrow.drop_resent, controls=narrow.controls), _Parts(parts)


def _labelled(chunk: Chunk, parts: _Parts) -> Iterator[pa.RecordBatch]:
    try:
        for rows in parts:
            yield from chunk.take(rows)
        yield from chunk.finish()
    except wf.OrderError as error:
        add_hint(error, parts.seen.hint())
        raise
    finally:
        chunk.close()


def _parts(narrow: Narrow, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """Chunk and stream, and some of their rows as `Chunk` takes them."""
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
            place = tuple(column[start] for column in (chunk, *keys[: narrow.streams]))
            yield place, rows.slice(start, stop - start)
        before = [column[-1] for column in (chunk, *keys)]


def _differs(column: pa.Array, before: pa.Scalar | None) -> Any:
    """bool[n]: where a value is not the one before it; the first has `before` before it."""
    found = np.ones(len(column), bool)
    found[0] = before is None or column[0] != before
    found[1:] = pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return found


def _check_unique(narrow: Narrow, keys: Sequence[pa.Array], is_new: Sequence[Any]) -> None:
    """Raises OptionError where two rows have the same key: they would be each other's in the join."""
    same = np.flatnonzero(~np.logical_or.reduce(is_new))
    if len(same):
        shown = zip(narrow.keys, keys, strict=True)
        where = ", ".join(f"{name.rstrip('_')}={column[int(same[0])].as_py()}" for name, column in shown if name != TIE)
        raise wf.OptionError(f"option order_by: two rows have the same place: {where}")


def _details(columns: Sequence[pa.Array]) -> pa.Array:
    """The map that `detail` would be, of these keys."""
    said = np.stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], axis=1)
    counts = said.sum(axis=1)
    rows, keys = np.nonzero(said)
    at = pa.array(keys * len(said) + rows)
    values = pa.concat_arrays(columns).take(at)
    names = pa.array(NEEDED_DETAILS).take(pa.array(keys))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), names, values)


def _numbered(
    columns: Sequence[pa.Array], never_null: Sequence[pa.Array] = (), more: Sequence[pa.Array] = ()
) -> pa.RecordBatch:
    """A batch whose columns are named 0, 1, …"""
    arrays = [*columns, *never_null, *more]
    required = range(len(columns), len(columns) + len(never_null))
    fields = [pa.field(str(place), array.type, place not in required) for place, array in enumerate(arrays)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
