"""Runs the workload on a server."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import Any

import psycopg

from .readings import LIVE, create_slots, readings_of
from .replication import Stream, streaming, wait_until_sent
from .server import Server
from .workload import SEED, SEEN, Step, setup, workload

SESSIONS = ("a", "b", "origin")


def run_workload(server: Server, seed: int = SEED) -> Stream | None:
    """Make tables and slots, then change the tables; gives what the server sent meanwhile by the reading LIVE."""
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(server.connect()) for name in SESSIONS}
        for sql in setup(server.version):
            sessions["a"].execute(sql)
        create_slots(sessions["a"], readings_of(server.version, test_decoding=server.installation.has_test_decoding))
        with streaming(server, LIVE.slot, LIVE) if server.version >= LIVE.since else nullcontext() as stream:
            for step in workload(server.version, seed):
                _run(sessions, step)
                if step is SEEN and stream is not None:
                    wait_until_sent(server, stream)
    return stream


def _run(sessions: dict[str, psycopg.Connection[Any]], step: Step) -> None:
    try:
        sessions[step.session].execute(step.sql)
    except psycopg.Error as error:
        raise RuntimeError(f"session {step.session}: {step.sql[:500]}: {error}") from None
