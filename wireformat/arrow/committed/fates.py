"""What becomes of the rows of a stream's chunks, from the summaries of all chunks in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ...errors import OrderError
from ...lsn import signed
from ...stream.attempts import Attempt, TransactionFacts
from ...stream.controls import Control
from ...stream.positions import Position
from ...stream.saved_position import write_position
from ...stream.transactions import Machine, Whole
from ..schemas import POSITION

UNKNOWN_PREPARED = b"wireformat.unknown_prepared"
DELIVERED, DROPPED, OPEN, WHOLE = "delivered", "dropped", "open", "whole"
FATES = pa.schema(
    [
        pa.field("chunk", pa.int32(), nullable=False),
        pa.field("_segment", pa.int32(), nullable=False),
        pa.field("fate", pa.string(), nullable=False),
        pa.field("first_ordinal", pa.int64()),
        pa.field("undone", pa.list_(pa.field("element", pa.int64()))),
        pa.field("sequence", pa.int64()),
        pa.field("xid", pa.int64()),
        pa.field("csn", pa.int64()),
        pa.field("commit_lsn", pa.int64()),
        pa.field("commit_time", pa.int64()),
        pa.field("username", pa.string()),
        pa.field("origin", pa.string()),
    ]
)
"""What becomes of the rows of a segment. `chunk` counts the summaries from 0.

fate            delivered, with the facts of their transaction; dropped; open; whole: of whole transactions, those that
                were sent before are still among them
first_ordinal   delivered: of the segment's first row
undone          delivered: rows with these xids are left out
sequence        delivered: the sequence's commit_lsn; whole: how many transactions there were before
csn, commit_lsn whole: the highest before
commit_time     microseconds since 1970
"""


class _Item(NamedTuple):
    """A numbered item of a summary; is_run: one with rows."""

    chunk: int
    number: int
    is_run: bool


def carry(
    summaries: Iterable[bytes], *, two_phase: str = "commit", drop_resent: bool = True, after: Position | None = None
) -> pa.Table:
    """The fates of all segments of a stream, from the summaries of its chunks in order: FATES, by chunk and segment.

    The metadata says under `wireformat.position` how far the stream is delivered, and under UNKNOWN_PREPARED which gids
    ended and were not prepared, as JSON. Control records have a fate only where they are open. Raises OrderError,
    OptionError.
    """
    machine: Machine[_Item] = Machine(two_phase=two_phase, drop_resent=drop_resent, after=after)
    rows: list[tuple[Any, ...]] = []
    for chunk, summary in enumerate(summaries):
        number = stretch = 0
        for kind, *item in json.loads(summary):
            try:
                if kind == "whole":
                    transactions, lsn, csn, begin, _ = item
                    before = machine.position
                    fates = machine.whole(Whole(Control(**begin), transactions, lsn, csn))
                    stretch -= 1
                    rows.append((chunk, stretch, WHOLE, None, None, *_cells(before)))
                else:
                    here = _Item(chunk, number, kind == "rows")
                    number += 1
                    if kind == "rows":
                        count, lone, _ = item
                        fates = machine.run(here, count, lone)
                    else:
                        control, _ = item
                        fates = machine.control(Control(**control), here)
            except OrderError as error:
                raise error.add(**item[-1]) from None
            for attempt, facts in fates:
                rows.extend(_settled(attempt, facts))
    for attempt in machine.open:
        rows.extend((item.chunk, item.number, OPEN, None, None, *_NO_FACTS) for item, _ in attempt.pieces)
    rows.sort(key=lambda row: row[:2])
    columns = zip(*rows, strict=True) if rows else [()] * len(FATES)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FATES, strict=True)]
    said = {POSITION: write_position(machine.position), UNKNOWN_PREPARED: json.dumps(machine.unknown_prepared)}
    return pa.Table.from_arrays(arrays, schema=FATES.with_metadata(said))


_NO_FACTS = (None,) * 7


def _settled(attempt: Attempt[_Item], facts: TransactionFacts | None) -> Iterator[tuple[Any, ...]]:
    undone = sorted(signed(xid) for xid in attempt.undone)
    cells = (
        _NO_FACTS if facts is None else tuple(None if cell is None else signed(cell) for cell in facts[:4]) + facts[4:]
    )
    for item, first in attempt.firsts():
        if item.is_run:
            yield item.chunk, item.number, DROPPED if facts is None else DELIVERED, first, undone, *cells


def _cells(before: Position) -> tuple[Any, ...]:
    lsn, csn = (None if number is None else signed(number) for number in before[1:3])
    return before.transactions, None, csn, lsn, None, None, None
