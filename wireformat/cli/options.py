"""The options that several commands share, and functions that read lists and settings from their texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..identifiers import split_items, unquote_identifier
from ..options.checks import in_home
from .exits import NO_UTF8, NOT_UTF8

Completion = Callable[[str], list[str]]
"""Returns what a shell offers for the beginning of a word."""


def one_of(*words: str) -> Completion:
    """Returns what completes a word to one of these."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def choice(*words: str, help: str, names: Sequence[str] = ()) -> Any:
    """Returns the option that takes one of these words, which a shell completes."""
    return typer.Option(*names, metavar="|".join(words), autocompletion=one_of(*words), help=help)


def format_names(incomplete: str) -> list[str]:
    """Returns the names of formats with this beginning."""
    from ..formats.registry import all_rows

    return one_of(*all_rows())(incomplete)


def _modes(incomplete: str) -> list[str]:
    from ..options.reading import MODES

    return one_of(*MODES)(incomplete)


def _kinds(incomplete: str) -> list[str]:
    """Returns the given list of kinds with its last item completed."""
    from ..options.reading import KINDS

    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{kind}" for kind in one_of(*KINDS)(last)]


def at_home(given: Any) -> Any:
    """Returns paths with `~` replaced, also where a shell does not do it, as in `--to=~/lake`."""
    if isinstance(given, (list, tuple)):
        return [at_home(one) for one in given]
    if given == "":
        raise typer.BadParameter("expected a name, got an empty text")
    return None if given is None else type(given)(in_home(str(given)))


def in_utf8(given: Any) -> Any:
    """Returns texts that name tables or columns unchanged.

    Raises BadParameter for one with other bytes than UTF-8, which no name in Arrow and in a lake has.
    """
    for text in [given] if isinstance(given, str) else given or ():
        if NOT_UTF8.search(text):
            raise typer.BadParameter(f"expected a text in UTF-8, got {text!r}{NO_UTF8}")
    return given


Files = Annotated[
    list[str],
    typer.Argument(
        callback=at_home, metavar="FILE...", help="Parquet files, or files of messages; - is standard input."
    ),
]


def _upper(value: str) -> str:
    """Returns a word in capitals: the modes and kinds of the options may be typed in small letters."""
    return value.upper()


FormatName = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        autocompletion=format_names,
        help="Format of the messages; `wireformat formats` lists them.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        callback=in_utf8,
        metavar="NAME",
        help="Column of Parquet files with the messages; default: payload, value or the only binary one.",
    ),
]
GuessedFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        autocompletion=format_names,
        help="Format of the messages; default: guessed from the first ones.",
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        callback=_upper,
        metavar="MODE",
        autocompletion=_modes,
        help="Bad input: FAILFAST stops, PERMISSIVE keeps it, DROPMALFORMED skips it.",
    ),
]
_OF_THESE_TABLES = "Only row changes of these tables: schema.table, * for a whole part."

Tables = Annotated[list[str] | None, typer.Option(callback=in_utf8, metavar="LIST", help=_OF_THESE_TABLES)]
TablesInBytes = Annotated[list[str] | None, typer.Option(metavar="LIST", help=_OF_THESE_TABLES)]
"""The same for a command that compares bytes, in any encoding."""

Kinds = Annotated[
    list[str] | None,
    typer.Option(metavar="LIST", autocompletion=_kinds, help="Only these kinds, such as INSERT,COMMIT."),
]
EncodingErrors = Annotated[
    str,
    choice(
        "strict", "replace", help="Text that is not valid in the encoding: raise an error, or replace it with U+FFFD."
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        callback=at_home,
        metavar="FILE",
        help="Output: .parquet, .arrow, .csv or .jsonl; - is standard output.",
    ),
]
To = Annotated[str | None, choice("csv", "jsonl", "arrow", help="Format that -o - writes.")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of the server, by its Python name.")]

Dialect = Annotated[str, choice("postgresql", "opengauss", help="Dialect of pgoutput; other formats ignore it.")]

Threads = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; default: as many as processors.")]
Json = Annotated[bool, typer.Option("--json", help="Print lines of JSON, for programs.")]

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        callback=in_utf8,
        metavar="COLUMNS",
        help="Columns and types, as 'id bigint, total numeric(10,2)'; default: those of the stream. Repeatable.",
    ),
]
Schemas = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        callback=in_utf8,
        metavar="TABLE=COLUMNS",
        help="Columns and types of a table, as 'public.orders=id bigint, total numeric(10,2)'; repeatable.",
    ),
]

