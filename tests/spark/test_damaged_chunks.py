"""Damaged streams in chunks, read without Spark: the light pass and answers that step over other tables agree."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructField

import wireformat as wf
from spark_udfs.capture import Capture
from spark_udfs.positions import PositionColumns
from wireformat.chunks.relations import are_of_needed_kinds

FORMATS = ("pgoutput", "test-decoding", "gaussdb-binary", "gaussdb-json", "mppdb-json")
TABLE = "shop.orders_1"


class Answer:
    """What a DataFrame of an answer would have."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = batches

    def collect(self) -> list[Row]:
        return [Row(**row) for batch in self.batches for row in batch.to_pylist()]

    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch.to_pylist()]


class Chunks:
    """Chunks of messages in place of those of a DataFrame; each task is called here."""

    are_chunks, ranges, session = False, None, None
    positions = PositionColumns((), (StructField("offset", LongType()),))

    def __init__(self, chunks: Sequence[Sequence[bytes]]) -> None:
        self.chunks = chunks

    def count(self, messages: Any) -> None:
        pass

    def check(self, format: str, summaries: Any) -> None:
        for error in (one.error for chunks in summaries.values() for one in chunks.values()):
            if error is not None:
                raise error

    def map_chunks(self, read: Any, schema: Any, plans: Any = None, **options: bool) -> Answer:
        found, first = [], 0
        for number, chunk in enumerate(self.chunks):
            messages = pa.array(chunk, pa.binary())
            columns = [[number] * len(chunk), range(first, first + len(chunk)), messages]
            first += len(chunk)
            rows = pa.record_batch(columns, names=["0", "1", "2"])
            if options.get("relations_only"):
                rows = rows.filter(are_of_needed_kinds(messages))
            if plans is not None:
                plan = pa.array([pickle.dumps(plans[number])])
                found += read(
                    iter([pa.record_batch([[number], pa.nulls(1, pa.int64()), plan], names=rows.schema.names), rows])
                )
            else:
                found += read(iter([rows]))
        return Answer(found)


def damaged(format: str, chance: Random) -> list[bytes]:
    """Returns a stream of which two messages cannot be read; mostly for a byte in a value."""
    messages = [*map(bytes, wf.encode(wf.testing.stream(3, 10, seed=chance.randrange(99), format=format), format))]
    for _ in range(2):
        number = chance.randrange(len(messages))
        message = messages[number]
        at = chance.randrange(len(message))
        messages[number] = chance.choice([message[:at], *[message[:at] + b"\xff" + message[at + 1 :]] * 4])
    return messages


def said(capture: Any, ask: Callable[[Any], Any]) -> list[str] | str:
    """Returns the rows of an answer, or that it is an error."""
    try:
        found = ask(capture)
        rows = found.rows() if isinstance(found, Answer) else found.read_all().to_pylist()
    except wf.WireformatError:
        return "an error"
    return sorted(repr({name: value for name, value in row.items() if name != "message"}) for row in rows)


QUESTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda capture: capture.committed(),
    lambda capture: capture.committed(tables=[TABLE]),
    lambda capture: capture.typed(TABLE),
    lambda capture: capture.messages(),
)


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_same_rows_as_of_one_machine(format: str, mode: str) -> None:
    for seed in range(4):
        chance = Random(f"{format} {seed}")
        messages = damaged(format, chance)
        bounds = sorted({0, len(messages), *(chance.randrange(len(messages)) for _ in range(6))})
        chunks: Any = Chunks([messages[start:stop] for start, stop in pairwise(bounds)])
        one = wf.Capture(messages, format, mode=mode, threads=1)
        capture = Capture(chunks, format, {**OPTIONS, "mode": mode}, {})
        for ask in QUESTIONS:
            assert said(capture, ask) == said(one, ask), seed


OPTIONS: dict[str, Any] = {
    "encoding": "utf-8",
    "encoding_errors": "strict",
    "heartbeat_unit": None,
    "known_tables": None,
    "exclude_users": None,
    "skip_empty_xacts": False,
    "strict": False,
    "dialect": "postgresql",
    "two_phase": "commit",
    "drop_resent": True,
    "memory_limit": 1 << 28,
}
"""The options of `spark_udfs.capture`."""
