"""Tables whose rows cannot be changed while they are published: the server is asked, and the check agrees with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import wireformat as wf

from ..servers.installations import installations
from ..servers.server import running
from .databases import Database, database

pytestmark = pytest.mark.server

TABLES = {
    "usual": "create table {0} (a int primary key, b int)",
    "none": "create table {0} (a int, b int)",
    "nothing": "create table {0} (a int primary key, b int); alter table {0} replica identity nothing",
    "whole": "create table {0} (a int, b int); alter table {0} replica identity full",
    "late": "create table {0} (a int primary key deferrable, b int)",
    "later": "create table {0} (a int primary key deferrable initially deferred, b int)",
    "indexed": "create table {0} (a int not null, b int); create unique index {0}_i on {0} (a);"
    "alter table {0} replica identity using index {0}_i",
    "including": "create table {0} (a int not null, b int, c int); create unique index {0}_i on {0} (a) include (c);"
    "alter table {0} replica identity using index {0}_i",
    "lost": "create table {0} (a int primary key, b int not null); create unique index {0}_i on {0} (b);"
    "alter table {0} replica identity using index {0}_i; drop index {0}_i",
    "Odd.name": 'create table "{0}" ("Key.1" int primary key deferrable, b int)',
    "parts": "create table {0} (a int primary key, b int) partition by list (a);"
    "create table {0}_1 partition of {0} for values in (1); create table {0}_2 partition of {0} for values in (2);"
    "alter table {0}_2 replica identity nothing",
    "whole_parts": "create table {0} (a int, b int) partition by list (a); alter table {0} replica identity full;"
    "create table {0}_1 partition of {0} for values in (1) partition by list (b);"
    "create table {0}_1_1 partition of {0}_1 for values in (1)",
    "generated": "create table {0} (a int not null, g int generated always as (a) stored not null);"
    "create unique index {0}_i on {0} (g); alter table {0} replica identity using index {0}_i",
    "whole_generated": "create table {0} (a int, g int generated always as (a) stored);"
    "alter table {0} replica identity full",
    "some_columns": "create table {0} (a int primary key, b int, c int)",
    "key_columns": "create table {0} (a int primary key, b int, c int)",
    "whole_columns": "create table {0} (a int, b int); alter table {0} replica identity full",
    "filtered": "create table {0} (a int primary key, b int)",
    "key_filtered": "create table {0} (a int primary key, b int)",
    "whole_filtered": "create table {0} (a int, b int); alter table {0} replica identity full",
    "parent": "create table {0} (a int primary key, b int); create table {0}_child () inherits ({0})",
}
PARTS_OF_TABLES = {
    "some_columns": "some_columns (b, c)",
    "key_columns": "key_columns (a, c)",
    "whole_columns": "whole_columns (a)",
    "filtered": "filtered where (b > 1)",
    "key_filtered": "key_filtered where (a > 1)",
    "whole_filtered": "whole_filtered where (b > 1 and a is not null)",
}
"""What of some tables is published, from PostgreSQL 15 on."""


@pytest.fixture(params=sorted(installations()))
def any_db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with running(installations()[request.param]) as server, database(server, "identities") as found:
        yield found


@pytest.mark.parametrize("via_root", [False, True])
def test_what_the_server_refuses(any_db: Database, via_root: bool) -> None:
    listed = [PARTS_OF_TABLES.get(name, f'"{name}"') for name in TABLES]
    for name, statement in TABLES.items():
        any_db.execute(statement.format(name))
    with_root = f"with (publish_via_partition_root = {via_root})"
    any_db.execute(f"create publication all_kinds for table {', '.join(listed)} {with_root}")
    refused = set()
    for name, table in any_db.rows(
        "select relname, oid::regclass::text from pg_class "
        "where relkind = 'r' and relnamespace = 'public'::regnamespace"
    ):
        try:
            any_db.execute(f"delete from only {table}")
        except psycopg.Error:
            refused.add(name)

    def told() -> dict[str, str]:
        """The advice, by the table."""
        found = wf.live.check(any_db.dsn, slot="none", publication="all_kinds")
        warnings = [one for one in found if one.check == "replica identity"]
        names = [re.findall(r"public\.([\w.]+)", one.text) for one in warnings]
        assert all(len(one) == 1 for one in names)
        return {name: one.advice for (name,), one in zip(names, warnings, strict=True)}

    advice = told()
    assert {*advice} == refused
    assert {"none", "nothing", "late", "later", "lost", "Odd.name", "parts_2", "whole_parts_1_1"} <= refused
    assert "make the key one that is not" in advice["late"]
    assert "REPLICA IDENTITY USING INDEX" in advice["lost"]
    assert ("filtered" in refused) == (any_db.session.info.server_version >= 150000)
    for text in advice.values():
        _, is_there, statement = text.partition("ALTER TABLE")
        if is_there:
            any_db.execute(f"ALTER TABLE{statement}")
    assert all("ALTER TABLE" not in text for text in told().values())
