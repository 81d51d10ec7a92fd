"""Corners: row changes with what is rare or hard to read, each against an easy case.

One core, `wf.arrow.changes` with all columns, or `wf.Capture.changes`, or `typed`. A corner is one row of CORNERS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

import wireformat as wf

from .corner import Corner
from .corner_binary import BINARY_VALUES
from .corner_corrupt import CORRUPT
from .corner_encodings import ENCODINGS
from .corner_records import RECORDS
from .corner_shapes import SHAPES
from .corner_streams import STREAMS
from .corner_typed import TYPED
from .measure import TURN_SECONDS, Result, Say, interleaved, repeated, timed

CHANGES = 20_000
"""Row changes of each corner: some megabytes, a message batch or more."""

QUICK_CHANGES = 500

CORNERS: tuple[Corner, ...] = tuple(
    sorted(
        (*ENCODINGS, *RECORDS, *CORRUPT, *BINARY_VALUES, *SHAPES, *STREAMS, *TYPED), key=lambda corner: corner.format
    )
)
"""Those of a format follow each other, so that they are measured in turn."""

_BY_NAME = {corner.name: corner for corner in CORNERS}


def measure(
    changes: int, rounds: int, say: Say, corners: Sequence[Corner] = CORNERS, turn: float = TURN_SECONDS
) -> dict[str, Result]:
    """Results by name. The corners of a format are measured in turn.

    turn   how many seconds a corner is repeated in each round, at the least
    """
    results = {}
    for _, group in groupby(corners, key=lambda corner: corner.format):
        runs, facts = {}, {}
        for corner in group:
            say(f"{corner.name}: making messages")
            messages = corner.make(changes)
            rows = len(_decoded(corner, messages))
            facts[corner.name] = (_size(messages), rows)
            runs[corner.name] = partial(_run, corner, messages, rows, turn)
        for name, seconds in interleaved(runs, rounds, say).items():
            size, rows = facts[name]
            results[name] = Result(
                name=name, input_bytes=size, changes=rows, columns=len(wf.arrow.CHANGES), seconds=seconds
            )
    return results


def _decoded(corner: Corner, messages: Any) -> pa.Table:
    if corner.columns is not None:
        capture = wf.Capture(messages, corner.format, threads=1, **corner.options)
        return capture.typed("public.orders", schema=corner.columns).read_all()
    if corner.captures:
        return wf.Capture(messages, corner.format, threads=1, **corner.options).changes().read_all()
    return wf.arrow.changes(messages, corner.format, threads=1, **corner.options)


def _size(messages: Any) -> int:
    return sum(len(one if isinstance(one, bytes) else one.as_py()) for one in messages)


def _run(corner: Corner, messages: Any, rows: int, turn: float) -> float:
    def check(table: pa.Table) -> None:
        if table.num_rows != rows:
            raise AssertionError(f"{corner.name}: {table.num_rows} rows, there were {rows} before")

    return repeated(lambda: timed(lambda: _decoded(corner, messages), check), turn)


def times_slower(result: Result, group: Mapping[str, Result]) -> float:
    """How many times as long a byte, or a row of a corner whose rows are tiny, takes as in its easy case."""
    corner = _BY_NAME[result.name]
    easy = group[corner.easy or corner.name]
    if corner.per_row:
        return easy.changes_per_second / result.changes_per_second
    return easy.megabytes_per_second / result.megabytes_per_second


def slowest(group: Mapping[str, Result], most: float = 3) -> float:
    """The most that any corner is slower, of those that may be so many times slower."""
    return max(times_slower(result, group) for result in group.values() if _BY_NAME[result.name].most == most)
