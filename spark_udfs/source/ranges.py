"""The transactions of a slot between two positions: the same range is the same again, also after a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import pyarrow as pa

import wireformat as wf
from wireformat.live.checks.findings import CHECKPOINT, Wanted, raise_errors
from wireformat.live.checks.server import all_findings, check_start, position_findings
from wireformat.live.connection import STEADY_SECONDS, Connection
from wireformat.live.intake import Intake, silence_of
from wireformat.live.plugins import ask
from wireformat.live.slots import Slot, System, find_slot, find_system, retained_bytes
from wireformat.live.transaction_ends import Cutter, ends_of
from wireformat.stream.capture_position import CapturePosition, SlotPosition

from .transactions import Buffer, Limit

FORMAT = "pgoutput"

QUEUE_BYTES = 16 << 20
"""How much may wait beside the transactions of a range."""

ASKS_SECONDS = 0.2
"""How often the server is asked how far it is while nothing comes."""

TAKE_SECONDS = 0.1
"""How long a range waits for its first transaction."""

LOOK_SECONDS = 1.0
"""How often the server is asked for the end of its log, at most."""

_WAIT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Before each attempt to connect again; the last one repeats."""

_LOG = logging.getLogger("spark_udfs")

Result = TypeVar("Result")


class Reached(NamedTuple):
    """Where the server is.

    lsn        the end of its log, of a timeline
    retained   the bytes of log that it keeps for the slot; None if it does not say
    """

    system: str
    lsn: int
    timeline: int
    retained: int | None


