"""Runs the workload on a server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import psycopg

from .readings import create_slots, readings_of
from .server import Server
from .workload import SEED, Step, setup, workload

SESSIONS = ("a", "b", "origin")


def run_workload(server: Server, seed: int = SEED) -> None:
    """Make tables and slots, then change the tables."""
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(server.connect()) for name in SESSIONS}
        for sql in setup(server.version):
            sessions["a"].execute(sql)
        create_slots(sessions["a"], readings_of(server.version, test_decoding=server.installation.has_test_decoding))
        for step in workload(server.version, seed):
            _run(sessions, step)


def _run(sessions: dict[str, psycopg.Connection[Any]], step: Step) -> None:
    try:
        sessions[step.session].execute(step.sql)
    except psycopg.Error as error:
        raise RuntimeError(f"session {step.session}: {step.sql[:500]}: {error}") from None
