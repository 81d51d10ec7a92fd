"""Random transactions in several sessions at once: streamed, undone in parts, prepared, some that only lock rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from .values import literal
from .workload import PUBLICATION, SEEN, Step

SESSIONS = ("a", "b", "c")
ROWS = 40
"""Each session has a table of its own, so that none waits for another; these many keys are changed again and again."""

STAYS = 0
"""The key of a row that is always there: a lock that finds no row writes nothing, and then no server sends its gid.

Every other prepared transaction changes this row, since its statements may find no row to change. Before 18, a server
sends the end of a prepared transaction without changes, but not its PREPARE, as if it had only locked rows."""

MESSAGE = "select pg_logical_emit_message({}, 'prefix', 'a message')"


def random_setup() -> Iterator[str]:
    """Tables, one a session; the publication, which leaves out one."""
    for name in SESSIONS:
        yield f"create table r_{name} (id integer primary key, v text, w integer)"
    yield "alter table r_b replica identity full"
    yield "create table unpublished (id integer, v text)"
    yield f"create publication {PUBLICATION} for table {', '.join(f'r_{name}' for name in SESSIONS)}"


@dataclass
class RandomWorkload:
    """Statements that all succeed; no transaction is open at the end.

    locked   gids of prepared transactions that only locked rows
    """

    random: Random
    transactions: int = 45
    locked: set[str] = field(default_factory=set)

    def steps(self) -> Iterator[Step]:
        """The statements of all sessions, one behind the other as it falls."""
        running: dict[str, Iterator[str]] = {}
        begun = dict.fromkeys(SESSIONS, 0)
        for name in SESSIONS:
            yield Step(name, f"insert into r_{name} select i, 'first', i from generate_series({STAYS}, {ROWS}) i")
        while running or min(begun.values()) < self.transactions // len(SESSIONS):
            name = self.random.choice(SESSIONS)
            if name not in running:
                if begun[name] >= self.transactions // len(SESSIONS):
                    continue
                begun[name] += 1
                running[name] = self._transaction(name, begun[name])
            statement = next(running[name], None)
            if statement is None:
                del running[name]
            else:
                yield SEEN if statement == SEEN.sql else Step(name, statement)

    def _transaction(self, name: str, number: int) -> Iterator[str]:
        random = self.random
        gid = f"gid {name} {number}"
        only_locks = random.random() < 0.15
        end = random.choice(("commit", "commit", "commit", "rollback", "commit prepared", "rollback prepared"))
        if only_locks and random.random() < 0.7:
            end = random.choice(("commit prepared", "rollback prepared"))
        is_prepared = end.endswith("prepared")
        yield "begin"
        if only_locks:
            yield f"select * from r_{name} where id % 7 = {random.randrange(7)} or id = {STAYS} for update"
        else:
            if is_prepared:
                yield f"update r_{name} set w = {number} where id = {STAYS}"
            parts = [part for part in PARTS if part is not _truncated or end != "rollback prepared"]
            for part in range(random.randrange(1, 5)):
                yield from random.choice(parts)(random, f"r_{name}", 1000 * number + 100_000 * part)
        if random.random() < 0.3:
            yield SEEN.sql
        if is_prepared:
            if only_locks:
                self.locked.add(gid)
            yield f"prepare transaction {literal(gid)}"
            yield f"{end} {literal(gid)}"
        else:
            yield end


def _few(random: Random, table: str, base: int) -> Iterator[str]:
    for _ in range(random.randrange(1, 4)):
        id = random.randrange(1, ROWS + 1)
        yield random.choice(
            (
                f"update {table} set v = 'changed', w = {random.randrange(1000)} where id = {id}",
                f"update {table} set v = null where id % 10 = {id % 10}",
                f"delete from {table} where id = {id}",
                f"insert into {table} (id, v, w) values ({id}, 'it''s {id}', {base}) on conflict (id) do nothing",
            )
        )


def _many(random: Random, table: str, base: int) -> Iterator[str]:
    """Enough to be streamed, mostly."""
    count = random.choice((20, 100, 300))
    yield (
        f"insert into {table} (id, v, w) select {base} + i, repeat('x', 500), i from generate_series(1, {count}) i "
        "on conflict (id) do nothing"
    )
    if random.random() < 0.5:
        yield f"delete from {table} where id > {base} and id % 3 = 0"


def _undone(random: Random, table: str, base: int) -> Iterator[str]:
    """A savepoint with changes; nested ones at times."""
    name = f"s{random.randrange(1000)}"
    yield f"savepoint {name}"
    yield from random.choice((_few, _many, _many))(random, table, base + 400)
    if random.random() < 0.4:
        yield from _undone(random, table, base + 10_000)
    if random.random() < 0.3:
        yield SEEN.sql
    yield random.choice((f"rollback to {name}", f"rollback to {name}", f"release {name}"))


def _altered(random: Random, table: str, base: int) -> Iterator[str]:
    """Another column, dropped at times: what a block describes may be undone with it."""
    column = f"c{random.randrange(4)}"
    yield f"alter table {table} add column if not exists {column} integer"
    yield f"update {table} set {column} = id where id % 5 = {random.randrange(5)}"


def _asides(random: Random, table: str, base: int) -> Iterator[str]:
    yield MESSAGE.format(random.choice(("true", "false")))
    yield MESSAGE.format("false")


def _unpublished(random: Random, table: str, base: int) -> Iterator[str]:
    yield f"insert into unpublished select i, repeat('y', 300) from generate_series(1, {random.choice((1, 500))}) i"


def _truncated(random: Random, table: str, base: int) -> Iterator[str]:
    """Not in a prepared transaction that is rolled back: PostgreSQL 18.4 cannot decode each of them.

    Where changes before the TRUNCATE were undone, a slot with streaming and two_phase fails with "could not map
    filenumber … to relation OID" at the row after it.
    """
    if random.random() < 0.2:
        yield f"truncate {table}"
        yield f"insert into {table} (id, v) values ({STAYS}, 'stays')"


PARTS: tuple[Callable[[Random, str, int], Iterator[str]], ...] = (
    *(_few, _few, _many, _many, _undone, _undone, _undone),
    *(_altered, _asides, _unpublished, _truncated),
)
