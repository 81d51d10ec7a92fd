"""The commands that read a stream as a whole, as a `wireformat.Capture`, and those for a live slot, with their options.

What they do is in `captures` and `follow`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..formats.registry import FORMATS
from .exits import exit_codes
from .options import (
    DEFAULT_FORMAT,
    STDOUT,
    Column,
    Columns,
    Dialect,
    Encoding,
    EncodingErrors,
    FormatName,
    Json,
    Mode,
    Schemas,
    Tables,
    Threads,
    To,
    at_home,
    choice,
    format_names,
    in_utf8,
    parse_columns,
    parse_schemas,
    parse_settings,
    split_lists,
    split_names,
    to_bytes,
)

Command = Callable[..., None]

OrderBy = Annotated[
    list[str] | None,
    typer.Option(
        callback=in_utf8,
        metavar="LIST",
        help="Columns that order the messages of all files; default: the files' names.",
    ),
]
TwoPhase = Annotated[
    str, choice("commit", "prepare", help="When a prepared transaction counts: committed, or prepared.")
]


def _shared(
    format: FormatName = DEFAULT_FORMAT,
    column: Column = None,
    order_by: OrderBy = None,
    mode: Mode = "FAILFAST",
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    dialect: Dialect = "postgresql",
    two_phase: TwoPhase = "commit",
    threads: Threads = None,
) -> None:
    """The options, with their defaults."""


def with_capture_options(*, before: str, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Returns a decorator that adds the options of a capture to those of a command, which takes them as `**options`.

    before    the parameter of the command before which the help shows them
    without   options that the command does not have, or has in a form of its own
    """

    def add(command: Command) -> Command:
        *own, _ = inspect.signature(command, eval_str=True).parameters.values()
        shared = inspect.signature(_shared, eval_str=True).parameters
        at = [parameter.name for parameter in own].index(before)
        added = [parameter for name, parameter in shared.items() if name not in without]
        command.__signature__ = inspect.Signature([*own[:at], *added, *own[at:]])  # type: ignore[attr-defined]
        return command

    return add


