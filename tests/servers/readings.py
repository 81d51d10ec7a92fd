"""The ways in which a server's changes are read: slots, and option sets of the plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import psycopg

from .workload import PUBLICATION


class Payload(NamedTuple):
    """One message as the server gives it."""

    lsn: str
    xid: int
    data: bytes


@dataclass(frozen=True)
class Reading:
    """A name, a plugin, its options, whether the slot is one for two phases, and since which version it exists."""

    name: str
    plugin: str
    options: dict[str, str] = field(hash=False)
    two_phase: bool = False
    since: int = 14
    live: bool = False
    """Whether it reads over a replication connection while the tables change, from a slot of its own."""

    @property
    def slot(self) -> str:
        """The slot that it reads; readings with the same needs share one."""
        return f"{self.plugin}_{'two_phase' if self.two_phase else 'plain'}{'_live' if self.live else ''}"


PROTOCOLS: dict[str, tuple[dict[str, str], bool, int]] = {
    "1": ({"proto_version": "1"}, False, 14),
    "2": ({"proto_version": "2", "streaming": "on"}, False, 14),
    "3": ({"proto_version": "3", "two_phase": "on"}, True, 15),
    "3-streaming": ({"proto_version": "3", "streaming": "on", "two_phase": "on"}, True, 15),
    "4": ({"proto_version": "4", "streaming": "parallel"}, False, 16),
    "4-two-phase": ({"proto_version": "4", "streaming": "parallel", "two_phase": "on", "origin": "any"}, True, 16),
}
"""Versions of pgoutput's protocol: options, whether there are two phases, since which server version."""

TEXTS: dict[str, tuple[dict[str, str], bool]] = {
    "plain": ({}, False),
    "no-xids": ({"include-xids": "off"}, False),
    "timestamps": ({"include-timestamp": "on"}, False),
    "skip-empty": ({"skip-empty-xacts": "on"}, False),
    "streaming": ({"stream-changes": "on"}, False),
    "two-phase": ({}, True),
    "all": ({"include-timestamp": "on", "skip-empty-xacts": "on", "stream-changes": "on"}, True),
}
"""Option sets of test_decoding, and whether there are two phases."""


def _readings() -> Iterator[Reading]:
    always = {"publication_names": PUBLICATION, "messages": "true"}
    for name, (options, two_phase, since) in PROTOCOLS.items():
        for binary in ("false", "true"):
            suffix = "-binary" if binary == "true" else ""
            yield Reading(
                f"pgoutput-{name}{suffix}", "pgoutput", options | always | {"binary": binary}, two_phase, since
            )
    for name, (options, two_phase) in TEXTS.items():
        yield Reading(f"test-decoding-{name}", "test_decoding", options, two_phase)


READINGS = tuple(_readings())
LIVE = replace(next(one for one in READINGS if one.name == "pgoutput-4-two-phase"), name="pgoutput-live", live=True)


def readings_of(version: int, *, test_decoding: bool) -> tuple[Reading, ...]:
    """The readings that a server allows."""
    return tuple(
        one for one in (*READINGS, LIVE) if version >= one.since and (test_decoding or one.plugin == "pgoutput")
    )


def create_slots(session: psycopg.Connection[Any], readings: Sequence[Reading]) -> None:
    """Make the slots of the readings; changes are kept for them from here on."""
    for slot, plugin, two_phase in sorted({(one.slot, one.plugin, one.two_phase) for one in readings}):
        create = "select pg_create_logical_replication_slot(%s, %s, false, %s)"
        session.execute(create, (slot, plugin, two_phase))


def peek(session: psycopg.Connection[Any], reading: Reading) -> list[Payload]:
    """All messages of a reading, from the making of the slot; the slot stays where it is.

    For the live one too, as it would have come later: without the envelopes, and with no transaction in progress.
    """
    options = [part for pair in reading.options.items() for part in pair]
    query = """select lsn::text, xid::text::bigint, data
        from pg_logical_slot_peek_binary_changes(%s, null, null, variadic %s)"""
    return [Payload(*row) for row in session.execute(query, (reading.slot, options))]
