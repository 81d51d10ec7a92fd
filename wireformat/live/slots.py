"""A server and its slots: finds, creates, claims and drops them, and names the transaction that a session waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import ServerError
from ..lsn import lsn_text, lsn_value
from .connection import Connection

CLAIM_SECONDS = 5.0
"""How long a server may take to notice that the earlier reader of a slot is gone."""

_CLAIM_STEP_SECONDS = 0.1


class System(NamedTuple):
    """A server.

    system       its system identifier
    timeline     the timeline of its log, which changes when a standby is promoted; 0 if it is not known
    flushed      the end of its log on disk. GaussDB's SQL functions give the end of what has been written instead; see
                 `end_on_disk`
    database     the database of the connection
    is_standby   whether it follows another server
    ended        the LSN at which its log left each earlier timeline
    """

    system: str
    timeline: int
    flushed: int
    database: str
    is_standby: bool = False
    ended: Mapping[int, int] = MappingProxyType({})

    def end_of(self, timeline: int) -> int | None:
        """Returns the LSN at which the log left a timeline; None if it has not left it, or if that is not known.

        For a timeline that the log never had, this is 0.
        """
        if not timeline or not self.timeline or timeline == self.timeline:
            return None
        return self.ended.get(timeline, 0)


class Slot(NamedTuple):
    """A slot.

    confirmed   the server sends transactions that end after this LSN
    restart     the server keeps its log from this LSN on
    facts       the row of pg_replication_slots, whose columns depend on the version
    """

    name: str
    plugin: str
    database: str
    is_active: bool
    confirmed: int | None
    restart: int | None
    facts: dict[str, str | None]

    @property
    def is_in_csn_order(self) -> bool:
        """Whether GaussDB sends the transactions of the slot in the order of their CSNs."""
        return self.facts.get("confirmed_csn") not in (None, "", "0")

    @property
    def loss(self) -> str | None:
        """Why the slot can no longer be used; None if it can."""
        if self.facts.get("invalidation_reason"):
            return self.facts["invalidation_reason"]
        if self.facts.get("wal_status") == "lost":
            return "wal_removed"
        return "a conflict on a standby" if self.facts.get("conflicting") == "t" else None


def find_system(connection: Connection) -> System:
    """Returns what the server says about itself. Raises ServerError."""
    (recovery,) = connection.query("select pg_catalog.pg_is_in_recovery() as standby")
    is_standby = recovery["standby"] == "t"  # asked first: if it is promoted meanwhile, its timeline is not known
    (row,) = connection.query("IDENTIFY_SYSTEM" if connection.replicates else _sql(connection, is_standby))
    timeline = int(row["timeline"] or 0)
    ended = (
        None if is_standby else _ended_timelines(connection, timeline)
    )  # a standby may change its timeline at any time
    return System(
        row["systemid"] or "",
        0 if ended is None else timeline,
        lsn_value(row["xlogpos"] or "0/0"),
        row.get("dbname") or "",
        is_standby,
        ended or {},
    )


def _ended_timelines(connection: Connection, timeline: int) -> dict[int, int] | None:
    """Returns the LSN at which each earlier timeline ended; None if the server does not say it."""
    if not connection.replicates or connection.version < 10:
        return None
    if timeline < 2:
        return {}
    try:
        (row,) = connection.query(f"TIMELINE_HISTORY {timeline}")
    except ServerError as error:
        if error.sqlstate is None:
            raise
        return None  # the file with the history has been removed
    lines = (line.split() for line in (row["content"] or "").splitlines())
    return {int(line[0]): lsn_value(line[1]) for line in lines if len(line) > 1 and line[0].isdigit()}


def _sql(connection: Connection, is_standby: bool) -> str:
    """Returns a query with the results of IDENTIFY_SYSTEM, for a connection without replication.

    A standby's log ends where it has replayed it, since SQL functions do not read what it has only received.
    """
    if connection.version >= 10:
        end = "pg_last_wal_replay_lsn()" if is_standby else "pg_current_wal_flush_lsn()"
    else:
        end = "pg_last_xlog_replay_location()" if is_standby else "pg_current_xlog_location()"
    return (
        f"select system_identifier::text as systemid, 0 as timeline, pg_catalog.{end}::text as xlogpos, "
        "pg_catalog.current_database()::text as dbname from pg_catalog.pg_control_system()"
    )


def end_on_disk(connection: Connection) -> int | None:
    """Returns the LSN up to which a server's log is on disk; None if the server does not say it. Raises ServerError.

    connection   a connection without replication

    SQL functions that look at a slot read the log up to this LSN. The current location of GaussDB and openGauss is the
    end of what has been written, a moment before it is on disk. A look does not find a transaction between the two, so
    this transaction must not be confirmed. Source: openGauss-server 7e1fc94a. pg_current_xlog_location of xlogfuncs.cpp
    takes LogwrtResult.Write; pg_logical_slot_get_changes_guts of logicalfuncs.cpp takes LogwrtResult.Flush, as does
    gs_walwriter_flush_position of pgxlogstatfuncs.cpp, which exists from catalog version 92602 on.
    """
    if connection.version >= 10:
        return find_system(connection).flushed
    try:
        (row,) = connection.query(
            "select shm_result_flush_pos::text as lsn from pg_catalog.gs_walwriter_flush_position()"
        )
    except ServerError as error:
        if error.sqlstate not in _NOT_AVAILABLE:
            raise
        return None
    return int(row["lsn"] or 0)


_NOT_AVAILABLE = ("42883", "42501")
"""SQLSTATEs of a function that does not exist, or that the role may not call."""


def find_slot(connection: Connection, name: str) -> Slot | None:
    """Returns a slot; None if it does not exist. Raises ServerError."""
    sql = f"select * from pg_catalog.pg_replication_slots where slot_name = {connection.literal(name)}"
    for row in connection.query(sql):
        confirmed = row.get("confirmed_flush_lsn") or row.get("confirmed_flush")
        restart = row.get("restart_lsn")
        return Slot(
            name,
            row.get("plugin") or "",
            row.get("database") or "",
            row.get("active") == "t",
            lsn_value(confirmed) if confirmed else None,
            lsn_value(restart) if restart else None,
            row,
        )
    return None


def create_slot(connection: Connection, name: str, plugin: str, *, failover: bool = False) -> Slot:
    """Creates a logical slot. Raises ServerError, for example if there is a slot of this name.

    failover   whether standbys keep a copy of the slot, from PostgreSQL 17
    """
    arguments = f"{connection.literal(name)}, {connection.literal(plugin)}"
    more = ", failover => true" if failover else ""
    try:
        connection.query(f"select * from pg_catalog.pg_create_logical_replication_slot({arguments}{more})")
    except ServerError as error:
        raise ServerError(f"slot {name} was not created: {error}", sqlstate=error.sqlstate) from None
    slot = find_slot(connection, name)
    assert slot is not None, "it has just been created"
    return slot


def claim(connection: Connection, name: str) -> None:
    """Keeps other processes from a slot until the connection is closed. The server itself does so only for streams.

    Raises ServerError if another process keeps its claim for CLAIM_SECONDS, and Stopped.
    """
    key = int.from_bytes(sha256(f"wireformat {name}".encode()).digest()[:8], "big", signed=True)
    deadline = time.monotonic() + CLAIM_SECONDS
    while connection.query(f"select pg_catalog.pg_try_advisory_lock({key}) as claimed")[0]["claimed"] != "t":
        connection.check_stopped()
        if time.monotonic() >= deadline:
            raise ServerError(
                f"slot {name}: another process copies its tables, or reads it; stop one of them", is_temporary=True
            )
        time.sleep(_CLAIM_STEP_SECONDS)


def drop_slot(connection: Connection, name: str) -> None:
    """Drops a slot, and what the server has kept for it. Raises ServerError, for example if a connection uses it."""
    try:
        connection.query(f"select pg_catalog.pg_drop_replication_slot({connection.literal(name)})")
    except ServerError as error:
        raise ServerError(f"slot {name} was not dropped: {error}", sqlstate=error.sqlstate) from None


def retained_bytes(system: System, slot: Slot) -> int | None:
    """Returns how many bytes of log the server keeps for a slot; None if that is not known."""
    return None if slot.restart is None else max(system.flushed - slot.restart, 0)


def described(slot: Slot) -> str:
    """Returns a slot and the LSN that it has confirmed, for messages."""
    where = "nowhere" if slot.confirmed is None else lsn_text(slot.confirmed)
    return f"slot {slot.name} ({slot.plugin}, database {slot.database}, confirmed {where})"


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