class SlotRanges:
    """A slot that is read in ranges of whole transactions. It connects when it is asked, and again when it must.

    dsn, driver, slot, publications   as in `wireformat.live.follow`
    plugin_options      in place of the usual ones
    reconnect_seconds   how long a server that cannot be reached, or a slot that another reader has, is tried again

    Raises ServerError, OptionError and LimitExceeded.
    """

    def __init__(
        self,
        dsn: str,
        slot: str,
        publications: Sequence[str],
        *,
        driver: str,
        reconnect_seconds: float,
        plugin_options: Mapping[str, str] | None = None,
    ) -> None:
        self._dsn = dsn
        self._driver = driver
        self._slot = slot
        self._publications = publications
        self._plugin_options = plugin_options or {}
        self._timeline = 0
        self._reconnect_seconds = reconnect_seconds
        self._intake: Intake | None = None
        self._buffer = Buffer(0)
        self._side: Connection | None = None
        self._looked: tuple[float, Reached] | None = None

    def initial(self) -> SlotPosition:
        """Returns where the slot is."""

        def find() -> SlotPosition:
            with Connection(self._dsn, self._driver) as connection:
                system, slot = self._checked(connection, None, None)
                return SlotPosition(system.system, self._slot, slot.confirmed or 0, system.timeline)

        return self._lasting(find)

    def after(self, start: SlotPosition, lsn: int) -> SlotPosition:
        """Returns the position at an LSN that the stream has reached after another position."""
        return start._replace(lsn=lsn, timeline=self._timeline)

    def next(self, start: SlotPosition, limit: Limit, until: int | None) -> int | None:
        """Returns the LSN where the range after a position ends; None if there are no transactions.

        start   everything up to there is safe: the server hears it
        until   the LSN up to which the range may go; it is waited for. None takes what has arrived
        """

        def find() -> int | None:
            intake, buffer = self._at(start, None)
            intake.confirm(start.lsn)
            buffer.drop(start.lsn)
            while limit.most_bytes is None or buffer.size < limit.most_bytes:
                if until is not None and buffer.reached >= until:
                    break
                is_waiting = until is not None or not buffer.size
                piece = intake.take(TAKE_SECONDS if is_waiting else 0)
                if piece is not None:
                    buffer.add(piece)
                elif until is None:
                    break
            return buffer.end(start.lsn, limit, until)

        return self._lasting(find)

    @property
    def idle_lsn(self) -> int | None:
        """The LSN up to which the server has nothing; None if there are transactions that were not asked for."""
        return None if self._buffer.size else self._buffer.reached

    def slices(self, start: SlotPosition, end: SlotPosition) -> list[pa.Array]:
        """Returns the messages of a range, in slices that can be read by themselves."""

        def find() -> list[pa.Array]:
            intake, buffer = self._at(start, end)
            while buffer.reached < end.lsn:
                piece = intake.take(TAKE_SECONDS)
                if piece is not None:
                    buffer.add(piece)
            return buffer.slices(start.lsn, end.lsn)

        return self._lasting(find)

    def confirm(self, position: SlotPosition) -> None:
        """Everything up to a position is safe: the server hears it soon."""
        if self._intake is not None:
            self._intake.confirm(position.lsn)

    def look(self) -> Reached:
        """Returns where the server is."""
        return self._lasting(self._look)

    def glance(self) -> Reached | None:
        """Returns where the server is, or was a moment ago; None if it does not answer, which is not worth an error."""
        if self._looked is None or time.monotonic() - self._looked[0] >= LOOK_SECONDS:
            try:
                self._look()
            except wf.ServerError:
                return None
        return None if self._looked is None else self._looked[1]

    def close(self) -> None:
        """Tells the server what is safe, and ends the connections."""
        intake, self._intake = self._intake, None
        if intake is not None:
            intake.close()
        self._close_side()

    def _look(self) -> Reached:
        if self._side is None:
            self._side = Connection(self._dsn, self._driver)
        try:
            system, slot = find_system(self._side), find_slot(self._side, self._slot)
        except wf.ServerError:
            self._close_side()
            raise
        kept = None if slot is None else retained_bytes(system, slot)
        found = Reached(system.system, system.flushed, system.timeline, kept)
        self._looked = time.monotonic(), found
        return found

    def _close_side(self) -> None:
        side, self._side = self._side, None
        if side is not None:
            side.close()

    def _at(self, start: SlotPosition, end: SlotPosition | None) -> tuple[Intake, Buffer]:
        """Returns the stream from a position on: the one that is open, or else a new one."""
        if self._intake is not None and self._buffer.origin <= start.lsn <= self._buffer.reached:
            return self._intake, self._buffer
        self.close()
        with Connection(self._dsn, self._driver) as connection:
            system, slot = self._checked(connection, start, end)
            asked = ask(connection, slot.plugin, self._publications, self._plugin_options, "streaming")
            stream = Connection(self._dsn, self._driver)
            try:
                stream.start(self._slot, start.lsn, asked.options)
                check_start(connection, self._slot, start.lsn)
                silence = silence_of(connection)
            except BaseException:
                stream.close()
                raise
        self._timeline = system.timeline
        self._buffer = Buffer(start.lsn)
        cutter = Cutter(ends_of(FORMAT), feedback=stream.feedback)
        self._intake = Intake(
            stream, cutter, start.lsn, queue_bytes=QUEUE_BYTES, asks_every=ASKS_SECONDS, silence=silence
        )
        return self._intake, self._buffer

    def _checked(
        self, connection: Connection, start: SlotPosition | None, end: SlotPosition | None
    ) -> tuple[System, Slot]:
        """Checks that the slot goes on at a position, and that the log reaches to the end of a range."""
        system, slot = find_system(connection), find_slot(connection, self._slot)
        wanted = Wanted(self._slot, self._publications, _position(start), keeper=CHECKPOINT)
        raise_errors(
            [
                *all_findings(connection, wanted, system, slot),
                *position_findings(_position(end), wanted, system, slot),
            ]
        )
        assert slot is not None, "a slot that is not there is an error"
        if slot.plugin != FORMAT:
            raise wf.OptionError(
                f"option slot: Spark reads slots of {FORMAT}, {self._slot} is one of {slot.plugin}: read it with "
                "wireformat.live.follow"
            )
        return system, slot

    def _lasting(self, work: Callable[[], Result]) -> Result:
        """Does something, again after each error that may pass."""
        failures, lost_at, told = 0, 0.0, ""
        while True:
            began = time.monotonic()
            try:
                return work()
            except wf.ServerError as error:
                now, was_open = time.monotonic(), self._intake is not None
                self.close()
                if failures == 0 or (was_open and now - began >= STEADY_SECONDS):
                    failures, lost_at = 0, now
                wait = _WAIT_SECONDS[min(failures, len(_WAIT_SECONDS) - 1)]
                if not error.is_temporary or now + wait > lost_at + self._reconnect_seconds:
                    raise
                if str(error) != told:
                    told = str(error)
                    _LOG.warning("slot %s: trying again for %g s: %s", self._slot, self._reconnect_seconds, told)
            except BaseException:
                self.close()
                raise
            failures += 1
            time.sleep(wait)


def _position(slot: SlotPosition | None) -> CapturePosition | None:
    return None if slot is None else CapturePosition(FORMAT, slot=slot)
