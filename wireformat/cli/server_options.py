"""`wireformat options`: the servers' options as a table, and what a set of options means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from ..errors import OptionError
from ..options import Options
from ..printable import printable
from .options import parse_settings
from .screen import print_lines, print_rows


def print_table(*, as_json: bool = False) -> None:
    """Prints every option of GaussDB and openGauss on a line of its own; a narrow terminal gets paragraphs."""
    rows = Options.table()
    if as_json:
        print_lines(row._asdict() for row in rows)
        return
    print_rows(rows[0]._fields, rows)


def print_check(
    settings: Sequence[str],
    *,
    plugin: str,
    product: str,
    via: str,
    max_process_memory_mb: int | None,
    as_json: bool = False,
) -> None:
    """Prints what the settings `name=value` ask of the server, and how to read what it then sends.

    Raises OptionError.
    """
    options = Options.gaussdb(
        parse_settings(settings),
        plugin=plugin,
        product=product,
        via=via,
        max_process_memory_mb=max_process_memory_mb,
    )
    if as_json:
        print_lines([_facts(options)])
        return
    lines = [
        ("mode", options.mode),
        ("format", options.format),
        ("START_REPLICATION", _text_or_error(options.start_replication)),
        ("pg_logical_slot_peek_changes", _text_or_error(options.peek_changes)),
        ("pg_logical_get_area_changes", _text_or_error(options.area_changes)),
        *((f"filter {name}", _words(value)) for name, value in options.filters.items()),
    ]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(printable(f"{name:{width}}  {text}"))


def _facts(options: Options) -> dict[str, Any]:
    """Returns what the settings mean, for programs. A command that refuses them is null, and `refused` says why."""
    facts: dict[str, Any] = {"mode": options.mode, "format": options.format}
    refused: dict[str, str] = {}
    for name, make in (
        ("start_replication", options.start_replication),
        ("peek_changes", options.peek_changes),
        ("area_changes", options.area_changes),
    ):
        try:
            facts[name] = make()
        except OptionError as error:
            facts[name], refused[name] = None, str(error)
    return {**facts, "refused": refused, "filters": dict(options.filters)}


def _text_or_error(make: Callable[[], str]) -> str:
    """Returns the options as a command takes them, or why it refuses them."""
    try:
        return make() or "no options"
    except OptionError as error:
        return f"refuses: {error}"


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
