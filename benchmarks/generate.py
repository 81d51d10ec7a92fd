"""The data: a seeded capture of a shop's row changes, the same ones as messages of four formats and as JSON lines.

Four kinds of table in five branches make 20 tables of 8 columns. Of 100 changes 65 are INSERTs, 30 UPDATEs and 5
DELETEs; a DELETE, and one UPDATE in ten, carries the key as old image (replica identity default). All is invented.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import feather

import wireformat as wf
from wireformat.pgtypes import type_oid

BINARY, JSON, TEXT = FORMATS = ("gaussdb-binary", "gaussdb-json", "gaussdb-text")
JSON_LINES = "json-lines"
PGOUTPUT = "pgoutput"
SOURCES = (*FORMATS, JSON_LINES, PGOUTPUT)
"""What the row changes can be read from."""

SEED = 20260302
BYTES_PER_CHANGE = 203.1  # of this data as binary, with the framing and with BEGIN and COMMIT
CHANGES_PER_TRANSACTION = 200  # at most
ONE_TABLE = ("shop", "orders_3")
"""The table that a filter asks for, one of 20."""

PARTS = 4
"""The capture is made in parts, each with its own seed, so that all cores can work; a part begins its own message."""

Make = Callable[[Random], str | None]


class Column(NamedTuple):
    """One column: its name, SQL type, and how a value comes from chance."""

    name: str
    type: str
    make: Make


def number(least: int, most: int) -> Make:
    """An integer."""
    return lambda chance: str(int(least + chance.random() * (most - least)))


def decimal(most: float) -> Make:
    """A number with two digits after the point."""
    return lambda chance: f"{chance.random() * most:.2f}"


def one_of(*values: str | None) -> Make:
    """One of a few values; None is NULL."""
    return lambda chance: values[int(chance.random() * len(values))]


def moment(chance: Random) -> str:
    """A time, to the second or the millisecond."""
    time = datetime(2026, 3, 2) + timedelta(milliseconds=int(chance.random() * 9e9))  # noqa: DTZ001 - printed without zone
    return time.strftime("%Y-%m-%d %H:%M:%S") if chance.random() < 0.5 else time.isoformat(" ", "milliseconds")


def maybe(share: float, make: Make) -> Make:
    """NULL, but for this share."""
    return lambda chance: make(chance) if chance.random() < share else None


WORDS = one_of("amber", "it's late", "two days", "call first", "große Kiste", "绿茶", "left at door", 'the "old" one')

SHAPES: dict[str, tuple[Column, ...]] = {
    "orders": (
        Column("id", "bigint", number(1, 10**9)),
        Column("customer", "integer", number(1, 10**6)),
        Column("status", "character varying", one_of("open", "paid", "shipped", "returned")),
        Column("total", "numeric", decimal(900)),
        Column("currency", "character", one_of("CNY", "EUR", "USD")),
        Column("placed", "timestamp without time zone", moment),
        Column("gift", "boolean", one_of("t", "f")),
        Column("note", "text", maybe(0.5, WORDS)),
    ),
    "lines": (
        Column("id", "bigint", number(1, 10**9)),
        Column("order_id", "bigint", number(1, 10**9)),
        Column("line_no", "smallint", number(1, 20)),
        Column("sku", "character varying", lambda chance: f"A-{int(chance.random() * 10**6):06d}"),
        Column("quantity", "integer", number(1, 50)),
        Column("price", "numeric", decimal(100)),
        Column("discount", "numeric", maybe(0.3, decimal(10))),
        Column("remark", "text", maybe(0.2, WORDS)),
    ),
    "customers": (
        Column("id", "bigint", number(1, 10**6)),
        Column("name", "character varying", one_of("Ana Alves", "Björn Ås", "陈伟", "Dora Duarte", "O'Neill")),
        Column("email", "text", lambda chance: f"user{int(chance.random() * 10**6)}@example.com"),
        Column("member", "boolean", one_of("t", "f")),
        Column("points", "integer", number(0, 9999)),
        Column("city", "text", one_of("上海", "Lisboa", "Oslo", "Wien", None)),
        Column("since", "date", lambda chance: moment(chance)[:10]),
        Column("phone", "character varying", maybe(0.6, number(10**9, 10**10))),
    ),
    "payments": (
        Column("id", "bigint", number(1, 10**9)),
        Column("order_id", "bigint", number(1, 10**9)),
        Column("method", "character varying", one_of("card", "transfer", "cash", "wallet")),
        Column("amount", "numeric", decimal(900)),
        Column("fee", "numeric", maybe(0.5, decimal(5))),
        Column("settled", "boolean", one_of("t", "f", None)),
        Column("paid_at", "timestamp without time zone", moment),
        Column("memo", "text", maybe(0.3, WORDS)),
    ),
}
TABLES = [("shop", f"{shape}_{branch}", columns) for shape, columns in SHAPES.items() for branch in range(5)]


def transactions(seed: int) -> Iterator[list[wf.Event]]:
    """Transactions without end: BEGIN, row changes, COMMIT."""
    chance = Random(seed)
    lsn = (seed % 1000 + 1) << 36
    time = datetime(2026, 3, 2, 8)  # noqa: DTZ001 - printed with an offset
    for number in range(1, 1 << 31):
        time += timedelta(microseconds=chance.randrange(1_000_000))
        commit_time = f"{time.isoformat(' ')}+08"
        events: list[wf.Event] = [wf.Begin(lsn=lsn, csn=number, first_lsn=lsn, commit_time=commit_time)]
        for _ in range(chance.randint(1, CHANGES_PER_TRANSACTION)):
            lsn += 8 * chance.randint(8, 30)
            events.append(_change(chance, lsn))
        lsn += 96
        events.append(wf.Commit(lsn=lsn, xid=900_000 + number, commit_time=commit_time))
        yield events


def _change(chance: Random, lsn: int) -> wf.RowChange:
    schema, name, columns = TABLES[int(chance.random() * len(TABLES))]
    names = tuple([column.name for column in columns])
    types = tuple([column.type for column in columns])
    image = wf.TupleData(names, tuple([column.make(chance) for column in columns]), types)
    key = wf.TupleData(names[:1], (columns[0].make(chance),), types[:1])
    kind = chance.random()
    if kind < 0.65:
        return wf.Insert(lsn=lsn, table_schema=schema, table_name=name, new=image)
    if kind < 0.95:
        old = key if kind < 0.68 else None
        return wf.Update(lsn=lsn, table_schema=schema, table_name=name, new=image, old=old)
    return wf.Delete(lsn=lsn, table_schema=schema, table_name=name, old=key)


class Capture(NamedTuple):
    """The same row changes from each source, in a file each.

    A row a message: payload (binary); how many records are in it, and how many of them are row changes (changes), are
    left by a filter for ONE_TABLE (one_table), are row changes of ONE_TABLE (table_changes). Of JSON_LINES a row a
    line, which is one row change.
    """

    folder: Path
    version: str

    def path(self, source: str) -> Path:
        """The file."""
        return self.folder / f"{source}-{self.version}.arrow"

    def load(self, source: str, *, mapped: bool = False) -> pa.Table:
        """The messages or lines, in memory or mapped into it."""
        return feather.read_table(self.path(source), memory_map=mapped)


def ready_capture(folder: Path, megabytes: float) -> Capture:
    """The capture of about this many bytes of binary messages, in the folder; it is made if it is not there yet."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    capture = Capture(folder, f"{megabytes:g}-{version}")
    if not all(capture.path(source).exists() for source in SOURCES):
        folder.mkdir(parents=True, exist_ok=True)
        for source, table in make_capture(megabytes).items():
            feather.write_feather(table, capture.path(source), compression="uncompressed")
    return capture


