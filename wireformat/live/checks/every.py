"""All checks, one after the other."""

from __future__ import annotations

from ..connection import Connection
from ..slots import Slot, System
from .findings import Finding, Wanted
from .position import position_findings
from .publications import publication_findings
from .server import free_slot_findings, server_findings, slot_findings


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
