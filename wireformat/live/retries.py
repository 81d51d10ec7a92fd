"""When a lost connection is made again, and when a run gives up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from ..errors import ServerError
from .connection import STEADY_SECONDS

WAIT_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""The waits before each attempt to connect again, or to write again when the disk is full; the last one repeats."""


def waits() -> Iterator[float]:
    """Yields the seconds before each attempt, without end."""
    return chain(WAIT_SECONDS, repeat(WAIT_SECONDS[-1]))


class Wait(NamedTuple):
    """The wait before the next attempt.

    seconds   how long it is
    left      in how many seconds the run gives up
    """

    seconds: float
    left: float


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

    def next_wait(self, error: ServerError) -> Wait:
        """Counts a failure. Returns the wait before the next attempt; raises ServerError if it is time to give up."""
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
        return Wait(seconds, left)
