"""Whose transaction a session of the server waits for."""

from __future__ import annotations

from .connection import Connection

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
    """Returns which transaction keeps a process of the server waiting, the oldest one; None if the server does not say.

    connection   another one than that of the process
    """
    if connection.version < 10:
        return None
    for row in connection.query(_SESSIONS.format(process=process)):
        if row["pid"] == "0":  # one without a session
            return next((_prepared(found) for found in connection.query(_PREPARED)), None)
        # A role without pg_read_all_stats does not see all of it.
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
