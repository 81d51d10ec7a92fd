"""Names of tables: reading and writing them, patterns, and suggestions for a wrong name."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from ..errors import OptionError
from ..identifiers import split_table
from .checks import shown

TableName = tuple[str, str]
"""Schema and table."""

ALL_TABLES = "*.*"

MOST_NAMES = 5
"""The number of tables that are listed if the wrong name is similar to none of them."""


def one_table(table: Any, option: str = "table") -> tuple[str, str]:
    """Returns schema and table of a table that an option names; raises OptionError."""
    if not isinstance(table, str):
        raise OptionError(f"option {option}: expected a name, schema.table, got {shown(table)}")
    try:
        return _split(table)
    except ValueError as error:
        raise OptionError(f"option {option}: {error}") from None


_split = lru_cache(maxsize=1024)(split_table)  # a table of many is named again and again


def written(names: tuple[str | None, str | None]) -> str:
    """Returns schema and table as `tables=` and `--tables` take them; None becomes *."""
    return ".".join("*" if name is None else _quoted(name) for name in names)


def canonical_patterns(patterns: Collection[tuple[str | None, str | None]] | None) -> list[str]:
    """Returns patterns of tables so that the same ones are equal; None means all tables."""
    if patterns is None or (None, None) in patterns:
        return [ALL_TABLES]
    return sorted({*map(written, patterns)})


def suggestion(wrong: str | Collection[str], there: Collection[str]) -> str:
    """Returns the end of an error about a table, or several, that the input does not have.

    wrong, there    the wrong names and the names of the input's tables, as `written` returns them
    """
    names = sorted(there)
    lower = dict.fromkeys(name.lower() for name in names)
    given = [wrong] if isinstance(wrong, str) else wrong
    close = dict.fromkeys(letters for one in given for letters in difflib.get_close_matches(one.lower(), lower))
    near = [name for letters in close for name in names if name.lower() == letters]
    if near:
        return f", did you mean {' or '.join(near)}?"
    if not names:
        return "; it names none"
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"; there are {', '.join(names[:MOST_NAMES])}{more}"


def _quoted(name: str) -> str:
    is_plain = name and not {*name} & {*'*.,"'} and name == name.strip()
    return name if is_plain else '"' + name.replace('"', '""') + '"'
