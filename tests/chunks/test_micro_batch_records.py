"""`strict` and the filters of whole transactions, on a stream that comes in micro-batches: the rows and errors of the
whole stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.chunks import micro_batches
from wireformat.chunks.micro_batches import MicroBatch
from wireformat.chunks.saved import read_stream
from wireformat.errors import WireformatError

from ..examples import at_most
from .reading import divided, in_order
from .stream_in_micro_batches import StoppedStream, committed
from .test_chunks import CUTS, rows_of
from .test_micro_batches import SIZES
from .test_records import NAMES, OPTIONS, by_record, damaged, outcome, streams


def changes_of(**filters: Any) -> Callable[[MicroBatch], Iterator[pa.RecordBatch]]:
    """Asks for records, with the offsets of their messages."""

    def ask(chunk: MicroBatch) -> Iterator[pa.RecordBatch]:
        try:
            for rows in chunk.changes(**filters):
                offsets = chunk.positions["offset"].take(rows["message"])
                yield rows.set_column(rows.schema.get_field_index("message"), rows.schema.field("message"), offsets)
        except WireformatError as error:
            at = getattr(error, "message", None)
            raise error if at is None else error.add(message=chunk.positions["offset"][at].as_py()) from None

    return ask


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
@pytest.mark.parametrize("name", NAMES)
@at_most(6)
@given(cuts=CUTS, seed=st.integers(0, 30), of_tables=st.booleans(), size=SIZES)
def test_cut_anywhere(
    name: str, options: dict[str, Any], cuts: list[int], seed: int, of_tables: bool, size: int
) -> None:
    format, messages = streams()[name]
    messages = damaged(messages, seed)
    parts = divided(messages, cuts)
    filters: dict[str, Any] = {
        "tables": ["s.t", "shop.orders_0"],
        "columns": ["message", "record", "kind", "table_name"],
    }
    filters = filters if of_tables else {}

    def changes() -> list[Any]:
        stream = StoppedStream(format, "records", **options)
        batches = [batch for part in parts for batch in stream.take(part, changes_of(**filters))]
        return by_record(pa.Table.from_batches(batches)) if batches else []

    assert outcome(changes) == outcome(
        lambda: by_record(wf.Capture(pa.chunked_array([messages]), format, **options).changes(**filters).read_all())
    )

    def rows() -> Any:
        stream = StoppedStream(format, **options)
        batches = [batch for part in parts for batch in stream.take(part, committed)]
        found = [
            wf.Capture([], format).committed().schema.empty_table(),
            *map(pa.Table.from_batches, [[one] for one in batches]),
        ]
        assert stream.state is not None
        delivered = read_stream(stream.state, stream.settings).left.start.position
        return in_order(rows_of(pa.concat_tables(found))), delivered, {*stream.unknown_prepared}

    def of_whole() -> Any:
        capture = wf.Capture(pa.chunked_array([messages]), format, **options)
        found = in_order(rows_of(capture.committed().read_all()))
        return found, capture.position.delivered, {*capture.unknown_prepared}

    with patch.object(micro_batches, "PIECE_BYTES", size):
        found, wanted = outcome(rows), outcome(of_whole)
    assert isinstance(found, str) is isinstance(wanted, str)
    assert isinstance(found, str) or found == wanted
