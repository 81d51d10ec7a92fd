"""Contestants that run in one Python process on one core: what they are, and how they are timed and weighed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .generate import Capture
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


@dataclass(frozen=True)
class Contestant:
    """One way to read the messages.

    work            takes the messages, gives the number of rows, or a table of them
    columns         of a row
    delivers        the column of the capture that says how many rows are to come
    share           part of the capture that it reads, at least one message: slow ones get less
    bytes_objects   it takes a list of bytes; the others take an Arrow array
    """

    name: str
    work: Callable[[Any], int | pa.Table]
    columns: int
    delivers: str = "records"
    share: float = 1
    bytes_objects: bool = False


def race(contestants: Sequence[Contestant], capture: Capture, rounds: int, say: Say) -> dict[str, Result]:
    """Results by name: all are timed in turn in this process, then weighed, each in a fresh one."""
    messages = capture.load_messages()
    seconds = interleaved({one.name: _run(one, messages) for one in contestants}, rounds, say)
    return {one.name: _result(one, messages, seconds[one.name], capture, say) for one in contestants}


def _run(contestant: Contestant, messages: pa.Table) -> Callable[[], float]:
    part = _part(contestant, messages)
    payloads = _payloads(contestant, part)
    expected = pc.sum(part[contestant.delivers]).as_py()

    def check(answer: int | pa.Table) -> None:
        rows = answer if isinstance(answer, int) else answer.num_rows
        if rows != expected:
            raise AssertionError(f"{contestant.name}: {rows} rows, there are {expected}")

    return lambda: repeated(lambda: timed(lambda: contestant.work(payloads), check))


def _result(
    contestant: Contestant, messages: pa.Table, seconds: tuple[float, ...], capture: Capture, say: Say
) -> Result:
    say(f"{contestant.name}: memory")
    part = _part(contestant, messages)
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
    contestant.work(_payloads(contestant, capture.load_messages(mapped=True).slice(0, 1)))
    gc.collect()
    pa.default_memory_pool().release_unused()
    before = resident_bytes()
    payloads = _payloads(contestant, _part(contestant, capture.load_messages(mapped=contestant.bytes_objects)))
    gc.collect()
    forget_peak()
    answer = contestant.work(payloads)
    peak = peak_bytes()
    output = answer.nbytes if isinstance(answer, pa.Table) else None
    return (None if peak is None or before is None else peak - before), output


def _part(contestant: Contestant, messages: pa.Table) -> pa.Table:
    return messages.slice(0, ceil(contestant.share * messages.num_rows))


def _payloads(contestant: Contestant, messages: pa.Table) -> Any:
    column = messages["payload"]
    return column.to_pylist() if contestant.bytes_objects else column
