"""The tables of a made-up stream: their columns, and a value of each type that columns may have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from ..errors import OptionError
from ..options.checks import one_of, shown

Values = dict[str, "str | None"]
Key = tuple["str | None", ...]


class Column(NamedTuple):
    """A column: its name, its SQL type, and whether it belongs to the primary key."""

    name: str
    type: str = "text"
    key: bool = False


class Table(NamedTuple):
    """A table at the beginning, where it has no rows. replica_identity is "default" (the key) or "full"."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    replica_identity: str = "default"


def text_value(chance: Random) -> str:
    """Returns a short text, some of which are hard to write."""
    return chance.choice(("amber", "it's late", "große Kiste", "绿茶", 'the "old" one', "", "a,b", "back\\slash"))


def _moment(chance: Random) -> str:
    return str(datetime(2026, 3, 2) + timedelta(seconds=chance.randrange(10**7)))  # noqa: DTZ001 - a time without a zone


MAKE: dict[str, Callable[[Random], str]] = {
    "smallint": lambda chance: str(chance.randrange(-(2**15), 2**15)),
    "integer": lambda chance: str(chance.randrange(-(2**31), 2**31)),
    "bigint": lambda chance: str(chance.randrange(-(2**63), 2**63)),
    "numeric": lambda chance: f"{chance.randrange(10**9) / 100:.2f}",
    "boolean": lambda chance: chance.choice("tf"),
    "date": lambda chance: _moment(chance)[:10],
    "timestamp without time zone": _moment,
    "character varying": text_value,
    "text": lambda chance: f"{text_value(chance)} {chance.randrange(10**6)}",
}
"""A value of each type that columns may have, as the type's output function prints it."""

LONG = 200
"""Characters of a long text, which an UPDATE does not send where it does not change."""

_KEY_TYPES = ("integer", "bigint", "numeric", "character varying", "text")

COLUMNS = (
    Column("id", "bigint", key=True),
    Column("customer", "integer"),
    Column("status", "character varying"),
    Column("total", "numeric"),
    Column("gift", "boolean"),
    Column("placed", "timestamp without time zone"),
    Column("due", "date"),
    Column("note", "text"),
)


def _is_table(found: Any) -> bool:
    """Whether this is a table, and all names and types in it are texts."""
    if not isinstance(found, Table) or not isinstance(found.columns, (tuple, list)):
        return False
    columns: tuple[Any, ...] = tuple(found.columns)
    names = [one[:2] if isinstance(one, Column) else (None,) for one in columns]
    return all(isinstance(text, str) for texts in (found[:2], *names) for text in texts)


def check_table(table: Table) -> None:
    """Raises OptionError for a table that a stream cannot have."""
    if not _is_table(table):
        raise OptionError(f"option tables: expected wireformat.testing.Table of texts and Columns, got {shown(table)}")
    where = f"option tables: {table.schema}.{table.name}"
    one_of(f"replica_identity of {table.schema}.{table.name}", table.replica_identity, ("default", "full"))
    for column in table.columns:
        if column.type not in MAKE or (column.key and column.type not in _KEY_TYPES):
            known = ", ".join(_KEY_TYPES if column.key else MAKE)
            raise OptionError(f"{where}: column {column.name}: expected one of the types {known}")
    if len({column.name for column in table.columns}) < len(table.columns):
        raise OptionError(f"{where}: two columns have the same name")
    if not any(column.key for column in table.columns):
        raise OptionError(f"{where}: expected a column with key=True")
