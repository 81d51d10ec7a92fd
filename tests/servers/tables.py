"""What the tables of a server hold, as text: what a stream that was read in full must lead to."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from .workload import quoted

Row = dict[str, str | None]
"""Column name to the text form of the value; None is SQL NULL."""


def table_names(session: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """(schema, name) of all tables that hold rows and are not the server's own."""
    query = """select nspname, relname from pg_class join pg_namespace n on n.oid = relnamespace
        where relkind = 'r' and nspname not like 'pg\\_%' and nspname <> 'information_schema' order by 1, 2"""
    return [(schema, name) for schema, name in session.execute(query)]


def table_rows(session: psycopg.Connection[Any], schema: str, name: str) -> list[Row]:
    """The rows of a table, each value as its type's output function gives it."""
    query = """select attname from pg_attribute
        where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum"""
    names = [column for (column,) in session.execute(query, (f"{quoted(schema)}.{quoted(name)}",))]
    # Not name::text: a cast is not always what the output function gives (boolean is one such).
    found = session.pgconn.exec_(sql.SQL("select * from {}").format(sql.Identifier(schema, name)).as_bytes(session))
    cells = range(found.nfields)
    texts = [[_text(found.get_value(row, column)) for column in cells] for row in range(found.ntuples)]
    return [dict(zip(names, row, strict=True)) for row in texts]


def all_tables(session: psycopg.Connection[Any]) -> dict[tuple[str, str], list[Row]]:
    """All rows of all tables."""
    return {(schema, name): table_rows(session, schema, name) for schema, name in table_names(session)}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
