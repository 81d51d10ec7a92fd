"""The options of the commands that write lakes."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from ..options import at_home, in_utf8, one_of, split_names

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
