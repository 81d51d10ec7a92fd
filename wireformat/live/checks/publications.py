"""What publications send: parts of queries for it, and whether it is what is wanted.

Whether the rows of their tables can be changed depends on their replica identity, and on what is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ...errors import counted
from ...options import ReadOptions
from ...options.table_names import MOST_NAMES, suggestion, written
from ..connection import Connection
from .findings import Finding, Wanted


def index_keys(version: int) -> str:
    """Returns SQL for the key columns of an index `i` of pg_index, as an array of column numbers.

    From PostgreSQL 11 on, `indkey` also has the columns that an index only includes, which are not part of a replica
    identity.
    """
    return "(i.indkey::int2[])[0:i.indnkeyatts - 1]" if version >= 11 else "i.indkey::int2[]"


IS_IDENTITY = "(case c.relreplident when 'd' then i.indisprimary and i.indimmediate when 'i' then i.indisreplident end)"
"""SQL for whether an index `i` is the replica identity of a table `c`. A deferrable primary key is not.

Source: PostgreSQL, relcache.c, RelationGetIndexList."""


def is_sent(version: int) -> str:
    """Returns SQL for whether a publication `p` sends a column `a`, where p.columns are the published ones.

    Before PostgreSQL 18, generated columns are never sent; 15 lists them as published nevertheless.

    version   the major version of the server; from PostgreSQL 15 on, p.columns is known
    """
    is_listed = "a.attname = any (p.columns)" if version >= 15 else "true"
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


def publication_findings(connection: Connection, wanted: Wanted) -> Iterator[Finding]:
    """Yields what the server says about the publications, and how much log it keeps for a slot. Raises ServerError."""
    keep = connection.query("select setting from pg_catalog.pg_settings where name = 'max_slot_wal_keep_size'")
    if keep and keep[0]["setting"] == "-1":
        yield Finding(
            "note",
            "max_slot_wal_keep_size",
            "unlimited: a slot that nobody reads fills the server's disk",
            "set it to what the disk can hold; a slot that falls behind further is then lost instead",
        )
    elif keep:
        yield Finding("ok", "max_slot_wal_keep_size", f"{keep[0]['setting']} MB: a slot further behind is lost")
    idle = connection.query(
        "select setting, unit from pg_catalog.pg_settings "
        "where name = 'idle_replication_slot_timeout' and setting <> '0'"
    )
    if idle:
        yield Finding(
            "note",
            "idle_replication_slot_timeout",
            f"{idle[0]['setting']} {idle[0]['unit']}: a slot that is not read for so long is lost",
            "set it to more than the longest time for which the stream may be stopped",
        )
    yield from _other_publications(wanted)
    each = (_publication(connection, name) for name in wanted.publications)
    yield from dict.fromkeys(chain.from_iterable(each))  # a table may be in several
    tables = connection.query(
        _TABLES.format(
            sent_tables=with_sent_tables(connection, wanted.publications),
            published=is_sent(connection.version),
            filtered=_filtered(connection, wanted.publications),
        )
    )
    yield from _privileges(tables, wanted)
    yield from _named(connection, tables, wanted)


def _publication(connection: Connection, name: str) -> Iterator[Finding]:
    """Yields whether a publication exists and has tables, and those of them whose rows cannot be changed."""
    literal = connection.literal(name)
    rows = connection.query(f"select * from pg_catalog.pg_publication where pubname = {literal}")
    if not rows:
        advice = f"CREATE PUBLICATION {connection.identifier(name)} FOR TABLE …"
        yield Finding("error", "publication", f"{name} does not exist", advice)
        return
    tables = connection.query(f"select tablename from pg_catalog.pg_publication_tables where pubname = {literal}")
    if tables:
        yield Finding("ok", "publication", f"{name} has {counted(len(tables), 'table')}")
    else:
        yield Finding("warning", "publication", f"{name} has no tables", "ALTER PUBLICATION … ADD TABLE …")
    if "t" in (rows[0].get("pubupdate"), rows[0].get("pubdelete")):
        yield from identity_findings(connection, name)


def _other_publications(wanted: Wanted) -> Iterator[Finding]:
    """Yields a warning if a stream continues with other publications, since nothing else shows what it then lacks."""
    earlier = wanted.earlier_publications
    if earlier and {*earlier} != {*wanted.publications}:
        before, now = (", ".join(sorted(names)) for names in (earlier, wanted.publications))
        yield Finding(
            "warning",
            "publication",
            f"the {wanted.keeper.noun} was written with {before}, and goes on with {now}: of tables that only one of "
            "them publishes, it lacks changes and rows",
            f"pass {before} again, or {wanted.keeper.anew}",
        )


def _named(connection: Connection, sent: Sequence[dict[str, str | None]], wanted: Wanted) -> Iterator[Finding]:
    """Yields a warning for each pattern of an option that no table of the publications matches.

    It is not an error, since the table may be added later.
    """
    tables = [_name(row) for row in sent]
    missing = [
        (option, pattern)
        for option, patterns in wanted.named.items()
        for pattern in patterns
        if not any(map(ReadOptions(tables=(pattern,)).keeps_table, tables))
    ]
    if not missing:
        return
    partitions = connection.query(_PARTITIONS.format(sent_tables=with_sent_tables(connection, wanted.publications)))
    there = [written(table) for table in tables]
    for option, pattern in missing:
        keeps, name = ReadOptions(tables=(pattern,)).keeps_table, written(pattern)
        sent_as = next((row for row in partitions if keeps(_name(row))), None)
        if sent_as:
            table = written((sent_as["ancestor_schema"], sent_as["ancestor_name"]))
            text, advice = f"the publication sends the rows of {name} as those of {table}", "name that table"
        else:
            text = f"no table of the publication is {name}{suggestion(name, there)}"
            advice = "correct the name, or add the table to the publication"
        yield Finding("warning", option, text, advice)


_PARTITIONS = """{sent_tables}
select n.nspname as schemaname, c.relname as tablename, s.schemaname as ancestor_schema, s.tablename as ancestor_name
from partitions p
join sent s on s.oid = p.ancestor
join pg_catalog.pg_class c on c.oid = p.oid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace order by 1, 2
"""
"""The partitions whose rows are sent as those of another table."""

_TABLES = """{sent_tables}
select p.schemaname, p.tablename,
    pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') and not exists (select from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and ({published} or {filtered})
        and not pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')) as may_select,
    pg_catalog.row_security_active(c.oid) as lacks_rows
