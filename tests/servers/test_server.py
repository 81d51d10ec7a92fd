"""The harness: servers start with what the tests need, and leave nothing behind."""

from __future__ import annotations

import os

import psycopg
import pytest

from .conftest import Servers
from .installations import MISSING, installations
from .server import SETTINGS, running


@pytest.mark.parametrize("version", MISSING)
def test_settings(servers: Servers, version: int) -> None:
    with servers(version).connect() as session:
        assert session.info.server_version // 10_000 == version
        for name, value in SETTINGS.items():
            shown = session.execute("select current_setting(%s)", (name,)).fetchone()
            assert str(value) in shown[0], name


@pytest.mark.server
def test_a_server_ends_with_its_folder() -> None:
    """By its own process: another server, with other sessions, goes on."""
    version = max(installations(), default=0)
    if version not in MISSING:
        pytest.skip(MISSING[max(MISSING)])
    with running(installations()[version]) as other, other.connect() as session:
        with running(installations()[version]) as server:
            open_session = server.connect()
            pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, 0)
        assert not server.folder.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(psycopg.OperationalError):
            open_session.execute("select 1")
        open_session.close()
        assert session.execute("select 1").fetchone() == (1,)


def test_only_debian_brings_test_decoding() -> None:
    if 15 not in installations():
        pytest.skip(MISSING[15])
    assert installations()[15].has_test_decoding
