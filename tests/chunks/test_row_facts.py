"""What chunks find of their tables does not depend on which rows are only counted."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

import wireformat as wf
from wireformat.arrow.change_table import checked_schema
from wireformat.arrow.noted.tables import NotedTables
from wireformat.chunks.summary import ChunkObservations
from wireformat.formats.registry import find_format
from wireformat.sources.decoding import SourceDecoder
from wireformat.sources.source import SourceMessages

SEQUENCES = ["gaussdb-binary", "gaussdb-json", "gaussdb-text", "mppdb-json", "test-decoding", "pgoutput"]


class _TakesAll(ChunkObservations):
    """Takes each row."""

    def is_settled(self, *_: object) -> bool:
        return False


@pytest.mark.parametrize("format", SEQUENCES)
@pytest.mark.parametrize("seed", range(5))
def test_counted_rows_tell_what_all_rows_tell(format: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    count = ChunkObservations.count

    def counting(*arguments: object) -> None:
        nonlocal counted
        counted += 1
        count(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ChunkObservations, "count", counting)
    monkeypatch.setattr("wireformat.arrow.noted.tables.GROUP_ROWS", 1 + 20 * (seed % 2))
    chance = Random(seed)
    messages = [*map(bytes, wf.encode(wf.testing.stream(3, 120, seed=seed, format=format), format))]
    cuts = sorted({0, len(messages), *(chance.randrange(len(messages)) for _ in range(40))})
    decoder, schema = SourceDecoder(find_format(format), wf.ReadOptions(), threads=1), checked_schema(None, format)
    whole, some = _TakesAll(), ChunkObservations()
    all_tables, chunk_tables = NotedTables(whole), NotedTables(some)
    for start, stop in pairwise(cuts):
        for rows in decoder.rows(SourceMessages("messages", messages[start:stop], 0), schema):
            all_tables.take(rows)
            chunk_tables.take(rows)
    all_tables.finish()
    chunk_tables.finish()
    assert counted
    assert sorted(some.found(), key=str) == sorted(whole.found(), key=str)
    assert some.row_facts == whole.row_facts
