"""The command `wireformat`: its commands and their options. What a command does is in the module of its name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ..formats.registry import all_rows
from .commands import add_commands
from .exits import catch_signals, exit_codes, prepare_streams
from .options import (
    DEFAULT_FORMAT,
    Column,
    Dialect,
    Encoding,
    EncodingErrors,
    Files,
    FormatName,
    GuessedFormat,
    Json,
    Kinds,
    Mode,
    Output,
    Tables,
    TablesInBytes,
    To,
    at_home,
    choice,
    format_names,
    in_utf8,
    parse_settings,
    split_kinds,
    split_lists,
    split_names,
)
from .screen import print_lines

app = typer.Typer(
    name="wireformat",
    help="Read logical-decoding streams of the PostgreSQL family.",
    epilog="Exit codes: 0 success; 1 bad data; 2 wrong usage, or a file that cannot be opened; 130 Ctrl-C.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def run() -> None:
    """Runs the command with the arguments of this process."""
    prepare_streams()
    catch_signals()
    try:
        with exit_codes():  # of help and version, which no command prints
            app(prog_name="wireformat")
    except typer.Exit as end:
        sys.exit(end.exit_code)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wireformat {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="\b\nExamples:\n"
    "  wireformat show capture.parquet | less\n"
    "  wireformat show --mode PERMISSIVE --tables 'public.*' day1.bin day2.bin\n"
    "  wireformat show --encoding gbk - < capture.bin"
)
def show(
    files: Files,
    format: GuessedFormat = None,
    column: Column = None,
    mode: Mode = "FAILFAST",
    tables: TablesInBytes = None,
    kinds: Kinds = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Encoding of the server. By default, bytes are printed as they are."),
    ] = None,
    encoding_errors: EncodingErrors = "strict",
    dialect: Dialect = "postgresql",
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Keep printing what is appended to the last file of messages.")
    ] = False,
    pager: Annotated[bool, typer.Option("--pager", help="Show the output in $PAGER, or in less.")] = False,
) -> None:
    """Print one line per record, as the openGauss client does."""
    with exit_codes():
        from . import show as command

        command.show(
            files,
            format=format,
            column=column,
            mode=mode,
            tables=split_lists(tables),
            kinds=split_kinds(kinds),
            encoding=encoding,
            encoding_errors=encoding_errors,
            dialect=dialect,
            follow=follow,
            pager=pager and not follow,
        )


@app.command(
    epilog="\b\nExamples:\n"
    "  wireformat inspect capture.parquet\n"
    "  wireformat inspect --message 7 --record 0 day1.bin\n"
    "  wireformat inspect --scan tail.bin\n"
    "  wireformat inspect --html capture.html --records 0-99,5000 capture.parquet"
)
def inspect(
    file: Annotated[
        str,
        typer.Argument(
            callback=at_home, metavar="FILE", help="A Parquet file, or a file of messages; - is standard input."
        ),
    ],
    message: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Which message, from 0 on; default: 0.")
    ] = None,
    record: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Which record of the message, from 0 on; default: all.")
    ] = None,
    format: GuessedFormat = None,
    at: Annotated[
        int | None, typer.Option(metavar="BYTE", min=0, help="Where the message begins in a file of messages.")
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="Find records in bytes whose beginning is missing, from --at on.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            callback=at_home,
            metavar="FILE",
            help="Write a page that shows all records of FILE, and trees; - is standard output.",
        ),
    ] = None,
    records: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Records that get a tree on the page, such as 0-99,500; 2,000 at most."),
    ] = None,
    as_json: Json = False,
    column: Column = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    dialect: Dialect = "postgresql",
) -> None:
    """Print the bytes of a message beside what they mean, field by field."""
    with exit_codes():
        options = {"encoding": encoding, "encoding_errors": encoding_errors, "dialect": dialect}
        chosen = {"--message": message, "--record": record, "--at": at, "--scan": scan or None}
        if html is not None:
            _exclude("--html, a page of the whole file,", {**chosen, "--json": as_json or None})
            from .page import write_page

            write_page(file, html, format=format, column=column, records=records, **options)
            return
        if records is not None:
            raise typer.BadParameter("--records chooses the trees of a page: it needs --html")
        if at is not None or scan:
            _exclude("--at and --scan, which read bytes,", {"--message": message})
        from . import tree as command

        command.inspect(
            file,
            format=format,
            column=column,
            message=message or 0,
            record=record,
            at=at,
            scan=scan,
            as_json=as_json,
            **options,
        )


def _exclude(option: str, others: Mapping[str, object]) -> None:
    """Raises BadParameter if one of the other options was given, whose value is then not None."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{option} cannot be combined with {' and '.join(given)}")


