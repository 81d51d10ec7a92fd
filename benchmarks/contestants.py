"""Contestants that run in one Python process: what they are, and how they are timed and weighed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .generate import BINARY, Capture
from .measure import (
    Result,
    Say,
    forget_peak,
    in_fresh_process,
    interleaved,
    peak_bytes,
    repeated,
    resident_bytes,
    timed,
)


def as_arrow(payloads: pa.ChunkedArray) -> pa.ChunkedArray:
    """As they are loaded."""
    return payloads


def as_list(payloads: pa.ChunkedArray) -> list[bytes]:
    """Bytes objects."""
    return payloads.to_pylist()


def as_file(payloads: pa.ChunkedArray) -> bytes:
    """What a file of lines holds."""
    return b"".join(line + b"\n" for line in payloads.to_pylist())


@dataclass(frozen=True)
class Contestant:
    """One way to read the row changes.

    work        takes the messages or lines, gives the number of rows, or a table of them
    columns     of a row
    source      of the capture, that it reads
    takes       how it wants the messages or lines: as_arrow, as_list or as_file
    delivers    the column of the source that says how many rows are to come
    share       part of the source that it reads, at least one message: slow ones get less
    """

    name: str
    work: Callable[[Any], int | pa.Table]
    columns: int
    source: str = BINARY
    takes: Callable[[pa.ChunkedArray], Any] = as_arrow
    delivers: str = "records"
    share: float = 1


def race(contestants: Sequence[Contestant], capture: Capture, rounds: int, say: Say) -> dict[str, Result]:
    """Results by name: all are timed in turn in this process, then weighed, each in a fresh one."""
    sources = {source: capture.load(source) for source in {one.source for one in contestants}}
    seconds = interleaved({one.name: _run(one, sources[one.source]) for one in contestants}, rounds, say)
    return {one.name: _result(one, sources[one.source], seconds[one.name], capture, say) for one in contestants}


def _run(contestant: Contestant, source: pa.Table) -> Callable[[], float]:
    part = _part(contestant, source)
    payloads = contestant.takes(part["payload"])
    expected = pc.sum(part[contestant.delivers]).as_py()

    def check(answer: int | pa.Table) -> None:
        rows = answer if isinstance(answer, int) else answer.num_rows
        if rows != expected:
            raise AssertionError(f"{contestant.name}: {rows} rows, there are {expected}")

    return lambda: repeated(lambda: timed(lambda: contestant.work(payloads), check))


def _result(contestant: Contestant, source: pa.Table, seconds: tuple[float, ...], capture: Capture, say: Say) -> Result:
    say(f"{contestant.name}: memory")
    part = _part(contestant, source)
    result = Result(
        name=contestant.name,
        input_bytes=pc.sum(pc.binary_length(part["payload"])).as_py(),
        changes=pc.sum(part["changes"]).as_py(),
        columns=contestant.columns,
        seconds=seconds,
    )
    peak, output = in_fresh_process(weigh, contestant, capture)
    return replace(result, peak_bytes=peak, output_bytes=output)


def weigh(contestant: Contestant, capture: Capture) -> tuple[int | None, int | None]:
    """Peak memory of one run, input and output included, and bytes of the output if it is a table.

    The code is loaded before, by a run over one message.
    """
    contestant.work(contestant.takes(capture.load(contestant.source, mapped=True)["payload"].slice(0, 1)))
    gc.collect()
    pa.default_memory_pool().release_unused()
    before = resident_bytes()
    source = capture.load(contestant.source, mapped=contestant.takes is not as_arrow)
    payloads = contestant.takes(_part(contestant, source)["payload"])
    del source
    gc.collect()
    forget_peak()
    answer = contestant.work(payloads)
    peak = peak_bytes()
    output = answer.nbytes if isinstance(answer, pa.Table) else None
    return (None if peak is None or before is None else peak - before), output


def _part(contestant: Contestant, source: pa.Table) -> pa.Table:
    return source.slice(0, ceil(contestant.share * source.num_rows))
