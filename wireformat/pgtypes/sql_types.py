"""SQL types as servers and people spell them: name, modifiers, dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from .catalogue import ONLY_OPENGAUSS, ONLY_POSTGRESQL, SQL_NAMES


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type of a column.

    name         of the type or of its elements, as the catalogue spells it; of a type in no catalogue all of its text
    modifiers    the numbers in parentheses
    dimensions   how many pairs of brackets follow
    is_own       a server printed this name, and means a user's own type, whichever built-in type is named like it
    """

    name: str
    modifiers: tuple[int, ...] = ()
    dimensions: int = 0
    is_own: bool = False

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
"""Other names of types, as people write them. No server prints them: on the wire they name a user's own types."""

_NAMES = frozenset(name for name in SQL_NAMES.values() if not name.endswith("[]"))
_OF_POSTGRESQL = _NAMES - ONLY_OPENGAUSS
_OF_OPENGAUSS = _NAMES - ONLY_POSTGRESQL

BUILT_IN: Mapping[str | None, frozenset[str]] = {
    "any": _NAMES,
    "postgresql": _OF_POSTGRESQL,
    "opengauss": _OF_OPENGAUSS,
    None: _OF_POSTGRESQL & _OF_OPENGAUSS,
}
"""The built-in types among the type names of rows, by the server that named them; every other name is a user's.

any: the format sends numbers, which mean the same on both servers, so that the names are always the catalogue's.
None: where the server is not known, a name is built in only if it is on both."""

_ARRAY = re.compile(r"((?:\[\d*\])*)$")
_MODIFIED = re.compile(r"([^(]+?) ?\( ?(-?\d{1,9}(?: ?, ?-?\d{1,9})*) ?\)(.*)", re.DOTALL)
_INTERVAL = re.compile(r"interval( (year|month|day|hour|minute|second)( to (month|hour|minute|second))?)?")

_LENGTHS = frozenset(("character", "character varying", "nvarchar2"))
_PRECISIONS = frozenset(
    f"{kind} {zone} time zone" for kind in ("time", "timestamp") for zone in ("with", "without")
) | {"bit", "bit varying"}


_WITHOUT_MODIFIERS = frozenset(
    ("boolean", "tinyint", "smallint", "integer", "bigint", "oid", "real", "double precision", "date", "bytea", "text")
)
_FLOAT = re.compile(r"\s*float ?\( ?([0-9]{1,2}) ?\)", re.IGNORECASE)
"""With a number of binary digits; PostgreSQL manual, "Floating-Point Types"."""


def parse_sql_type(text: str) -> SqlType:
    """Returns the type that a user names, such as `numeric(10,2)`, `int4`, `TIMESTAMPTZ` or `integer[]`.

    A type that is not in the catalogue, or does not have these modifiers, has its whole text as name; see `is_known`.
    """
    digits = _FLOAT.match(text)
    if digits and 1 <= int(digits[1]) <= 53:
        text = f"{'real' if int(digits[1]) <= 24 else 'double precision'}{text[digits.end() :]}"
    found = _parsed(text, _asked)
    return found if _has_modifiers(found.name, found.modifiers) else SqlType(text)


def _has_modifiers(name: str, modifiers: tuple[int, ...]) -> bool:
    """Whether a type can have these modifiers."""
    if name == "numeric" and modifiers:
        precision, scale = [*modifiers, 0][:2]
        return len(modifiers) <= 2 and 1 <= precision <= 1000 and -1000 <= scale <= 1000
    return len(modifiers) <= (0 if name in _WITHOUT_MODIFIERS else 1 if name in _LENGTHS | _PRECISIONS else 9)


def is_known(sql: SqlType) -> bool:
    """Whether the type is in the catalogue."""
    return sql.name in _NAMES


def known_names() -> list[str]:
    """The names that can be asked for, sorted."""
    return sorted(_NAMES | _ALIASES.keys())


