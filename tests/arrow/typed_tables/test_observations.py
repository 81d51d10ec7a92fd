"""The list of tables of a stream that is read in chunks is that of the whole stream."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.typed_tables.observations import Observations, tables_of_observations
from wireformat.arrow.typed_tables.tables import POSITION

from .changes_made import TYPES, change, changes, relation

WIDE = {"id": "1", "note": "x"}
ROWS: list[dict[str, Any]] = [
    change("INSERT", {"id": "1"}),
    change("INSERT", WIDE),
    change("INSERT", {"note": "x", "id": "1"}),
    change("INSERT", WIDE, types={"id": "bigint", "note": "text"}),
    change("UPDATE", WIDE),
    change("UPDATE", {"id": "1"}, unchanged=["note"]),
    change("UPDATE", WIDE, {"id": "2"}),
    change("UPDATE", {"id": "1", "price": "2"}),
    change("INSERT", {"id": "1", "price": "2"}),
    change("INSERT", {**WIDE, "price": "2"}),
    change("DELETE", old={"id": "1"}),
    change("DELETE", old=WIDE),
    change("TRUNCATE"),
    change("INSERT", WIDE, table="shop.lines"),
    change("DELETE", old={"id": "1"}, table="shop.lines"),
    relation(TYPES, [-1, -1, 393222, -1], ["id"]),
    relation(TYPES, [-1, -1, 393222, -1], ["id", "note"]),
    relation({"id": "integer"}, [-1], ["id"]),
]


@given(
    st.lists(st.sampled_from(range(len(ROWS))), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([None, "gaussdb-binary"]),
)
def test_chunks_list_what_the_whole_stream_lists(chosen: list[int], cuts: list[int], format: str | None) -> None:
    table = changes(*(ROWS[number] for number in chosen))
    ends = sorted({0, len(table), *(cut for cut in cuts if cut < len(table))})
    observed = []
    for start, stop in pairwise(ends):
        found = Observations()
        for batch in table.slice(start, stop - start).combine_chunks().to_batches(max_chunksize=7):
            found.take_batch(batch)
        observed += sorted(found.found(), key=lambda one: (*one.first.values(),))
    listed = wf.arrow.tables(table, format=format)
    of_chunks = tables_of_observations(observed, format, POSITION)
    assert of_chunks.to_pylist() == listed.to_pylist()
    assert of_chunks.schema.metadata == listed.schema.metadata  # which has the identities that were switched
    assert wf.arrow.tables(table.to_batches(max_chunksize=7), format=format) == listed
