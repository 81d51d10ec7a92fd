"""A PostgreSQL server of our own, in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from .installations import Installation

SETTINGS = {
    "wal_level": "logical",
    "logical_decoding_work_mem": "64kB",  # the least: transactions stream early
    "max_prepared_transactions": 10,
    "max_replication_slots": 20,
    "max_wal_senders": 20,  # those of connections that were closed a moment ago count
    "max_connections": 50,
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "fsync": "off",
    "autovacuum": "off",  # its transactions would stand between those of the workload
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "lc_messages": "C",
}
START_SECONDS = 120


class Server:
    """A running server; sessions come through a Unix socket, as the user postgres."""

    def __init__(self, installation: Installation, folder: Path, user: dict[str, int]) -> None:
        self.installation = installation
        self.folder = folder
        self._user = user
        self._process = self._started()

    @property
    def version(self) -> int:
        """The major version."""
        return self.installation.version

    def connect(self, dbname: str = "postgres", **parameters: Any) -> psycopg.Connection[Any]:
        """A session where every statement commits by itself."""
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=dbname, autocommit=True, **parameters)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it, as after a failure with SIGKILL, and start it again; it recovers."""
        self.stop(how)
        end = time.monotonic() + START_SECONDS
        while True:
            self._process = self._started()
            try:
                _wait(self, self._process, self.folder / "log")
                return
            except RuntimeError:  # processes of the one before may still be there
                if self._process.poll() is None or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: sessions end, the log is written."""
        self._process.send_signal(how)
        self._process.wait(START_SECONDS)

    def wait(self) -> None:
        """Wait until it answers."""
        _wait(self, self._process, self.folder / "log")

    def _started(self) -> subprocess.Popen[bytes]:
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [self.installation.bin / "postgres", "-D", self.folder / "data", "-k", self.folder, *options]
        with (self.folder / "log").open("ab") as output:
            return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output, **_as(self._user))


@contextmanager
def running(installation: Installation) -> Iterator[Server]:
    """A new server; it and its folder are gone afterwards."""
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the path of a socket is limited to 107 bytes
    try:
        if user:
            shutil.chown(folder, **user)
        _initdb(installation, folder, user)
        server = Server(installation, folder, user)
        try:
            server.wait()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _unprivileged() -> dict[str, int]:
    """A user and a group for the server, which refuses to run as root; nothing where we are not root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def _as(user: dict[str, int]) -> dict[str, Any]:
    return {**user, "extra_groups": []} if user else {}


def _initdb(installation: Installation, folder: Path, user: dict[str, int]) -> None:
    options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    command = [installation.bin / "initdb", "-D", folder / "data", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **_as(user))
    if done.returncode:
        raise RuntimeError(f"initdb of PostgreSQL {installation.full_version} failed: {done.stderr or done.stdout}")


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            server.connect().close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > end:
                said = log.read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL {server.version} does not answer: {error}; it said: {said}") from None
        time.sleep(0.02)