def make_capture(megabytes: float) -> dict[str, pa.Table]:
    """Source to table, as Capture has them."""
    shares = np.diff(np.linspace(0, megabytes * 1e6 / BYTES_PER_CHANGE, PARTS + 1).astype(int)).tolist()
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        parts = [*pool.map(make_part, range(PARTS), shares)]
    return {source: pa.concat_tables([part[source] for part in parts]).combine_chunks() for source in SOURCES}


def make_part(part: int, changes: int) -> dict[str, pa.Table]:
    """One part, with this many row changes; what is left at its end goes into a shorter message."""
    events = [*first_events(chain.from_iterable(transactions(SEED + part)), changes)]
    batched = {"sending-batch": 1, "include-timestamp": True}
    return {
        **{format: encoded(events, format, batched) for format in FORMATS},
        JSON_LINES: json_lines(events),
        PGOUTPUT: encoded(as_postgres(events), PGOUTPUT, {}),
    }


def first_events(events: Iterable[wf.Event], changes: int) -> Iterator[wf.Event]:
    """The events of the transactions that hold so many row changes, to the end of the last one."""
    for event in events:
        yield event
        changes -= isinstance(event, wf.RowChange)
        if changes <= 0 and isinstance(event, wf.Commit):
            return


def encoded(events: Iterable[wf.Event], format: str, options: dict[str, bool | int]) -> pa.Table:
    """The messages of the events, and what is in each."""
    tally = Tally()
    messages = wf.encode(tally.watch(events), format, options=options)
    payloads, totals = zip(*((payload, tally.counts()) for payload in messages), strict=True)
    counts = np.diff(np.array([(0, 0, 0, 0), *totals]), axis=0)  # the encoder takes no event before it needs it
    columns = dict(zip(("records", "changes", "one_table", "table_changes"), counts.T, strict=True))
    return pa.table({"payload": pa.array(payloads, pa.binary()), **columns})


