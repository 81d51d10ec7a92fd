"""The search for a layout begins at a place of its own, whatever its rows have in common with others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wireformat.arrow.arrays import Array
from wireformat.arrow.columns.layouts import _home_slot, numbered_layouts
from wireformat.arrow.engine.scan_engine import ScanEngine
from wireformat.arrow.jit.compiler import compiled
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

SLOTS = 1 << 14
OTHER_COLUMNS = [
    b"table public.t: DELETE: " + b" ".join(b"c%d[integer]:1" % column for column in chosen)
    for chosen in combinations(range(10, 23), 5)
]
OTHER_TYPES = [b"table public.t: INSERT: c[t%04d]:1" % number for number in range(1000)]
OTHER_TABLES = [b"table public.t%04d_orders: INSERT: c[text]:'x'" % number for number in range(1000)]
OTHER_SCHEMAS = [b"table s%04d.orders: INSERT: c[text]:'x'" % number for number in range(1000)]


@compiled
def _home_slots(rows: Array, chosen: Array, cells: Array, source: Array, text: Array, found: Array) -> None:
    for index in range(len(chosen)):
        found[index] = _home_slot(rows, cells, source, text, chosen[index])


@pytest.mark.parametrize("messages", [OTHER_COLUMNS, OTHER_TYPES, OTHER_TABLES, OTHER_SCHEMAS])
def test_layouts_begin_at_slots_of_their_own(messages: list[bytes]) -> None:
    """Otherwise each is compared with all others, and the time is quadratic."""
    engine = ScanEngine(find_format("test-decoding"), ReadOptions.check(), 1)
    (scanned,) = engine.scanned(messages, 0)
    chosen, found = np.arange(len(messages)), np.zeros(len(messages), np.int64)
    assert len(numbered_layouts(scanned, chosen)[1]) == len(messages)
    _home_slots(scanned.rows, chosen, scanned.cells, scanned.source, scanned.text, found)
    expected = SLOTS * (1 - (1 - 1 / SLOTS) ** len(messages))  # by chance
    assert len({*(found % SLOTS).tolist()}) > 0.98 * expected
