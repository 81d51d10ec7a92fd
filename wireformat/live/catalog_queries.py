"""Parts of queries of the server's catalog that depend on its version."""

from __future__ import annotations


def index_keys(version: int) -> str:
    """Returns SQL for the key columns of an index `i` of pg_index, as an array of column numbers.

    From PostgreSQL 11 on, `indkey` also has the columns that an index only includes, which are not part of a replica
    identity.
    """
    return "(i.indkey::int2[])[0:i.indnkeyatts - 1]" if version >= 11 else "i.indkey::int2[]"


IS_IDENTITY = "(case c.relreplident when 'd' then i.indisprimary and i.indimmediate when 'i' then i.indisreplident end)"
"""SQL for whether an index `i` is the replica identity of a table `c`. A deferrable primary key is not.

Source: PostgreSQL, relcache.c, RelationGetIndexList."""


def is_sent(version: int, listed: str) -> str:
    """Returns SQL for whether a publication sends a column `a`.

    Before PostgreSQL 18, generated columns are never sent; 15 lists them as published nevertheless.

    version   the major version of the server
    listed    SQL for the names of the columns that are published, known from PostgreSQL 15 on
    """
    is_listed = f"a.attname = any ({listed})" if version >= 15 else "true"
    return f"{is_listed} and a.attgenerated = ''" if 12 <= version < 18 else is_listed
