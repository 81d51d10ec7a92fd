"""A seeded workload: SQL statements that make a server write every kind of change that its streams can say."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from .values import NO_ARRAYS, array_literals, literal, values_of

SEED = 4
PUBLICATION = "everything"
ORIGIN = "elsewhere"


class Step(NamedTuple):
    """A statement and the session that runs it; sessions stay open, so transactions of several can interleave."""

    session: str
    sql: str


def quoted(name: str) -> str:
    """A name as SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


HOSTILE_NAMES = (
    'say "x"',
    "a b.c",
    "t: INSERT:",
    "[integer]:1",
    "two\nlines",
    "Ünï😀",
    "new-tuple:",
    "user",
    "'quoted'",
    "back\\slash",
    "{a,b}",
)
TYPES_TABLE = "every_type"
ARRAYS_TABLE = "every_array"
IDENTITIES = {
    "by_key": ("id integer primary key, v text, w integer", "default"),
    "by_two_keys": ("w integer, b text, a integer, v text, primary key (a, b)", "default"),
    "by_index": ("id integer not null unique, v text, w integer", "using index by_index_id_key"),
    "by_row": ("id integer, v text, w integer", "full"),
    "by_row_with_key": ("id integer primary key, v text, w integer", "full"),
    "by_nothing": ("id integer primary key, v text, w integer", "nothing"),
    "without_key": ("id integer, v text, w integer", "default"),
}
"""Tables of each replica identity: columns, identity. Rows of the last two are inserted and truncated only."""

CHANGED_TABLES = tuple(
    name for name, (_, identity) in IDENTITIES.items() if not name.startswith(("by_nothing", "without"))
)
LONG_TABLES = {"long_by_key": "default", "long_by_row": "full"}
"""Tables whose values are long enough to be stored out of line, and their replica identities."""

SETUP = (
    "create schema shop",
    'create schema "S.a"',
    "create type shop.mood as enum ('sad', 'it''s ok', 'a \"b\"')",
    'create type shop."T[x]" as (a integer, "b c" text)',
    "create domain shop.positive as numeric(10,2) check (value > 0)",
    "create domain public.flag as boolean",
    "create type shop.span as range (subtype = double precision)",
)


def setup(version: int) -> Iterator[str]:
    """What comes before slots and workload: schemas, types, tables, the publication, the origin."""
    yield from SETUP
    types = values_of(version)
    columns = ", ".join(f"{quoted('c ' + type)} {type}" for type in types)
    own = 'm shop.mood, t shop."T[x]", p shop.positive, f public.flag, s shop.span, ms shop.mood[], ts shop."T[x]"[]'
    yield f"create table {TYPES_TABLE} (id integer primary key, {columns}, {own})"
    arrays = ", ".join(f"{quoted('c ' + type)} {type}[]" for type in types if type not in NO_ARRAYS)
    yield f"create table {ARRAYS_TABLE} (id integer primary key, {arrays})"
    for name, (definition, identity) in IDENTITIES.items():
        yield f"create table {name} ({definition})"
        yield f"alter table {name} replica identity {identity}"
    for name in HOSTILE_NAMES:
        columns = f'{quoted(name)} integer primary key, {quoted(name + "s")} text, "it\'s" shop."T[x]"'
        yield f'create table "S.a".{quoted(name)} ({columns})'
    for name, identity in LONG_TABLES.items():
        yield f"create table {name} (id integer primary key, a text, b bytea, c integer)"
        yield f"alter table {name} alter a set storage external, alter b set storage external"
        yield f"alter table {name} replica identity {identity}"
    yield "create table parent (id serial primary key, v text)"
    yield "create table child (id integer primary key, parent integer references parent on delete cascade)"
    yield "create table altered (id integer primary key, a integer, b varchar(10), gone text)"
    yield "create table z ()"
    yield "create table z1 (a integer) partition by list (a)"
    yield "alter table z replica identity full"
    for part in (1, 2):
        yield f"create table z1_{part} partition of z1 (primary key (a)) for values in ({part}, {part + 2})"
    yield "create table big (id integer primary key, v text)"
    yield "create table other_big (id integer primary key, v text)"
    yield f"create publication {PUBLICATION} for all tables"
    yield f"select pg_replication_origin_create('{ORIGIN}')"


