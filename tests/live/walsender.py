"""A server that is made up: it speaks the protocol of a walsender, and plays messages that the tests give it.

Source: PostgreSQL manual, "Frontend/Backend Protocol" and "Streaming Replication Protocol". A server that says it is
9.2.4 speaks as GaussDB and openGauss do: its keepalives and the status updates that it reads are structs of C,
PrimaryKeepaliveMessage and StandbyReplyMessage of src/include/replication/walprotocol.h of openGauss-server, and it
closes the connection when a client ends the stream, as ProcessRepliesIfAny of walsender.cpp does.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from wireformat import lsn_text

SYSTEM = "7300000000000000001"
_SSL, _GSS = 80877103, 80877104

PATIENCE_SECONDS = 120
"""How long a client may take between two messages: it may compile its decoder first, on a busy machine."""

Message = tuple[int, bytes]
"""LSN and payload."""

POSTGRES_KEEPALIVE, GAUSSDB_KEEPALIVE = struct.Struct(">cQq?"), struct.Struct("<cQiiq????4x")
"""walEnd, sendTime, replyRequested; GaussDB: walEnd, peer_role, peer_state, sendTime, replyRequested, catchup,
uwal_catchup, fullSync, padding."""

POSTGRES_STATUS, GAUSSDB_STATUS = struct.Struct(">cQQQq?"), struct.Struct("<cQQQQQiiq?3xI")
"""write, flush, apply, sendTime, replyRequested; GaussDB: receive, write, flush, apply, applyRead, peer_role,
peer_state, sendTime, replyRequested, padding, replyFlags."""

PRIMARY_MODE, NORMAL_STATE = 2, 1
"""Of ServerMode and DbState in replicainternal.h."""


class Cut(Exception):
    """The connection ends here."""


class Refused(Exception):
    """A query fails: SQLSTATE and text."""


@dataclass
class Walsender:
    """What the server has, and what it was told.

    play        what it does after START_REPLICATION, with the number of the connection
    plugin      of its only slot, `s`
    confirmed   of the slot; moves with what the client reports
    end         of its log
    on_disk     how much of its log is on disk; None: all of it
    answers     gives the rows of queries that contain a text
    version     that it says it has
    password    that it wants; a wrong one is repeated in the error, as no server should do
    lets_go     how long it keeps the slot after it has answered the end of a stream, in seconds
    is_free     whether it has let go of the slot
    startups    the parameters of each connection
    """

    play: Callable[[Session, int], None]
    plugin: str = "pgoutput"
    confirmed: int = 1
    end: int = 1 << 32
    on_disk: int | None = None
    answers: dict[str, Callable[[str], list[dict[str, str]]]] = field(default_factory=dict)
    version: str = "18.0"
    password: str | None = None
    lets_go: float = 0
    is_free: bool = True
    startups: list[dict[str, str]] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    flushed: list[int] = field(default_factory=list)
    statuses: list[bytes] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    port: int = 0

    @property
    def is_gaussdb(self) -> bool:
        """Whether it speaks as GaussDB does."""
        return self.version.startswith("9.2.")

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=reader dbname=shop sslmode=disable gssencmode=disable"

    def rows(self, query: str) -> list[dict[str, str]]:
        for text, answer in self.answers.items():
            if text in query:
                return answer(query)
        if query == "IDENTIFY_SYSTEM" or "pg_control_system" in query:
            return [{"systemid": SYSTEM, "timeline": "1", "xlogpos": lsn_text(self.end), "dbname": "shop"}]
        if "pg_current_wal_flush_lsn" in query:
            return [{"lsn": lsn_text(self.end if self.on_disk is None else self.on_disk)}]
        if "gs_walwriter_flush_position" in query:
            return [{"lsn": str(self.end if self.on_disk is None else self.on_disk)}]
        if "pg_replication_slots" in query:
            return [
                {
                    "slot_name": "s",
                    "plugin": self.plugin,
                    "slot_type": "logical",
                    "database": "shop",
                    "active": "f",
                    "restart_lsn": lsn_text(self.confirmed),
                    "confirmed_flush": lsn_text(self.confirmed),
                }
            ]
        if query.startswith("SHOW"):
            name = query.split()[1]
            return [{name: {"wal_level": "logical", "server_encoding": "UTF8"}[name]}]
        if "pg_is_in_recovery" in query:
            return [{"standby": "f"}]
        if "pg_try_advisory_lock" in query:
            return [{"claimed": "t"}]
        if "pg_catalog.pg_publication " in query and "pg_publication_tables" not in query:
            return [{"pubname": "p", "pubupdate": "t", "pubdelete": "t"}]
        return []


class Status(NamedTuple):
    """What a client has reported."""

    safe: int
    asks: bool


class Session:
    """A connection of a client."""

    def __init__(self, server: Walsender, connection: socket.socket) -> None:
        self._server = server
        self._connection = connection
        self._rest = b""
        self.start = 0

    def data(self, lsn: int, payload: bytes) -> None:
        """Sends a message of the plugin."""
        self._send(b"d", struct.pack(">cQQq", b"w", lsn, lsn, 0) + payload)

    def keepalive(self, lsn: int, *, asks: bool = False) -> None:
        """Sends a keepalive."""
        message = (
            GAUSSDB_KEEPALIVE.pack(b"k", lsn, PRIMARY_MODE, NORMAL_STATE, 0, asks, False, False, True)
            if self._server.is_gaussdb
            else POSTGRES_KEEPALIVE.pack(b"k", lsn, 0, asks)
        )
        self.copy_data(message)

    def copy_data(self, message: bytes) -> None:
        """Sends a message as it is, whole or not."""
        self._send(b"d", message)

    def cut(self) -> None:
        """Ends the connection in the middle of a message."""
        self._connection.sendall(b"d" + struct.pack(">i", 100) + b"w1234")
        raise Cut

    def garble(self) -> None:
        """Sends a message whose length is less than that of its own field."""
        self._connection.sendall(b"d" + struct.pack(">i", 2))

    def fail(self, state: str, text: str) -> None:
        """Sends an error, and ends the connection."""
        self._error(state, text)
        raise Cut

    def idle(self, lsn: int) -> None:
        """Answers with a keepalive whenever the client asks, until it ends the stream."""
        for kind, body in self._messages():
            if kind == b"X" or (kind == b"c" and self._server.is_gaussdb):
                self._server.is_free = True
                raise Cut
            if kind == b"c":
                self._send(b"c", b"")
                time.sleep(self._server.lets_go)
                self._server.is_free = True
                self._send(b"C", b"COPY 0\0")
                self._send(b"C", b"START_STREAMING\0")
                self._send(b"Z", b"I")
                raise Cut
            if self._heard(body).asks:
                self.keepalive(lsn)

    def wait_for_status(self) -> int:
        """Returns what the client has safe, when it reports next."""
        for kind, body in self._messages():
            if kind == b"d":
                return self._heard(body).safe
        raise Cut

    def run(self) -> None:
        """Talks to a client."""
        self._begin()
        for kind, body in self._messages():
            if kind == b"Q":
                self._query(body[:-1].decode())
            elif kind == b"X":
                return

    def _begin(self) -> None:
        while True:
            (size,) = struct.unpack(">i", self._read(4))
            body = self._read(size - 4)
            if struct.unpack_from(">i", body)[0] not in (_SSL, _GSS):
                break
            self._connection.sendall(b"N")
        words = body[4:].decode().split("\0")
        self._server.startups.append(dict(zip(words[::2], words[1::2], strict=False)))
        if self._server.password is not None:
            self._send(b"R", struct.pack(">i", 3))
            _, given = next(self._messages())
            if given[:-1].decode() != self._server.password:
                self.fail("28P01", f"password authentication failed: {given[:-1].decode()}")
        self._send(b"R", struct.pack(">i", 0))
        for name, value in (("server_version", self._server.version), ("client_encoding", "UTF8")):
            self._send(b"S", f"{name}\0{value}\0".encode())
        self._send(b"Z", b"I")

    def _query(self, query: str) -> None:
        if query.startswith("START_REPLICATION"):
            self._server.starts.append(query)
            high, low = re.search(r"LOGICAL (\w+)/(\w+)", query).groups()  # type: ignore[union-attr]
            self.start = int(high, 16) << 32 | int(low, 16)
            self._server.is_free = False
            self._send(b"W", struct.pack(">bh", 0, 0))
            self._server.play(self, len(self._server.starts) - 1)
            raise Cut
        if query.startswith("SET"):
            self._send(b"C", b"SET\0")
            self._send(b"Z", b"I")
            return
        try:
            rows = self._server.rows(query)
        except Refused as refused:
            self._error(*refused.args)
            self._send(b"Z", b"I")
            return
        names = list(rows[0]) if rows else ["none"]
        fields = b"".join(name.encode() + b"\0" + struct.pack(">ihihih", 0, 0, 25, -1, -1, 0) for name in names)
        self._send(b"T", struct.pack(">h", len(names)) + fields)
        for row in rows:
            values = [row[name].encode() for name in names]
            cells = b"".join(struct.pack(">i", len(value)) + value for value in values)
            self._send(b"D", struct.pack(">h", len(values)) + cells)
        self._send(b"C", b"SELECT 1\0")
        self._send(b"Z", b"I")

    def _error(self, state: str, text: str) -> None:
        facts = (("S", "FATAL"), ("V", "FATAL"), ("C", state), ("M", text))
        self._send(b"E", b"".join(f"{tag}{value}\0".encode() for tag, value in facts) + b"\0")

    def _heard(self, body: bytes) -> Status:
        layout = GAUSSDB_STATUS if self._server.is_gaussdb else POSTGRES_STATUS
        fields = layout.unpack(body)  # of another size, it fails, as it does on a server
        status = Status(fields[3], fields[9]) if self._server.is_gaussdb else Status(fields[2], fields[5])
        assert fields[0] == b"r"
        self._server.statuses.append(body)
        self._server.flushed.append(status.safe)
        self._server.confirmed = max(self._server.confirmed, status.safe)
        return status

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            kind = self._read(1)
            (size,) = struct.unpack(">i", self._read(4))
            yield kind, self._read(size - 4)

    def _read(self, size: int) -> bytes:
        while len(self._rest) < size:
            found = self._connection.recv(1 << 16)
            if not found:
                raise Cut
            self._rest += found
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def _send(self, kind: bytes, body: bytes) -> None:
        self._connection.sendall(kind + struct.pack(">i", len(body) + 4) + body)


@contextmanager
def serving(server: Walsender) -> Iterator[Walsender]:
    """Serves clients, a thread each; what goes wrong in them is raised at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        threads: list[threading.Thread] = []

        def talk(connection: socket.socket) -> None:
            with connection, suppress(Cut, ConnectionError):
                connection.settimeout(PATIENCE_SECONDS)
                try:
                    Session(server, connection).run()
                except (Cut, ConnectionError):
                    raise
                except BaseException as error:
                    server.errors.append(error)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=talk, args=[connection], daemon=True))
                threads[-1].start()

        threading.Thread(target=accept, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert server.errors == []


def plays(messages: Sequence[Message], cuts: Iterable[int] = (), end: int = 1 << 40) -> Callable[[Session, int], None]:
    """Plays all messages in each connection, from the beginning: what the client has already comes again.

    cuts   after how many messages the first connections are cut
    end    the end of the log, which keepalives say after the messages
    """
    pieces = list(cuts)

    def play(session: Session, number: int) -> None:
        count = pieces[number] if number < len(pieces) else len(messages)
        for index, (lsn, payload) in enumerate(messages[:count]):
            session.data(lsn, payload)
            if index % 7 == 3:
                session.keepalive(lsn, asks=index % 2 == 0)
        if number < len(pieces):
            session.cut()
        session.idle(end)

    return play
