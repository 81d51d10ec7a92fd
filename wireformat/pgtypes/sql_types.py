"""SQL types as the servers spell them: name, modifiers, dimensions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .catalogue import SQL_NAMES


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type of a column.

    name         of the type or of its elements, as the catalogue spells it; of a type in no catalogue all of its text
    modifiers    the numbers in parentheses
    dimensions   how many pairs of brackets follow
    """

    name: str
    modifiers: tuple[int, ...] = ()
    dimensions: int = 0

    def __str__(self) -> str:
        first, *rest = self.name.split(" ", 1) if self.name.endswith(" time zone") else (self.name,)
        numbers = f"({','.join(map(str, self.modifiers))})" if self.modifiers else ""
        return " ".join([first + numbers, *rest]) + "[]" * self.dimensions


_ALIASES = {
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("int1",), "tinyint"),
    **dict.fromkeys(("int2",), "smallint"),
    **dict.fromkeys(("int", "int4"), "integer"),
    **dict.fromkeys(("int8",), "bigint"),
    **dict.fromkeys(("float4",), "real"),
    **dict.fromkeys(("float8", "float", "double"), "double precision"),
    **dict.fromkeys(("decimal", "dec"), "numeric"),
    **dict.fromkeys(("varchar",), "character varying"),
    **dict.fromkeys(("char", "bpchar"), "character"),
    **dict.fromkeys(("varbit",), "bit varying"),
    **dict.fromkeys(("time",), "time without time zone"),
    **dict.fromkeys(("timetz",), "time with time zone"),
    **dict.fromkeys(("timestamp",), "timestamp without time zone"),
    **dict.fromkeys(("timestamptz",), "timestamp with time zone"),
    **dict.fromkeys(("TdigestData",), '"TdigestData"'),
}
"""Other names of types, as people write them."""

_NAMES = frozenset(name for name in SQL_NAMES.values() if not name.endswith("[]"))
_ARRAY = re.compile(r"((?:\[\d*\])*)$")
_MODIFIED = re.compile(r"([^(]+?) ?\( ?(-?\d{1,9}(?: ?, ?-?\d{1,9})*) ?\)(.*)", re.DOTALL)
_INTERVAL = re.compile(r"interval( (year|month|day|hour|minute|second)( to (month|hour|minute|second))?)?")

_LENGTHS = frozenset(("character", "character varying", "nvarchar2"))
_PRECISIONS = frozenset(
    f"{kind} {zone} time zone" for kind in ("time", "timestamp") for zone in ("with", "without")
) | {"bit", "bit varying"}


def parse_sql_type(text: str) -> SqlType:
    """The type behind its spelling, as `numeric(10,2)`, `timestamp(3) without time zone`, `int4`, `integer[]`.

    What is no type of the catalogue is a type of its own, with its whole text as name.
    """
    brackets = _ARRAY.search(text)
    assert brackets is not None  # it may be empty
    inner = " ".join(text[: brackets.start()].split())
    match = _MODIFIED.fullmatch(inner)
    name, numbers = (f"{match[1]}{match[3]}", match[2].split(",")) if match else (inner, [])
    name = name.removeprefix("pg_catalog.")
    name = name if name in _NAMES else name.lower() if name.lower() in {*_NAMES, *_ALIASES} else name
    name = "interval" if _INTERVAL.fullmatch(name) else _ALIASES.get(name, name)
    if name not in _NAMES:
        return SqlType(text)
    return SqlType(name, tuple(map(int, numbers)), brackets[0].count("["))


def with_typmod(name: str, typmod: int | None) -> SqlType:
    """The type of a column from its name and its type modifier; -1 and None are no modifier.

    Source: PostgreSQL, the functions numerictypmodout, bpchartypmodout, timestamptypmodout and their like. The scale of
    a numeric has 11 bits with a sign since version 15, and was never above 1000.
    """
    sql = parse_sql_type(name)
    if typmod is None or typmod < 0 or sql.modifiers:
        return sql
    if sql.name == "numeric" and typmod >= 4:
        precision, scale = (typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF
        return SqlType(sql.name, (precision, scale - 0x800 if scale & 0x400 else scale), sql.dimensions)
    if sql.name in _LENGTHS and typmod > 4:
        return SqlType(sql.name, (typmod - 4,), sql.dimensions)
    if sql.name in _PRECISIONS:
        return SqlType(sql.name, (typmod,), sql.dimensions)
    return sql