from sent p join pg_catalog.pg_class c on c.oid = p.oid order by 1, 2
"""
"""The published tables, and whether the role may read all rows of their published columns, and of those that say which
rows are published."""


def _filtered(connection: Connection, publications: Sequence[str]) -> str:
    """Returns SQL for whether the rows of a table `p` are chosen by a column `a`."""
    if connection.version < 15:
        return "false"
    columns = filter_columns("c.oid", ", ".join(map(connection.literal, publications)))
    all_rows = "select from pg_catalog.json_array_elements_text(p.filters) f(one) where f.one is null"
    return f"(a.attnum in ({columns}) and not exists ({all_rows}))"


def _name(row: dict[str, str | None]) -> tuple[str, str]:
    return row["schemaname"] or "", row["tablename"] or ""


def _privileges(tables: Sequence[dict[str, str | None]], wanted: Wanted) -> Iterator[Finding]:
    """Yields the tables whose rows the role cannot copy.

    For a snapshot this is an error, which comes before a slot is created.
    """
    lacks: dict[str, list[str]] = {"select": [], "rows": []}
    for row in tables:
        table = _name(row)
        if wanted.reading.keeps_table(table) and table not in (wanted.copied or ()):
            if row["may_select"] == "f":
                lacks["select"].append(written(table))
            elif row["lacks_rows"] == "t":
                lacks["rows"].append(written(table))
    level, needs = ("note", "only a snapshot needs it") if wanted.copied is None else ("error", "the snapshot needs it")
    if lacks["select"]:
        yield Finding(
            level,
            "privileges",
            f"the role may not read {_listed(lacks['select'])}: {needs}",
            "GRANT USAGE on the schema and SELECT on the tables to it",
        )
    if lacks["rows"]:
        yield Finding(
            level,
            "privileges",
            f"row-level security may hide rows of {_listed(lacks['rows'])} from the role: {needs}",
            "ALTER ROLE … BYPASSRLS",
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
