"""The progress of a run as it is reported, with what the server says about itself meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ...errors import ServerError
from ..blockers import FIRST_LOOK_SECONDS, LOOK_SECONDS, blocker
from ..connection import Connection
from ..progress import Progress
from ..slots import Slot, System, find_slot, find_system, retained_bytes


@dataclass
class Reports:
    """The reports of a run.

    connect    makes a connection for questions to the server
    slot       the name of the slot
    tell       is called with each report
    progress   the last report, with the facts for the next one
    """

    connect: Callable[[], Connection]
    slot: str
    tell: Callable[[Progress], Any]
    progress: Progress
    _asked_at: float = 0.0
    _waits_since: float | None = None
    _blocked_by: str | None = None

    def note(self, **facts: Any) -> None:
        """Sets facts of the next report."""
        self.progress = replace(self.progress, **facts)

    def report(self, *, rows_so_far: int = 0, blocked_by: str | None = None, **facts: Any) -> None:
        """Reports the progress, with new facts; raises what `tell` raises."""
        self.note(rows_so_far=rows_so_far, blocked_by=blocked_by, **facts)
        self.tell(self.progress)

    def report_work(self, state: str, rows: int = 0, waiting: Connection | None = None) -> None:
        """Reports work that may take long; see `ask` for `waiting`."""
        self.ask(waiting)
        self.report(state=state, rows_so_far=rows, blocked_by=self._blocked_by)

    def ask(self, waiting: Connection | None = None) -> None:
        """Asks the server from time to time how far it is, on a connection of its own.

        waiting   a connection that waits for an answer; the server is then also asked which transaction it waits for,
                  the first time soon after the wait has begun
        """
        now = time.monotonic()
        if waiting is None:
            self._waits_since = self._blocked_by = None
        elif self._waits_since is None:
            self._waits_since = now
        is_new = self._waits_since is not None and self._asked_at <= self._waits_since
        if now - self._asked_at >= min(LOOK_SECONDS, FIRST_LOOK_SECONDS if is_new else LOOK_SECONDS):
            self._asked_at = now
            # The stream itself notices a server that is gone.
            with suppress(ServerError), self.connect() as connection:
                self.find(connection)
                self._blocked_by = None if waiting is None else blocker(connection, waiting.process)

    def find(self, connection: Connection) -> tuple[System, Slot | None]:
        """Returns the server and the slot, None if it does not exist; notes both for the next report."""
        system, slot = find_system(connection), find_slot(connection, self.slot)
        kept = None if slot is None else retained_bytes(system, slot)
        self.note(server_lsn=system.flushed, retained_bytes=kept)
        return system, slot
