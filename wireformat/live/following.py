"""`follow`: from a slot to a lake, in batches of whole transactions; the server hears what is safe in the lake."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

import pyarrow.compute as pc

from .. import lake
from ..capture import Capture
from ..errors import OptionError, ServerError
from ..lake.delta import DeltaFolder
from ..lake.names import folder_of
from ..lake.options import LakeOptions
from ..lake.store import Store
from ..options.checks import number, one_of
from ..options.table_names import written
from ..stream.capture_position import CapturePosition, SlotPosition
from .batches import Batch, Batches
from .checks import Wanted, all_findings, check_start, raise_errors
from .connection import Connection, Stopped
from .intake import Intake
from .plugins import VIA, Asked, ask, publication_names
from .progress import Progress
from .slots import Slot, System, create_slot, find_slot, find_system, retained_bytes
from .snapshot import take_snapshot
from .sql_intake import SqlIntake
from .transaction_ends import Cutter, ends_of

TICK_SECONDS = 0.5
"""How often progress is reported while nothing comes, and how soon `stop` is noticed."""

LOOK_SECONDS = 10.0
"""How often the server is asked for the end of its log and what the slot retains."""

ASKS_SECONDS, ONCE_ASKS_SECONDS = 5.0, 0.1
"""How often the server is asked how far it is while nothing comes, and so where `once` ends."""

ASKED_SECONDS = 1.0
"""How soon after the last write a position without changes is written when the server asks for it. A server that is
shut down asks, and waits until all that it has sent is safe."""

_WAIT_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""Before each attempt to connect again, or to write again when the disk is full; the last one repeats."""


def follow(
    dsn: str,
    to: Any,
    *,
    slot: str,
    publication: str | Iterable[str] | None = None,
    format: str = "parquet",
    state: str = "changes",
    tables: Iterable[str] | None = None,
    snapshot: bool = False,
    create_slot: bool = False,
    plugin: str = "pgoutput",
    options: Mapping[str, Any] | None = None,
    once: bool = False,
    batch_bytes: int = 16 << 20,
    batch_seconds: float = 5.0,
    idle_seconds: float = 60.0,
    memory_limit: int = 96 << 20,
    reconnect_seconds: float = 300.0,
    retained_alarm: int | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    stop: threading.Event | None = None,
    via: str = "streaming",
    driver: str = "psycopg",
    mode: str = "FAILFAST",
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    threads: int | None = None,
    partition_by: str | Mapping[str, str] | None = None,
    keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    schemas: Mapping[str, Any] | None = None,
    rejects: str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, str] | None = None,
) -> CapturePosition:
    """Writes what a slot sends to a lake, every table typed, until `stop` is set; returns the lake's position.

    dsn                connection string or URL of libpq; `service=…` and PGPASSFILE work
    to                 the folder of the lake, or a URI. A lake that was read from the slot goes on
    slot               its name
    publication        its name, or several; needed by pgoutput
    format, state      of the lake, see `Capture.write`: parquet or delta; changes or latest (only delta)
    tables             patterns `schema.table`: only these tables
    snapshot           a new lake begins with the rows of the tables as they are. A run that was stopped before all were
                       copied is gone on with in any case
    create_slot        the slot is created if it is not there, with this `plugin`
    options            of the plugin, in place of the usual ones; those of GaussDB are checked by `Options.gaussdb`
    once               stop at the end that the server's log had at the start
    batch_bytes, batch_seconds   a batch is written when it is so large, or its first message has waited so long
    idle_seconds       how often the position of an idle stream is written, so that the server can forget its log
    memory_limit       how many bytes of a batch stay in memory, of messages that wait and of rows of a transaction; the
                       rest go to temporary files
    reconnect_seconds  how long a lost connection is tried again
    retained_alarm     bytes of log that the slot may retain before progress says so
    on_progress        is called with a `Progress` after each batch, and while nothing comes
    stop               when it is set, the current batch is finished; a table that is being copied begins again later
    via                streaming, or sql: where START_REPLICATION cannot be had, SQL functions peek at the slot
    driver             psycopg, or gaussdb for GaussDB's own authentication
    rejects            a folder for what cannot be read or does not fit, a file for each batch; see `Capture.write`

    The other options are those of `Capture` and of `Capture.write`. Raises ServerError if the slot cannot go on where
    the lake ends, OptionError, MissingExtra, OSError, and what reading raises. docs/live.md explains it.
    """
    stop = stop or threading.Event()
    names = publication_names(publication)
    if (format, state) == ("parquet", "latest"):
        raise OptionError("option state: latest needs format='delta': Parquet files cannot be merged")
    lake_options: dict[str, Any] = {
        "format": format,
        "state": state,
        "partition_by": partition_by,
        "keys": keys,
        "schemas": schemas,
        "filesystem": filesystem,
        "storage_options": storage_options,
        "durable": True,  # the server forgets what it hears is safe
    }
    LakeOptions.check(**lake_options, rejects=rejects, mode=mode)
    reading = {
        "mode": mode,
        "encoding": encoding,
        "encoding_errors": encoding_errors,
        "threads": threads,
        "memory_limit": memory_limit // 6,  # for open transactions, and again for what is being written
    }
    follower = _Follower(
        connect=lambda: Connection(dsn, driver, replicates=via == "streaming", stop=stop),
        via=one_of("via", via, VIA),
        slot=slot,
        publications=names,
        plugin=plugin,
        plugin_options=dict(options or {}),
        creates_slot=create_slot,
        snapshot=snapshot,
        once=once,
        batch_bytes=number("batch_bytes", batch_bytes, 1),
        batch_seconds=batch_seconds,
        memory=number("memory_limit", memory_limit, 0) // 3,
        idle_seconds=idle_seconds,
        reconnect_seconds=reconnect_seconds,
        sink=_Sink(to, lake_options, reading, None if tables is None else list(tables), rejects),
        tell=on_progress or (lambda progress: None),
        stop=stop,
        progress=Progress(retained_alarm=retained_alarm),
    )
    return follower.run()


