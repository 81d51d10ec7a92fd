"""The slots of a server: their facts; they are created and dropped only on request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ServerError
from ..lsn import lsn_text, lsn_value
from .connection import Connection

CLAIM_SECONDS = 5.0
"""How long a server may take to notice that the process that read a slot is gone."""

_CLAIM_STEP_SECONDS = 0.1


class System(NamedTuple):
    """A server.

    system     its system identifier
    timeline   of its log, which changes when a standby is promoted; 0 if it is not known
    flushed    the end of its log: on disk, or only written by SQL functions of GaussDB; see `end_on_disk`
    database   the database of the connection
    is_standby   whether it follows another server
    ended      where its log has left earlier timelines
    """

    system: str
    timeline: int
    flushed: int
    database: str
    is_standby: bool = False
    ended: Mapping[int, int] = MappingProxyType({})

    def end_of(self, timeline: int) -> int | None:
        """Returns where its log has left a timeline; None if it has not, or if that is not known.

        A timeline on which it never was has ended at 0.
        """
        if not timeline or not self.timeline or timeline == self.timeline:
            return None
        return self.ended.get(timeline, 0)


class Slot(NamedTuple):
    """A slot.

    confirmed   the server sends transactions that end after it
    restart     the server keeps its log from there
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
    def is_lost(self) -> str | None:
        """Why the slot cannot be used any more; None if it can."""
        if self.facts.get("invalidation_reason"):
            return self.facts["invalidation_reason"]
        if self.facts.get("wal_status") == "lost":
            return "wal_removed"
        return "a conflict on a standby" if self.facts.get("conflicting") == "t" else None


def find_system(connection: Connection) -> System:
    """Returns the facts about the server."""
    (recovery,) = connection.query("select pg_catalog.pg_is_in_recovery() as standby")
    is_standby = recovery["standby"] == "t"  # asked first: if it is promoted now, its timeline is said not to be known
    (row,) = connection.query("IDENTIFY_SYSTEM" if connection.replicates else _sql(connection, is_standby))
    timeline = int(row["timeline"] or 0)
    ended = None if is_standby else _ended_timelines(connection, timeline)  # a standby may change its own any time
    return System(
        row["systemid"] or "",
        0 if ended is None else timeline,
        lsn_value(row["xlogpos"] or "0/0"),
        row.get("dbname") or "",
        is_standby,
        ended or {},
    )


def _ended_timelines(connection: Connection, timeline: int) -> dict[int, int] | None:
    """Returns where earlier timelines ended; None if the server does not say it."""
    if not connection.replicates or connection.version < 10:
        return None
    if timeline < 2:
        return {}
    try:
        (row,) = connection.query(f"TIMELINE_HISTORY {timeline}")
    except ServerError as error:
        if error.sqlstate is None:
            raise
        return None  # its file has been removed
    lines = (line.split() for line in (row["content"] or "").splitlines())
    return {int(line[0]): lsn_value(line[1]) for line in lines if len(line) > 1 and line[0].isdigit()}


def _sql(connection: Connection, is_standby: bool) -> str:
    """Returns a query that gives what IDENTIFY_SYSTEM gives, on a connection without replication.

    The log of a standby ends where its SQL functions read to: what it has received and not replayed comes later.
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
    """Returns up to where a server's log is on disk, on a connection without replication; None if it does not say it.

    SQL functions that look at a slot read up to there. What GaussDB and openGauss call the current location is what has
    been written, a moment before it is on disk: a transaction between the two is not found by a look, and must not be
    confirmed with it. Source: openGauss-server 7e1fc94a, pg_current_xlog_location of xlogfuncs.cpp takes
    LogwrtResult.Write, pg_logical_slot_get_changes_guts of logicalfuncs.cpp LogwrtResult.Flush, as does
    gs_walwriter_flush_position of pgxlogstatfuncs.cpp, which is there from catalog version 92602 on.
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
    """Returns a slot; None if it does not exist."""
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

    failover   standbys keep a copy of it, from PostgreSQL 17
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
    """Keeps others from a slot until the connection is closed: the server does so only while it streams.

    Raises ServerError if another process has claimed it.
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
    """Returns how much log the server keeps for a slot."""
    return None if slot.restart is None else max(system.flushed - slot.restart, 0)


def described(slot: Slot) -> str:
    """Returns where a slot is, for messages."""
    where = "nowhere" if slot.confirmed is None else lsn_text(slot.confirmed)
    return f"slot {slot.name} ({slot.plugin}, database {slot.database}, confirmed {where})"
