"""A short run of the loop over the text formats with a fixed seed, and what it starts from."""

from __future__ import annotations

import random

import pytest

import wireformat as wf

from ..engines import read
from ..examples import PROFILE
from ..text_samples import SAMPLES
from . import texts as loop

ROUNDS = 3 if PROFILE == "quick" else 25


def test_a_short_run() -> None:
    assert loop.fuzz(seed=20261121, enough=lambda done: done == ROUNDS) == ROUNDS


@pytest.mark.parametrize("format", SAMPLES)
def test_the_samples_are_good(format: str) -> None:
    for event in read(SAMPLES[format], format=format):
        assert not isinstance(event, wf.Unknown)
        loop.check_written(event, format)


def test_the_same_seed_gives_the_same_bytes() -> None:
    left, right = ([loop.mutated(random.Random(place), "gaussdb-json") for place in range(50)] for _ in range(2))
    assert left == right
    assert len(set(left)) > 30
