"""Tables whose replica identity is switched, also within a transaction: each change finds its row by the one it had."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from ..examples import at_most
from ..servers.server import Server
from .databases import Database, database

deltalake = pytest.importorskip("deltalake")

TABLE = "create table a (id int primary key, n int not null unique, long text)"
IDENTITIES = ("default", "using index a_n_key", "full", "nothing")
NUMBERS = st.integers(1, 4)
LONG = "(select string_agg(md5({0}::text || i), '') from generate_series(1, 200) i)"  # stored out of line

STATEMENTS = st.one_of(
    st.sampled_from([f"alter table a replica identity {one}" for one in IDENTITIES]),
    st.builds(f"insert into a values ({{0}}, {{1}}, {LONG}) on conflict do nothing".format, NUMBERS, NUMBERS),
    st.builds("update a set id = {} where id = {}".format, NUMBERS, NUMBERS),
    st.builds("update a set n = {} where n = {}".format, NUMBERS, NUMBERS),
    st.builds("update a set id = {}, n = {} where n = {}".format, NUMBERS, NUMBERS, NUMBERS),
    st.builds(f"update a set long = {LONG} where id = {{0}}".format, NUMBERS),
    st.builds("delete from a where id = {}".format, NUMBERS),
    st.builds("delete from a where n = {}".format, NUMBERS),
    st.sampled_from(["truncate a", "update a set id = id", "update a set id = id + 1", "update a set n = 9 - n"]),
)
TRANSACTIONS = st.lists(st.lists(STATEMENTS, max_size=6), max_size=4)


@pytest.fixture(scope="module")
def written(live_server: Server) -> Iterator[Database]:
    """A database whose slot is read by SQL functions."""
    with database(live_server, "identities") as db:
        db.rows(f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')")
        db.execute("create table filler (x text)", "drop publication p", "create publication p for all tables")
        db.execute("set logical_decoding_work_mem = '64kB'")
        yield db


FILLER = "insert into filler select md5(i::text) from generate_series(1, 700) i"
"""Makes a transaction larger than the server keeps."""


def write(db: Database, transactions: Sequence[Sequence[str]], streaming: str) -> None:
    """Runs transactions without the statements that fail."""
    for statements in transactions:
        with db.session.transaction():
            for statement in statements:
                try:
                    with db.session.transaction():
                        if streaming == "on":
                            db.session.execute(FILLER)
                        db.session.execute(statement)
                except (psycopg.errors.UniqueViolation, psycopg.errors.ObjectNotInPrerequisiteState):
                    pass


def new_messages(db: Database, streaming: str = "off") -> list[bytes]:
    options = f"'proto_version', '2', 'streaming', '{streaming}', 'publication_names', 'p'"
    found = db.rows(f"select data from pg_logical_slot_get_binary_changes('{db.slot}', null, null, {options})")
    return [bytes(data) for (data,) in found]


def rows_of(table: pa.Table) -> list[tuple[int, int, str]]:
    return sorted((row["id"], row["n"], row["long"]) for row in table.to_pylist())


@pytest.mark.parametrize("streaming", ["off", "on"])
@at_most(15)
@given(transactions=TRANSACTIONS, split=st.integers(0, 4), memory=st.sampled_from([0, 1 << 20]), size=st.integers(1, 9))
def test_the_rows_are_those_of_the_table(
    written: Database,
    tmp_path_factory: pytest.TempPathFactory,
    transactions: list[list[str]],
    split: int,
    memory: int,
    size: int,
    streaming: str,
) -> None:
    """In one write and in two; also of transactions that are streamed before they end, and where changes wait in files.

    size   how many messages come at once
    """
    db, folder = written, tmp_path_factory.mktemp("lake")
    db.execute("drop table if exists a", TABLE)
    new_messages(db)
    inserts = ["insert into a select i, 5 - i, 'short' from generate_series(1, 4) i"]
    write(db, [inserts, *transactions[:split]], streaming)
    first = new_messages(db, streaming)
    write(db, transactions[split:], streaming)
    second = new_messages(db, streaming)
    wanted = sorted(db.rows("table a"))
    options = {"format": "delta", "state": "latest"}

    def capture(messages: list[bytes], after: wf.CapturePosition | None = None) -> wf.Capture:
        arrays = [messages[begin : begin + size] for begin in range(0, len(messages), size)]
        return wf.Capture(pa.chunked_array(arrays, pa.binary()), "pgoutput", memory_limit=memory, after=after)

    whole = capture([*first, *second])
    assert rows_of(whole.latest("public.a")) == wanted
    whole.write(folder / "new", **options)
    assert rows_of(stored(folder / "new")) == wanted
    start = capture(first)
    start.write(folder / "there", **options)
    capture(second, start.position).write(folder / "there", **options)
    assert rows_of(stored(folder / "there")) == wanted
    shutil.rmtree(folder)


def stored(lake: Path) -> pa.Table:
    return deltalake.DeltaTable(lake / "public" / "a").to_pyarrow_table()


@pytest.mark.parametrize("memory", [96 << 20, 0])
def test_a_switch_is_followed(db: Database, tmp_path: Path, memory: int) -> None:
    """In a transaction and between two. While the key is not the identity, the server does not send its old value."""
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest", "memory_limit": memory}
    db.execute(TABLE, "alter publication p add table a")
    db.execute("insert into a select i, 10 * i, 'v' from generate_series(1, 9) i")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute(
        """begin; delete from a where id = 4; alter table a replica identity using index a_n_key;
        delete from a where id = 5; update a set id = 20 where id = 6; update a set n = 100 where id = 7; commit""",
        "update a set id = 30 where id = 20",
        "begin; alter table a replica identity default; delete from a where id = 30; commit",
    )
    db.follow(lake, **options)
    assert rows_of(stored(lake)) == sorted(db.rows("table a"))
    db.execute(
        """begin; update a set n = 8 where id = 8; alter table a replica identity full;
        delete from a where id = 8; update a set id = 40 where id = 9; commit"""
    )
    db.follow(lake, **options)
    assert rows_of(stored(lake)) == sorted(db.rows("table a"))


def test_a_table_that_is_made_again_with_another_key(db: Database, tmp_path: Path) -> None:
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest"}
    db.execute("drop publication p", "create publication p for all tables", TABLE, "insert into a values (1, 1, 'a')")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute(
        "insert into a values (2, 2, 'b')",
        "drop table a",
        "create table a (id int, n int primary key, long text)",
        "insert into a values (1, 5, 'c'), (1, 6, 'd')",
        "update a set long = 'e' where n = 5",
    )
    for _ in range(2):
        db.follow(lake, **options)
        assert rows_of(stored(lake)) == sorted(db.rows("table a"))
        db.execute("delete from a where n = 6")


def test_a_key_that_is_the_whole_row(db: Database, tmp_path: Path) -> None:
    """The server does not send the old row of an update that leaves the key as it is."""
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest"}
    db.execute("create table a (id int primary key)", "alter publication p add table a", "insert into a values (1)")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute("update a set id = id", "update a set id = 2", "insert into a values (3)", "update a set id = id")
    db.follow(lake, **options)
    assert sorted(row["id"] for row in stored(lake).to_pylist()) == [2, 3]


def test_a_key_that_is_renamed(db: Database, tmp_path: Path) -> None:
    """The server does not say that it is the same column: nobody can tell which rows of the lake have which key."""
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest"}
    db.execute(TABLE, "alter publication p add table a", "insert into a values (1, 1, 'a'), (2, 2, 'b')")
    position = db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute("alter table a rename id to key", "update a set n = 3 where key = 1")
    with pytest.raises(wf.BadRows, match="none with the column key, which was added or renamed"):
        db.follow(lake, **options)
    assert wf.lake.position(lake) == position


def test_a_column_that_a_table_without_a_key_gets(db: Database, tmp_path: Path) -> None:
    """Its old rows say that the column is NULL in rows from before."""
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest"}
    db.execute("create table a (id int, n int, long text)", "alter table a replica identity full")
    db.execute("alter publication p add table a", "alter table a alter long set storage external")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute(
        "insert into a select i, i, repeat('x', 9000) from generate_series(1, 4) i",
        "update a set n = 9 where id = 4",
        "alter table a add column new int",
        "update a set n = 7 where id = 2",
        "update a set new = 5 where id = 4",
        "delete from a where id = 1",
        "insert into a values (2, 7, 'short', null)",
    )
    for _ in range(2):
        db.follow(lake, **options)
        rows = sorted(repr((row["id"], row["n"], row["long"], row["new"])) for row in stored(lake).to_pylist())
        assert rows == sorted(map(repr, db.rows("table a")))
        db.execute("delete from a where id = 3", "update a set n = 1 where id = 2")


def test_keys_with_odd_names(db: Database, tmp_path: Path) -> None:
    """As columns of Arrow, of SQL of a MERGE, and beside the columns that a MERGE makes."""
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest"}
    columns = ('"a`b"', '". ;"', "k0", "v0", "gone", '"index"')
    listed = ", ".join(f"{column} int" for column in columns)
    db.execute(
        f"create table a ({listed}, n int, primary key ({', '.join(columns)}))", "alter publication p add table a"
    )
    db.execute("insert into a values (1, 1, 1, 1, 1, 1, 1), (2, 2, 2, 2, 2, 2, 2), (3, 3, 3, 3, 3, 3, 3)")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute("update a set n = 5 where k0 = 1", 'update a set ". ;" = 9 where k0 = 2', "delete from a where k0 = 3")
    db.follow(lake, **options)
    db.execute("begin; delete from a where k0 = 2; alter table a replica identity full; update a set n = 6; commit")
    db.follow(lake, **options)
    (row,) = stored(lake).to_pylist()
    assert [*row.values()][:7] == [*db.rows("table a")[0]] == [1, 1, 1, 1, 1, 1, 6]
