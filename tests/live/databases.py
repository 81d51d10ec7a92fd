"""Databases of a server of our own, and the lakes that are read from them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

import wireformat as wf

from ..servers.server import Server

PATIENCE_SECONDS = 60
"""How long a busy machine may take for what is done soon."""

TABLE = "create table t (id int primary key, name text, price numeric(10, 2))"
LOG = """
create table log (ordinal bigserial primary key, xid xid8 default pg_current_xact_id(), operation text, id int);
create function remember() returns trigger language plpgsql as $$
begin
    insert into log (operation, id) values (tg_op, coalesce(new.id, old.id));
    return null;
end $$;
create trigger remember after insert or update or delete on t for each row execute function remember();
"""
"""What a trigger has seen of `t`; the log itself is not published."""


class Database:
    """A database with a table `t`, which is published as `p`, and a slot `s` of its own name."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.slot = f"slot_{name}"
        self.session = server.connect(name)

    @property
    def dsn(self) -> str:
        return f"host={self.server.folder} user=postgres dbname={self.name}"

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.session.execute(query).fetchall()

    def confirmed(self) -> int:
        found = self.rows(f"select confirmed_flush_lsn::text from pg_replication_slots where slot_name = '{self.slot}'")
        return wf.lsn_value(found[0][0])

    def follow(self, folder: Path, **options: Any) -> Any:
        """Reads what there is into a lake. The slot is free afterwards, also where the server is slow to let it go."""
        usual: dict[str, Any] = {"slot": self.slot, "publication": "p", "once": True, "threads": 1}
        position = wf.live.follow(self.dsn, folder, **{**usual, **options})
        self.wait_until_free()
        return position

    def wait_until_free(self) -> None:
        """Waits until the server has noticed that all readers of this database are gone."""
        busy = "select from pg_stat_activity where datname = current_database() and backend_type = 'walsender'"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.rows(busy):
            assert time.monotonic() < deadline, "the slot is still in use"
            time.sleep(0.02)


@contextmanager
def database(server: Server, name: str, encoding: str = "UTF8") -> Iterator[Database]:
    """A new database, with a table and its publication; it and its slots are gone afterwards."""
    with server.connect() as session:
        command = sql.SQL("create database {} encoding {} template template0")
        session.execute(command.format(sql.Identifier(name), sql.Literal(encoding)))
    found = Database(server, name)
    try:
        found.execute(TABLE, "create publication p for table t")
        yield found
    finally:
        found.session.close()
        _remove(server, name)


def _remove(server: Server, name: str) -> None:
    with server.connect() as session:
        session.execute(
            "select pg_terminate_backend(active_pid) from pg_replication_slots where database = %s and active", [name]
        )
        for (slot,) in session.execute("select slot_name from pg_replication_slots where database = %s", [name]):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                try:
                    session.execute("select pg_drop_replication_slot(%s)", [slot])
                    break
                except psycopg.errors.ObjectInUse:
                    assert time.monotonic() < deadline, "the slot is still in use"
                    time.sleep(0.02)
        session.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def changes_of(folder: Path, table: str = "public.t") -> pa.Table:
    """All rows of a table of a Parquet lake, in their order."""
    for row in wf.lake.tables(folder).to_pylist():
        if f"{row['table_schema']}.{row['table_name']}" == table:
            return pa.concat_tables([pq.read_table(file) for file in row["files"]], promote_options="permissive")
    return pa.table({})


def told(folder: Path, table: str = "public.t") -> list[tuple[str, int]]:
    """The kind and the id of each change."""
    return [(row["_change_type"], row["id"]) for row in changes_of(folder, table).to_pylist()]


def is_ordered_and_unique(rows: pa.Table) -> bool:
    """Whether (commit_lsn, ordinal) rises from row to row."""
    found = [(row["commit_lsn"], row["ordinal"]) for row in rows["_sequence"].to_pylist()]
    return all(left < right for left, right in pairwise(found))
