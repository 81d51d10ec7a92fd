"""Whether the server lets rows of published tables change: by their replica identity, and by what is published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ..catalog_queries import IS_IDENTITY, filter_columns, index_keys
from ..connection import Connection
from .findings import Finding

_IDENTITIES = """
with recursive published as (
    select t.schemaname, t.tablename, c.oid as relid, c.oid as root, c.relkind{listed_columns}
    from pg_catalog.pg_publication_tables t
    join pg_catalog.pg_namespace n on n.nspname = t.schemaname
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
    where t.pubname = {publication}
    union all
    select n.nspname, c.relname, c.oid, p.root, c.relkind{columns}
    from published p
    join pg_catalog.pg_inherits h on h.inhparent = p.relid and p.relkind = 'p'
    join pg_catalog.pg_class c on c.oid = h.inhrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
)
select p.schemaname, p.tablename, c.relreplident,
    i.indexrelid is not null as has_index,
    exists (select from pg_catalog.pg_index k where k.indrelid = c.oid and k.indisprimary) as has_key,
    (select array_to_json(array_agg(a.attname order by a.attnum)) from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped{sent}
        and (c.relreplident = 'f' or a.attnum = any ({key_columns}))) as identity,
    {sent_columns} as sent_columns,
    {filtered} as filtered
from published p
join pg_catalog.pg_class c on c.oid = p.relid and c.relkind <> 'p'
left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisvalid and {is_identity}
order by 1, 2
"""
"""The published tables. A partitioned table is replaced by its partitions, which have identities of their own."""

_FILTERED = """(select array_to_json(array_agg(a.attname order by a.attnum)) from pg_catalog.pg_attribute a
        where a.attrelid = p.root and a.attnum in ({filter_columns}))"""
"""The columns of a row filter."""

_FAIL = "its UPDATE and DELETE fail in the database while it is published"


def identity_findings(connection: Connection, publication: str) -> Iterator[Finding]:
    """Yields the tables of a publication whose rows cannot be changed or removed.

    Raises ServerError. Source of the rules: PostgreSQL, execReplication.c, CheckCmdReplicaIdentity.
    """
    version, name = connection.version, connection.literal(publication)
    has_lists = version >= 15
    rows = connection.query(
        _IDENTITIES.format(
            publication=name,
            listed_columns=", t.attnames" if has_lists else "",
            columns=", p.attnames" if has_lists else "",
            # before 18, the server ignores generated columns of an identity, which are never sent
            sent=" and a.attgenerated = ''" if 12 <= version < 18 else "",
            key_columns=index_keys(version),
            is_identity=IS_IDENTITY,
            sent_columns="array_to_json(p.attnames)" if has_lists else "null",
            filtered=_FILTERED.format(filter_columns=filter_columns("p.root", name)) if has_lists else "null",
        )
    )
    for row in rows:
        label = f"{row['schemaname']}.{row['tablename']}"
        full = (
            f"ALTER TABLE {connection.identifier(row['schemaname'] or '')}."
            f"{connection.identifier(row['tablename'] or '')} REPLICA IDENTITY FULL"
        )
        identity, sent, filtered = (json.loads(row[one] or "[]") for one in ("identity", "sent_columns", "filtered"))
        missing = [connection.identifier(one) for one in identity if has_lists and one not in sent]
        others = [connection.identifier(one) for one in filtered if one not in identity]
        if row["relreplident"] != "f" and row["has_index"] == "f":
            reason, advice = _lacking(row)
            yield Finding("warning", "replica identity", f"{label} has none{reason}: {_FAIL}", f"{advice}, or {full}")
        elif missing:
            yield Finding(
                "warning",
                "replica identity",
                f"{publication} does not send {', '.join(missing)} of {label}, which its identity has: {_FAIL}",
                "publish these columns, too",
            )
        elif others:
            yield Finding(
                "warning",
                "replica identity",
                f"the row filter of {label} uses {', '.join(others)}, which its identity lacks: {_FAIL}",
                f"filter by columns of the identity, or {full}",
            )


def _lacking(row: Mapping[str, str | None]) -> tuple[str, str]:
    """Returns why a table has no replica identity, and what to do about it."""
    if row["relreplident"] == "i":
        return ", since the index that it used was dropped", "choose another one with REPLICA IDENTITY USING INDEX"
    if row["relreplident"] == "d" and row["has_key"] == "t":
        return ", since its primary key is deferrable", "make the key one that is not"
    return "", "add a primary key"
