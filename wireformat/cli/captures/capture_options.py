"""The options of a capture, which the commands that read a stream as a whole share."""

from __future__ import annotations

import inspect
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
