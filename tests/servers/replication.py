"""A replication connection: what a server sends while the tables change, with envelopes and keepalives."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from psycopg import pq

from wireformat import lsn_value

from .readings import Reading
from .server import START_SECONDS, Server
from .values import literal

ASK_SECONDS = 0.05
"""How long nothing may come before the server is asked how far it is."""

_STATUS = struct.pack(">cQQQq?", b"r", 0, 0, 0, 0, True)
"""A standby's status: nothing written, so the slot stays where it is; an answer is wanted."""
_END = struct.Struct(">cQ")


@dataclass
class Stream:
    """What came so far, and whether anything more is wanted."""

    payloads: list[bytes] = field(default_factory=list)
    """Payloads of CopyData messages: `w` with a message of the plugin, `k` keepalives."""
    sent: int = 0
    """Everything before this position has been sent, as the last keepalive says."""
    stop: Event = field(default_factory=Event)


@contextmanager
def streaming(server: Server, slot: str, reading: Reading) -> Iterator[Stream]:
    """Read the slot while the block runs; then the stream has everything that was logged until the block's end."""
    stream = Stream()
    with ThreadPoolExecutor(1) as pool:
        connection = start_replication(server, slot, reading)
        reader = pool.submit(_read, connection, stream)
        try:
            yield stream
            end = logged_until(server)
            while stream.sent < end and not reader.done():
                stream.stop.wait(0.01)
        finally:
            stream.stop.set()
            reader.result()
            connection.finish()


def wait_until_sent(server: Server, stream: Stream) -> None:
    """Waits until the stream has what has been logged, also of open transactions: another one's commit flushes it."""
    with server.connect() as session:
        session.execute("select txid_current()")
    end = logged_until(server)
    deadline = time.monotonic() + START_SECONDS
    while stream.sent < end:
        assert time.monotonic() < deadline, "the server sends what is logged"
        time.sleep(0.01)


def start_replication(server: Server, slot: str, reading: Reading, target: str = "dbname=postgres") -> pq.PGconn:
    """A replication connection that sends what the slot has, from its beginning.

    target   the database, and other parameters of the connection
    """
    connection = pq.PGconn.connect(f"host={server.folder} user=postgres replication=database {target}".encode())
    options = ", ".join(f'"{name}" {literal(value)}' for name, value in reading.options.items())
    listed = f" ({options})" if options else ""
    result = connection.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0{listed}'.encode())
    if result.status != pq.ExecStatus.COPY_BOTH:
        raise RuntimeError(f"no replication: {connection.get_error_message() or connection.status}")
    return connection


def payloads(connection: pq.PGconn) -> Iterator[bytes | None]:
    """What comes over a replication connection; None where nothing came for a while, and the server is asked."""
    while True:
        size, data = connection.get_copy_data(1)
        if size > 0:
            yield bytes(data)
        elif size < 0:
            raise RuntimeError(f"the stream has ended: {connection.get_error_message()}")
        elif select.select([connection.socket], [], [], ASK_SECONDS)[0]:
            connection.consume_input()
        else:
            connection.put_copy_data(_STATUS)
            connection.flush()
            yield None


def logged_until(server: Server) -> int:
    """The end of what the server has logged."""
    with server.connect() as session:
        (end,) = session.execute("select pg_current_wal_flush_lsn()::text").fetchone() or ("0/0",)
    return lsn_value(end)


def payloads_until(connection: pq.PGconn, end: int) -> Iterator[bytes]:
    """What comes until a keepalive says that everything before a position has been sent.

    That nothing comes for a while does not say so: on a busy machine the first message may take seconds.
    """
    for payload in payloads(connection):
        if payload is not None:
            yield payload
            if payload.startswith(b"k") and sent_until(payload) >= end:
                return


def sent_until(keepalive: bytes) -> int:
    """Everything before this position has been sent."""
    return int(_END.unpack_from(keepalive)[1])


def _read(connection: pq.PGconn, stream: Stream) -> None:
    for payload in payloads(connection):
        if stream.stop.is_set():
            return
        if payload is not None:
            stream.payloads.append(payload)
            if payload.startswith(b"k"):
                stream.sent = sent_until(payload)
