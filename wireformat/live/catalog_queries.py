"""Parts of queries of the server's catalog that depend on its version."""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Connection


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


def filter_columns(table: str, publications: str) -> str:
    """Returns a query of the numbers of the columns that row filters use, from PostgreSQL 15 on.

    They are found in the parsed form of the filters, since the server does not list them.

    table          SQL for the OID of the table
    publications   SQL for the names of the publications, with commas between them
    """
    return (
        "select m[1]::int from pg_catalog.pg_publication_rel r "
        f"join pg_catalog.pg_publication q on q.oid = r.prpubid and q.pubname in ({publications}), "
        f"pg_catalog.regexp_matches(r.prqual::text, ':varattno (\\d+)', 'g') m where r.prrelid = {table}"
    )


_SENT_TABLES = """
with recursive listed as (
    select c.oid, c.relkind, p.* from (select schemaname, tablename, {collected} from pg_catalog.pg_publication_tables
        where pubname in ({publications}) group by schemaname, tablename) p
    join pg_catalog.pg_namespace n on n.nspname = p.schemaname
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
), partitions as (
    select h.inhrelid as oid, l.oid as ancestor
        from listed l join pg_catalog.pg_inherits h on h.inhparent = l.oid and l.relkind = 'p'
    union select h.inhrelid, p.ancestor from partitions p join pg_catalog.pg_inherits h on h.inhparent = p.oid
), sent as (
    select * from listed where oid not in (select oid from partitions)
)
"""


def with_sent_tables(connection: Connection, publications: Sequence[str]) -> str:
    """Returns the WITH clause of a query of the tables whose names the server sends with the rows of publications.

    Where one publication has a partitioned table and another one its partitions, the server sends all rows as those of
    the partitioned table. Source: PostgreSQL, pgoutput.c, get_rel_sync_entry.

    sent         the tables: oid, relkind, schemaname, tablename, columns (names), filters (as JSON). From PostgreSQL 15
                 on, publications may have lists of columns and row filters; before, these are null
    partitions   the partitions whose rows are sent as those of another table: oid, ancestor; of several ancestors, one
                 is in `sent`
    """
    has_lists = connection.version >= 15
    return _SENT_TABLES.format(
        collected="min(attnames::text)::name[] as columns, json_agg(rowfilter) as filters"
        if has_lists
        else "null::name[] as columns, null::json as filters",
        publications=", ".join(map(connection.literal, publications)),
    )