@app.command(
    epilog="\b\nExamples:\n"
    "  wireformat decode capture.parquet -o changes.parquet\n"
    "  wireformat decode --tables public.orders --columns lsn,kind,new,old day*.bin -o orders.parquet\n"
    "  wireformat decode --mode PERMISSIVE --encoding gbk - -o changes.parquet < capture.bin\n"
    "  wireformat decode --columns kind,new capture.parquet -o - --to jsonl | head"
)
def decode(
    files: Files,
    output: Output,
    to: To = None,
    format: FormatName = DEFAULT_FORMAT,
    column: Column = None,
    mode: Mode = "FAILFAST",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            callback=in_utf8, metavar="LIST", help="Columns of the table, such as lsn,kind,new; default: all."
        ),
    ] = None,
    tables: Tables = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    dialect: Dialect = "postgresql",
    heartbeat_unit: Annotated[
        str | None,
        choice("s", "ms", "us", help="Unit of the time in heartbeats; default: guessed from its size."),
    ] = None,
) -> None:
    """Write the row-change table, one row per record."""
    with exit_codes():
        from . import decoding as command

        command.decode(
            files,
            output,
            to=to,
            format=format,
            column=column,
            mode=mode,
            columns=split_names(columns),
            tables=split_lists(tables),
            kinds=split_kinds(kinds),
            encoding=encoding,
            encoding_errors=encoding_errors,
            dialect=dialect,
            heartbeat_unit=heartbeat_unit,
        )


@app.command(
    epilog="\b\nExamples:\n"
    "  wireformat convert --to gaussdb-binary --option sending-batch=1 capture.parquet -o batched.parquet\n"
    "  wireformat convert --skip --format gaussdb-binary --to mppdb-json day1.bin -o serial.parquet"
)
def convert(
    files: Files,
    output: Output,
    to: Annotated[
        str, typer.Option("--to", "-t", metavar="NAME", autocompletion=format_names, help="The format to write.")
    ],
    format: FormatName = DEFAULT_FORMAT,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Server option for writing, such as sending-batch=1; repeatable."),
    ] = None,
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out what the format cannot express, instead of writing nothing.")
    ] = False,
    column: Column = None,
    mode: Mode = "FAILFAST",
    tables: Tables = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    dialect: Dialect = "postgresql",
) -> None:
    """Write the records in another format, as a table with the columns seq and payload."""
    with exit_codes():
        from . import convert as command

        command.convert(
            files,
            output,
            format=format,
            to=to,
            given=parse_settings(option or ()),
            skip=skip,
            column=column,
            mode=mode,
            tables=split_lists(tables),
            kinds=split_kinds(kinds),
            encoding=encoding,
            encoding_errors=encoding_errors,
            dialect=dialect,
        )


add_commands(app)


@app.command()
def formats(
    as_json: Json = False,
) -> None:
    """List the formats."""
    with exit_codes():
        rows = all_rows()
        if as_json:
            print_lines({"name": row.name, "sentence": row.sentence} for row in rows.values())
            return
        width = max(map(len, rows))
        for row in rows.values():
            typer.echo(f"{row.name:{width}}  {row.sentence}")


@app.command(
    epilog="\b\nExamples:\n"
    "  wireformat options\n"
    "  wireformat options --check parallel-decode-num=4 sending-batch=1 'white-table-list=public.*'\n"
    "  wireformat options --check --plugin sql_decoding --via sql skip-empty-xacts=on"
)
def options(
    settings: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Options to check.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Explain these options instead of printing the table.")
    ] = False,
    plugin: Annotated[str, typer.Option(metavar="NAME", help="Output plugin of the slot.")] = "mppdb_decoding",
    product: Annotated[
        str,
        choice("GaussDB", "openGauss", help="The server."),
    ] = "GaussDB",
    via: Annotated[
        str,
        choice("streaming", "sql", "area", help="How the slot is read: START_REPLICATION or an SQL function."),
    ] = "streaming",
    max_process_memory: Annotated[
        int | None, typer.Option(metavar="MB", help="Memory of the server; two ranges depend on it.", min=1)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the logical-decoding options of GaussDB and openGauss, or check some."""
    with exit_codes():
        from . import server_options as command

        if check:
            command.print_check(
                settings or (),
                plugin=plugin,
                product=product,
                via=via,
                max_process_memory_mb=max_process_memory,
                as_json=as_json,
            )
        elif settings:
            raise typer.BadParameter("options to check need --check")
        else:
            command.print_table(as_json=as_json)
