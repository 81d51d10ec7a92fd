"""How things are measured: interleaved runs and their medians, and peak memory in a fresh process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

Answer = TypeVar("Answer")

Say = Callable[[str], None]
"""Tells the user what is being done."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was measured of one contestant.

    input_bytes     of messages, or of JSON lines
    changes         row changes in the input
    columns         of a row that it delivers; None where it delivers none
    seconds         of each run
    peak_bytes      most memory at one time, beyond what was taken before the input was loaded; on Spark: of all Python
                    workers; None where the system does not tell
    output_bytes    of an Arrow table
    jvm_bytes       on Spark: most memory of the JVM
    """

    name: str
    input_bytes: int
    changes: int
    columns: int | None = None
    seconds: tuple[float, ...]
    peak_bytes: int | None = None
    output_bytes: int | None = None
    jvm_bytes: int | None = None

    @property
    def median(self) -> float:
        """Seconds of a typical run."""
        return median(self.seconds)

    @property
    def changes_per_second(self) -> float:
        """Row changes of the input, a second."""
        return self.changes / self.median

    @property
    def megabytes_per_second(self) -> float:
        """Megabytes of the input, a second."""
        return self.input_bytes / self.median / 1e6


def interleaved(
    runs: Mapping[str, Callable[[], float]], rounds: int, say: Say, warmups: int = 1
) -> dict[str, tuple[float, ...]]:
    """Run all in rounds, so that a slow minute of the machine hits all of them; the first rounds do not count.

    runs        by name; each gives its seconds
    Each round begins with another one: nobody always runs behind the same neighbour.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for number in range(1 - warmups, rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            say(f"{name}: run {number} of {rounds}" if number > 0 else f"{name}: warming up")
            gc.collect()
            took = runs[name]()
            if number > 0:
                seconds[name].append(took)
    return {name: tuple(found) for name, found in seconds.items()}


def timed(work: Callable[[], Answer], check: Callable[[Answer], None]) -> float:
    """Seconds that the work takes; its answer is checked, and freed, outside of them."""
    start = perf_counter()
    answer = work()
    seconds = perf_counter() - start
    check(answer)
    return seconds


TURN_SECONDS = 1.0
"""How long a turn lasts at the least: short work is repeated, as in a process that does nothing else, where memory is
used again. The first touch of memory that was given back between turns would else be most of what is measured."""


def repeated(run: Callable[[], float], turn: float = TURN_SECONDS) -> float:
    """The median of as many runs as fit into a turn, one at least."""
    seconds = [run()]
    while sum(seconds) < turn:
        seconds.append(run())
    return median(seconds)


def in_fresh_process(work: Callable[..., Answer], *arguments: Any) -> Answer:
    """What the function gives in a new Python process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def peak_bytes(pid: int | str = "self") -> int | None:
    """The most memory that a process has held (resident), since it began or since `forget_peak`; None if not Linux."""
    return _status_bytes(pid, "VmHWM")


def resident_bytes(pid: int | str = "self") -> int | None:
    """The memory that a process holds now; None if not Linux."""
    return _status_bytes(pid, "VmRSS")


def forget_peak() -> None:
    """Let `peak_bytes` of this process begin anew."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status_bytes(pid: int | str, field: str) -> int | None:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
    return None