def capture_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a capture as `Capture` takes them. Raises BadParameter for a bad list of columns."""
    return {**given, "order_by": split_names(given["order_by"])}


Folder = Annotated[
    str, typer.Option("--to", "-t", callback=at_home, metavar="FOLDER", help="The folder of the lake, or a URI.")
]
LakeFormat = Annotated[str, choice("parquet", "delta", help="What to write.", names=["--format"])]
State = Annotated[str, choice("changes", "latest", help="All changes, or only the current rows.")]
PartitionBy = Annotated[
    str | None,
    typer.Option(callback=in_utf8, metavar="COLUMN", help="A column that all tables have, or commit_date."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        callback=in_utf8,
        metavar="TABLE=LIST",
        help="Key columns of a table, for --state latest; repeatable; empty: the whole row.",
    ),
]


_TABLE_KEYS = re.compile(r'((?:"[^"]*"|[^"])*)=((?:"[^"]*"|[^"=])*)', re.DOTALL)
"""A table and its key columns: up to the last equals sign outside of double quotes, and after it."""


def split_keys(given: list[str] | None) -> dict[str, list[str]] | None:
    """Returns the key columns of tables, each given as `table=column,column`; raises BadParameter."""
    if given is None:
        return None
    found = {}
    for text in given:
        parts = _TABLE_KEYS.fullmatch(text)
        if parts is None:
            raise typer.BadParameter(f"expected table=column,column, got {text!r}")
        table, keys = parts.groups()
        found[table] = (split_names([keys]) or []) if keys.strip() else []
    return found


ROWS = 50

Sources = Annotated[
    list[str],
    typer.Argument(
        callback=at_home,
        metavar="FILE...",
        help="Parquet files, files of messages, folders, patterns in quotes; - is standard input.",
    ),
]
Table = Annotated[
    str, typer.Argument(callback=in_utf8, metavar="TABLE", help="schema.table; names with a dot in double quotes.")
]
Result = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        callback=at_home,
        metavar="FILE",
        help="Output: .parquet, .arrow, .csv or .jsonl; - is standard output; default: a table on the screen.",
    ),
]
Rows = Annotated[int, typer.Option(metavar="N", min=1, help="How many rows the screen shows.")]


def _result(output: Path | None, to: str | None, as_json: bool) -> tuple[Path | None, str | None]:
    """Returns the output and its format; --json is short for lines of JSON on standard output."""
    if not as_json:
        if to is not None and output is None:
            raise typer.BadParameter(f"--to says what `-o -` writes: add `-o {STDOUT}`")
        return output, to
    if output is not None or to is not None:
        raise typer.BadParameter("--json is `-o - --to jsonl`: leave out -o and --to")
    return Path(STDOUT), "jsonl"


@with_capture_options(before="output", without=("two_phase",))
def tables(
    files: Sources,
    output: Result = None,
    to: To = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """List the tables of a stream: columns, types, keys, changes, and where they begin and end."""
    output, to = _result(output, to, as_json)
    with exit_codes():
        from . import captures as command

        command.tables(files, output, to=to, **capture_options(options))


@with_capture_options(before="output")
def typed(
    files: Sources,
    table: Table,
    output: Result = None,
    to: To = None,
    as_json: Json = False,
    rows: Rows = ROWS,
    schema: Columns = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Fill values that were not sent from the old row.")
    ] = False,
    **options: Any,
) -> None:
    """Print or write the committed changes of a table, with real column types."""
    output, to = _result(output, to, as_json)
    with exit_codes():
        from . import captures as command

        command.typed(
            files,
            table,
            output,
            to=to,
            rows=rows,
            schema=parse_columns(schema),
            complete=complete,
            **capture_options(options),
        )


@with_capture_options(before="output")
def latest(
    files: Sources,
    table: Table,
    output: Result = None,
    to: To = None,
    as_json: Json = False,
    rows: Rows = ROWS,
    schema: Columns = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(callback=in_utf8, metavar="LIST", help="Key columns; default: the replica identity."),
    ] = None,
    **options: Any,
) -> None:
    """Print or write the rows that a table has at the end of the stream."""
    output, to = _result(output, to, as_json)
    with exit_codes():
        from . import captures as command

        command.latest(
            files,
            table,
            output,
            to=to,
            rows=rows,
            schema=parse_columns(schema),
            keys=split_names(keys),
            **capture_options(options),
        )


@with_capture_options(before="as_json", without=("format",))
def write(
    files: Sources,
    to: Folder,
    lake_format: LakeFormat = "parquet",
    state: State = "changes",
    tables: Tables = None,
    partition_by: PartitionBy = None,
    keys: Keys = None,
    schema: Schemas = None,
    rejects: Annotated[
        str | None,
        typer.Option(
            callback=at_home,
            metavar="FILE",
            help="Parquet file for what cannot be read or does not fit; needs a --mode that keeps or skips it.",
        ),
    ] = None,
    go_on: Annotated[
        bool,
        typer.Option("--go-on", help="The messages begin where the lake ends; formats without LSNs need this."),
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            "--from",
            "-f",
            metavar="NAME",
            autocompletion=format_names,
            help="Format of the messages; `wireformat formats` lists them.",
        ),
    ] = DEFAULT_FORMAT,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Write all tables of a stream to a lake, one folder per table."""
    if lake_format in FORMATS:
        raise typer.BadParameter(f"--format is that of the lake, parquet or delta; pass --from {lake_format}")
    with exit_codes():
        from . import captures as command

        command.write(
            files,
            to,
            lake_format=lake_format,
            state=state,
            tables=split_lists(tables),
            partition_by=partition_by,
            keys=split_keys(keys),
            schemas=parse_schemas(schema),
            rejects=rejects,
            go_on=go_on,
            as_json=as_json,
            format=format,
            **capture_options(options),
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
Driver = Annotated[str, choice("psycopg", "gaussdb", help="Package that connects.")]
Via = Annotated[
    str, choice("streaming", "sql", help="A replication connection and START_REPLICATION, or only SQL functions.")
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
        position = None if to is None else command.end_of_lake(to)
        if create_slot:
            command.create(dsn, slot, plugin=plugin, failover=failover, via=via, driver=driver)
        command.check(
            dsn, slot=slot, publication=publication, position=position, via=via, driver=driver, as_json=as_json
        )


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
            batch_bytes=to_bytes("--batch-mb", batch_mb),
            batch_seconds=batch_seconds,
            idle_seconds=idle_seconds,
            reconnect_seconds=reconnect_seconds,
            retained_alarm=None if retained_alarm is None else to_bytes("--retained-alarm", retained_alarm),
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


EPILOGS: dict[Command, str] = {
    tables: "  wireformat tables capture.parquet\n  wireformat tables -f pgoutput captures/ -o tables.jsonl",
    typed: "  wireformat typed capture.parquet public.orders -o orders.parquet\n"
    "  wireformat typed -f sql-decoding capture.bin public.orders --schema 'id bigint, note text'",
    latest: "  wireformat latest capture.parquet public.orders --keys order_id",
    write: "  wireformat write captures/ --to lake\n"
    "  wireformat write --from pgoutput day*.parquet --to lake --format delta --state latest",
    check: "  wireformat check 'host=db dbname=shop user=reader' --slot lake --publication shop\n"
    "  wireformat check service=shop --slot lake --publication shop --to lake",
    follow: "  wireformat follow service=shop --slot lake --publication shop --to lake --create-slot --snapshot\n"
    "  wireformat follow service=shop --slot lake --publication shop --to lake --format delta --state latest --once",
}
"""The commands, with examples."""


def add_commands(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    for command, examples in EPILOGS.items():
        app.command(epilog=f"\b\nExamples:\n{examples}")(command)
