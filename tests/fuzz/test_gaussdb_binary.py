"""A short run of the loop with a fixed seed, and what it starts from."""

from __future__ import annotations

import random

import pytest

from ..engines import read
from ..examples import PROFILE
from . import gaussdb_binary as loop

ROUNDS = 3 if PROFILE == "quick" else 12


def test_a_short_run() -> None:
    assert loop.fuzz(seed=20261121, enough=lambda done: done == ROUNDS) == ROUNDS


def test_the_seeds_are_good_and_of_every_kind() -> None:
    events = read(list(loop.seeds().values()))
    assert {event.kind for event in events} == {"BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT", "HEARTBEAT", "UNKNOWN"}
    assert any(event.lsn is None for event in events)


def test_the_same_seed_gives_the_same_bytes() -> None:
    good = list(loop.seeds().values())
    left, right = ([loop.mutated(random.Random(place), good) for place in range(50)] for _ in range(2))
    assert left == right
    assert len(set(left)) > 40


def test_a_broken_promise_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop itself: with a check that dislikes one byte, it fails and prints a message with that byte."""

    def dislike(messages: list[bytes], reading: object) -> None:
        assert not any(b"\xff" in message for message in messages)

    monkeypatch.setattr(loop, "check", dislike)
    with pytest.raises(AssertionError):
        loop.fuzz(seed=1, enough=lambda done: done == 10)
    shown = capsys.readouterr().err
    assert "seed 1, round 0" in shown
    assert shown.count("b'") + shown.count('b"') == 1
    assert "\\xff" in shown


def test_an_error_of_another_kind_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad byte may raise a WireformatError and nothing else: anything else ends the loop."""

    def crash(*_: object, **__: object) -> None:
        raise IndexError

    monkeypatch.setattr(loop, "agree", crash)
    with pytest.raises(IndexError):
        loop.fuzz(seed=1, enough=lambda done: done == 1)
