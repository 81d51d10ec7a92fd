"""Servers of the run: one of each version, with the workload done; each starts where the first test needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

import pytest

from .installations import MISSING, installations
from .replication import Stream
from .running import run_workload
from .seeds import run_seed, tell_seed
from .server import Server, running


class Run(NamedTuple):
    """A server that has done the workload, and what it sent meanwhile."""

    server: Server
    stream: Stream | None


Runs = Callable[[int], Run]
Servers = Callable[[int], Server]


@pytest.fixture(scope="session")
def servers(runs: Runs) -> Servers:
    """Gives the server of a version; skips the test where that version is not installed."""
    return lambda version: runs(version).server


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    """The same, with what was sent."""
    with ExitStack() as stack:

        @cache
        def start(version: int) -> Run:
            server = stack.enter_context(running(installations()[version]))
            return Run(server, run_workload(server, run_seed()))

        def give(version: int) -> Run:
            tell_seed()
            if version not in installations():
                pytest.skip(MISSING[version])
            return start(version)

        yield give
