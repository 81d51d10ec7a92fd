"""Looks for bytes on which gaussdb-binary breaks a promise: `python -m tests.fuzz.gaussdb_binary --seconds 60`.

The promises: bad bytes raise a WireformatError and nothing else; both engines give the same answer; every byte is in
one place; what was read is written and read again as the same events. A failure prints the seed, and the messages that
are enough for it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import wireformat as wf
from wireformat.arrow.engine import faults

from ..accounting import EVERYTHING, account_all
from ..engines import FORMAT, MODES, agree, read
from ..mutations import BYTE_LIES, LIES_16, LIES_32

SEEDS = Path(__file__).parent / "seeds" / "gaussdb_binary"
MESSAGES_PER_ROUND = 150
MOST_MUTATIONS = 4


def seeds() -> dict[str, bytes]:
    """Good messages to start from, by the name of their file."""
    return {path.stem: path.read_bytes() for path in sorted(SEEDS.glob("*.bin"))}


@patch.object(faults, "FEW", 0)  # compiled walks look for faults from the first record on
def fuzz(seed: int, enough: Callable[[int], bool]) -> int:
    """Run rounds until enough(rounds done) says so; returns how many."""
    good = list(seeds().values())
    done = 0
    while not enough(done):
        chooser = random.Random(f"{seed}-{done}")
        messages = [mutated(chooser, good) for _ in range(MESSAGES_PER_ROUND)]
        reading = reading_for(chooser)
        try:
            check(messages, reading)
        except Exception:
            sys.stderr.write(f"seed {seed}, round {done}, {reading}: {smallest(messages, reading)!r}\n")
            raise
        done += 1
    return done


def mutated(chooser: random.Random, good: Sequence[bytes]) -> bytes:
    """One of the good messages with a few things done to it; sometimes nothing."""
    data = chooser.choice(good)
    for _ in range(chooser.randrange(MOST_MUTATIONS + 1)):
        data = chooser.choice(MUTATIONS)(chooser, data, chooser.choice(good))
    return data


def reading_for(chooser: random.Random) -> dict[str, Any]:
    """Options for one round."""
    return {
        "encoding": chooser.choice(["utf-8", "utf-8", "gbk", "latin-1"]),
        "encoding_errors": chooser.choice(["strict", "strict", "replace"]),
        "tables": chooser.choice([None, None, ["public.*"], ["*.t"]]),
        "kinds": chooser.choice([None, None, ["INSERT", "COMMIT", "HEARTBEAT"]]),
        "heartbeat_unit": chooser.choice([None, "s", "ms", "us"]),
    }


def check(messages: Sequence[bytes], reading: dict[str, Any]) -> None:
    """All promises, for these messages."""
    for mode in MODES:
        agree(messages, mode=mode, **reading)
    answer = agree(messages, mode="PERMISSIVE")
    account_all(messages, answer.by_message())
    good = [event for event in answer.events if not isinstance(event, wf.Corrupt)]
    written = list(wf.encode(good, FORMAT, options={**EVERYTHING[FORMAT], "sending-batch": 1}, batch_bytes=500))
    assert read(written) == good


def smallest(messages: Sequence[bytes], reading: dict[str, Any]) -> list[bytes]:
    """A message that breaks a promise alone, or all of them where none does."""
    for message in messages:
        try:
            check([message], reading)
        except Exception:
            return [message]
    return list(messages)


def _change_byte(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    place = chooser.randrange(len(data) + 1)
    return data[:place] + bytes([chooser.choice([*BYTE_LIES, chooser.randrange(256)])]) + data[place + 1 :]


def _insert(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    place = chooser.randrange(len(data) + 1)
    return data[:place] + chooser.randbytes(chooser.randrange(1, 6)) + data[place:]


def _delete(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    place = chooser.randrange(len(data) + 1)
    return data[:place] + data[place + chooser.randrange(1, 9) :]


def _cut(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: chooser.randrange(len(data) + 1)]


def _lie(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    width, lies = chooser.choice([(2, LIES_16), (4, LIES_32)])
    place = chooser.randrange(len(data) + 1)
    true = int.from_bytes(data[place : place + width], "big")
    lie = chooser.choice([*lies, true + 1, true - 1, true + chooser.randrange(40)]) % 256**width
    return data[:place] + lie.to_bytes(width, "big") + data[place + width :]


def _splice(chooser: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: chooser.randrange(len(data) + 1)] + other[chooser.randrange(len(other) + 1) :]


def _copy(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    start, stop, place = (chooser.randrange(len(data) + 1) for _ in range(3))
    return data[:place] + data[min(start, stop) : max(start, stop)][:200] + data[place:]


def _flip_after_framing(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    """Change a byte of the body and keep the framing good, so that the record's own fields are reached."""
    if len(data) < 15:
        return data
    place = chooser.randrange(12, len(data) - 1)
    return data[:place] + chooser.randbytes(1) + data[place + 1 :]


MUTATIONS: list[Callable[[random.Random, bytes, bytes], bytes]] = [
    _change_byte,
    _insert,
    _delete,
    _cut,
    _lie,
    _splice,
    _copy,
    _flip_after_framing,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="another one each time, if not given")
    arguments = parser.parse_args()
    seed = time.time_ns() if arguments.seed is None else arguments.seed
    stop = time.monotonic() + arguments.seconds
    rounds = fuzz(seed, lambda _: time.monotonic() >= stop)
    sys.stdout.write(f"seed {seed}: {rounds} rounds of {MESSAGES_PER_ROUND} messages, no promise broken\n")


if __name__ == "__main__":
    main()
