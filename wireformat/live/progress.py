"""How far a run of `follow` has come: for a display, and as lines of JSON, with what the server says about itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ServerError
from ..lsn import lsn_text
from ..stream.capture_position import CapturePosition
from .batches import Batch
from .connection import EPOCH_SECONDS, Connection, Stopped
from .slots import FIRST_LOOK_SECONDS, LOOK_SECONDS, Slot, System, blocker, find_slot, find_system, retained_bytes


def clock(seconds: float) -> str:
    """Returns the local time of day; `seconds` count from 1970."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


@dataclass(frozen=True)
class Progress:
    """How far a stream has been read and written.

    state             snapshot, streaming, or what the run waits for
    rows_so_far       the rows copied so far of a table, or written so far of a batch; 0 if neither is being done
    blocked_by        the transaction for which the server waits; None if none is known
    started           when the run began, in seconds since 1970; None before its first connection
    lsn               everything before it is in the lake; 0 until that is known
    server_lsn        the end of the server's log when the server was last asked; None before that
    transactions      the number of transactions that the lake has
    rows              the number of rows that this run has written
    tables            the number of rows that this run has written to each table
    messages, bytes   the number of messages that this run has written, and their bytes
    batches           the number of commits
    last_commit       when the last commit was done, in seconds since 1970; None before the first one
    rows_per_second   the rows of the last batch by the time from the commit before it to its own
    lag_seconds       from the commit of the last transaction to its arrival in the lake, by the clocks of both machines
    retained_bytes    the size of the log that the server keeps for the slot; None if it is not known
    retained_alarm    the option of `follow`
    warnings          the warnings of the checks at the last connection
    open_messages     the number of messages of a transaction that has not ended
    """

    state: str = "connecting"
    rows_so_far: int = 0
    blocked_by: str | None = None
    started: float | None = None
    lsn: int = 0
    server_lsn: int | None = None
    transactions: int = 0
    rows: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    bytes: int = 0
    batches: int = 0
    last_commit: float | None = None
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    retained_bytes: int | None = None
    retained_alarm: int | None = None
    warnings: tuple[str, ...] = ()
    open_messages: int = 0

    @property
    def lag_bytes(self) -> int | None:
        """The number of bytes of the server's log that are not in the lake; None if it is not known."""
        return None if self.server_lsn is None or not self.lsn else max(self.server_lsn - self.lsn, 0)

    @property
    def is_alarming(self) -> bool:
        """Whether the slot retains more than `retained_alarm`."""
        limit, kept = self.retained_alarm, self.retained_bytes
        return limit is not None and kept is not None and kept > limit

    def after(self, batch: Batch, rows: dict[str, int], position: CapturePosition) -> Progress:
        """Returns the progress after a batch.

        rows       the number of rows that were written to each table
        position   of the lake after it
        """
        now = time.time()
        since = self.last_commit or self.started or now
        return replace(
            self.with_rows(rows),
            lsn=batch.lsn,
            transactions=position.delivered.transactions,
            messages=self.messages + batch.count,
            bytes=self.bytes + batch.size,
            last_commit=now,
            rows_per_second=sum(rows.values()) / max(now - since, 1e-3),
            lag_seconds=0.0 if batch.ended_us is None else max(now - EPOCH_SECONDS - batch.ended_us / 1e6, 0.0),
        )

    def with_rows(self, rows: dict[str, int]) -> Progress:
        """Returns the progress after a commit; `rows` has the number of rows of each table."""
        return replace(
            self,
            rows=self.rows + sum(rows.values()),
            tables={name: self.tables.get(name, 0) + rows.get(name, 0) for name in {**self.tables, **rows}},
            batches=self.batches + 1,
        )

    def to_json(self) -> str:
        """Returns one line of JSON."""
        facts: dict[str, Any] = {
            "time": round(time.time(), 3),
            "state": self.state,
            "rows_so_far": self.rows_so_far,
            "blocked_by": self.blocked_by,
            "lsn": lsn_text(self.lsn),
            "lag_bytes": self.lag_bytes,
            "lag_seconds": round(self.lag_seconds, 3),
            "retained_bytes": self.retained_bytes,
            "alarm": self.is_alarming,
            "warnings": self.warnings,
            "rows": self.rows,
            "rows_per_second": round(self.rows_per_second, 1),
            "bytes": self.bytes,
            "transactions": self.transactions,
            "open_messages": self.open_messages,
            "commits": self.batches,
            "last_commit": None if self.last_commit is None else round(self.last_commit, 3),
            "tables": self.tables,
        }
        return json.dumps(facts, ensure_ascii=False)


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
            # The stream itself notices a server that is gone, and what is being written is finished before a stop.
            with suppress(ServerError, Stopped), self.connect() as connection:
                self.find(connection)
                self._blocked_by = None if waiting is None else blocker(connection, waiting.process)

    def find(self, connection: Connection) -> tuple[System, Slot | None]:
        """Returns the server and the slot, None if it does not exist; notes both for the next report."""
        system, slot = find_system(connection), find_slot(connection, self.slot)
        kept = None if slot is None else retained_bytes(system, slot)
        self.note(server_lsn=system.flushed, retained_bytes=kept)
        return system, slot
