"""A run of `follow`: it connects, copies tables, writes batches, and goes on after what passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, TypeVar

from ..errors import OptionError, ServerError, counted
from ..options import ReadOptions
from ..stream.capture_position import CapturePosition, SlotPosition
from .batches import Batch, Batches
from .blockers import FIRST_LOOK_SECONDS, LOOK_SECONDS, blocker, waits_for_slot
from .checks.every import all_findings
from .checks.findings import Wanted, raise_errors
from .checks.position import check_start, is_behind
from .connection import STEADY_SECONDS, Connection, Stopped
from .intake import Intake, SqlIntake
from .messages import MessageFile
from .plugins import Asked, ask
from .progress import Progress, clock
from .sink import Sink, is_full
from .slots import Slot, System, claim, create_slot, find_slot, find_system, retained_bytes
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

_WAIT_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""Before each attempt to connect again, or to write again when the disk is full; the last one repeats."""

_DAY_SECONDS = 86_400


@dataclass
class Follower:
    """A run of `follow`."""

    connect: Callable[[], Connection]
    via: str
    slot: str
    publications: list[str]
    plugin: str
    plugin_options: dict[str, Any]
    creates_slot: bool
    snapshot: bool
    once: bool
    batch_bytes: int
    batch_seconds: float
    memory: int
    idle_seconds: float
    reconnect_seconds: float
    sink: Sink
    tell: Callable[[Progress], Any]
    stop: threading.Event
    progress: Progress
    position: CapturePosition | None = None
    timeline: int = 0
    target: int | None = None
    last_write: float = field(default_factory=time.monotonic)
    last_look: float = 0.0
    blocked_by: str | None = None
    waits_since: float | None = None
    failures: int = 0
    lost_at: float = 0.0
    opened_at: float = 0.0

    def run(self) -> CapturePosition:
        """Follows until the end."""
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
        """Does the work; again, after a while, if a disk is full."""
        for wait in chain(_WAIT_SECONDS, repeat(_WAIT_SECONDS[-1])):
            try:
                return work()
            except Exception as error:
                if not is_full(error):
                    raise
                self._look()
                self._report(state="waiting: no space left on the lake's disk, or on that of temporary files")
                if self.stop.wait(wait):
                    raise
        raise AssertionError("there is always another wait")

    def _waits_after(self, error: ServerError) -> bool:
        """Waits before the next connection. Returns False if the run is stopped; raises an error that does not pass."""
        now = time.monotonic()
        if self.failures == 0:
            self.lost_at = now
        if self.progress.started is None or not error.is_temporary:
            raise error
        left = self.lost_at + self.reconnect_seconds - now
        if left < 0:
            raise ServerError(
                f"{error}; given up after {self.reconnect_seconds:g} seconds, see reconnect_seconds",
                sqlstate=error.sqlstate,
                is_temporary=True,
            )
        wait = _WAIT_SECONDS[min(self.failures, len(_WAIT_SECONDS) - 1)]
        self.failures += 1
        until = f" (until {clock(time.time() + left)})" if left < _DAY_SECONDS else ""
        self._report(state=f"connecting again: {error}{until}")
        return not self.stop.wait(wait)

    def _begins(self) -> None:
        """From now on, errors that may pass are waited for: the server is the right one."""
        self.progress = replace(self.progress, started=self.progress.started or time.time())

    def _lasts(self) -> None:
        """Counts failures anew once a connection has lasted: one that lives for a moment is a failure, too."""
        if time.monotonic() - self.opened_at >= STEADY_SECONDS:
            self.failures = 0

    def _stream(self) -> None:
        """Connects, checks that the slot goes on where the lake ends, and writes until there is a reason to stop."""
        connection = self.connect()
        connection.on_wait = lambda: self._works(self.progress.state, waiting=connection)
        self.opened_at = time.monotonic()
        try:
            if self.via == "sql" or self._copied() is not None:  # then the server does not keep others from the slot
                claim(connection, self.slot)
                self.position = self.sink.position()
            system, slot = self._checked(connection)
            self.timeline = system.timeline
            asked = self._asked(connection, slot.plugin)
            if self.target is None:
                self.target = system.flushed if self.once else None
            if self.position is None:
                self._begin(system, slot, asked.format)
            self._begins()
            self.progress = replace(self.progress, lsn=self._reached().lsn)
            while self._reached().copied is not None:
                self._copy_tables(asked)
        except BaseException:
            connection.close()
            raise
        self._write_stream(connection, asked)

    def _copied(self) -> Collection[tuple[str, str]] | None:
        """Returns the tables that have been copied, if others are copied before the server streams; else None."""
        if self.position is None:
            return () if self.snapshot else None
        return None if self.position.slot is None else self.position.slot.copied

    def _write_stream(self, connection: Connection, asked: Asked, until: int | None = None) -> None:
        """Writes what the slot sends until there is a reason to stop; closes the connection.

        connection   for queries; another one streams
        until        transactions that are committed there or later are left out
        """
        try:
            start = self._reached().lsn
            self.sink.flush_all()  # the server hears `start` at once
            self.progress = replace(self.progress, state="streaming")
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
        """Starts to receive."""
        ends = ends_of(asked.format)
        if self.via == "sql":  # each look is a batch: the next one would begin with the same
            looks = SqlIntake(connection, Cutter(ends, until), self.slot, asked.format, asked.options, start)
            return looks, Batches(looks, 1, 0, self.memory)
        stream = self.connect()
        try:
            stream.start(self.slot, start, asked.options)
            check_start(connection, self.slot, start)
        except BaseException:
            stream.close()
            raise
        connection.close()
        asks_every = ONCE_ASKS_SECONDS if self.once or until is not None else ASKS_SECONDS
        cutter = Cutter(ends, until, feedback=stream.feedback, is_parallel=asked.is_parallel)
        intake = Intake(stream, cutter, start, queue_bytes=self.memory, asks_every=asks_every)
        return intake, Batches(intake, self.batch_bytes, self.batch_seconds, self.memory)

    def _checked(self, connection: Connection) -> tuple[System, Slot]:
        system, slot = self._found(connection)
        if self.position is not None and is_behind(self.position, system):
            self._begins()  # it is waited for, also in the first attempt of a run
        wanted = Wanted(
            self.slot,
            self.publications,
            self.position,
            self.creates_slot,
            reading=ReadOptions(tables=self.sink.patterns),
            copied=self._copied(),
            named=self.sink.named_tables(),
            earlier_publications=self.sink.publications(),
        )
        found = all_findings(connection, wanted, system, slot)
        self.progress = replace(self.progress, warnings=tuple(one.sentence for one in found if one.level == "warning"))
        raise_errors(found)
        if slot is None:
            self._asked(connection, self.plugin)  # a slot that nobody reads would keep the server's log
            self._report(state=f"creating the slot: {waits_for_slot(connection)}")
            slot = create_slot(connection, self.slot, self.plugin)
            system = find_system(connection)
            raise_errors(all_findings(connection, wanted, system, slot))  # a coordinator of GaussDB chooses CSN order
        return system, slot

    def _asked(self, connection: Connection, plugin: str) -> Asked:
        """Returns what is asked of a plugin; raises OptionError."""
        asked = ask(connection, plugin, self.publications, self.plugin_options, self.via)
        begins_with_rows = self.snapshot and self.position is None
        if begins_with_rows and (asked.format != "pgoutput" or self.via != "streaming"):
            raise OptionError("option snapshot: needs a slot with the plugin pgoutput, and via='streaming'")
        return asked

    def _begin(self, system: System, slot: Slot, format: str) -> None:
        """Writes the first position of a lake: where the slot is, and whether tables are to be copied.

        With it, a slot that is made again before the first batch is noticed.
        """
        copied = () if self.snapshot else None
        at = SlotPosition(system.system, self.slot, slot.confirmed or 0, system.timeline, copied)
        self.position, _ = self.sink.write([], format, None, at)

    def _copy_tables(self, asked: Asked) -> None:
        """Copies tables under one snapshot, and writes their rows after the changes that come before it.

        Tables that have been copied are then at the LSN of that snapshot, too, and the stream goes on there for all.
        """
        copied = self._reached().copied or ()
        self.opened_at = time.monotonic()
        with self.connect() as connection:
            found = take_snapshot(
                connection,
                self.publications,
                self.sink.patterns,
                copied,
                self.batch_bytes,
                self._works,
            )
        with closing(found.messages):
            if copied:
                self._write_stream(self.connect(), asked, found.lsn)
            if self.stop.is_set():
                raise Stopped
            now_copied = None if found.is_last else (*copied, *found.tables)
            at = self._reached()._replace(lsn=found.lsn, copied=now_copied)
            self.position, rows = self._with_room(lambda: self._write_copied(found, asked, at))
        self.failures = 0
        self.progress = self.progress.with_rows(rows)
        self._report(state="snapshot", lsn=found.lsn)

    def _works(self, state: str, rows: int = 0, waiting: Connection | None = None) -> None:
        """Reports work that may take long, between two of its steps, or while the server is waited for."""
        self._lasts()
        self._look(waiting)
        self._report(state=state, rows_so_far=rows, blocked_by=self.blocked_by)

    def _write_copied(self, found: Snapshot, asked: Asked, at: SlotPosition) -> tuple[CapturePosition, dict[str, int]]:
        """Writes the rows of a snapshot; again, if an earlier attempt has failed."""
        self.sink.empty_unfinished(found.tables)
        state = f"snapshot: writes {counted(found.rows, 'row')}"

        def tell(messages: int) -> None:
            if self.stop.is_set():
                raise Stopped
            self._works(state, min(messages, found.rows))

        with _telling(found.messages, tell):
            return self.sink.write(found.messages, asked.format, self.position, at)

    def _write_batches(self, intake: Intake | SqlIntake, batches: Batches, asked: Asked, target: int | None) -> None:
        self.opened_at = time.monotonic()
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
            self._look()
            self._report(open_messages=batches.open_messages)
            if intake.received:
                self._lasts()
            if (target is not None and self._reached().lsn >= target) or (is_over and batch is None):
                return

    def _position(self) -> CapturePosition:
        if self.position is None:
            raise AssertionError("a lake has a position from the start")
        return self.position

    def _reached(self) -> SlotPosition:
        slot = self._position().slot
        if slot is None:
            raise AssertionError("a lake that is read from a slot says so")
        return slot

    def _is_idle_due(self, batch: Batch, target: int | None) -> bool:
        """Whether a position that only a keepalive brought is written now."""
        if batch.lsn <= self._reached().lsn:
            return False
        reaches = target is not None and batch.lsn >= target
        wait = min(self.idle_seconds, ASKED_SECONDS) if batch.asked else self.idle_seconds
        return reaches or time.monotonic() - self.last_write >= wait

    def _write(self, batch: Batch, format: str) -> None:
        at = self._reached()._replace(lsn=max(batch.lsn, self._reached().lsn), timeline=self.timeline)

        def write() -> tuple[CapturePosition, dict[str, int]]:
            with _telling(batch.messages, lambda count: self._works("streaming: writes a large batch", count)):
                return self.sink.write(batch.messages, format, self.position, at, at.copied)

        self.position, rows = self._with_room(write)
        self.last_write = time.monotonic()
        self.failures = 0
        self.progress = self.progress.after(batch, rows, self._position())
        self._report(state="streaming")

    def _look(self, waiting: Connection | None = None) -> None:
        """Asks the server on a connection of its own, now and then; soon after another one has begun to wait."""
        now = time.monotonic()
        if waiting is None:
            self.waits_since = self.blocked_by = None
        elif self.waits_since is None:
            self.waits_since = now
        is_new = self.waits_since is not None and self.last_look <= self.waits_since
        if now - self.last_look >= min(LOOK_SECONDS, FIRST_LOOK_SECONDS if is_new else LOOK_SECONDS):
            self.last_look = now
            # The stream itself notices a server that is gone.
            with suppress(ServerError), self.connect() as connection:
                self._found(connection)
                self.blocked_by = None if waiting is None else blocker(connection, waiting.process)

    def _found(self, connection: Connection) -> tuple[System, Slot | None]:
        """Returns what the server says, which is reported next."""
        system, slot = find_system(connection), find_slot(connection, self.slot)
        kept = None if slot is None else retained_bytes(system, slot)
        self.progress = replace(self.progress, server_lsn=system.flushed, retained_bytes=kept)
        return system, slot

    def _report(self, *, rows_so_far: int = 0, blocked_by: str | None = None, **facts: Any) -> None:
        self.progress = replace(self.progress, rows_so_far=rows_so_far, blocked_by=blocked_by, **facts)
        self.tell(self.progress)


@contextmanager
def _telling(messages: Any, tell: Callable[[int], None]) -> Iterator[None]:
    """Calls `tell` with the number of messages that have been read so far, if they are in a file; raises what it
    raises."""
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
