"""Layouts of row changes: those that were read before are found again, however many are forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.columns import known_layouts
from wireformat.arrow.scan import message_batches
from wireformat.chunks.capture import ChunkCapture
from wireformat.chunks.summary import ChunkSummary, summarized

from ...lake.histories import messages_of, transactions


def test_a_layout_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    messages = messages_of([*transactions(40, more="more")])
    third = len(messages) // 3
    pieces = pa.chunked_array([messages[:third], messages[third : 2 * third], messages[2 * third :]], pa.binary())
    read: list[object] = []
    layouts_of = known_layouts._layouts
    monkeypatch.setattr(known_layouts, "_layouts", lambda *given: (read.extend(given[-1]), layouts_of(*given))[1])

    def typed() -> list[tuple[str, pa.Table]]:
        read.clear()
        found: dict[str, list[pa.RecordBatch]] = {}
        for table, batch in wf.Capture(pieces, "gaussdb-binary").typed_all():
            found.setdefault(table, []).append(batch)
        return [(table, pa.Table.from_batches(batches)) for table, batches in sorted(found.items())]

    expected = typed()
    once = len(read)
    monkeypatch.setattr(known_layouts, "MOST_BYTES", 0)
    assert typed() == expected
    assert 0 < once < len(read)


def test_chunks_of_one_process_share_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after so many layouts that they were forgotten, and where both read at the same time."""
    messages = messages_of([*transactions(40)])
    monkeypatch.setattr(ChunkCapture, "_layouts", known_layouts.KnownLayouts())
    read: list[object] = []
    layouts_of = known_layouts._layouts
    monkeypatch.setattr(known_layouts, "_layouts", lambda *given: (read.extend(given[-1]), layouts_of(*given))[1])

    def summary() -> ChunkSummary:
        read.clear()
        return summarized(ChunkCapture(messages, "gaussdb-binary"))

    first = summary()
    assert read
    assert summary() == first
    assert not read
    monkeypatch.setattr(known_layouts, "MOST_BYTES", 0)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == first for found in pool.map(lambda _: summary(), range(20)))
