"""The chunks of a stream that goes on after a position, and the relations of the next one, are those of the whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from ..capture.test_position_scopes import rolled_back
from ..streamed_histories import FORMAT, columns_of_rows, histories, oldest_needed
from .reading import ChunkedReading, divided

CUTS = st.lists(st.integers(0, 100), max_size=3)


@given(messages=histories(), data=st.data())
def test_pieces_of_a_history_in_chunks(messages: list[bytes], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(messages)), min_size=1, max_size=3), "cuts")
    begin = 0
    after: CapturePosition | None = None
    for end in [*sorted(cuts), len(messages)]:
        piece = messages[begin:end]
        reading = ChunkedReading(divided(piece, data.draw(CUTS, "chunks")), FORMAT, after=after)
        capture = wf.Capture(piece, FORMAT, after=after)
        assert columns_of_rows(reading.committed()) == columns_of_rows(capture.committed().read_all())
        assert relations_by_number(reading.relations) == relations_by_number(capture.position.relations)
        begin, after = oldest_needed(messages, begin, end, after), capture.position


def test_what_was_described_in_blocks_that_were_rolled_back() -> None:
    messages, _, cut = rolled_back()
    for chunks in ([*range(1, cut)], []):
        relations = ChunkedReading(divided(messages[:cut], chunks), FORMAT).relations
        assert [(one.xid, one.table_name) for one in relations] == [(None, "t2"), (None, "t1")]


def relations_by_number(relations: tuple[wf.Relation, ...]) -> dict[tuple[int | None, int], wf.Relation]:
    found = {(one.xid, one.relation_id): one for one in relations}
    assert len(found) == len(relations)
    return found
