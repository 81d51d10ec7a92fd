"""What is learned of descriptions does not depend on how the rows of a stream are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.noted import relation_events
from wireformat.arrow.noted.tables import NotedTables
from wireformat.arrow.typed_tables.tables import POSITION, TablesFound
from wireformat.formats.pgoutput.undelivered import Descriptions, undelivered

from ...capture.test_undelivered_columns import HISTORIES
from ...undelivered import Step, messages_of


@given(HISTORIES, st.lists(st.integers(0, 60), max_size=8), st.sampled_from([1, 3, 64]))
def test_cut_anywhere(steps: list[Step], cuts: list[int], first_records: int) -> None:
    messages = messages_of(steps)
    (rows,) = wf.arrow.changes(messages, "pgoutput").combine_chunks().to_batches()
    events = [event for event in wf.decode(messages, "pgoutput") if event.kind in relation_events.DESCRIBING_KINDS]
    wanted = Descriptions()
    for event in events:
        wanted.take(event)
    descriptions = Descriptions()
    found = TablesFound(format="pgoutput", descriptions=descriptions)
    tables = NotedTables(found, descriptions=descriptions)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    before, relation_events._FIRST_RECORDS = relation_events._FIRST_RECORDS, first_records
    try:
        for begin, end in pairwise(bounds):
            tables.take(rows.slice(begin, end - begin))
    finally:
        relation_events._FIRST_RECORDS = before
    tables.finish()
    assert undelivered([descriptions]) == undelivered([wanted])
    assert found.listed("pgoutput", POSITION).schema == wf.Capture(messages, "pgoutput").tables().schema
