"""Seconds from the start of a Python process to its first decoded table, with an empty and with a full cache."""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import perf_counter

import wireformat as wf

from .generate import BINARY, Capture
from .measure import Result, Say

COLD = "first start: compiles"
UNLINKED = "first start, each function compiled by itself"
WARM = "every other start"

PROGRAM = f"""
import sys
import wireformat as wf
{{before}}
print(wf.arrow.changes([sys.stdin.buffer.read()], {BINARY!r}).num_rows, flush=True)
"""

WITHOUT_LINKING = "import wireformat.arrow.jit.linking as linking; linking.RELEASES = ()"
"""What linking is worth: a first start without it."""


def measure(capture: Capture, rounds: int, say: Say) -> dict[str, Result]:
    """Results by name. Each round begins with an empty cache, then come two starts that find it filled."""
    first = capture.load(BINARY).slice(0, 1).to_pylist()[0]
    seconds: dict[str, list[float]] = {COLD: [], UNLINKED: [], WARM: []}
    for number in range(1, rounds + 1):
        for names, before in ((UNLINKED,), WITHOUT_LINKING), ((COLD, WARM, WARM), ""):
            with TemporaryDirectory() as cache:
                for name in names:
                    say(f"{name}: run {number} of {rounds}")
                    seconds[name].append(start(first["payload"], first["records"], cache, before))
    return {
        name: Result(
            name=name,
            input_bytes=len(first["payload"]),
            changes=first["changes"],
            columns=len(wf.arrow.CHANGES),
            seconds=tuple(found),
        )
        for name, found in seconds.items()
    }


def start(message: bytes, records: int, cache: str, before: str = "") -> float:
    """Seconds until a new process has decoded the message; its caches are in the folder.

    before   a line of Python that the process runs first
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    began = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment | {"XDG_CACHE_HOME": cache},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(message)
        process.stdin.close()
        rows = int(process.stdout.readline())
        seconds = perf_counter() - began
    if rows != records:
        raise AssertionError(f"{rows} rows, there are {records}")
    return seconds
