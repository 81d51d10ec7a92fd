"""A run of `follow`: it connects, copies tables, writes batches, and continues after errors that pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, TypeVar

from ..errors import OptionError, ServerError, counted
from ..lsn import lsn_text
from ..options import ReadOptions
from ..stream.capture_position import CapturePosition, SlotPosition
from .batches import Batch, Batches
from .checks.findings import Wanted, raise_errors
from .checks.server import all_findings, check_start, is_behind
from .connection import STEADY_SECONDS, Connection, Stopped
from .intake import Intake, SqlIntake, silence_of
from .messages import MessageFile
from .plugins import Asked, ask
from .progress import Reports, clock
from .sink import Sink, is_full
from .slots import Slot, System, claim, create_slot, find_system, waits_for_slot
from .snapshot import Snapshot, take_snapshot
from .transaction_ends import Cutter, ends_of

_Result = TypeVar("_Result")

TICK_SECONDS = 0.5
"""How often progress is reported while nothing comes, and how soon `stop` is noticed."""

ASKS_SECONDS, ONCE_ASKS_SECONDS = 5.0, 0.1
"""How often the server is asked how far it is while nothing comes, and so where `once` ends."""

ASKED_SECONDS = 1.0
"""How soon after the last write a position without changes is written when the server asks for it. A server that is
shut down asks, and waits until all that it has sent is safe."""

_DAY_SECONDS = 86_400

WAIT_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""The waits before each attempt to connect again, or to write again when the disk is full; the last one repeats."""


def waits() -> Iterator[float]:
    """Yields the seconds before each attempt, without end."""
    return chain(WAIT_SECONDS, repeat(WAIT_SECONDS[-1]))


@dataclass
class Retries:
    """The attempts of a run to connect again.

    most_seconds   how long after the first failure the run gives up
    failures       the number of failures since the last success
    """

    most_seconds: float
    failures: int = 0
    _lost_at: float = 0.0
    _opened_at: float = 0.0

    def note_opened(self) -> None:
        """Notes that a connection is being made, or has begun to stream."""
        self._opened_at = time.monotonic()

    def note_success(self) -> None:
        """Counts failures anew: something was written."""
        self.failures = 0

    def note_lasting(self) -> None:
        """Counts failures anew once the connection has lasted: one that lives for a moment is also a failure."""
        if time.monotonic() - self._opened_at >= STEADY_SECONDS:
            self.failures = 0

    def next_wait(self, error: ServerError) -> tuple[float, float]:
        """Counts a failure. Returns how long to wait before the next attempt, and in how many seconds the run gives up.

        Raises ServerError if it is time to give up.
        """
        now = time.monotonic()
        if self.failures == 0:
            self._lost_at = now
        left = self._lost_at + self.most_seconds - now
        if left < 0:
            raise ServerError(
                f"{error}; given up after {self.most_seconds:g} seconds, see reconnect_seconds",
                sqlstate=error.sqlstate,
                is_temporary=True,
            )
        seconds = WAIT_SECONDS[min(self.failures, len(WAIT_SECONDS) - 1)]
        self.failures += 1
        return seconds, left


@dataclass(frozen=True)
class RunOptions:
    """What a run is asked to do; `follow` explains the options of the same names.

    plugin         the plugin of a slot that is created
    creates_slot   whether a missing slot is created
    memory_bytes   the number of bytes that wait to be written, and of those of a batch that stay in memory
    """

    slot: str
    publications: list[str]
    plugin: str
    plugin_options: dict[str, Any]
    creates_slot: bool
    snapshot: bool
    once: bool
    via: str
    batch_bytes: int
    batch_seconds: float
    memory_bytes: int
    idle_seconds: float


