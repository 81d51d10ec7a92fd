"""The commands that read a stream as a whole, with their options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ...formats.registry import FORMATS
from ..exits import exit_codes
from ..options import (
    DEFAULT_FORMAT,
    STDOUT,
    Columns,
    Json,
    Schemas,
    Tables,
    at_home,
    format_names,
    in_utf8,
    one_of,
    parse_columns,
    parse_schemas,
    split_lists,
    split_names,
)
from .capture_options import (
    Folder,
    Keys,
    LakeFormat,
    PartitionBy,
    State,
    capture_options,
    split_keys,
    with_capture_options,
)

ROWS = 50

Sources = Annotated[
    list[str],
    typer.Argument(
        callback=at_home,
        metavar="FILE...",
        help="Parquet files, files of messages, folders, patterns in quotes; - is standard input.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        callback=at_home,
        metavar="FILE",
        help="A Parquet file, a file of messages, a folder, or a pattern in quotes; - is standard input.",
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
To = Annotated[
    str | None,
    typer.Option(
        metavar="csv|jsonl|arrow", autocompletion=one_of("csv", "jsonl", "arrow"), help="Format that -o - writes."
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
        from . import tables as command

        command.tables(files, output, to=to, **capture_options(options))


@with_capture_options(before="output")
def typed(
    file: Source,
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
        from . import tables as command

        command.typed(
            [file],
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
    file: Source,
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
        from . import tables as command

        command.latest(
            [file],
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
        from . import write as command

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


EPILOGS: dict[Callable[..., None], str] = {
    tables: "  wireformat tables capture.parquet\n  wireformat tables -f pgoutput captures/ -o tables.jsonl",
    typed: "  wireformat typed capture.parquet public.orders -o orders.parquet\n"
    "  wireformat typed -f sql-decoding capture.bin public.orders --schema 'id bigint, note text'",
    latest: "  wireformat latest capture.parquet public.orders --keys order_id",
    write: "  wireformat write captures/ --to lake\n"
    "  wireformat write --from pgoutput day*.parquet --to lake --format delta --state latest",
}
"""The commands, with examples."""


def add_commands(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    for command, examples in EPILOGS.items():
        app.command(epilog=f"\b\nExamples:\n{examples}")(command)