def workload(version: int, seed: int = SEED) -> Iterator[Step]:
    """The changes, in order. Every statement succeeds, and no transaction is open at the end."""
    random = Random(seed)
    parts = (
        *(
            _types(version),
            _arrays(version),
            _identities(random),
            _hostile(),
            _long(random),
            _truncates(),
            _savepoints(),
        ),
        *(_messages(), _altered(), _partitions(), _origin(), _streamed(), _two_phase(), _random_changes(random)),
    )
    for part in parts:
        for step in part:
            yield step if isinstance(step, Step) else Step("a", step)


def _types(version: int) -> Iterator[str]:
    types = values_of(version)
    for row in range(max(map(len, types.values()))):
        cells = [f"{literal(values[row % len(values)])}::{type}" for type, values in types.items()]
        own = """'it''s ok', row(1, 'a "b", it''s')::shop."T[x]", 3.1, true, '[0.1,2)',
            array['a "b"', null]::shop.mood[], array[row(1, 'x,y'), null]::shop."T[x]"[]"""
        yield f"insert into {TYPES_TABLE} values ({row}, {', '.join(cells)}, {own})"
    yield f"insert into {TYPES_TABLE} (id) values (-1)"
    yield f"update {TYPES_TABLE} set m = 'sad', t = null where id = 0"
    yield f"delete from {TYPES_TABLE} where id = 1"


def _arrays(version: int) -> Iterator[str]:
    types = [(type, values) for type, values in values_of(version).items() if type not in NO_ARRAYS]
    for row, cells in enumerate(zip(*(array_literals(type, values) for type, values in types), strict=True)):
        yield f"insert into {ARRAYS_TABLE} values ({row}, {', '.join(cells)})"


def _identities(random: Random) -> Iterator[str]:
    for name in IDENTITIES:
        columns = "a, b, v, w" if name == "by_two_keys" else "id, v, w"
        key = "{0}, 'k{0}'" if name == "by_two_keys" else "{0}"
        rows = (
            (1, "'one'", 1),
            (2, "null", 2),
            (3, "'it''s'", "null"),
            (4, "''", random.randrange(1000)),
            (5, "'x'", 5),
        )
        yield f"insert into {name} ({columns}) values " + ", ".join(
            f"({key.format(id)}, {v}, {w})" for id, v, w in rows
        )
    for name in CHANGED_TABLES:
        id = "a" if name == "by_two_keys" else "id"
        yield "begin"
        yield f"update {name} set v = 'changed' where {id} = 1"
        yield f"update {name} set {id} = 20 where {id} = 2"
        yield f"update {name} set v = v where {id} = 3"
        yield f"delete from {name} where {id} = 4"
        yield f"update {name} set {id} = {id} + 100, v = null"
        yield "commit"
    yield "insert into by_row values (7, 'twin', 7), (7, 'twin', 7), (null, null, null), (null, null, null)"
    yield "update by_row set v = 'one of two' where ctid = (select min(ctid) from by_row where id = 7)"
    yield "delete from by_row where ctid = (select min(ctid) from by_row where id is null)"
    yield "insert into z default values"
    yield "insert into z default values"
    yield "delete from z where ctid = (select min(ctid) from z)"


def _hostile() -> Iterator[str]:
    for name in HOSTILE_NAMES:
        table = f'"S.a".{quoted(name)}'
        text = literal(f"x' {name}[text]:'y: UPDATE: new-tuple: \n table public.x: DELETE:")
        yield f"insert into {table} values (1, {text}, row(1, {text})), (2, null, null)"
        yield f"update {table} set {quoted(name)} = 3 where {quoted(name)} = 1"
        yield f"delete from {table} where {quoted(name)} = 2"


def _long(random: Random) -> Iterator[str]:
    for name in LONG_TABLES:
        unit = "".join(random.choice("abcdef") for _ in range(8))
        yield f"insert into {name} values (1, repeat('{unit}', 1100), decode(repeat('00ff', 4200), 'hex'), 1)"
        yield f"insert into {name} values (2, 'x', null, 2)"
        yield f"insert into {name} values (3, repeat('ä{unit}', 1000), null, 3)"
        yield f"update {name} set c = 10 where id = 1"
        yield f"update {name} set b = '\\x01', c = null where id = 1"
        yield f"update {name} set id = 30 where id = 3"
        yield f"update {name} set a = repeat('{unit}', 1200) where id = 2"
        yield f"update {name} set c = 0"
        yield f"delete from {name} where id = 1"


