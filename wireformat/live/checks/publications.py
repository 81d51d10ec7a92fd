"""Whether publications send the changes that are wanted, and whether the rows of their tables can be copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import counted
from ...options import ReadOptions
from ...options.table_names import MOST_NAMES, suggestion, written
from ..catalog_queries import is_sent
from ..connection import Connection
from .findings import Finding, Wanted
from .identities import identity_findings


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
    for name in wanted.publications:
        rows = connection.query(f"select * from pg_catalog.pg_publication where pubname = {connection.literal(name)}")
        if not rows:
            yield Finding(
                "error",
                "publication",
                f"{name} does not exist",
                f"CREATE PUBLICATION {connection.identifier(name)} FOR TABLE …",
            )
            continue
        yield from _tables(connection, name, rows[0], wanted)
    yield from _named(connection, wanted)


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


def _named(connection: Connection, wanted: Wanted) -> Iterator[Finding]:
    """Yields a warning for each pattern of an option that no table of the publications matches.

    It is not an error, since the table may be added later.
    """
    if not any(wanted.named.values()):
        return
    names = ", ".join(map(connection.literal, wanted.publications))
    rows = connection.query(
        f"select schemaname, tablename from pg_catalog.pg_publication_tables where pubname in ({names})"
    )
    tables = [(row["schemaname"] or "", row["tablename"] or "") for row in rows]
    there = [written(table) for table in tables]
    for option, patterns in wanted.named.items():
        for pattern in patterns:
            if not any(map(ReadOptions(tables=(pattern,)).keeps_table, tables)):
                yield Finding(
                    "warning",
                    option,
                    f"no table of the publication is {written(pattern)}{suggestion(written(pattern), there)}",
                    "correct the name, or add the table to the publication",
                )


_TABLES = """
select t.schemaname, t.tablename,
    pg_catalog.has_schema_privilege(n.oid, 'USAGE') and not exists (select from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and {published}
        and not pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')) as may_select,
    pg_catalog.row_security_active(c.oid) as lacks_rows
from pg_catalog.pg_publication_tables t
join pg_catalog.pg_namespace n on n.nspname = t.schemaname
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
where t.pubname = {publication} order by 1, 2
"""


def _tables(connection: Connection, name: str, publication: dict[str, str | None], wanted: Wanted) -> Iterator[Finding]:
    """Yields what is found about the tables of a publication; `publication` is its row of pg_publication."""
    published = is_sent(connection.version, "t.attnames")
    tables = connection.query(_TABLES.format(published=published, publication=connection.literal(name)))
    if tables:
        yield Finding("ok", "publication", f"{name} has {counted(len(tables), 'table')}")
    else:
        yield Finding("warning", "publication", f"{name} has no tables", "ALTER PUBLICATION … ADD TABLE …")
    yield from _privileges(tables, wanted)
    if "t" in (publication.get("pubupdate"), publication.get("pubdelete")):
        yield from identity_findings(connection, name)


def _privileges(tables: Sequence[dict[str, str | None]], wanted: Wanted) -> Iterator[Finding]:
    """Yields the tables whose rows the role cannot copy.

    For a snapshot this is an error, which comes before a slot is created.
    """
    lacks: dict[str, list[str]] = {"select": [], "rows": []}
    for row in tables:
        table = (row["schemaname"] or "", row["tablename"] or "")
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
