"""All checks, and those of the server, of the slot, and of where it continues."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ServerError, counted
from ...lsn import lsn_text
from ...stream.capture_position import CapturePosition
from ..connection import Connection
from ..plugins import CSN_ORDER, READ
from ..slots import Slot, System, described, find_slot, retained_bytes
from .findings import Finding, Wanted
from .publications import publication_findings


def all_findings(connection: Connection, wanted: Wanted, system: System, slot: Slot | None) -> list[Finding]:
    """Returns what all checks find. Raises ServerError if the connection is lost."""
    found = [
        *server_findings(connection, system),
        *slot_findings(wanted, slot, system),
        *position_findings(wanted.position, wanted, system, slot),
    ]
    if wanted.copied is not None:
        found += free_slot_findings(connection, wanted, slot)
    if wanted.publications and (slot is None or slot.plugin == "pgoutput"):
        found += publication_findings(connection, wanted)
    return found


def server_findings(connection: Connection, system: System) -> Iterator[Finding]:
    """Yields whether the server decodes its log, and in which encoding it sends texts. Raises ServerError."""
    level = _setting(connection, "wal_level")
    if level == "logical":
        yield Finding("ok", "wal_level", "logical")
    else:
        yield Finding(
            "error",
            "wal_level",
            f"expected logical, got {level}",
            "ALTER SYSTEM SET wal_level = logical, and restart the server",
        )
    encoding = _setting(connection, "server_encoding")
    if encoding == "SQL_ASCII":
        yield Finding(
            "warning",
            "encoding",
            "the database is SQL_ASCII: the server does not know the encoding of its texts, and converts none",
            "pass --encoding with the encoding that its clients write, or --encoding-errors replace",
        )
    else:
        yield Finding("ok", "encoding", f"{encoding}, sent as UTF8")
    if system.is_standby and 10 <= connection.version < 16:
        yield Finding("error", "server", "a standby, and only PostgreSQL 16 and newer decode there", "use the primary")
    elif system.is_standby:
        yield Finding("note", "server", "a standby: its slots are lost if the primary's wal_level changes")


def slot_findings(wanted: Wanted, slot: Slot | None, system: System) -> Iterator[Finding]:
    """Yields whether the slot exists, can be read from here, and is not in use."""
    if slot is None:
        if wanted.creates_slot:
            yield Finding("note", "slot", f"{wanted.slot} does not exist, and will be created")
        else:
            yield Finding(
                "error",
                "slot",
                f"{wanted.slot} does not exist",
                "" if wanted.position is not None else wanted.keeper.new_slot,
            )
        return
    if slot.facts.get("slot_type") == "physical":
        yield Finding("error", "slot", f"{slot.name} is a physical slot", "name a logical one")
        return
    if slot.plugin not in READ:
        yield Finding("error", "plugin", f"the plugin {slot.plugin} is not supported", f"use one of {', '.join(READ)}")
    if slot.is_in_csn_order:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is in CSN order: {CSN_ORDER}",
            "unless another program reads it, drop it with `wireformat check --drop-slot`: it retains log; create one "
            "in LSN order on a data node: pg_create_logical_replication_slot(name, plugin, 0)",
        )
    if slot.facts.get("two_phase") == "t":
        yield Finding(
            "error",
            "slot",
            f"{slot.name} was created with two_phase: the server sends a prepared transaction before it is committed, "
            "and not again when it is",
            "create a slot without two_phase",
        )
    if slot.plugin == "pgoutput" and not wanted.publications:
        yield Finding("error", "publication", "pgoutput needs one", "pass --publication")
    if slot.database != system.database:
        yield Finding(
            "error",
            "database",
            f"{slot.name} is a slot of database {slot.database}, this connection is to {system.database}",
            f"connect to dbname={slot.database}",
        )
    lost = slot.loss
    if lost is not None:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is lost: {lost}",
            "the server has removed the log that it needs: drop it with `wireformat check --drop-slot`, and "
            f"{wanted.keeper.lost}",
        )
    elif slot.is_active:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is active: process {slot.facts.get('active_pid')} of the server sends it to another reader",
            "stop the other reader; after a crash the server notices within wal_sender_timeout",
            passes=True,
        )
    else:
        yield Finding("ok", "slot", described(slot))
    yield from _retention(slot, system)


def _retention(slot: Slot, system: System) -> Iterator[Finding]:
    """Yields how much log the server keeps for a slot, and what may end that."""
    kept = retained_bytes(system, slot)
    if kept is not None:
        yield Finding("ok", "retained", f"the server keeps {kept / 1e6:.1f} MB of its log for the slot")
    status = slot.facts.get("wal_status")
    if status == "extended":
        yield Finding("note", "retained", "wal_status is extended: the server keeps more log than max_wal_size")
    elif status == "unreserved":
        yield Finding(
            "warning",
            "retained",
            "wal_status is unreserved: the slot needs more log than max_slot_wal_keep_size lets the server keep",
            "read it soon: the next checkpoint may remove the log, and the slot is then lost",
        )
    if slot.facts.get("failover") == "f":
        yield Finding(
            "note",
            "failover",
            "the slot is not copied to standbys: after a failover it is gone",
            "create it with failover if there are standbys",
        )


def free_slot_findings(connection: Connection, wanted: Wanted, slot: Slot | None) -> Iterator[Finding]:
    """Yields an error if the server has no free slot for a snapshot. Raises ServerError.

    Without this check, `follow` would create the slot of the stream, fail to create the temporary one, and leave the
    first one behind.
    """
    needed = 2 if slot is None and wanted.creates_slot else 1
    rows = connection.query(
        "select setting::int - (select count(*) from pg_catalog.pg_replication_slots) as free "
        "from pg_catalog.pg_settings where name = 'max_replication_slots'"
    )
    free = min((int(row["free"] or 0) for row in rows), default=needed)
    if free < needed:
        yield Finding(
            "error",
            "max_replication_slots",
            f"{counted(free, 'slot')} free, the snapshot needs {needed}, one of them for a while",
            "drop a slot that is not used, or raise max_replication_slots and restart the server",
            passes=True,
        )


def _setting(connection: Connection, name: str) -> str | None:
    return next(iter(connection.query(f"SHOW {name}")[0].values()))


def check_start(connection: Connection, name: str, lsn: int) -> None:
    """Raises ServerError if a slot whose stream has just been started begins after an LSN.

    connection   a connection other than that of the stream

    Before the stream starts, another client may advance the slot, or drop it and create it again. The server then
    starts at a later LSN and does not say so. Once the stream runs, only its reader moves the slot.
    """
    slot = find_slot(connection, name)
    if slot is None or (slot.confirmed is not None and slot.confirmed > lsn):
        raise ServerError(
            f"position: another reader advanced slot {name} while the stream started: try again; the check will then "
            "report what is missing",
            is_temporary=True,
        )


def position_findings(
    position: CapturePosition | None, wanted: Wanted, system: System, slot: Slot | None
) -> Iterator[Finding]:
    """Yields whether the slot continues at a position without a gap; nothing if there is no position."""
    if position is not None:
        yield _position_finding(position, wanted, system, slot)


def _position_finding(position: CapturePosition, wanted: Wanted, system: System, slot: Slot | None) -> Finding:
    noun, anew = wanted.keeper.noun, wanted.keeper.anew

    def error(text: str, advice: str, *, passes: bool = False) -> Finding:
        return Finding("error", "position", f"the {noun} {text}", advice, passes)

    at = position.slot
    if at is None:
        return error("was not written from a slot", anew)
    if at.system != system.system:
        return error(
            f"was read from system {at.system}, this server is system {system.system}",
            f"connect to the server that it was read from, or {anew}",
        )
    if at.slot != wanted.slot:
        return error(
            f"was read from slot {at.slot}, not from {wanted.slot}", f"{wanted.keeper.slot} {at.slot}, or {anew}"
        )
    ends = f"ends at {lsn_text(at.lsn)}"
    gap = f"the {noun} lacks what happened between: {anew}"
    whole_log = f"connect to the server that has the whole log, or {anew}"
    left = system.end_of(at.timeline)
    if slot is None:
        return error(f"{ends}, but its slot no longer exists", gap)
    if slot.confirmed is not None and at.lsn < slot.confirmed:
        return error(
            f"{ends}, the slot begins at {lsn_text(slot.confirmed)}: it was advanced by another client, or dropped and "
            "created again",
            gap,
        )
    if is_behind(position, system):
        return error(
            f"{ends}, the standby's log ends at {lsn_text(system.flushed)}",
            "wait until it has received and replayed the primary's log; if it stays behind, connect to the server that "
            "the stream was read from",
            passes=True,
        )
    if at.lsn > system.flushed:
        return error(
            f"{ends}, the server's log ends at {lsn_text(system.flushed)}: it was restored from a backup, or was a "
            "standby that lacked the end",
            whole_log,
        )
    if left is not None and at.lsn > left:
        return error(
            f"{ends} of timeline {at.timeline}, which the server's log has left at {lsn_text(left)}, for timeline "
            f"{system.timeline}: a standby was promoted that lacked the end, and the {noun} has changes that were lost "
            "there",
            whole_log,
        )
    return Finding("ok", "position", f"continues at {lsn_text(at.lsn)}")


def is_behind(position: CapturePosition, system: System) -> bool:
    """Whether a server is a standby that has not yet received or replayed the log before a position."""
    there = position.slot
    return there is not None and there.system == system.system and system.is_standby and there.lsn > system.flushed
