"""Servers of the run: one of each version, with the workload done; each starts where the first test needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from .installations import MISSING, installations
from .running import run_workload
from .server import Server, running

Servers = Callable[[int], Server]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Gives the server of a version; skips the test where that version is not installed."""
    with ExitStack() as stack:

        @cache
        def start(version: int) -> Server:
            server = stack.enter_context(running(installations()[version]))
            run_workload(server)
            return server

        def give(version: int) -> Server:
            if version not in installations():
                pytest.skip(MISSING[version])
            return start(version)

        yield give
