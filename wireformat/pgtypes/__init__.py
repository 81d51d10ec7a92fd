"""The type catalogue: OIDs on the wire, SQL names in the row-change table."""

from __future__ import annotations

from .catalogue import SQL_NAMES

__all__ = ["OIDS", "SQL_NAMES", "type_name", "type_oid"]

OIDS = {name: oid for oid, name in SQL_NAMES.items()}
"""The type OIDs by name."""

_UNLISTED = "oid:"


def type_name(oid: int) -> str:
    """Returns the SQL name of a type OID, or `oid:16385` if it is in no catalogue."""
    return SQL_NAMES.get(oid) or f"{_UNLISTED}{oid}"


def type_oid(name: str) -> int:
    """Returns the OID of a type name that `type_name` returned; raises ValueError if it has none."""
    if name in OIDS:
        return OIDS[name]
    digits = name.removeprefix(_UNLISTED)
    if digits == name or not (digits.isascii() and digits.isdigit()) or int(digits) >= 1 << 32:
        raise ValueError(f"the type {name!r} has no number: neither built in nor written as {_UNLISTED}<number>")
    return int(digits)
