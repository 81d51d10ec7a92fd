"""A short run of the loop over pgoutput with a fixed seed, and what it starts from."""

from __future__ import annotations

import random

import wireformat as wf

from ..engines import agree
from ..examples import PROFILE
from . import pgoutput as loop

ROUNDS = 3 if PROFILE == "quick" else 12


def test_a_short_run() -> None:
    assert loop.fuzz(seed=20261121, enough=lambda done: done == ROUNDS) == ROUNDS


def test_some_of_the_seeds_are_read() -> None:
    """All kinds of events come up, and rows with binary values among them."""
    events = agree(loop.SEEDS, format=loop.FORMAT, mode="PERMISSIVE").events
    kinds = {event.kind for event in events}
    assert kinds >= {
        "INSERT",
        "DELETE",
        "STREAM_COMMIT",
        "COMMIT_PREPARED",
        "RELATION",
        "HEARTBEAT",
        "CORRUPT",
        "UNKNOWN",
    }
    assert any(event.new.types == ("bigint",) for event in events if isinstance(event, wf.Insert) and event.new)


def test_the_same_seed_gives_the_same_bytes() -> None:
    left, right = ([loop.mutated(random.Random(place)) for place in range(50)] for _ in range(2))
    assert left == right
    assert len(set(left)) > 30