def as_postgres(events: Iterable[wf.Event]) -> Iterator[wf.Event]:
    """The same changes as PostgreSQL sends them: the tables described first, and its own facts of transactions."""
    for oid, (schema, name, columns) in enumerate(TABLES, 16384):
        yield wf.Relation(
            relation_id=oid,
            table_schema=schema,
            table_name=name,
            replica_identity="default",
            columns=tuple(column.name for column in columns),
            type_oids=tuple(type_oid(column.type) for column in columns),
            typmods=(-1,) * len(columns),
            key_columns=(columns[0].name,),
        )
    transaction: list[wf.Event] = []
    for event in events:
        transaction.append(event)
        if isinstance(event, wf.Commit):
            begin, *changes, _ = transaction
            assert isinstance(begin, wf.Begin)
            yield wf.Begin(xid=begin.csn, commit_lsn=event.lsn, commit_time=event.commit_time)
            yield from changes
            yield wf.Commit(commit_lsn=event.lsn, end_lsn=event.lsn, commit_time=event.commit_time)
            transaction = []


def json_lines(events: Iterable[wf.Event]) -> pa.Table:
    """The row changes as a server sends them one by one: nothing but a JSON object each."""
    lines = pa.array(wf.encode((event for event in events if isinstance(event, wf.RowChange)), JSON), pa.binary())
    return pa.table({"payload": lines, "changes": np.ones(len(lines), np.int64)})


class Tally:
    """Counts events on their way to the encoder."""

    def __init__(self) -> None:
        self.records = self.changes = self.one_table = self.table_changes = 0

    def watch(self, events: Iterable[wf.Event]) -> Iterator[wf.Event]:
        """Hand on the events."""
        for event in events:
            self.records += 1
            if isinstance(event, wf.RowChange):
                self.changes += 1
                is_of_table = (event.table_schema, event.table_name) == ONE_TABLE
                self.one_table += is_of_table
                self.table_changes += is_of_table
            else:
                self.one_table += 1
            yield event

    def counts(self) -> tuple[int, int, int, int]:
        """Records, row changes, what a filter for ONE_TABLE leaves, and its row changes, so far."""
        return self.records, self.changes, self.one_table, self.table_changes