@cache
def wire_sql_type(text: str, server: str | None) -> SqlType:
    """The type that a name means as a server prints it: `numeric(10,2)`, `timestamp(3) without time zone`, `integer[]`.

    server   whose name it is; None where it is not known. See BUILT_IN
    A type that is not built in has its whole text as name. A server prints `pg_catalog.` before the name of a
    built-in type where a user's type of the same name hides it.
    """
    names = BUILT_IN[server]
    found = _parsed(text, lambda name: name if name in names else None)
    return found if found.name in names else SqlType(text, is_own=True)


def _asked(name: str) -> str | None:
    name = name if name in _NAMES else name.lower() if name.lower() in {*_NAMES, *_ALIASES} else name
    name = _ALIASES.get(name, name)
    return name if name in _NAMES else None


def _parsed(text: str, find: Callable[[str], str | None]) -> SqlType:
    brackets = _ARRAY.search(text)
    assert brackets is not None  # it may be empty
    inner = " ".join(text[: brackets.start()].split())
    match = _MODIFIED.fullmatch(inner)
    name, numbers = (f"{match[1]}{match[3]}", match[2].split(",")) if match else (inner, [])
    name = name.removeprefix("pg_catalog.")
    found = "interval" if _INTERVAL.fullmatch(name) else find(name)
    if found is None:
        return SqlType(text)
    return SqlType(found, tuple(map(int, numbers)), brackets[0].count("["))


def with_typmod(name: str, typmod: int | None, server: str | None = None) -> SqlType:
    """The type of a column from its name on the wire and its type modifier; -1 and None are no modifier.

    Source: PostgreSQL, the functions numerictypmodout, bpchartypmodout, timestamptypmodout and their like. The scale of
    a numeric has 11 bits with a sign since version 15, and was never above 1000.
    """
    sql = wire_sql_type(name, server)
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


_TEXTS = frozenset(("text", "character varying", "nvarchar2", "clob"))
_INTEGERS = frozenset(("tinyint", "smallint", "integer", "bigint"))
_OTHER_AS_TEXTS = frozenset(("boolean", "character", "inet", "bytea", "timestamp with time zone")) | {
    *("tstzrange", "tstzmultirange", "abstime", "tinterval")
}
"""Types that a cast to text writes in another way than their output function, or in that of a session's time zone."""

_HOLDS_VALUES_OF = {
    "timestamp without time zone": frozenset(("date",)),
    "real": frozenset(("smallint",)),
    "double precision": frozenset(("smallint", "integer", "real")),
}
"""Types that hold every value of another one, but write it in another way."""


def keeps_values(before: SqlType, after: SqlType, *, as_texts: bool) -> bool:
    """Whether the values of a column are what they were before it got another type. With a user's own type, they are.

    as_texts   whether texts are compared: 1.5 and 1.50 differ then

    Source: PostgreSQL, catalogue pg_cast. A type without a cast to text is converted by its output function; bytes are
    mostly converted by others.
    """
    if before == after or before.is_own or after.is_own:
        return True
    if before.dimensions != after.dimensions:
        return False
    if after.name in _TEXTS:
        return before.name not in _OTHER_AS_TEXTS
    if before.name in _INTEGERS and after.name == "numeric":
        scale = [*after.modifiers, 0, 0][1]
        return scale >= 0 and not (as_texts and scale)
    if before.name != after.name:
        names = {before.name, after.name}
        are_integers = names <= _INTEGERS or names == {"oid", "bigint"}  # a smaller one has an oid's negative values
        return are_integers or (not as_texts and before.name in _HOLDS_VALUES_OF.get(after.name, ()))
    if after.name == "numeric" and before.modifiers and after.modifiers:
        scale, new_scale = ([*modifiers, 0][1] for modifiers in (before.modifiers, after.modifiers))
        return scale == new_scale or (scale < new_scale and not as_texts)
    if after.name in _PRECISIONS - {"bit"} and after.modifiers:
        return bool(before.modifiers) and before.modifiers <= after.modifiers
    return after.name != "character" and not after.modifiers
