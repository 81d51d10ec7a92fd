"""Writing: `wf.encode` in each format, and `wf.arrow.encode` of the same row changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

import wireformat as wf
from wireformat.formats.adapt import adapted
from wireformat.formats.registry import ROWS

from .contestants import Contestant
from .generate import BINARY, PGOUTPUT
from .measure import Result

COMPILED = (BINARY, PGOUTPUT)
"""The formats that `wf.arrow.encode` writes with compiled code."""

EVENT_SHARE = 0.1
"""Events take twenty times the memory of their messages."""


def source_of(format: str) -> str:
    """What the row changes come from: `pgoutput` has facts of its own."""
    return PGOUTPUT if format == PGOUTPUT else BINARY


def events_for(format: str, payloads: pa.ChunkedArray) -> list[wf.Event]:
    """The events, as far as the format can say them."""
    return [adapted(event, format)[0] for event in wf.decode(payloads, source_of(format))]


def count_messages(format: str, events: Sequence[wf.Event]) -> int:
    """Write the events, a message a record."""
    return sum(1 for _ in wf.encode(events, format))


def encoded_rows(format: str, rows: pa.Table) -> int:
    """Write the rows, a message a record."""
    return len(wf.arrow.encode(rows, format))


def changes_of(format: str) -> Callable[[pa.ChunkedArray], pa.Table]:
    """What gives the row-change table of messages."""
    return partial(wf.arrow.changes, format=format)


def by_events(format: str) -> str:
    """The contestant that writes events."""
    return f"wf.encode, {format}"


def by_rows(format: str) -> str:
    """The contestant that writes rows."""
    return f"wf.arrow.encode, {format}"


CONTESTANTS = (
    *(
        Contestant(
            by_events(format),
            partial(count_messages, format),
            columns=8,
            source=source_of(format),
            takes=partial(events_for, format),
            share=EVENT_SHARE,
        )
        for format in ROWS
    ),
    *(
        Contestant(
            by_rows(format),
            partial(encoded_rows, format),
            columns=8,
            source=format,
            takes=changes_of(format),
        )
        for format in COMPILED
    ),
)


def slowest_of(names: Sequence[str]) -> Callable[[Mapping[str, Result]], float]:
    """Thousand row changes a second of the slowest of some contestants."""
    return lambda results: min(results[name].changes_per_second for name in names) / 1000


slowest_events = slowest_of([by_events(format) for format in ROWS])
slowest_rows = slowest_of([by_rows(format) for format in COMPILED])