def _truncates() -> Iterator[str]:
    yield "insert into parent (v) values ('a'), ('b')"
    yield "insert into child values (1, 1), (2, 1), (3, 2)"
    yield "delete from parent where id = 1"
    yield "truncate parent restart identity cascade"
    yield "insert into parent (v) values ('after')"
    yield "insert into child values (9, 1)"
    yield "truncate by_nothing, without_key"
    yield "insert into by_nothing values (9, 'after', 9)"
    yield "insert into without_key values (9, 'after', 9), (9, 'after', 9)"
    yield from ("begin", "truncate by_two_keys", "rollback")
    yield from ("begin", "insert into by_index values (50, 'in', 1)", "truncate by_index restart identity")
    yield from ("insert into by_index values (51, 'in', 2)", "commit")


def _savepoints() -> Iterator[str]:
    yield "begin"
    yield "insert into by_key values (300, 'kept', 1)"
    yield "savepoint one"
    yield "insert into by_key values (301, 'dropped', 1)"
    yield "savepoint two"
    yield "update by_key set v = 'dropped' where id = 300"
    yield "rollback to one"
    yield "insert into by_key values (302, 'kept', 1)"
    yield "savepoint three"
    yield "update by_key set w = 2 where id = 302"
    yield "release three"
    yield "commit"
    yield from ("begin", "delete from by_key", "rollback")


def _messages() -> Iterator[str]:
    yield "select pg_logical_emit_message(true, 'text, sz: 3 content:', 'it''s ä')"
    yield "select pg_logical_emit_message(false, 'p', 'at once')"
    yield "select pg_logical_emit_message(true, '', '')"
    yield "select pg_logical_emit_message(false, 'bytes', '\\x00ff80'::bytea)"
    yield "begin"
    yield "insert into by_key values (400, 'with messages', 1)"
    yield "select pg_logical_emit_message(true, 'in', 'counts with its transaction')"
    yield "select pg_logical_emit_message(false, 'out', 'counts at once')"
    yield "savepoint one"
    yield "select pg_logical_emit_message(true, 'in', 'dropped')"
    yield "rollback to one"
    yield "delete from by_key where id = 400"
    yield "commit"
    yield "begin"
    yield "select pg_logical_emit_message(true, 'in', 'dropped')"
    yield "select pg_logical_emit_message(false, 'out', 'stays')"
    yield "rollback"


def _altered() -> Iterator[str]:
    yield "insert into altered values (1, 1, 'one', 'x'), (2, null, null, null)"
    yield "alter table altered add column more text"
    yield "insert into altered values (3, 3, 'three', 'x', 'more')"
    yield "update altered set more = 'now' where id = 1"
    yield "alter table altered drop column gone"
    yield "update altered set a = 22 where id = 2"
    yield "begin"
    yield "insert into altered values (4, 4, 'four', null)"
    yield "alter table altered alter a type bigint, alter b type text"
    yield "insert into altered values (5, 5000000000, 'longer than ten', 'y')"
    yield "alter table altered add column last shop.mood"
    yield "update altered set last = 'sad' where id = 5"
    yield "commit"
    yield 'alter table altered rename more to "more:"'
    yield "update altered set \"more:\" = 'renamed' where id = 4"
    yield "update altered set a = a"  # every row once more: else no stream would say that the values have a new name
    yield "alter table altered replica identity full"
    yield "delete from altered where id = 3"


def _partitions() -> Iterator[str]:
    yield "insert into z1 values (1), (2)"
    yield "update z1 set a = 4 where a = 1"
    yield "truncate z1"
    yield "insert into z1 values (3), (2)"


def _origin() -> Iterator[Step]:
    yield Step("origin", f"select pg_replication_origin_session_setup('{ORIGIN}')")
    yield Step("origin", "begin")
    yield Step("origin", "select pg_replication_origin_xact_setup('0/AABBCC', '2020-02-02 02:02:02+00')")
    yield Step("origin", "insert into by_key values (500, 'from elsewhere', 1)")
    yield Step("origin", "commit")
    yield Step("origin", "insert into by_key values (501, 'from elsewhere', 2)")
    yield Step("origin", "select pg_replication_origin_session_reset()")


def _rows(table: str, start: int, count: int, value: str = "v") -> str:
    """Rows of 600 bytes: a hundred of them outgrow the memory."""
    return (
        f"insert into {table} select i, '{value}' || i || repeat('.', 600) "
        f"from generate_series({start}, {start + count - 1}) i"
    )


SEEN = Step("b", "select pg_sleep(0.2)")
"""So that who reads meanwhile has seen the changes before they are undone."""


