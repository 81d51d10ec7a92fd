"""A live slot: a replication connection to a server, and what it sends, in a lake.

A slot is checked, created, followed and dropped.

driver, connection    psycopg or gaussdb; queries, and the replication protocol
plugins               what each output plugin is asked for
messages, intake      messages as Arrow arrays or in a file, received by a thread or by SQL functions
transaction_ends      where whole transactions end
batches               whole transactions, by size and time; larger ones in a file
snapshot              the rows that tables have before their changes
slots, checks         slots of a server; what must be right before a stream starts, in a folder
sink                  the lake
follower              a run of `follow`, from a slot to a lake, which connects again or gives up
progress              how far a run has come, and what the server says meanwhile
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import OptionError
from ..lake.options import LakeOptions
from ..options import ReadOptions
from ..options.checks import amount, flag, mapping, name, number, one_of, shown
from ..options.gaussdb import FOLLOWED_VIA
from ..options.keywords import checks_keywords
from ..stream.capture_position import CapturePosition
from . import slots
from .checks.findings import Finding, Wanted
from .checks.server import all_findings
from .connection import Connection
from .follower import Follower, Retries, RunOptions
from .plugins import publication_names
from .progress import Progress, Reports
from .sink import Sink
from .slots import telling_waits

__all__ = ["Finding", "Progress", "check", "create_slot", "drop_slot", "follow"]


def __dir__() -> list[str]:
    return sorted(__all__)


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


@checks_keywords
def follow(
    dsn: str,
    to: Any,
    *,
    slot: str,
    publication: str | Iterable[str] | None = None,
    format: str = "parquet",
    state: str = "changes",
    tables: Iterable[str] | None = None,
    snapshot: bool = False,
    create_slot: bool = False,
    plugin: str = "pgoutput",
    options: Mapping[str, Any] | None = None,
    once: bool = False,
    batch_bytes: int = 16 << 20,
    batch_seconds: float = 5.0,
    idle_seconds: float = 60.0,
    memory_limit: int = 96 << 20,
    reconnect_seconds: float = 300.0,
    retained_alarm: int | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    stop: threading.Event | None = None,
    via: str = "streaming",
    driver: str = "psycopg",
    mode: str = "FAILFAST",
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    threads: int | None = None,
    partition_by: str | Mapping[str, str] | None = None,
    keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    schemas: Mapping[str, Any] | None = None,
    rejects: str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, str] | None = None,
) -> CapturePosition:
    """Writes the changes of a slot to a lake of typed tables until `stop` is set; returns the lake's position.

    dsn                connection string or URL of libpq; `service=…` and PGPASSFILE work
    to                 the folder of the lake, or a URI. An existing lake of this slot is continued
    slot               the name of the slot
    publication        the name of a publication, or several names; needed by pgoutput
    format, state      of the lake, see `Capture.write`: parquet or delta; changes or latest (only delta)
    tables             patterns `schema.table`: only these tables
    snapshot           a new lake begins with the existing rows of the tables. If a run was stopped before all were
                       copied, the next run continues in any case
    create_slot        a missing slot is created, with this `plugin`
    options            of the plugin, in place of the usual ones; those of GaussDB are checked by `Options.gaussdb`
    once               stop where the server's log ended at the start
    batch_bytes, batch_seconds   a batch is written when it has this size, or its first message has waited this long
    idle_seconds       how often the position of an idle stream is written, so that the server can forget its log
    memory_limit       the number of bytes of a batch that stay in memory: waiting messages, and rows of a transaction.
                       The rest go to temporary files
    reconnect_seconds  how long to retry after a connection is lost
    retained_alarm     if the slot retains more bytes of log than this, progress reports it
    on_progress        is called with a `Progress` after each batch, and while nothing arrives
    stop               when it is set, the current batch is finished; a table that is being copied begins again later
    via                streaming, or sql: if START_REPLICATION is not available, SQL functions peek at the slot
    driver             psycopg, or gaussdb for GaussDB's own authentication
    rejects            a folder for what cannot be read or does not fit, a file for each batch; see `Capture.write`

    The other options are those of `Capture` and of `Capture.write`. Raises ServerError if the slot cannot continue
    where the lake ends, OptionError, MissingExtra, OSError, and what reading raises. docs/live.md explains it.
    """
    stop = stop or threading.Event()
    names = publication_names(publication)
    if (format, state) == ("parquet", "latest"):
        raise OptionError("option state: latest needs format='delta': Parquet files cannot be merged")
    patterns = ReadOptions.check(tables=tables).tables
    memory = number("memory_limit", memory_limit, 0)
    lake_options = LakeOptions.check(
        format=format,
        state=state,
        tables=patterns,
        partition_by=partition_by,
        keys=keys,
        schemas=schemas,
        rejects=rejects,
        filesystem=filesystem,
        storage_options=storage_options,
        mode=mode,
        is_batch=True,
        publications=names,
        durable=True,  # the server removes the log that is reported as safe
    )
    reading = {
        "mode": mode,
        "encoding": encoding,
        "encoding_errors": encoding_errors,
        "threads": threads,
        "memory_limit": memory // 6,  # for open transactions, and again for what is being written
    }
    run_options = RunOptions(
        slot=name("slot", slot),
        publications=names,
        plugin=name("plugin", plugin),
        plugin_options=mapping("option options", options),
        creates_slot=create_slot,
        snapshot=snapshot,
        once=once,
        via=one_of("via", via, FOLLOWED_VIA),
        batch_bytes=number("batch_bytes", batch_bytes, 1),
        batch_seconds=amount("batch_seconds", batch_seconds),
        memory_bytes=memory // 3,
        idle_seconds=amount("idle_seconds", idle_seconds),
    )

    def connect() -> Connection:
        return Connection(dsn, driver, via=via, stop=stop)

    alarm = None if retained_alarm is None else number("retained_alarm", retained_alarm, 0)
    reports = Reports(connect, slot, on_progress or (lambda progress: None), Progress(retained_alarm=alarm))
    retries = Retries(amount("reconnect_seconds", reconnect_seconds))
    return Follower(run_options, connect, Sink(to, lake_options, reading, patterns), stop, reports, retries).run()
