"""Whether a slot can continue where a stream ended, without a gap."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ServerError
from ...lsn import lsn_text
from ...stream.capture_position import CapturePosition
from ..connection import Connection
from ..slots import Slot, System, find_slot
from .findings import Finding, Wanted


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
        yield _finding(position, wanted, system, slot)


def _finding(position: CapturePosition, wanted: Wanted, system: System, slot: Slot | None) -> Finding:
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
