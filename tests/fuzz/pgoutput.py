"""Looks for bytes on which pgoutput breaks a promise: `python -m tests.fuzz.pgoutput --seconds 60`.

The promises: bad bytes raise a WireformatError and nothing else; both engines give the same answer, whatever was said
before; every byte is in one place; what was read is written and read again as the same event, or refused. A failure
prints the seed and the messages.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import wireformat as wf
from wireformat.arrow.engine import faults

from ..accounting import account_all
from ..engines import MODES, agree, read
from ..handmade_pgoutput import ALL, DESCRIBED, OPENGAUSS, binary, change, column, envelope, image, relation, streamed
from ..servers.captures import read_capture
from .gaussdb_binary import MUTATIONS

FORMAT = "pgoutput"
MESSAGES_PER_ROUND = 60
MOST_MUTATIONS = 3
ONE_IN_GOOD = 3
"""One in this many messages is left as it is, so that streams go on for a while."""

_OIDS = (16, 17, 20, 21, 23, 25, 114, 700, 701, 1042, 1082, 1083, 1114, 1184, 1186, 1266, 1700, 2950, 3802, 1007, 1009)


def seeds() -> list[bytes]:
    """Good messages: every kind, in blocks and envelopes, of a server, and rows of binary cells of many types."""
    found = [message for message, _ in (*ALL.values(), *OPENGAUSS.values())]
    found += [streamed(message) for message in found] + [envelope(message, 1 << 40) for message in found]
    found += read_capture("18-pgoutput-4-two-phase-binary").messages[::97]
    for place, oid in enumerate(_OIDS):
        number = 70_000 + place
        found.append(relation(column(b"a", oid, is_key=True), oid=number))
        found += [change(b"I", image(b"N", binary(bytes(size))), oid=number) for size in (0, 1, 2, 4, 8, 12, 16)]
    return found


SEEDS = seeds()


@patch.object(faults, "FEW", 0)  # compiled walks look for faults from the first record on
def fuzz(seed: int, enough: Callable[[int], bool]) -> int:
    """Run rounds until enough(rounds done) says so; returns how many."""
    done = 0
    while not enough(done):
        chooser = random.Random(f"{seed}-{done}")
        messages = [DESCRIBED, *(mutated(chooser) for _ in range(MESSAGES_PER_ROUND))]
        reading = reading_for(chooser)
        try:
            check(messages, reading)
        except Exception:
            sys.stderr.write(f"seed {seed}, round {done}, {reading}: {smallest(messages, reading)!r}\n")
            raise
        done += 1
    return done


def mutated(chooser: random.Random) -> bytes:
    """One of the good messages, often with a few things done to it."""
    data = chooser.choice(SEEDS)
    if chooser.randrange(ONE_IN_GOOD):
        for _ in range(chooser.randint(1, MOST_MUTATIONS)):
            data = chooser.choice(MUTATIONS)(chooser, data, chooser.choice(SEEDS))
    return data


def reading_for(chooser: random.Random) -> dict[str, Any]:
    """Options of the reader."""
    return {
        "encoding": chooser.choice(["utf-8", "utf-8", "gbk", "latin-1"]),
        "encoding_errors": chooser.choice(["strict", "replace"]),
        "dialect": chooser.choice(["postgresql", "postgresql", "opengauss"]),
        "kinds": chooser.choice([None, None, ["INSERT", "UPDATE"], ["RELATION"]]),
        "tables": chooser.choice([None, None, ["public.*"]]),
    }


def check(messages: Sequence[bytes], reading: dict[str, Any]) -> None:
    """All promises, for these messages."""
    for mode in MODES:
        agree(messages, format=FORMAT, mode=mode, **reading)
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), FORMAT)
    check_written(answer.events)


def check_written(events: Sequence[wf.Event]) -> None:
    """What was read is written so that it is read again, or refused; a refused event leaves no trace."""
    writer = wf.FORMATS[FORMAT].writer(None, encoding="utf-8", batch_bytes=0)
    written: list[bytes] = []
    said: list[wf.Event] = []
    for event in events:
        try:
            written += writer.write(event)
        except wf.EncodeError:
            continue
        said.append(event)
    again = read(written, "declaration", format=FORMAT)
    left, right = ([comparable(event) for event in some] for some in (_told(again, said), said))
    assert left == right


def _told(again: Sequence[wf.Event], said: Sequence[wf.Event]) -> list[wf.Event]:
    """Those that were written by themselves: a row may bring the description of its table."""
    found: list[wf.Event] = []
    for event in again:
        wanted = said[len(found)] if len(found) < len(said) else None
        if not isinstance(event, wf.Relation) or comparable(event) == (wanted and comparable(wanted)):
            found.append(event)
    return found


def comparable(event: wf.Event) -> wf.Event:
    """Without the LSN, which may be the envelope's."""
    return replace(event, lsn=None)


def smallest(messages: Sequence[bytes], reading: dict[str, Any]) -> list[bytes]:
    """The messages without those that are not needed to break a promise."""
    left = list(messages)
    for message in messages:
        fewer = [one for one in left if one is not message]
        try:
            check(fewer, reading)
        except Exception:
            left = fewer
    return left


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
