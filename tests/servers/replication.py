"""A replication connection: what a server sends while the tables change, with envelopes and keepalives."""

from __future__ import annotations

import select
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from psycopg import pq

from wireformat import lsn_value

from .readings import Reading
from .server import Server
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
        connection = _start(server, slot, reading)
        reader = pool.submit(_read, connection, stream)
        try:
            yield stream
            with server.connect() as session:
                (end,) = session.execute("select pg_current_wal_flush_lsn()::text").fetchone() or ("0/0",)
            while stream.sent < lsn_value(end) and not reader.done():
                stream.stop.wait(0.01)
        finally:
            stream.stop.set()
            reader.result()
            connection.finish()


def _start(server: Server, slot: str, reading: Reading) -> pq.PGconn:
    target = f"host={server.folder} user=postgres dbname=postgres replication=database"
    connection = pq.PGconn.connect(target.encode())
    options = ", ".join(f'"{name}" {literal(value)}' for name, value in reading.options.items())
    result = connection.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 ({options})'.encode())
    if result.status != pq.ExecStatus.COPY_BOTH:
        raise RuntimeError(f"no replication: {connection.get_error_message() or connection.status}")
    return connection


def _read(connection: pq.PGconn, stream: Stream) -> None:
    while not stream.stop.is_set():
        size, data = connection.get_copy_data(1)
        if size > 0:
            payload = bytes(data)
            stream.payloads.append(payload)
            if payload.startswith(b"k"):
                stream.sent = _END.unpack_from(payload)[1]
        elif size < 0:
            raise RuntimeError(f"the stream has ended: {connection.get_error_message()}")
        elif select.select([connection.socket], [], [], ASK_SECONDS)[0]:
            connection.consume_input()
        else:
            connection.put_copy_data(_STATUS)
            connection.flush()
