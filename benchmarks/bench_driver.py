"""The driver's part of spark_udfs.capture, without Spark: plans from the made-up summaries of very many chunks."""

from __future__ import annotations

import gc
import pickle
from time import perf_counter

from spark_udfs.chunks.plan import plan_stream
from wireformat.chunks.summary import ChunkSummary
from wireformat.stream.chunk_plan import ChunkItem, CountedRows
from wireformat.stream.controls import Control
from wireformat.stream.transactions import CountedTransactions

from .measure import Result, Say, forget_peak, in_fresh_process, peak_bytes, resident_bytes

OPEN_IN_CHUNK = 10
CHANGES_IN_CHUNK = 100_000
LONG_XID, FIRST_XID = 7, 1000


def name_of(chunks: int) -> str:
    """What the result for so many chunks is called."""
    return f"{chunks:,} chunks, {chunks * OPEN_IN_CHUNK:,} open transactions"


def measure(numbers: tuple[int, ...], rounds: int, say: Say) -> dict[str, Result]:
    """Results by name, one for each number of chunks."""
    found = {}
    for chunks in numbers:
        say(f"driver: {name_of(chunks)}")
        runs = [in_fresh_process(plan, chunks) for _ in range(rounds)]
        seconds, sizes, peaks = zip(*runs, strict=True)
        peak = None if None in peaks else max(peaks)
        found[name_of(chunks)] = Result(
            name=name_of(chunks),
            input_bytes=sizes[0],
            changes=chunks * CHANGES_IN_CHUNK,
            seconds=seconds,
            peak_bytes=peak,
        )
    return found


def plan(chunks: int) -> tuple[float, int, int | None]:
    """The seconds from the summaries as they come from the workers to the plans as they go there, the bytes of the
    summaries, and the peak memory beyond them."""
    given = [pickle.dumps(ChunkSummary(messages=CHANGES_IN_CHUNK, items=items(number))) for number in range(chunks)]
    gc.collect()
    before = resident_bytes()
    forget_peak()
    start = perf_counter()
    planned = plan_stream(
        {number: pickle.loads(one) for number, one in enumerate(given)}, None, "commit", drop_resent=True
    )
    for one in planned.plans.values():
        pickle.dumps({"[]": one})
    seconds = perf_counter() - start
    check(planned.plans[chunks - 1].start, chunks)
    peak = peak_bytes()
    return seconds, sum(map(len, given)), None if peak is None or before is None else peak - before


def check(last: object, chunks: int) -> None:
    """Raises AssertionError if the last chunk does not know what was open before it."""
    if f"xid={LONG_XID}," not in str(last) or f"xid={FIRST_XID + (chunks - 2) * OPEN_IN_CHUNK}," not in str(last):
        raise AssertionError("the plan of the last chunk lacks what was open before it")


def items(number: int) -> list[ChunkItem]:
    """The items of a chunk: a block of a transaction that goes through all chunks, first blocks of others that never
    end, a later block of one of the chunk before, a prepared transaction, and many plain ones."""
    first = FIRST_XID + number * OPEN_IN_CHUNK
    found = block(LONG_XID, number == 0)
    for xid in range(first, first + OPEN_IN_CHUNK):
        found += block(xid, True)
    if number:
        found += block(first - OPEN_IN_CHUNK, False)
    lsn = number * 1000
    prepared: list[ChunkItem] = [
        Control("BEGIN", xid=5, commit_lsn=lsn),
        CountedRows(5),
        Control("PREPARE", lsn=lsn, gid=f"g{number}"),
    ]
    return [*found, *prepared, CountedTransactions(Control("BEGIN", commit_lsn=lsn + 1), 100, lsn + 100, None)]


def block(xid: int, is_first: bool) -> list[ChunkItem]:
    """A block of a streamed transaction."""
    return [Control("STREAM_START", xid=xid, first_segment=is_first), CountedRows(5), Control("STREAM_STOP")]
