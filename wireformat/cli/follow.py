"""`wireformat follow`: signals, a display of the progress, and metrics; and `wireformat check`."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

from .. import live
from ..errors import counted
from ..lake.stored.manifest import read_manifest
from ..lake.stored.store import Store
from ..live import Progress
from ..live.progress import clock
from ..lsn import lsn_text
from ..printable import printable
from ..stream.capture_position import CapturePosition
from .exits import BAD_DATA, Failed
from .screen import print_lines, say

LINES_SECONDS = 30.0
"""How often a line says that a long operation is still running."""

METRICS_SECONDS = 1.0
"""How often a line of metrics is written while nothing is committed."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def follow(dsn: str, to: str, *, metrics: str | None, **options: Any) -> None:
    """Follows a slot until a signal comes; raises what `live.follow` raises.

    metrics   the file to which lines of JSON are appended; - is standard output, None writes none
    """
    stop = threading.Event()
    with ExitStack() as held:
        held.enter_context(_stopped_by_signals(stop))
        show = held.enter_context(_display())
        write = held.enter_context(_metrics(metrics))

        def tell(progress: Progress) -> None:
            show(progress)
            write(progress)

        position = live.follow(dsn, to, on_progress=tell, stop=stop, **options)
    if position.slot is not None:
        left = "" if position.slot.copied is None else "; some tables are not copied yet; the next run copies them"
        say(f"{to}: everything before {lsn_text(position.slot.lsn)}{left}")


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Sets `stop` at the first signal, which ends the run after its batch. The next signal ends it at once."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(number: int, frame: Any) -> None:
        stop.set()
        for other, handler in before.items():
            signal.signal(other, handler)

    for number in _SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _display() -> Iterator[Callable[[Progress], None]]:
    """Yields a function that shows progress: in place on a terminal, else as a line for each commit and new state."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), refresh_per_second=4) as display:
        yield lambda progress: display.update(Text("\n".join(map(printable, _described(progress)))))


class _News:
    """Tells what is new: at once what has changed, and what goes on after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._told: tuple[Any, ...] = ()
        self._last = 0.0

    def is_due(self, progress: Progress, *, repeats: bool = True) -> bool:
        """Whether progress is to be reported now; `repeats` is whether also what goes on is."""
        facts = progress.state, progress.blocked_by, progress.batches, progress.is_alarming
        now = time.monotonic()
        if facts == self._told and not (repeats and now - self._last >= self._seconds):
            return False
        self._told, self._last = facts, now
        return True


class _Lines:
    """Plain lines on standard error."""

    def __init__(self) -> None:
        self._news = _News(LINES_SECONDS)
        self._warned = set[str]()

    def show(self, progress: Progress) -> None:
        """Prints progress if there is something new."""
        for warning in progress.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                say(f"warning: {warning}")
        # Other work than streaming may take hours.
        if self._news.is_due(progress, repeats=progress.state != "streaming"):
            say(_described(progress)[0])


def _described(progress: Progress) -> list[str]:
    """Returns a line for the whole run, then one for each table and each warning."""
    lag = "" if progress.lag_bytes is None else f", {progress.lag_bytes / 1e6:.1f} MB behind"
    kept = "" if progress.retained_bytes is None else f", slot keeps {progress.retained_bytes / 1e6:.1f} MB"
    so_far = f", {counted(progress.rows_so_far, 'row')}" if progress.rows_so_far else ""
    blocked = f"; blocked by {progress.blocked_by}" if progress.blocked_by else ""
    alarm = f" (ALARM: more than {(progress.retained_alarm or 0) / 1e6:.1f} MB)" if progress.is_alarming else ""
    open_messages = (
        f", {counted(progress.open_messages, 'message')} of an open transaction" if progress.open_messages else ""
    )
    commit = "" if progress.last_commit is None else f", last commit {clock(progress.last_commit)}"
    rate = f"{counted(round(progress.rows_per_second), 'row')}/s{lag}, {progress.lag_seconds:.1f} s lag"
    first = f"{progress.state}{so_far}{blocked}"
    if progress.lsn:
        first += (
            f": {lsn_text(progress.lsn)}, {counted(progress.rows, 'row')} in {counted(progress.batches, 'commit')}, "
            f"{rate}{kept}{alarm}{open_messages}{commit}"
        )
    tables = (f"  {name}: {rows}" for name, rows in sorted(progress.tables.items()))
    return [first, *tables, *(f"  warning: {warning}" for warning in progress.warnings)]


@contextmanager
def _metrics(path: str | None) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that writes a line of JSON for each commit and each new state, and every METRICS_SECONDS."""
    if path is None:
        yield lambda progress: None
        return
    with ExitStack() as held:
        put = _put_on_screen if path == "-" else held.enter_context(_MetricsFile(path)).put
        news = _News(METRICS_SECONDS)
        yield lambda progress: put(progress.to_json() + "\n") if news.is_due(progress) else None


def _put_on_screen(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


class _MetricsFile:
    """Appends lines to a file. If the disk is full, lines are lost, but the stream continues."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - closed by __exit__
        self._is_cut = self._has_failed = False

    def put(self, line: str) -> None:
        """Writes a line, or reports once why it cannot."""
        data = (b"\n" if self._is_cut else b"") + line.encode()
        try:
            self._is_cut = self._file.write(data) < len(data)
        except OSError as error:
            if not self._has_failed:
                say(f"--metrics {self._path}: {error.strerror}; lines are left out until they can be written")
            self._has_failed = True
        else:
            self._has_failed = False

    def __enter__(self) -> _MetricsFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def end_of_lake(folder: str) -> CapturePosition | None:
    """Returns where a lake ends; says so and returns None if there is none. Raises OptionError and StateError."""
    manifest = read_manifest(Store.of(folder, None, None))
    if manifest is None:
        say(f"{folder}: no lake is there yet; a new one begins where the slot is")
    return None if manifest is None else manifest.position


def check(
    dsn: str,
    *,
    slot: str,
    publication: Sequence[str] | None,
    position: CapturePosition | None,
    via: str,
    driver: str,
    as_json: bool = False,
) -> None:
    """Prints a line for each finding. Raises Failed if no stream can start, and what `live.check` raises."""
    found = live.check(dsn, slot=slot, publication=publication or None, position=position, via=via, driver=driver)
    if as_json:
        print_lines(finding._asdict() for finding in found)
    else:
        for finding in found:
            typer.echo(printable(str(finding)))
    errors = sum(finding.level == "error" for finding in found)
    if errors:
        raise Failed(f"{errors} of {len(found)} checks keep the stream from starting", BAD_DATA)


def create(dsn: str, slot: str, *, plugin: str, failover: bool, via: str, driver: str) -> None:
    """Creates the slot, and says what the server waits for. Raises what `live.create_slot` raises."""

    def tell(text: str) -> None:
        say(f"creating the slot: {text}")

    live.create_slot(dsn, slot, plugin=plugin, failover=failover, via=via, driver=driver, on_wait=tell)
    say(f"created slot {slot}")


def drop(dsn: str, slot: str, *, via: str, driver: str) -> None:
    """Drops the slot. Raises what `live.drop_slot` raises."""
    live.drop_slot(dsn, slot, via=via, driver=driver)
    say(f"dropped slot {slot}")
