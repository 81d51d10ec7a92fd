"""Replication connections that end at random places; what comes over all of them, one behind the other."""

from __future__ import annotations

import time
from random import Random

from wireformat.framing.copy_data import ENVELOPE_BYTES

from .readings import Reading
from .replication import logged_until, payloads_until, start_replication
from .server import START_SECONDS, Server

STATE = "select active, active_pid from pg_replication_slots where slot_name = %s"


def read_with_breaks(server: Server, slot: str, reading: Reading, random: Random, breaks: int) -> list[bytes]:
    """What a consumer gets that acknowledges nothing, so that each connection begins where the first one did.

    Every second connection ends inside a streamed block, where it comes to one. Ended by the server or by the client.
    """
    found: list[bytes] = []
    longest = 200
    for number in range(breaks):
        sent = _read_some(server, slot, reading, random, random.randrange(1, longest), in_block=number % 2 == 0)
        longest = max(longest, 2 * len(sent))
        found += sent
    return found + _read_all(server, slot, reading)


def _read_some(
    server: Server, slot: str, reading: Reading, random: Random, count: int, *, in_block: bool
) -> list[bytes]:
    """At least so many messages, and with in_block on to one inside a block; or all there are."""
    _wait_until_free(server, slot)
    end = logged_until(server)
    connection = start_replication(server, slot, reading)
    found: list[bytes] = []
    rows_in_block = -1
    for payload in payloads_until(connection, end):
        found.append(payload)
        kind = payload[ENVELOPE_BYTES : ENVELOPE_BYTES + 1] if payload[:1] == b"w" else b""
        if kind in (b"S", b"E"):
            rows_in_block = 0 if kind == b"S" else -1
        elif kind and rows_in_block >= 0:
            rows_in_block += 1
        if len(found) >= count and (not in_block or rows_in_block > 0):
            break
    if random.random() < 0.5:
        with server.connect() as session:
            session.execute("select pg_terminate_backend(active_pid) from pg_replication_slots where active")
    connection.finish()
    return found


def _read_all(server: Server, slot: str, reading: Reading) -> list[bytes]:
    _wait_until_free(server, slot)
    end = logged_until(server)
    connection = start_replication(server, slot, reading)
    found = [*payloads_until(connection, end)]
    connection.finish()
    return found


def _wait_until_free(server: Server, slot: str) -> None:
    """A walsender that lost its connection keeps the slot for a moment."""
    end = time.monotonic() + START_SECONDS
    with server.connect() as session:
        while (session.execute(STATE, (slot,)).fetchone() or (False,))[0]:
            if time.monotonic() > end:
                raise RuntimeError(f"slot {slot} stays active")
            time.sleep(0.01)
