"""What the list of tables says of one table: whether it is there, its versions, its replica identity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows, OptionError
from ...formats.registry import find_row
from ...options.table_names import one_table, written
from ..unread import no_such_table

_TABLE_NAME = ("table_schema", "table_name")

_FEW_ROWS = 16

_SWITCHED, _UNDELIVERED = b"wireformat.switched_keys", b"wireformat.undelivered_versions"
"""Names of metadata."""


def of_table(listed: pa.Table, table: tuple[str, str]) -> pa.Table:
    """Returns what a list of tables says of one table, a row for each version of its columns.

    Versions that were not described in a committed transaction are left out, unless there are no others.
    """
    left_out = _left_out(listed, table)
    if len(listed) <= _FEW_ROWS:  # then calls of Arrow take longer than the names
        is_of = [name == table for name in names_of(listed)]
        found = listed if all(is_of) else listed.filter(pa.array(is_of, pa.bool_()))
    else:
        are_of = pc.and_(*(pc.equal(listed[name], text) for name, text in zip(_TABLE_NAME, table, strict=True)))
        found = listed if pc.all(are_of, skip_nulls=False).as_py() else listed.filter(are_of)
    delivered = (
        found.filter(pc.invert(pc.is_in(found["version"], pa.array(left_out, pa.int32())))) if left_out else found
    )
    return delivered if len(delivered) else found


def names_of(listed: pa.Table) -> Iterator[tuple[Any, Any]]:
    """Yields the schema and name of each row."""
    return zip(*(listed[name].to_pylist() for name in _TABLE_NAME), strict=True)


def leaves_out(listed: pa.Table, table: tuple[str, str]) -> bool:
    """Whether `of_table` leaves out versions of a table."""
    return bool(_left_out(listed, table))


def _left_out(listed: pa.Table, table: tuple[str, str]) -> list[int]:
    return [number for *name, number in _undelivered(listed.schema) if (*name,) == table]


def delivered_rows(listed: pa.Table) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Returns what a list says of each of its tables, as `of_table` does."""
    rows_of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in listed.to_pylist():
        rows_of.setdefault((row["table_schema"], row["table_name"]), []).append(row)
    left_out = {*_undelivered(listed.schema)}
    return {
        table: [row for row in rows if (*table, row["version"]) not in left_out] or rows
        for table, rows in rows_of.items()
    }


def ranges_by_table(listed: pa.Table) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns the first row and the number of rows of each table in a list, which is sorted by table."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row, name in enumerate(names_of(listed)):
        first, count = found.get(name, (row, 0))
        found[name] = first, count + 1
    return found


def rows_of(listed: pa.Table, table: str, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Returns the rows of a table, one for each version of its columns.

    columns   those of the rows; None for all
    """
    found = of_table(listed, one_table(table))
    return (found if columns is None else found.select(columns)).to_pylist()


def check_listed(listed: pa.Table, table: str, format: str) -> None:
    """Raises BadRows if the list does not have the table, or not the types of its columns."""
    rows = rows_of(listed, table, ["types"])
    if not rows:
        raise no_such_table(written(one_table(table)), {*map(written, names_of(listed))})
    says_types = "types" not in find_row(format).cannot_say  # else INSERTs may name no columns at all
    if any(None in row["types"] or not (row["types"] or says_types) for row in rows):
        raise BadRows("rows that name the types of their values, or a schema", "none", table=table, format=format)


def check_one_version(listed: pa.Table, table: str) -> None:
    """Raises BadRows if the columns of a table changed."""
    for row in rows_of(listed, table)[1:]:
        first = {"message": None, **row["first"]}
        order = ", ".join(f"{name}={value}" for name, value in first.items() if name not in ("message", "record"))
        raise BadRows(
            "the same columns and types in all changes, because of evolution='error'",
            f"other columns or types: version {row['version']} of the table",
            table=table,
            message=first["message"],
            record=first["record"],
            note=order or None,
        )


def with_switched_keys(schema: pa.Schema, keys_of: Mapping[tuple[str, str, int], Iterable[Sequence[str]]]) -> pa.Schema:
    """Returns the schema of a list of tables whose metadata have the replica identities that were switched.

    keys_of   all identities of a version, by schema, table and number of the version. Its row names the last one
    """
    switched = [[*version, sorted(map(list, keys))] for version, keys in keys_of.items()]
    return schema.with_metadata({**(schema.metadata or {}), _SWITCHED: json.dumps(switched)}) if switched else schema


def _switched_keys(listed: pa.Table) -> dict[tuple[str, str, int], list[list[str]]]:
    found = json.loads((listed.schema.metadata or {}).get(_SWITCHED, b"[]"))
    return {(schema, table, version): keys for schema, table, version, keys in found}


def with_undelivered(schema: pa.Schema, versions: Iterable[tuple[str, str, int]]) -> pa.Schema:
    """Returns the schema of a list of tables whose metadata have the versions that `of_table` leaves out.

    versions   by schema, table and number of the version
    """
    found = sorted(map(list, versions))
    return schema.with_metadata({**(schema.metadata or {}), _UNDELIVERED: json.dumps(found)}) if found else schema


def _undelivered(schema: pa.Schema) -> list[tuple[str, str, int]]:
    return _versions((schema.metadata or {}).get(_UNDELIVERED, b"[]"))


@lru_cache(maxsize=4)  # a list is asked for one table after the other
def _versions(text: bytes) -> list[tuple[str, str, int]]:
    return [*map(tuple, json.loads(text))]


def states_identity(listed: pa.Table, table: str) -> bool:
    """Whether the stream states the replica identity of a table."""
    return any(row["key_columns"] is not None for row in rows_of(listed, table))


def identities(listed: pa.Table, table: str) -> set[tuple[str, ...] | None]:
    """Returns the columns of all replica identities that a table has had; None is the whole row."""
    switched = _switched_keys(listed)
    keys: set[tuple[str, ...] | None] = set()
    for row in rows_of(listed, table):
        for names in switched.get((*one_table(table), row["version"]), [row["key_columns"]]):
            if names is not None:
                # With REPLICA IDENTITY FULL the key has all columns. Without an identity, it has none, and the server
                # does not publish updates and deletes. In both cases equal rows are counted.
                keys.add(None if len(names) in (0, len(row["columns"])) else tuple(names))
    return keys


def lasting_identity(listed: pa.Table, table: str) -> list[str] | None:
    """Returns the columns that identified the rows of a table all the time; [] for the whole row.

    None if they changed. If the whole row identifies them, they are its columns. Where the stream states no identity,
    it is the whole row.
    """
    keys = identities(listed, table) or {None}
    names = keys.pop()
    if keys:
        return None
    if names is None and len({frozenset(row["columns"]) for row in rows_of(listed, table)}) > 1:
        return None
    return list(names or ())


def replica_identity(listed: pa.Table, table: str) -> list[str]:
    """Returns the columns of the replica identity; [] if it is the whole row.

    Raises OptionError if it is unknown, or changed.
    """
    keys = identities(listed, table)
    if len(keys) == 1:
        return list(keys.pop() or ())
    if not keys:
        raise OptionError(
            f"option keys: the stream does not state the replica identity of {table}; name the key columns, or [] "
            "for the whole row"
        )
    shown_keys = sorted("the whole row" if key is None else ", ".join(key) for key in keys)
    raise OptionError(
        f"option keys: the replica identity of {table} changed: {'; '.join(shown_keys)}; name the columns that "
        "identified its rows all the time, or [] for the whole row"
    )