@dataclass
class _Sink:
    """The lake, and how it is written."""

    folder: Any
    lake: dict[str, Any]
    reading: dict[str, Any]
    tables: list[str] | None
    rejects: str | None

    def position(self) -> CapturePosition | None:
        """Returns how far the lake goes; None if there is none."""
        try:
            options = {name: self.lake[name] for name in ("filesystem", "storage_options")}
            return lake.position(self.folder, **options)
        except OptionError as error:
            if "expected a lake" not in str(error):
                raise
            return None

    def flush_all(self) -> None:
        """Waits until what an earlier run has written is on the disk: it may have ended before it waited itself."""
        store = Store.of(self.folder, self.lake["filesystem"], self.lake["storage_options"], durable=True)
        store.flush_all()

    def empty_unfinished(self, tables: Iterable[tuple[str, str]]) -> None:
        """Empties Delta tables whose copy was stopped before the lake had them."""
        if self.lake["format"] == "delta":
            store = Store.of(self.folder, self.lake["filesystem"], self.lake["storage_options"])
            for table in tables:
                DeltaFolder(store, folder_of(table), table, []).empty()

    def write(
        self,
        messages: Any,
        format: str,
        after: CapturePosition | None,
        slot: SlotPosition,
        copied: Iterable[tuple[str, str]] | None = None,
    ) -> tuple[CapturePosition, dict[str, int]]:
        """Writes a batch with the position after it, in one commit. Returns the position, and rows by table.

        copied   changes of other tables are left out; None for those of none
        """
        capture = Capture(messages, format, after=after, slot=slot, **self.reading)
        name = f"{slot.lsn:016X}.parquet"
        rejects = None if self.rejects is None else f"{self.rejects}/{name}"
        tables = self.tables if copied is None else list(map(written, copied))
        found = capture.write(self.folder, tables=tables, rejects=rejects, **self.lake)
        if self.rejects is not None and not any(pc.sum(found[column]).as_py() for column in ("dropped", "corrupt")):
            Store.of(self.rejects, self.lake["filesystem"], self.lake["storage_options"]).delete(name)
        rows = {
            written((row["table_schema"], row["table_name"])): row["rows"]
            for row in found.to_pylist()
            if row["table_name"] is not None
        }
        return capture.position, rows


