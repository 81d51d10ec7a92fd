"""How far `wireformat follow` is behind a server that is written to all the time, and what memory it takes."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.servers.installations import installations
from tests.servers.server import Server, running

from .bench_live import OPTIONS, ROWS, TABLE, THREADS, VERSION
from .measure import Result, Say, resident_bytes

LAG = "lag of the oldest change of each commit"
MEMORY_EARLIER, MEMORY_LATER = "memory, second quarter", "memory, last quarter"
NAMES = (LAG, MEMORY_EARLIER, MEMORY_LATER)

SHARE = 0.5
"""Of the highest rate, which is measured first: the changes that a second brings."""

BATCH_SECONDS = 0.5
TICK_SECONDS = 0.1
"""How often rows are inserted, as one transaction, and how often memory is looked at."""

WAIT_SECONDS = 120


def measure(changes: int, seconds: float, folder: Path, say: Say) -> dict[str, Result]:
    """Results by name; empty if the server is not installed.

    changes   that are there before, to measure the highest rate
    seconds   of load
    """
    if VERSION not in installations():
        say(f"live-load: PostgreSQL {VERSION} is not installed")
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    with running(installations()[VERSION]) as server, server.connect() as session:
        session.execute(TABLE)
        session.execute("create publication p for table t")
        session.execute("select pg_create_logical_replication_slot('load', 'pgoutput')")
        metrics = folder / f"metrics-{time.time_ns()}.jsonl"
        say(f"live-load: the highest rate, over {changes} changes")
        for first in range(0, changes, 1000):
            session.execute(ROWS, [first, min(first + 1000, changes) - 1])
        follow = _start(server, metrics)
        try:
            rate = SHARE * _highest_rate(follow, metrics, changes)
            say(f"live-load: {rate:.0f} changes a second for {seconds:.0f} seconds")
            before = len(_lines(metrics))
            memory = _load(server, follow, changes, rate, seconds)
        finally:
            follow.send_signal(signal.SIGTERM)
            follow.communicate(timeout=WAIT_SECONDS)
        lines = _lines(metrics)
        metrics.unlink()
    return results_of(lines[max(before - 1, 0) :], memory)


def _start(server: Server, metrics: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "wireformat", "follow", f"host={server.folder} user=postgres dbname=postgres"),
        *("--slot", "load", "--publication", OPTIONS["publication_names"], "--to", metrics.with_suffix("")),
        *("--batch-seconds", BATCH_SECONDS, "--threads", THREADS, "--metrics", metrics),
    ]
    return subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _lines(metrics: Path) -> list[dict[str, Any]]:
    """The metrics so far, a line for each commit."""
    text = metrics.read_text(encoding="utf-8") if metrics.exists() else ""
    found = (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n"))
    return [*{line["commits"]: line for line in found}.values()]


def _highest_rate(follow: subprocess.Popen[bytes], metrics: Path, changes: int) -> float:
    """Waits for the changes that are there before. Returns how many a second are written, from the first commit on."""
    end = time.monotonic() + WAIT_SECONDS
    while not (lines := _lines(metrics)) or lines[-1]["rows"] < changes:
        if follow.poll() is not None or time.monotonic() > end:
            raise AssertionError("wireformat follow does not write what is there")
        time.sleep(TICK_SECONDS)
    done = [line for line in lines if line["last_commit"] is not None]
    first, last = done[0], done[-1]
    if first is last:
        return float(last["rows_per_second"])
    return float(last["rows"] - first["rows"]) / float(last["last_commit"] - first["last_commit"])


def _load(server: Server, follow: subprocess.Popen[bytes], first: int, rate: float, seconds: float) -> list[int | None]:
    """Inserts rows at a rate. Returns the memory of the reader at each tick."""
    memory: list[int | None] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(TICK_SECONDS):
            memory.append(resident_bytes(follow.pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        with server.connect() as session:
            begun, written = time.monotonic(), 0
            while (passed := time.monotonic() - begun) < seconds:
                due = int(rate * (passed + TICK_SECONDS))
                if due > written:
                    session.execute(ROWS, [first + written, first + due - 1])
                    written = due
                time.sleep(TICK_SECONDS)
    finally:
        stop.set()
        thread.join()
    return memory


def results_of(lines: Sequence[Mapping[str, Any]], memory: Sequence[int | None]) -> dict[str, Result]:
    """Results by name, of the commits under load and the one before them."""
    lags = []
    for before, line in pairwise(lines):
        if line["last_commit"] is not None and line["rows"] > before["rows"]:
            # The oldest change of a commit came just after the newest one of the commit before.
            newest_before = (before["last_commit"] or 0) - before["lag_seconds"]
            lags.append(max(line["last_commit"] - newest_before, line["lag_seconds"]))
    # Nothing is written between the changes that are there before and the load: that is no lag.
    lags = lags[1:]
    known = [size for size in memory if size is not None]
    quarters = [known[len(known) * number // 4 : len(known) * (number + 1) // 4] for number in range(4)]
    sizes = [round(statistics.median(one)) if one else None for one in quarters]
    changes, size = (lines[-1][name] - lines[0][name] for name in ("rows", "bytes"))
    seconds = {LAG: tuple(lags)}
    peaks = {MEMORY_EARLIER: sizes[1], MEMORY_LATER: sizes[3]}
    return {
        name: Result(
            name=name,
            input_bytes=size,
            changes=changes,
            seconds=seconds.get(name, (lines[-1]["time"] - lines[0]["time"],)),
            peak_bytes=peaks.get(name),
        )
        for name in NAMES
    }


def growth_of_memory(results: Mapping[str, Result]) -> float | None:
    """The memory at the end, against that of the second quarter."""
    later, earlier = (results[name].peak_bytes for name in (MEMORY_LATER, MEMORY_EARLIER))
    return None if not later or not earlier else later / earlier
