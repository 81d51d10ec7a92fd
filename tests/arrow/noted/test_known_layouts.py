"""Layouts of row changes: those that were read before are found again, however many are forgotten."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.columns import known_layouts
from wireformat.arrow.scan import message_batches

from ...lake.histories import messages_of, transactions


def test_a_layout_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    messages = messages_of([*transactions(40, more="more")])
    third = len(messages) // 3
    pieces = pa.chunked_array([messages[:third], messages[third : 2 * third], messages[2 * third :]], pa.binary())
    read: list[object] = []
    layout_of = known_layouts._layout
    monkeypatch.setattr(known_layouts, "_layout", lambda *given: (read.append(given), layout_of(*given))[1])

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