def _streamed() -> Iterator[Step]:
    """Transactions that outgrow logical_decoding_work_mem: two that alternate, one with parts undone, two dropped."""
    yield Step("a", "begin")
    yield Step("b", "begin")
    for part in range(4):
        yield Step("a", _rows("big", 1000 * part, 100))
        yield Step("b", _rows("other_big", 1000 * part, 100))
    yield Step("a", "select pg_logical_emit_message(true, 'streamed', 'counts with its transaction')")
    yield Step("b", "select pg_logical_emit_message(false, 'between', 'counts at once')")
    yield Step("b", "update other_big set id = -id where id between 1 and 5")
    yield Step("b", "commit")
    yield Step("a", "savepoint one")
    yield Step("a", _rows("big", 10000, 120, "dropped "))
    yield Step("a", "savepoint two")
    yield Step("a", _rows("big", 20000, 120, "dropped "))
    yield SEEN
    yield Step("a", "rollback to one")
    yield Step("a", "savepoint three")
    yield Step("a", _rows("big", 30000, 120, "kept "))
    yield Step("a", "alter table big add column extra integer")
    yield Step("a", "update big set extra = id where id between 30000 and 30100")
    yield Step("a", "release three")
    yield Step("a", "delete from big where id < 1000")
    yield Step("a", "commit")
    yield from (Step("a", "begin"), Step("a", _rows("other_big", 50000, 150, "dropped ")), SEEN, Step("a", "rollback"))
    yield from (Step("a", "begin"), Step("a", _rows("other_big", 60000, 120)), Step("a", "truncate other_big"))
    yield from (Step("a", _rows("other_big", 70000, 120)), SEEN, Step("a", "rollback"))
    yield from (Step("a", "begin"), Step("a", _rows("other_big", 80000, 120)), Step("a", "truncate other_big, child"))
    yield from (Step("a", _rows("other_big", 90000, 120)), Step("a", "commit"))


def _two_phase() -> Iterator[Step]:
    gids = ("plain", "it's, txid 99", "back\\slash", "two\nlines", "Ünï")
    for number, gid in enumerate(gids):
        yield Step("a", "begin")
        yield Step("a", f"insert into by_key values ({600 + number}, {literal(gid)}, 1)")
        yield Step("a", f"prepare transaction {literal(gid)}")
        yield Step("b", f"insert into by_row_with_key values ({600 + number}, 'between', 1)")
        yield Step("b", f"{'rollback' if number == 1 else 'commit'} prepared {literal(gid)}")
    for number, (gid, end) in enumerate((("streamed", "commit"), ("streamed, dropped", "rollback"))):
        yield Step("a", "begin")
        yield Step("a", _rows("big (id, v)", 100_000 + 10_000 * number, 150))
        yield Step("a", "savepoint one")
        yield Step("a", _rows("big (id, v)", 105_000 + 10_000 * number, 150, "dropped "))
        yield Step("a", "rollback to one")
        yield Step("a", f"prepare transaction {literal(gid)}")
        yield Step("b", f"insert into by_row_with_key values ({650 + number}, 'between', 1)")
        yield Step("b", f"{end} prepared {literal(gid)}")
    yield from (Step("a", "begin"), Step("a", "insert into by_key values (690, 'no two phases', 1)"))
    yield from (Step("a", "prepare transaction 'x_nodecode'"), Step("a", "commit prepared 'x_nodecode'"))


TEXTS = ("null", "''", "'it''s'", "'null'", "E'\\\\N'", "E'a\\nb'", "'ä €'", "repeat('long ', 500)")


def _random_changes(random: Random) -> Iterator[Step]:
    """Transactions of a few random changes each, with savepoints, some of them rolled back."""
    for transaction in range(40):
        yield Step("a", "begin")
        for change in range(random.randrange(1, 8)):
            table = random.choice([name for name in CHANGED_TABLES if name != "by_two_keys"])
            id, text = random.randrange(700, 740), random.choice(TEXTS)
            kind = random.choice(("insert", "insert", "update", "key", "delete", "savepoint"))
            new = 1000 + transaction * 10 + change
            statements = {
                "insert": f"insert into {table} select {id}, {text}, {new} where not exists "
                f"(select from {table} where id = {id})",
                "update": f"update {table} set v = {text}, w = {new} where id = {id}",
                "key": f"update {table} set id = {new} where id = {id}",
                "delete": f"delete from {table} where id = {id}",
                "savepoint": "savepoint s",
            }
            yield Step("a", statements[kind])
            if kind == "savepoint":
                yield Step("a", f"delete from {table} where id % 3 = {change % 3}")
                yield Step("a", random.choice(("release s", "rollback to s")))
        yield Step("a", random.choice(("commit", "commit", "commit", "rollback")))
