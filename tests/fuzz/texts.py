"""Looks for bytes on which a text format breaks a promise: `python -m tests.fuzz.texts --seconds 60`.

The promises: bad bytes raise a WireformatError and nothing else; both engines give the same answer; every byte is in
one place; what was read is written and read again as the same event, or refused. A failure prints the seed, the format
and the message.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import wireformat as wf
from wireformat.arrow.engine import faults

from ..accounting import EVERYTHING, account_all
from ..engines import MODES, agree, read
from ..text_samples import SAMPLES
from .gaussdb_binary import MUTATIONS, reading_for

MESSAGES_PER_ROUND = 60
MOST_MUTATIONS = 3
WORDS = (
    b"'",
    b'"',
    b"''",
    b'""',
    b"\\",
    b" INSERT:",
    b" new-tuple:",
    b" a[integer]:1",
    b"[]",
    b"null",
    b"B'1'",
    b"\\u00e9",
    b"\n",
)
"""What a grammar's rules are made of; put in anywhere."""


@patch.object(faults, "FEW", 0)  # compiled walks look for faults from the first record on
def fuzz(seed: int, enough: Callable[[int], bool]) -> int:
    """Run rounds until enough(rounds done) says so; returns how many."""
    done = 0
    while not enough(done):
        chooser = random.Random(f"{seed}-{done}")
        format = chooser.choice(list(SAMPLES))
        messages = [mutated(chooser, format) for _ in range(MESSAGES_PER_ROUND)]
        reading = reading_for(chooser)
        try:
            check(messages, format, reading)
        except Exception:
            sys.stderr.write(
                f"seed {seed}, round {done}, {format}, {reading}: {smallest(messages, format, reading)!r}\n"
            )
            raise
        done += 1
    return done


def mutated(chooser: random.Random, format: str) -> bytes:
    """One of the good messages with a few things done to it; sometimes nothing."""
    data = chooser.choice(SAMPLES[format])
    for _ in range(chooser.randrange(MOST_MUTATIONS + 1)):
        other = chooser.choice(SAMPLES[chooser.choice([format, format, *SAMPLES])])
        data = chooser.choice([*MUTATIONS, _put_in])(chooser, data, other)
    return data


def _put_in(chooser: random.Random, data: bytes, _: bytes) -> bytes:
    place = chooser.randrange(len(data) + 1)
    return data[:place] + chooser.choice(WORDS) + data[place:]


def check(messages: list[bytes], format: str, reading: dict[str, Any]) -> None:
    """All promises, for these messages."""
    for mode in MODES:
        agree(messages, format=format, mode=mode, **reading)
    answer = agree(messages, format=format, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), format)
    for event in answer.events:
        if not isinstance(event, wf.Corrupt):
            check_written(event, format)


def check_written(event: wf.Event, format: str) -> None:
    """An event that was read is written so that it is read again, or refused."""
    options = {**EVERYTHING[format], **({"include-user": False} if "include-user" in EVERYTHING[format] else {})}
    try:
        messages = list(wf.encode([event], format, options=options))
    except wf.EncodeError:
        return
    known = {}
    if isinstance(event, wf.RowChange):
        names = (event.table_schema, event.table_name)
        known = (
            {"known_tables": ['"{}"."{}"'.format(*(name.replace('"', '""') for name in names))]} if all(names) else {}
        )
    (again,) = read(messages, "declaration", format=format, **known)
    assert comparable(again) == comparable(event), event


def comparable(event: wf.Event) -> wf.Event:
    """Without the LSN, which may be the carrier's, and without a size, which the writer counts."""
    return replace(event, lsn=None, **({"size": None} if isinstance(event, wf.Ddl) else {}))


def smallest(messages: list[bytes], format: str, reading: dict[str, Any]) -> list[bytes]:
    """A message that breaks a promise alone, or all of them where none does."""
    for message in messages:
        try:
            check([message], format, reading)
        except Exception:
            return [message]
    return messages


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
