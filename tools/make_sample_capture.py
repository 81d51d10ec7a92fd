"""Write examples/sample_capture.parquet: what a GaussDB server sends while a small shop is open and its sensors report.

`python tools/make_sample_capture.py`; the same seed gives the same messages. All names and values are invented.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import wireformat as wf

TARGET = Path(__file__).parent.parent / "examples" / "sample_capture.parquet"
FORMAT = "gaussdb-binary"
OPTIONS = {"sending-batch": 1, "include-timestamp": True, "include-user": True}
SEED = 20260302
TRANSACTIONS = 800
HEARTBEAT_EVERY = 150  # transactions; what is collected by then is sent first, as after a second without a transaction

Row = dict[str, str | None]
Make = Callable[[Random, int], object]

WORDS = ("amber", "basil", "cedar", "dünn", "éclair", "große", "jasmin", "kiwi", "绿茶", "lemon", "米饭", "nut", "雨伞")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SHOP_ZONE = timezone(timedelta(hours=8))
OPENING = datetime(2026, 3, 2, 8, 0, 0, tzinfo=SHOP_ZONE)


class Column(NamedTuple):
    """One column: its name, SQL type, and how a value comes from chance and the number of the row."""

    name: str
    type: str
    make: Make


class Table(NamedTuple):
    """One table. The replica identity is the columns of `key`, or the whole row where it is empty (FULL)."""

    schema: str
    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


def number(least: int, most: int) -> Make:
    """An integer."""
    return lambda chance, _: chance.randint(least, most)


def decimal(most: float, digits: int = 2) -> Make:
    """A number with this many digits after the point."""
    return lambda chance, _: f"{chance.uniform(0, most):.{digits}f}"


def words(least: int, most: int) -> Make:
    """Some words, not all of them in ASCII."""
    return lambda chance, _: " ".join(chance.choices(WORDS, k=chance.randint(least, most)))


def one_of(*values: str) -> Make:
    """One of a few values."""
    return lambda chance, _: chance.choice(values)


def maybe(make: Make, share: float = 0.7) -> Make:
    """NULL, unless chance is below the share."""
    return lambda chance, row: make(chance, row) if chance.random() < share else None


def day(since: datetime, days: int) -> Make:
    """A date of the days that follow."""
    return lambda chance, _: (since + timedelta(days=chance.randrange(days))).strftime("%Y-%m-%d")


def moment(zone: str = "") -> Make:
    """A time of the day, with a fraction; printed with this offset."""
    return lambda chance, _: printed(OPENING + timedelta(microseconds=chance.randrange(86_400_000_000)), zone)


def minute(chance: Random, _: int) -> str:
    """A time of the day, to the minute."""
    return printed(OPENING + timedelta(minutes=chance.randrange(1440)))


def printed(time: datetime, zone: str = "") -> str:
    """A time as the server prints it: without zeros at the end of the fraction."""
    text = time.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + zone


def identifier(chance: Random, _: int) -> str:
    """A UUID."""
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def hexadecimal(prefix: str, size: int) -> Make:
    """Bytes in hexadecimal; the type raw prints them in upper case."""
    return lambda chance, _: prefix + (chance.randbytes(size).hex() if prefix else chance.randbytes(size).hex().upper())


def address(chance: Random, _: int) -> str:
    """A document with a street in it."""
    return json.dumps({"street": chance.choice(WORDS), "no": chance.randint(1, 99)}, ensure_ascii=False)


def row_number(_: Random, row: int) -> int:
    """1, 2, 3 and so on."""
    return row


CUSTOMERS = Table(
    "public",
    "customers",
    ("id",),
    (
        Column("id", "bigint", row_number),
        Column("name", "character varying", words(2, 3)),
        Column("email", "text", lambda chance, row: f"{chance.choice('abcdefgh')}{row}@example.com"),
        Column("is_member", "boolean", one_of("t", "f")),
        Column("born_on", "date", maybe(day(datetime(1960, 1, 1, tzinfo=SHOP_ZONE), 15_000))),
        Column("address", "jsonb", maybe(address)),
        Column("tags", "text[]", one_of("{}", "{new}", '{loyal,"likes tea"}', "{NULL}")),
    ),
)
ORDERS = Table(
    "public",
    "orders",
    ("order_id",),
    (
        Column("order_id", "bigint", row_number),
        Column("customer_id", "bigint", number(1, 400)),
        Column("status", "oid:16420", one_of("open", "paid", "shipped")),
        Column("total", "numeric", decimal(900)),
        Column("currency", "character", one_of("CNY", "EUR", "USD")),
        Column("placed_at", "timestamp with time zone", moment("+08")),
        Column("note", "text", maybe(words(0, 12), 0.4)),
        Column("deliver_within", "interval", maybe(one_of("1 day", "3 days 12:00:00"))),
    ),
)
ORDER_LINES = Table(
    "public",
    "order_lines",
    ("order_id", "line_no"),
    (
        Column("order_id", "bigint", lambda _, row: (row + 3) // 4),
        Column("line_no", "smallint", lambda _, row: (row + 3) % 4 + 1),
        Column("sku", "nvarchar2", lambda chance, _: f"{chance.choice('ABC')}-{chance.randint(1000, 9999)}"),
        Column("quantity", "smallint", number(1, 12)),
        Column("price", "numeric", decimal(100)),
        Column("discount", "real", maybe(one_of("0.05", "0.1", "0.25"), 0.3)),
        Column("serial", "raw", maybe(hexadecimal("", 8))),
    ),
)
READINGS = Table(
    "telemetry",
    "sensor_readings",
    (),
    (
        Column("sensor", "uuid", identifier),
        Column("taken_at", "timestamp without time zone", moment()),
        Column("temperature", "double precision", decimal(40, 13)),
        Column("humidity", "real", maybe(decimal(1, 6), 0.9)),
        Column("battery", "tinyint", number(0, 255)),
        Column("flags", "bit", lambda chance, _: f"{chance.getrandbits(8):08b}"),
        Column(
            "samples", "integer[]", lambda chance, _: f"{{{chance.randint(-99, 99)},{chance.randint(-99, 99)},NULL}}"
        ),
        Column("frame", "bytea", maybe(hexadecimal(r"\x", 16), 0.5)),
    ),
)
RETURNS = Table(
    "Back Office",
    "Return",
    ("Order No",),
    (
        Column("Order No", "integer", row_number),
        Column("größe", "numeric", maybe(decimal(60, 1))),
        Column('the "reason"', "clob", words(3, 30)),
        Column("user", "name", one_of("ana", "björn", "陈")),
        Column("received", "smalldatetime", minute),
    ),
)
FEEDBACK = Table(
    "区域",
    "客户反馈",
    ("编号",),
    (
        Column("编号", "bigint", row_number),
        Column("评分", "tinyint", maybe(number(1, 5))),
        Column("内容", "text", words(5, 40)),
        Column("from_ip", "inet", lambda chance, _: f"10.{chance.randint(0, 255)}.{chance.randint(0, 255)}.7"),
    ),
)

# Per kind of transaction: how often, and per table the most rows that are inserted, updated and deleted.
WORK: tuple[tuple[int, dict[Table, tuple[int, int, int]]], ...] = (
    (40, {ORDERS: (12, 2, 1), ORDER_LINES: (60, 0, 0), CUSTOMERS: (4, 2, 0)}),
    (20, {READINGS: (300, 8, 0)}),
    (15, {ORDERS: (0, 30, 3), ORDER_LINES: (0, 12, 9)}),
    (10, {FEEDBACK: (40, 6, 3)}),
    (8, {RETURNS: (16, 6, 2), ORDERS: (0, 3, 0)}),
    (5, {CUSTOMERS: (0, 30, 2)}),
    (3, {READINGS: (0, 0, 300)}),
    (2, {}),
)


class Server:
    """The shop's database: its rows, and where its log and its clock are."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.lsn = 0x1F_A2000028
        self.csn = 51_203
        self.xid = 920_417
        self.clock = OPENING
        self._rows: dict[Table, list[Row]] = {}
        self._made: dict[Table, int] = {}

    def transaction(self) -> Iterator[wf.Event]:
        """The records of the next transaction that commits."""
        self.csn += 1
        self.xid += self.chance.randint(1, 3)
        self.clock += timedelta(microseconds=self.chance.randint(20_000, 4_000_000))
        commit_time = printed(self.clock, "+08")
        first_lsn = self.lsn
        changes = list(self._changes())
        yield wf.Begin(
            lsn=first_lsn,
            csn=self.csn,
            first_lsn=first_lsn,
            commit_time=commit_time,
            username=self.chance.choice(("shop", "telemetry", "back office")),
        )
        yield from changes
        self._write(96)
        yield wf.Commit(lsn=self.lsn, xid=self.xid, commit_time=commit_time)

    def heartbeat(self) -> wf.Heartbeat:
        """The server is alive: how far its log goes, and the time in microseconds."""
        flushed = self.lsn + self.chance.randint(0, 50) * 8
        return wf.Heartbeat(
            wal_end=self.lsn, wal_flushed=flushed, time=(self.clock - EPOCH) // timedelta(microseconds=1)
        )

    def _changes(self) -> Iterator[wf.RowChange]:
        (work,) = self.chance.choices([tables for _, tables in WORK], [weight for weight, _ in WORK])
        for table, most in work.items():
            inserts, updates, deletes = (self.chance.randint(min(limit, 1), limit) for limit in most)
            for _ in range(inserts):
                yield self._insert(table)
            rows = self._rows.get(table, [])
            for _ in range(min(updates, len(rows))):
                yield self._update(table, rows)
            for _ in range(min(deletes, len(rows))):
                old = rows.pop(self.chance.randrange(len(rows)))
                yield wf.Delete(**self._place(table), old=_image(table, old, table.key))

    def _insert(self, table: Table) -> wf.Insert:
        made = self._made[table] = self._made.get(table, 0) + 1
        row = {column.name: _text(column.make(self.chance, made)) for column in table.columns}
        self._rows.setdefault(table, []).append(row)
        return wf.Insert(**self._place(table), new=_image(table, row))

    def _update(self, table: Table, rows: list[Row]) -> wf.Update:
        place = self.chance.randrange(len(rows))
        column = self.chance.choice([column for column in table.columns if column.name not in table.key])
        old = rows[place]
        new = rows[place] = {**old, column.name: _text(column.make(self.chance, place))}
        return wf.Update(**self._place(table), new=_image(table, new), old=_image(table, old, table.key))

    def _place(self, table: Table) -> dict[str, Any]:
        return {
            "lsn": self._write(40 + 24 * len(table.columns)),
            "table_schema": table.schema,
            "table_name": table.name,
        }

    def _write(self, size: int) -> int:
        """Write to the log, which is aligned to 8 bytes; gives where that begins."""
        lsn, self.lsn = self.lsn, self.lsn + (size + self.chance.randint(0, 64)) // 8 * 8
        return lsn


def events(seed: int = SEED) -> Iterator[wf.Event]:
    """All records of the capture, in order."""
    server = Server(seed)
    for done in range(1, TRANSACTIONS + 1):
        yield from server.transaction()
        if done % HEARTBEAT_EVERY == 0:
            yield server.heartbeat()


def main() -> None:
    """Encode the records and write the messages."""
    messages = list(wf.encode(events(), FORMAT, options=OPTIONS))
    columns = {"seq": pa.array(range(len(messages)), pa.int64()), "payload": pa.array(messages, pa.binary())}
    pq.write_table(pa.table(columns), TARGET, compression="zstd", use_dictionary=False)
    size = sum(map(len, messages))
    print(f"{TARGET.name}: {len(messages)} messages, {size:,} bytes, in Parquet {TARGET.stat().st_size:,}")


def _image(table: Table, row: Row, names: tuple[str, ...] = ()) -> wf.TupleData:
    columns = [column for column in table.columns if not names or column.name in names]
    return wf.TupleData(
        tuple(column.name for column in columns),
        tuple(row[column.name] for column in columns),
        tuple(column.type for column in columns),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


if __name__ == "__main__":
    main()
