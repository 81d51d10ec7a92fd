"""The transaction for which a session of the server waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..errors import ServerError
from .connection import Connection

LOOK_SECONDS = 10.0
"""How often a server is asked how far it is, and for which transaction a connection waits."""

FIRST_LOOK_SECONDS = 1.0
"""How soon the server is asked for the first time why a connection waits."""

_SESSIONS = """
select b.pid, a.usename as user, a.application_name as application, a.state,
    pg_catalog.to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as since
from pg_catalog.unnest(pg_catalog.pg_blocking_pids({process})) b (pid)
left join pg_catalog.pg_stat_activity a on a.pid = b.pid
order by a.xact_start limit 1
"""

_PREPARED = """
select gid, pg_catalog.to_char(prepared at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as since
from pg_catalog.pg_prepared_xacts order by prepared limit 1
"""


def blocker(connection: Connection, process: int) -> str | None:
    """Returns the oldest transaction that keeps a process of the server waiting; None if the server does not know one.

    connection   a connection other than that of the process

    Raises ServerError.
    """
    if connection.version < 10:
        return None
    for row in connection.query(_SESSIONS.format(process=process)):
        if row["pid"] == "0":  # a prepared transaction, which has no session
            return next((_prepared(found) for found in connection.query(_PREPARED)), None)
        # A role without pg_read_all_stats does not see all of these.
        facts = (f"user {row['user']}" if row["user"] else None, row["application"], row["state"])
        known = ", ".join(fact for fact in facts if fact)
        since = f", open since {row['since']} UTC" if row["since"] else ""
        return f"the transaction of process {row['pid']}" + (f" ({known})" if known else "") + since
    return None


def _prepared(row: dict[str, str | None]) -> str:
    return f"the prepared transaction {row['gid']!r}, open since {row['since']} UTC"


def waits_for_slot(connection: Connection) -> str:
    """Returns what the creation of a slot waits for."""
    (row,) = connection.query("select pg_catalog.pg_is_in_recovery() as standby")
    if row["standby"] == "t":
        return "waits until the primary logs its open transactions: pg_log_standby_snapshot() there makes it do so"
    return "waits for transactions that are open"


def telling_waits(
    connection: Connection, connect: Callable[[], Connection], tell: Callable[[str], Any]
) -> Callable[[], None]:
    """Returns an `on_wait` that calls `tell` with what the creation of a slot waits for, at first and when it changes.

    connection   the connection that waits
    connect      makes another connection, for questions
    """
    state, told = waits_for_slot(connection), ""
    next_look = time.monotonic() + FIRST_LOOK_SECONDS

    def look() -> None:
        nonlocal told, next_look
        if time.monotonic() < next_look:
            return
        found = None
        with suppress(ServerError), connect() as other:  # the waiting connection notices a server that is gone
            found = blocker(other, connection.process)
        next_look = time.monotonic() + LOOK_SECONDS
        text = f"{state}; blocked by {found}" if found else state
        if text != told:
            told = text
            tell(text)

    return look