STDIN = STDOUT = "-"
"""The argument that stands for standard input, or for standard output."""

DEFAULT_FORMAT = "gaussdb-binary"
"""The format of messages if none is given, and guessing finds none, or this one among several."""


def split_lists(values: Iterable[str] | None) -> list[str] | None:
    """Returns the items of an option that may be given several times, each time with a list; None if it was not given.

    Items are separated by commas outside of double quotes; blanks around them are not part of them. Raises BadParameter
    if there are no items, or if a double quote is not closed.
    """
    if values is None:
        return None
    items = []
    for value in values:
        try:
            items += split_items(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    if not items:
        raise typer.BadParameter("expected a list, as a,b; got nothing")
    return items


def split_names(values: Iterable[str] | None) -> list[str] | None:
    """Returns what `split_lists` returns, as names: those in double quotes without them. Raises BadParameter."""
    items = split_lists(values)
    return None if items is None else [_unquoted(item) for item in items]


def _unquoted(item: str) -> str:
    try:
        return unquote_identifier(item)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; got {item}") from None


def split_kinds(values: Iterable[str] | None) -> list[str] | None:
    """Returns what `split_lists` returns, in capitals: kinds of records may be typed in small letters."""
    items = split_lists(values)
    return None if items is None else [_upper(item) for item in items]


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """Returns the options that are given as `name=value`; raises BadParameter."""
    given: dict[str, str] = {}
    for setting in settings:
        name, is_there, value = setting.partition("=")
        if not is_there:
            raise typer.BadParameter(f"expected name=value, got {setting!r}")
        if name in given:
            raise typer.BadParameter(f"{name} is given twice")
        given[name] = value
    return given


def to_bytes(option: str, megabytes: float) -> int:
    """Returns the bytes of some megabytes; raises BadParameter for a negative number, infinity and NaN."""
    if not 0 <= megabytes < math.inf:
        raise typer.BadParameter(f"{option}: expected a number of megabytes, got {megabytes}")
    return round(megabytes * 1e6)


_QUOTED = r'"(?:[^"]|"")+"'

_COLUMN = rf"""\s*({_QUOTED}|[^\s",()]+)\s+(?=[^\s,])((?:{_QUOTED}|\([^()]*\)|[^",()])+)"""
"""A name and a type."""

_COLUMNS = re.compile(rf"{_COLUMN}(?:,{_COLUMN})*")


def parse_columns(values: Iterable[str] | None) -> dict[str, str] | None:
    """Returns the type of each column of a table, given as in CREATE TABLE: `id bigint, total numeric(10,2)`.

    The option may be given several times; None if it was not given. Raises BadParameter.
    """
    if values is None:
        return None
    text = ",".join(values)
    if _COLUMNS.fullmatch(text) is None:
        raise typer.BadParameter(f"expected columns as in CREATE TABLE, 'id bigint, total numeric(10,2)', got {text!r}")
    found: dict[str, str] = {}
    for name, type in re.findall(_COLUMN, text):
        name = unquote_identifier(name)
        if name in found:
            raise typer.BadParameter(f"{name} is given twice")
        found[name] = type.strip()
    return found


_SCHEMA = re.compile(r'((?:"[^"]*"|[^"=])*)=(.*)', re.DOTALL)
"""A table and its columns: up to the first equals sign outside of double quotes, and after it."""


def parse_schemas(values: Iterable[str] | None) -> dict[str, dict[str, str]] | None:
    """Returns the columns of tables, each given as `table=columns`; raises BadParameter."""
    if values is None:
        return None
    found: dict[str, dict[str, str]] = {}
    for text in values:
        parts = _SCHEMA.fullmatch(text)
        if parts is None:
            raise typer.BadParameter(f"expected table=columns, as 'public.orders=id bigint, note text', got {text!r}")
        table, columns = parts.groups()
        if table in found:
            raise typer.BadParameter(f"{table} is given twice")
        found[table] = parse_columns([columns]) or {}
    return found
