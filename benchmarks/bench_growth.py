"""wf.arrow.batches over ever more messages: does time grow in proportion, and memory not at all?"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import partial
from itertools import chain, repeat
from statistics import median

import pyarrow.compute as pc

import wireformat as wf

from .generate import BINARY, Capture
from .measure import Result, Say, forget_peak, in_fresh_process, interleaved, peak_bytes, resident_bytes, timed

FACTORS = (1, 2, 5, 10)

WEIGHINGS = 3
"""In as many fresh processes memory is looked at: what the allocator keeps differs from one to the next."""


def name_of(factor: int) -> str:
    """What the result for so much data is called."""
    return f"{factor} x the data"


def stream(messages: list[bytes], factor: int) -> Iterable[bytes]:
    """The messages, so many times over, without being in memory more than once."""
    return chain.from_iterable(repeat(messages, factor))


def count_rows(messages: Iterable[bytes]) -> int:
    """Decode a batch at a time; no batch is kept."""
    return sum(batch.num_rows for batch in wf.arrow.batches(messages, BINARY))


def measure(capture: Capture, rounds: int, say: Say) -> dict[str, Result]:
    """Results by name, one for each factor."""
    table = capture.load(BINARY)
    messages = table["payload"].to_pylist()
    records, changes = (pc.sum(table[name]).as_py() for name in ("records", "changes"))

    def run(factor: int) -> float:
        def check(rows: int) -> None:
            if rows != factor * records:
                raise AssertionError(f"{name_of(factor)}: {rows} rows, there are {factor * records}")

        return timed(lambda: count_rows(stream(messages, factor)), check)

    seconds = interleaved({name_of(factor): partial(run, factor) for factor in FACTORS}, rounds, say)
    results = {}
    for factor in FACTORS:
        name = name_of(factor)
        say(f"{name}: memory")
        results[name] = Result(
            name=name,
            input_bytes=factor * sum(map(len, messages)),
            changes=factor * changes,
            columns=len(wf.arrow.CHANGES),
            seconds=seconds[name],
            peak_bytes=median_peak([in_fresh_process(weigh, capture, factor) for _ in range(min(rounds, WEIGHINGS))]),
        )
    return results


def median_peak(peaks: list[int | None]) -> int | None:
    """The peak in the middle; None where the system does not tell."""
    return None if None in peaks else round(median(peak for peak in peaks if peak is not None))


def weigh(capture: Capture, factor: int) -> int | None:
    """Peak memory of one run, beyond the messages themselves; the code is loaded before, by a run over one message."""
    messages = capture.load(BINARY, mapped=True)["payload"].to_pylist()
    count_rows(messages[:1])
    gc.collect()
    before = resident_bytes()
    forget_peak()
    count_rows(stream(messages, factor))
    peak = peak_bytes()
    return None if peak is None or before is None else peak - before