@dataclass
class Follower:
    """A run of `follow`.

    connect      makes a connection
    stop         ends the run when it is set
    position     the position of the lake; None until it has one
    timeline     the timeline of the server's log; 0 if it is not known
    target       the LSN at which a run with `once` ends; None until it is known, and for other runs
    written_at   when the lake was last written, by the monotonic clock
    """

    options: RunOptions
    connect: Callable[[], Connection]
    sink: Sink
    stop: threading.Event
    reports: Reports
    retries: Retries
    position: CapturePosition | None = None
    timeline: int = 0
    target: int | None = None
    written_at: float = field(default_factory=time.monotonic)

    def run(self) -> CapturePosition:
        """Follows until the end. Returns the position of the lake; raises what `follow` raises."""
        self.position = self.sink.position()
        while True:
            try:
                self._with_room(self._stream)
                return self._position()
            except Stopped:
                if self.position is None:
                    raise ServerError("stopped before anything was written: run it again") from None
                return self.position
            except ServerError as error:
                if not self._waits_after(error):
                    return self._position()

    def _with_room(self, work: Callable[[], _Result]) -> _Result:
        """Does the work. If a disk is full, does it again after a while."""
        for wait in waits():
            try:
                return work()
            except Exception as error:
                if not is_full(error):
                    raise
                self.reports.ask()
                self.reports.report(state="waiting: no space left on the lake's disk, or on that of temporary files")
                if self.stop.wait(wait):
                    raise
        raise AssertionError("there is always another wait")

    def _waits_after(self, error: ServerError) -> bool:
        """Waits before the next connection. Returns False if the run is stopped; raises an error that does not pass."""
        if self.reports.progress.started is None or not error.is_temporary:
            raise error
        wait, left = self.retries.next_wait(error)
        until = f" (until {clock(time.time() + left)})" if left < _DAY_SECONDS else ""
        self.reports.report(state=f"connecting again: {error}{until}")
        return not self.stop.wait(wait)

    def _begins(self) -> None:
        """From now on, the run waits for errors to pass: the server is the right one."""
        self.reports.note(started=self.reports.progress.started or time.time())

    def _stream(self) -> None:
        """Connects, checks that the slot continues where the lake ends, and writes until there is a reason to stop."""
        options = self.options
        connection = self.connect()
        connection.on_wait = lambda: self._report_work(self.reports.progress.state, waiting=connection)
        self.retries.note_opened()
        try:
            if options.via == "sql" or self._copied() is not None:  # then the server does not keep others from the slot
                claim(connection, options.slot)
            self.position = self.sink.position()  # another run may have written since
            system, slot = self._checked(connection)
            self.timeline = system.timeline
            asked = self._asked(connection, slot.plugin)
            if self.target is None:
                self.target = system.flushed if options.once else None
            if self.position is None:
                self._begin(system, slot, asked.format)
            self._begins()
            self.reports.note(lsn=self._reached().lsn)
            while self._reached().copied is not None:
                self._copy_tables(asked)
        except BaseException:
            connection.close()
            raise
        self._write_stream(connection, asked)

    def _copied(self) -> Collection[tuple[str, str]] | None:
        """Returns the tables that have been copied, if others are to be copied before the server streams; else None."""
        if self.position is None:
            return () if self.options.snapshot else None
        return None if self.position.slot is None else self.position.slot.copied

    def _write_stream(self, connection: Connection, asked: Asked, until: int | None = None) -> None:
        """Writes what the slot sends until there is a reason to stop; closes the connection.

        connection   for queries; another one streams
        until        transactions that are committed at this LSN or later are left out
        """
        try:
            start = self._reached().lsn
            self.sink.flush_all()  # the server is told at once that all before `start` is safe
            self.reports.note(state="streaming")
            intake, batches = self._opened(connection, asked, start, until)
        except BaseException:
            connection.close()
            raise
        try:
            self._write_batches(intake, batches, asked, self.target if until is None else until)
        finally:
            intake.close()
            batches.close()

    def _opened(
        self, connection: Connection, asked: Asked, start: int, until: int | None
    ) -> tuple[Intake | SqlIntake, Batches]:
        """Starts to receive the stream from an LSN. Arguments are those of `_write_stream`."""
        options, ends = self.options, ends_of(asked.format, **self.sink.reading)
        if options.via == "sql":  # each look is a batch: the next one would begin with the same changes
            looks = SqlIntake(connection, Cutter(ends, until), options.slot, asked.format, asked.options, start)
            return looks, Batches(looks, 1, 0, options.memory_bytes)
        stream = self.connect()
        try:
            stream.start(options.slot, start, asked.options)
            check_start(connection, options.slot, start)
            silence = silence_of(connection)
        except BaseException:
            stream.close()
            raise
        connection.close()
        asks_every = ONCE_ASKS_SECONDS if options.once or until is not None else ASKS_SECONDS
        cutter = Cutter(ends, until, feedback=stream.feedback, is_parallel=asked.is_parallel)
        intake = Intake(stream, cutter, start, queue_bytes=options.memory_bytes, asks_every=asks_every, silence=silence)
        return intake, Batches(intake, options.batch_bytes, options.batch_seconds, options.memory_bytes)

    def _checked(self, connection: Connection) -> tuple[System, Slot]:
        """Returns the server and the slot, which is created if that is asked for; raises ServerError for a finding."""
        options = self.options
        system, slot = self.reports.find(connection)
        if self.position is not None and is_behind(self.position, system):
            self._begins()  # the run waits for the standby, also in its first attempt
        wanted = Wanted(
            options.slot,
            options.publications,
            self.position,
            options.creates_slot,
            reading=ReadOptions(tables=self.sink.patterns),
            copied=self._copied(),
            named=self.sink.named_tables(),
            earlier_publications=self.sink.publications(),
        )
        found = all_findings(connection, wanted, system, slot)
        warnings = [one.sentence for one in found if one.level == "warning"]
        if slot is not None and self.position is None and not options.snapshot:
            warnings.append(
                f"lake: there is none, it begins where the slot is, at {lsn_text(slot.confirmed or 0)}, without "
                "earlier rows and changes; if there was one, put it back first"
            )
        self.reports.note(warnings=tuple(warnings))
        raise_errors(found)
        if slot is None:
            self._asked(connection, options.plugin)  # before there is a slot, for which the server keeps its log
            self.reports.report(state=f"creating the slot: {waits_for_slot(connection)}")
            slot = create_slot(connection, options.slot, options.plugin)
            system = find_system(connection)
            raise_errors(all_findings(connection, wanted, system, slot))  # a coordinator of GaussDB chooses CSN order
        return system, slot

    def _asked(self, connection: Connection, plugin: str) -> Asked:
        """Returns what is asked of a plugin; raises OptionError."""
        options = self.options
        is_text = options.snapshot or self._copied() is not None or self.sink.lake.state == "latest"
        asked = ask(connection, plugin, options.publications, options.plugin_options, options.via, is_text=is_text)
        begins_with_rows = options.snapshot and self.position is None
        if begins_with_rows and (asked.format != "pgoutput" or options.via != "streaming"):
            raise OptionError("option snapshot: needs a slot with the plugin pgoutput, and via='streaming'")
        return asked

    def _begin(self, system: System, slot: Slot, format: str) -> None:
        """Writes the first position of a lake: where the slot is, and whether tables are to be copied.

        If the slot is dropped and created again before the first batch, the next run notices it.
        """
        copied = () if self.options.snapshot else None
        at = SlotPosition(system.system, self.options.slot, slot.confirmed or 0, system.timeline, copied)
        self.position, _ = self.sink.write([], format, None, at)

    def _copy_tables(self, asked: Asked) -> None:
        """Copies tables under one snapshot, and writes their rows after the changes that come before it.

        Tables that were copied earlier are then also at the LSN of the snapshot, where the stream continues for all.
        """
        copied = self._reached().copied or ()
        self.retries.note_opened()
        with self.connect() as connection:
            found = take_snapshot(
                connection,
                self.options.publications,
                self.sink.patterns,
                copied,
                self.options.batch_bytes,
                self._report_work,
            )
        with closing(found.messages):
            if copied:
                self._write_stream(self.connect(), asked, found.lsn)
            if self.stop.is_set():
                raise Stopped
            now_copied = None if found.is_last else (*copied, *found.tables)
            at = self._reached()._replace(lsn=found.lsn, copied=now_copied)
            # only once: later attempts keep the rows that are there
            self._with_room(lambda: self.sink.empty_unfinished(found.tables, self._reached()))
            self.position, rows = self._with_room(lambda: self._write_copied(found, asked, at))
        self.retries.note_success()
        self.reports.progress = self.reports.progress.with_rows(rows)
        self.reports.report(state="snapshot", lsn=found.lsn)

    def _write_copied(self, found: Snapshot, asked: Asked, at: SlotPosition) -> tuple[CapturePosition, dict[str, int]]:
        """Writes the rows of a snapshot, perhaps again after an attempt that failed."""
        state = f"snapshot: writes {counted(found.rows, 'row')}"

        def tell(messages: int) -> None:
            if self.stop.is_set():
                raise Stopped
            self._report_work(state, min(messages, found.rows))

        with _telling(found.messages, tell):
            return self.sink.write(found.messages, asked.format, self.position, at)

    def _report_work(self, state: str, rows: int = 0, waiting: Connection | None = None) -> None:
        """Reports work that may take long, between two of its steps, or while a connection waits for the server."""
        self.retries.note_lasting()
        self.reports.report_work(state, rows, waiting)

    def _write_batches(self, intake: Intake | SqlIntake, batches: Batches, asked: Asked, target: int | None) -> None:
        """Writes batches until the run is stopped, or the lake has reached the target."""
        self.retries.note_opened()
        while not self.stop.is_set():
            is_over = target is not None and intake.is_quiet_at(target)
            batch = batches.next(0, 0) if is_over else batches.next(TICK_SECONDS, target)
            if batch is not None:
                try:
                    if batch.count or self._is_idle_due(batch, target):
                        self._write(batch, asked.format)
                        intake.confirm(batch.lsn)
                finally:
                    batch.close()
            self.reports.ask()
            self.reports.report(open_messages=batches.open_messages)
            if intake.received:
                self.retries.note_lasting()
            if (target is not None and self._reached().lsn >= target) or (is_over and batch is None):
                return

    def _position(self) -> CapturePosition:
        if self.position is None:
            raise AssertionError("a lake has a position from the start")
        return self.position

    def _reached(self) -> SlotPosition:
        """Returns where the lake is in the stream of its slot."""
        slot = self._position().slot
        if slot is None:
            raise AssertionError("a lake that is read from a slot says so")
        return slot

    def _is_idle_due(self, batch: Batch, target: int | None) -> bool:
        """Whether to write now the position of a batch without messages, which a keepalive has brought."""
        if batch.lsn <= self._reached().lsn:
            return False
        reaches = target is not None and batch.lsn >= target
        wait = min(self.options.idle_seconds, ASKED_SECONDS) if batch.asked else self.options.idle_seconds
        return reaches or time.monotonic() - self.written_at >= wait

    def _write(self, batch: Batch, format: str) -> None:
        """Writes a batch with the position after it."""
        at = self._reached()._replace(lsn=max(batch.lsn, self._reached().lsn), timeline=self.timeline)

        def write() -> tuple[CapturePosition, dict[str, int]]:
            with _telling(batch.messages, lambda count: self._report_work("streaming: writes a large batch", count)):
                return self.sink.write(batch.messages, format, self.position, at, at.copied)

        self.position, rows = self._with_room(write)
        self.written_at = time.monotonic()
        self.retries.note_success()
        self.reports.progress = self.reports.progress.after(batch, rows, self._position())
        self.reports.report(state="streaming")


@contextmanager
def _telling(messages: Any, tell: Callable[[int], None]) -> Iterator[None]:
    """Calls `tell` with the number of messages that have been read so far, if they are in a file.

    Raises what `tell` raises.
    """
    if not isinstance(messages, MessageFile):
        yield
        return
    messages.tell = tell
    try:
        yield
    except OSError as error:
        raised = messages.ended_by(error)
        if raised is None:
            raise
        raise raised from None
