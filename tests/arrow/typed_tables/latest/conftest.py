"""Changes become rows after every few, in all tests of this folder."""

from __future__ import annotations

import pytest

from wireformat.arrow.typed_tables import latest as latest_module


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes become rows after every few."""
    monkeypatch.setattr(latest_module, "BATCH_ROWS", 2)
    monkeypatch.setattr(latest_module, "COMPACTED_ROWS", 5)
