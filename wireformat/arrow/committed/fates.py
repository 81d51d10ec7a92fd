"""The fates of the segments of all chunks of a stream, found from the summaries of the chunks."""

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
from ...stream.transactions import TransactionMachine, WholeTransactions
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
"""The schema of fates, with one row per segment. `chunk` is the index of the summary.

fate              delivered, with the facts of the transaction; dropped; open; whole: rows of whole transactions. The
                  caller must still drop those that were sent before
first_ordinal     delivered: the ordinal of the segment's first row
undone            delivered: rows with these xids are dropped
sequence          delivered: the commit_lsn of `sequence`; whole: the number of transactions before the segment
csn, commit_lsn   delivered: of the transaction; whole: the highest before the segment
commit_time       microseconds since 1970
"""


class _Segment(NamedTuple):
    """A segment of a chunk: rows, or a control record."""

    chunk: int
    number: int
    has_rows: bool


def segment_fates(
    summaries: Iterable[bytes], *, two_phase: str = "commit", drop_resent: bool = True, after: Position | None = None
) -> pa.Table:
    """Returns the fates of all segments of a stream, sorted by chunk and segment. The schema is FATES.

    summaries   the summaries of all chunks, in order

    The metadata has the position of the stream under `wireformat.position`, and under UNKNOWN_PREPARED, as JSON, the
    gids that ended without a known PREPARE. A control record has a fate only if its transaction is open.

    Raises OrderError, OptionError.
    """
    machine: TransactionMachine[_Segment] = TransactionMachine(
        two_phase=two_phase, drop_resent=drop_resent, after=after
    )
    rows: list[tuple[Any, ...]] = []
    for chunk, summary in enumerate(summaries):
        number = whole_number = 0
        for kind, *item in json.loads(summary):
            try:
                if kind == "whole":
                    transactions, lsn, csn, begin, _ = item
                    before = machine.position
                    fates = machine.take_whole(WholeTransactions(Control(**begin), transactions, lsn, csn))
                    whole_number -= 1
                    rows.append((chunk, whole_number, WHOLE, None, None, *_facts_before(before)))
                else:
                    segment = _Segment(chunk, number, kind == "rows")
                    number += 1
                    if kind == "rows":
                        count, lone, _ = item
                        fates = machine.take_rows(segment, count, lone)
                    else:
                        control, _ = item
                        fates = machine.take_control(Control(**control), segment)
            except OrderError as error:
                raise error.add(**item[-1]) from None
            for attempt, facts in fates:
                rows.extend(_fate_rows(attempt, facts))
    for attempt in machine.open:
        rows.extend((segment.chunk, segment.number, OPEN, None, None, *_NO_FACTS) for segment, _ in attempt.handles)
    rows.sort(key=lambda row: row[:2])
    columns = zip(*rows, strict=True) if rows else [()] * len(FATES)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FATES, strict=True)]
    metadata = {POSITION: write_position(machine.position), UNKNOWN_PREPARED: json.dumps(machine.unknown_prepared)}
    return pa.Table.from_arrays(arrays, schema=FATES.with_metadata(metadata))


_NO_FACTS = (None,) * 7


def _fate_rows(attempt: Attempt[_Segment], facts: TransactionFacts | None) -> Iterator[tuple[Any, ...]]:
    undone = sorted(signed(xid) for xid in attempt.undone)
    cells = (
        _NO_FACTS if facts is None else tuple(None if cell is None else signed(cell) for cell in facts[:4]) + facts[4:]
    )
    for segment, first in attempt.first_ordinals():
        if segment.has_rows:
            yield segment.chunk, segment.number, DROPPED if facts is None else DELIVERED, first, undone, *cells


def _facts_before(before: Position) -> tuple[Any, ...]:
    lsn, csn = (None if number is None else signed(number) for number in before[1:3])
    return before.transactions, None, csn, lsn, None, None, None
