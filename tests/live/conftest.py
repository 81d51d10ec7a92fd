"""A server for all tests of the folder, with a database for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..servers.installations import MISSING, installations
from ..servers.server import Server, running
from .databases import PATIENCE_SECONDS, Database, database

VERSION = 18


@pytest.fixture(scope="session")
def live_server() -> Iterator[Server]:
    """A running server."""
    if VERSION not in installations():
        pytest.skip(MISSING[VERSION])
    with running(installations()[VERSION]) as server:
        yield server


@pytest.fixture
def db(live_server: Server, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database of a test, with its own slots. A busy server may take long to hear the last position, or of an end."""
    monkeypatch.setattr("wireformat.live.intake.END_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr("wireformat.live.slots.CLAIM_SECONDS", PATIENCE_SECONDS)
    name = f"d{abs(hash(request.node.name)) % 10**12}"
    with database(live_server, name) as found:
        yield found
