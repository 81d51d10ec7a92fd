"""What the text formats have in common: samples by their number, and the bad messages of a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import wireformat as wf

from .. import text_samples
from ..accounting import EVERYTHING
from ..text_strategies import events
from .record import Bad, Sample, Support, alone

_FILE = Path(__file__).parent / "bad_texts.jsonl"

ONE_IN = 5

LIES = {
    "record of 1 GB": b"\x3f\xff\xff\xff" + bytes(26),
    "record of 4 GB": text_samples.batched(b"commit", end=b"\xff" * 4 + bytes(26)),
}
"""Of batches."""


def text_support(
    format: str,
    *,
    good: bytes,
    stream: Iterable[wf.Event],
    written: dict[int, bytes] | None = None,
    **others: Any,
) -> Support:
    """The record of a text format; `written` has the samples that the encoder writes in another way."""
    samples = text_samples.SAMPLES[format]
    every = [sample for samples in text_samples.SAMPLES.values() for sample in samples]
    return Support(
        format=format,
        good=good,
        stream=tuple(stream),
        samples={str(number): _sample(data, (written or {}).get(number)) for number, data in enumerate(samples)},
        bad=_bad_messages()[format],
        events=lambda encoding: alone(events(format, encoding)),
        writing=EVERYTHING[format],
        splices=list(product(samples, every)),
        splice_step=23,
        **others,
    )


def _sample(data: bytes, written: bytes | None) -> Sample:
    batches = {"sending-batch": 1} if data[:1] < b"A" else {}
    return Sample(message=data, written=written, writing=batches, one_in=ONE_IN)


@cache
def _bad_messages() -> dict[str, dict[str, Bad]]:
    found: dict[str, dict[str, Bad]] = {}
    with _FILE.open(encoding="ascii") as file:
        for row in map(json.loads, file):
            bad = Bad(message=row["message"].encode("latin-1"), facts={"text": row["error"]})
            found.setdefault(row["format"], {})[row["name"]] = bad
    return found


def stream(
    first: wf.Event, last: wf.Event, type: str = "text", names: tuple[str, str] = ("$1", "$2")
) -> list[wf.Event]:
    """A transaction with one row change of each kind."""
    new = wf.TupleData(names, ("1", "x"), (type, type))
    old = wf.TupleData(("a", "B c"), ("2", "y"), (type, type))
    table = {"table_schema": "s", "table_name": "t"}
    changes = [wf.Insert(**table, new=new), wf.Update(**table, new=new, old=old), wf.Delete(**table, old=old)]
    return [first, *changes, last]


def numbered(events: Iterable[wf.Event]) -> list[wf.Event]:
    """The events with LSNs."""
    return [replace(event, lsn=number) for number, event in enumerate(events, 1)]
