"""The commands for a live slot, with their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ..captures.capture_options import Folder, Keys, LakeFormat, PartitionBy, State, split_keys
from ..exits import exit_codes
from ..options import (
    Encoding,
    EncodingErrors,
    Json,
    Mode,
    Schemas,
    Tables,
    Threads,
    at_home,
    one_of,
    parse_schemas,
    parse_settings,
    split_lists,
    to_bytes,
)

Dsn = Annotated[
    str,
    typer.Argument(
        metavar="DSN",
        help="Connection string or URL of libpq, such as 'host=db dbname=shop user=reader' or service=shop. Keep the "
        "password in PGPASSFILE: others can see arguments.",
    ),
]
Slot = Annotated[str, typer.Option(metavar="NAME", help="Name of the slot.")]
Publication = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Publication, for pgoutput; repeatable."),
]
Driver = Annotated[
    str,
    typer.Option(metavar="psycopg|gaussdb", autocompletion=one_of("psycopg", "gaussdb"), help="Package that connects."),
]
Via = Annotated[
    str,
    typer.Option(
        metavar="streaming|sql",
        autocompletion=one_of("streaming", "sql"),
        help="A replication connection and START_REPLICATION, or only SQL functions.",
    ),
]
Plugin = Annotated[str, typer.Option(metavar="NAME", help="Output plugin of a new slot.")]
Lake = Annotated[
    str | None,
    typer.Option("--to", "-t", callback=at_home, metavar="FOLDER", help="The lake that the stream is to continue."),
]


def check(
    dsn: Dsn,
    slot: Slot,
    publication: Publication = None,
    to: Lake = None,
    via: Via = "streaming",
    driver: Driver = "psycopg",
    create_slot: Annotated[bool, typer.Option("--create-slot", help="Create the slot first.")] = False,
    drop_slot: Annotated[
        bool, typer.Option("--drop-slot", help="Drop the slot, and what the server has kept for it.")
    ] = False,
    plugin: Plugin = "pgoutput",
    failover: Annotated[bool, typer.Option("--failover", help="Standbys keep a copy of a new slot.")] = False,
    as_json: Json = False,
) -> None:
    """Check what a stream from a slot needs, and say what to do about what is missing."""
    if create_slot and drop_slot:
        raise typer.BadParameter("--create-slot and --drop-slot exclude each other")
    if failover and not create_slot:
        raise typer.BadParameter("--failover is for a new slot: add --create-slot")
    with exit_codes():
        from . import follow as command

        if drop_slot:
            command.drop(dsn, slot, via=via, driver=driver)
            return
        if create_slot:
            command.create(dsn, slot, plugin=plugin, failover=failover, via=via, driver=driver)
        command.check(dsn, slot=slot, publication=publication, folder=to, via=via, driver=driver, as_json=as_json)


def follow(
    dsn: Dsn,
    slot: Slot,
    to: Folder,
    publication: Publication = None,
    format: LakeFormat = "parquet",
    state: State = "changes",
    tables: Tables = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Copy the existing rows into a new lake first.")] = False,
    create_slot: Annotated[bool, typer.Option("--create-slot", help="Create the slot if it does not exist.")] = False,
    plugin: Plugin = "pgoutput",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the output plugin; repeatable.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop where the server's log ends now.")] = False,
    batch_mb: Annotated[float, typer.Option(metavar="MB", help="Write a batch when it has this size.")] = 16,
    batch_seconds: Annotated[float, typer.Option(metavar="S", help="Write a batch after this time at the latest.")] = 5,
    idle_seconds: Annotated[
        float, typer.Option(metavar="S", help="How often the position of an idle stream is written.")
    ] = 60,
    reconnect_seconds: Annotated[
        float, typer.Option(metavar="S", help="How long to try to connect again after a connection is lost.")
    ] = 300,
    metrics: Annotated[
        str | None,
        typer.Option(callback=at_home, metavar="FILE", help="Append JSON lines to a file; - is standard output."),
    ] = None,
    retained_alarm: Annotated[
        float | None, typer.Option(metavar="MB", help="Warn if the slot retains more of the server's log.")
    ] = None,
    keys: Keys = None,
    partition_by: PartitionBy = None,
    schema: Schemas = None,
    rejects: Annotated[
        str | None,
        typer.Option(
            callback=at_home,
            metavar="FOLDER",
            help="Folder for what cannot be read or does not fit; needs a --mode that keeps or skips it.",
        ),
    ] = None,
    mode: Mode = "FAILFAST",
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    threads: Threads = None,
    via: Via = "streaming",
    driver: Driver = "psycopg",
) -> None:
    """Write what a slot sends to a lake, until SIGTERM or Ctrl-C: the current batch is then finished."""
    with exit_codes():
        from . import follow as command

        command.follow(
            dsn,
            to,
            metrics=metrics,
            slot=slot,
            publication=publication,
            format=format,
            state=state,
            tables=split_lists(tables),
            snapshot=snapshot,
            create_slot=create_slot,
            plugin=plugin,
            options=parse_settings(option or ()),
            once=once,
            batch_bytes=to_bytes(batch_mb),
            batch_seconds=batch_seconds,
            idle_seconds=idle_seconds,
            reconnect_seconds=reconnect_seconds,
            retained_alarm=None if retained_alarm is None else to_bytes(retained_alarm),
            keys=split_keys(keys),
            schemas=parse_schemas(schema),
            partition_by=partition_by,
            rejects=rejects,
            mode=mode,
            encoding=encoding,
            encoding_errors=encoding_errors,
            threads=threads,
            via=via,
            driver=driver,
        )


EPILOGS: dict[Callable[..., None], str] = {
    check: "  wireformat check 'host=db dbname=shop user=reader' --slot lake --publication shop\n"
    "  wireformat check service=shop --slot lake --publication shop --to lake",
    follow: "  wireformat follow service=shop --slot lake --publication shop --to lake --create-slot --snapshot\n"
    "  wireformat follow service=shop --slot lake --publication shop --to lake --format delta --state latest --once",
}
"""The commands, with examples."""


def add_live_commands(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    for command, examples in EPILOGS.items():
        app.command(epilog=f"\b\nExamples:\n{examples}")(command)
