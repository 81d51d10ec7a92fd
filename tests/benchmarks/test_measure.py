"""How runs are interleaved, and peaks of memory."""

from __future__ import annotations

import sys

import pytest

from benchmarks.measure import forget_peak, in_fresh_process, interleaved, peak_bytes, resident_bytes


@pytest.mark.slow
def test_all_run_in_turn_and_each_round_begins_with_another_one() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
    seconds = interleaved(runs, 2, lambda text: None)
    assert "".join(order) == "abcbcacab"
    assert seconds == {"a": (6, 8), "b": (4, 9), "c": (5, 7)}


def _peak_of(size: int) -> int:
    before = resident_bytes()
    forget_peak()
    held = b"x" * size
    del held
    return peak_bytes() - before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process")
def test_a_peak_is_seen_after_it_is_over() -> None:
    assert in_fresh_process(_peak_of, 50_000_000) == pytest.approx(50_000_000, rel=0.1)
