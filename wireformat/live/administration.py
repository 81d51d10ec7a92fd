"""Checks a slot, creates one, and drops one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import OptionError
from ..options.checks import flag, name, shown
from ..options.keywords import checks_keywords
from ..stream.capture_position import CapturePosition
from . import slots
from .checks.findings import Finding, Wanted
from .checks.server import all_findings
from .connection import Connection
from .plugins import publication_names
from .slots import telling_waits


@checks_keywords
def check(
    dsn: str,
    *,
    slot: str,
    publication: str | Iterable[str] | None = None,
    position: CapturePosition | None = None,
    via: str = "streaming",
    driver: str = "psycopg",
) -> list[Finding]:
    """Returns what keeps a stream from starting, and what may harm it later, each with what to do about it.

    position   where the stream is to continue, such as `wireformat.lake.position(folder)`

    The other options are those of `follow`. Raises ServerError if the connection fails, OptionError and MissingExtra.
    """
    if position is not None and not isinstance(position, CapturePosition):
        raise OptionError(f"option position: expected the position of a lake or a capture, got {shown(position)}")
    wanted = Wanted(name("slot", slot), publication_names(publication), position)
    with Connection(dsn, driver, via=via) as connection:
        return all_findings(connection, wanted, slots.find_system(connection), slots.find_slot(connection, slot))


@checks_keywords
def create_slot(
    dsn: str,
    slot: str,
    *,
    plugin: str = "pgoutput",
    failover: bool = False,
    via: str = "streaming",
    driver: str = "psycopg",
    on_wait: Callable[[str], Any] | None = None,
) -> None:
    """Creates a slot. From then on the server keeps its log until the slot is read or dropped.

    A new slot begins when all transactions that are open at that moment have ended, which may take long.

    failover   whether standbys keep a copy of the slot; needs PostgreSQL 17
    via        sql if no replication connection is available, as in `follow`
    on_wait    is called with a text that says what the server waits for, and again when that changes

    Raises ServerError, for example if the name is taken, OptionError and MissingExtra.
    """

    def connect() -> Connection:
        return Connection(dsn, driver, via=via)

    slot, plugin, failover = name("slot", slot), name("plugin", plugin), flag("failover", failover)
    with connect() as connection:
        if on_wait is not None:
            connection.on_wait = telling_waits(connection, connect, on_wait)
        slots.create_slot(connection, slot, plugin, failover=failover)


@checks_keywords
def drop_slot(dsn: str, slot: str, *, via: str = "streaming", driver: str = "psycopg") -> None:
    """Drops a slot. Changes that the server has kept for it are lost.

    via    sql if no replication connection is available, as in `follow`

    Raises ServerError, for example if the slot is in use, OptionError and MissingExtra.
    """
    slot = name("slot", slot)
    with Connection(dsn, driver, via=via) as connection:
        slots.drop_slot(connection, slot)
