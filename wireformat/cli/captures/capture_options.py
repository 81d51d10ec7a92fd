"""The options of captures, which the commands that read a stream as a whole share, and of the lakes that they write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import typer

from ..options import (
    DEFAULT_FORMAT,
    Column,
    Dialect,
    Encoding,
    EncodingErrors,
    FormatName,
    Mode,
    Threads,
    at_home,
    in_utf8,
    one_of,
    split_names,
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
    str,
    typer.Option(
        metavar="commit|prepare",
        autocompletion=one_of("commit", "prepare"),
        help="When a prepared transaction counts: committed, or prepared.",
    ),
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
LakeFormat = Annotated[
    str,
    typer.Option("--format", metavar="parquet|delta", autocompletion=one_of("parquet", "delta"), help="What to write."),
]
State = Annotated[
    str,
    typer.Option(
        metavar="changes|latest",
        autocompletion=one_of("changes", "latest"),
        help="All changes, or only the current rows.",
    ),
]
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