@dataclass
class _Follower:
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
    sink: _Sink
    tell: Callable[[Progress], Any]
    stop: threading.Event
    progress: Progress
    position: CapturePosition | None = None
    timeline: int = 0
    target: int | None = None
    last_write: float = field(default_factory=time.monotonic)
    last_look: float = 0.0
    failures: int = 0
    lost_at: float = 0.0

    def run(self) -> CapturePosition:
        """Follows until the end."""
        self.position = self.sink.position()
        while True:
            try:
                self._stream()
                return self._position()
            except Stopped:
                if self.position is None:
                    raise ServerError("stopped before anything was written: run it again") from None
                return self.position
            except ServerError as error:
                if not self._waits_after(error):
                    return self._position()

    def _waits_after(self, error: ServerError) -> bool:
        """Waits before the next connection. Returns False if the run is stopped; raises an error that does not pass."""
        now = time.monotonic()
        if self.failures == 0:
            self.lost_at = now
        if self.progress.started is None or not error.is_temporary or now - self.lost_at > self.reconnect_seconds:
            raise error
        wait = _WAIT_SECONDS[min(self.failures, len(_WAIT_SECONDS) - 1)]
        self.failures += 1
        self._report(state=f"connecting again: {error}")
        return not self.stop.wait(wait)

    def _stream(self) -> None:
        """Connects, checks that the slot goes on where the lake ends, and writes until there is a reason to stop."""
        connection = self.connect()
        try:
            system, slot = self._checked(connection)
            self.timeline = system.timeline
            asked = ask(connection, slot.plugin, self.publications, self.plugin_options, self.via)
            if self.target is None:
                self.target = system.flushed if self.once else None
            if self.position is None:
                self._begin(system, slot, asked)
            self.progress = replace(self.progress, started=self.progress.started or time.time())
            while self._reached().copied is not None:
                self._copy_tables(asked)
        except BaseException:
            connection.close()
            raise
        self._write_stream(connection, asked)

    def _write_stream(self, connection: Connection, asked: Asked, until: int | None = None) -> None:
        """Writes what the slot sends until there is a reason to stop; closes the connection.

        until   transactions that are committed there or later are left out
        """
        try:
            start = self._reached().lsn
            self.sink.flush_all()  # the server hears `start` at once
            self.progress = replace(self.progress, state="streaming", lsn=start)
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
        cutter = Cutter(ends_of(asked.format), until)
        if self.via == "sql":  # each look is a batch: the next one would begin with the same
            looks = SqlIntake(connection, cutter, self.slot, asked.format, asked.options, start)
            return looks, Batches(looks, 1, 0, self.memory)
        connection.start(self.slot, start, asked.options)
        with self.connect() as other:
            check_start(other, self.slot, start)
        asks_every = ONCE_ASKS_SECONDS if self.once or until is not None else ASKS_SECONDS
        intake = Intake(connection, cutter, start, queue_bytes=self.memory, asks_every=asks_every)
        return intake, Batches(intake, self.batch_bytes, self.batch_seconds, self.memory)

    def _checked(self, connection: Connection) -> tuple[System, Slot]:
        system, slot = find_system(connection), find_slot(connection, self.slot)
        wanted = Wanted(self.slot, self.publications, self.position, self.creates_slot)
        raise_errors(all_findings(connection, wanted, system, slot))
        if slot is None:
            slot = create_slot(connection, self.slot, self.plugin)
            system = find_system(connection)
        return system, slot

    def _begin(self, system: System, slot: Slot, asked: Asked) -> None:
        """Writes the first position of a lake: where the slot is, and whether tables are to be copied.

        With it, a slot that is made again before the first batch is noticed.
        """
        if self.snapshot and (asked.format != "pgoutput" or self.via != "streaming"):
            raise OptionError("option snapshot: needs a slot with the plugin pgoutput, and via='streaming'")
        copied = () if self.snapshot else None
        at = SlotPosition(system.system, self.slot, slot.confirmed or 0, system.timeline, copied)
        self.position, _ = self.sink.write([], asked.format, None, at)

    def _copy_tables(self, asked: Asked) -> None:
        """Copies tables under one snapshot, and writes their rows after the changes that come before it.

        Tables that have been copied are then at the LSN of that snapshot, too, and the stream goes on there for all.
        """
        copied = self._reached().copied or ()
        with self.connect() as connection:
            found = take_snapshot(
                connection,
                self.publications,
                self.sink.tables,
                copied,
                self.batch_bytes,
                lambda text: self._report(state=text),
                self.stop,
            )
        with closing(found.messages):
            if copied:
                self._write_stream(self.connect(), asked, found.lsn)
            if self.stop.is_set():
                raise Stopped
            now_copied = None if found.is_last else (*copied, *found.tables)
            at = self._reached()._replace(lsn=found.lsn, copied=now_copied)
            self.sink.empty_unfinished(found.tables)
            try:
                self.position, rows = self.sink.write(found.messages, asked.format, self.position, at)
            except Exception:
                if found.messages.was_stopped:  # an error of the disk is none of that
                    raise Stopped from None
                raise
        self.failures = 0
        self.progress = self.progress.with_rows(rows)
        self._report(lsn=found.lsn)

    def _write_batches(self, intake: Intake | SqlIntake, batches: Batches, asked: Asked, target: int | None) -> None:
        while not self.stop.is_set():
            batch = batches.next(TICK_SECONDS, target)
            if batch is not None:
                try:
                    if batch.count or self._is_idle_due(batch, target):
                        self._write(batch, asked.format)
                        intake.confirm(batch.lsn)
                finally:
                    batch.close()
            self._look(batches)
            if intake.received:
                self.failures = 0
            if target is not None and self._reached().lsn >= target:
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
        rows: dict[str, int] | None = None
        for wait in chain(_WAIT_SECONDS, repeat(_WAIT_SECONDS[-1])):
            try:
                self.position, rows = self.sink.write(batch.messages, format, self.position, at, at.copied)
                break
            except Exception as error:
                if not _is_full(error):
                    raise
                self._report(state="waiting: no space left on the lake's disk, or on that of temporary files")
                if self.stop.wait(wait):
                    raise
        assert rows is not None, "the loop ends with a write"
        self.last_write = time.monotonic()
        self.progress = self.progress.after(batch, rows, self._position())
        self._report(state="streaming")

    def _look(self, batches: Batches) -> None:
        """Reports progress; asks the server on a connection of its own now and then."""
        now = time.monotonic()
        if now - self.last_look >= LOOK_SECONDS:
            self.last_look = now
            try:
                with self.connect() as connection:
                    system, slot = find_system(connection), find_slot(connection, self.slot)
            except ServerError:
                return  # the stream itself notices a server that is gone
            kept = None if slot is None else retained_bytes(system, slot)
            self.progress = replace(self.progress, server_lsn=system.flushed, retained_bytes=kept)
        self._report(open_messages=batches.open_messages)

    def _report(self, **facts: Any) -> None:
        self.progress = replace(self.progress, **facts)
        self.tell(self.progress)


def _is_full(error: BaseException) -> bool:
    code = getattr(error, "errno", None)
    return code in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)
