"""Corners of rare records, bad records and options, over rows of one table."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import pyarrow as pa

import wireformat as wf

from .corner import Corner
from .generate import BINARY, JSON, PGOUTPUT, TEXT

POSTGRES_TEXT, STATEMENTS = "test-decoding", "sql-decoding"
SERIAL_JSON, SERIAL_TEXT = "mppdb-json", "opengauss-test-decoding"

NAMES = ("id", "customer", "status", "amount", "note", "created", "active", "region")
TYPES = (
    *("integer", "bigint", "character varying", "numeric", "text", "timestamp without time zone", "boolean", "text"),
)
OIDS = (23, 20, 1043, 1700, 25, 1114, 16, 25)
TOASTED = NAMES.index("note")

TIME = "2026-11-21 01:02:03.123456+00"
MICROS = 846_000_000_000_000
"""Since 2000."""

ROWS_PER_TRANSACTION = 100
FIRST_OID = 16_400

BATCH_BYTES = 1 << 20

Messages = list[bytes]
Change = Callable[[int], Iterable[wf.Event]]


def values(row: int) -> tuple[str, ...]:
    """The values of a row."""
    note = f"a note of some length about the order {row}"
    day = f"2026-11-{row % 28 + 1:02} 01:02:03.5"
    return (str(row), str(row * 7919), "shipped", f"{row % 1000}.25", note, day, "ft"[row % 2], "north")


def insert(row: int, **more: Any) -> wf.Insert:
    """A row that is inserted."""
    facts = {"table_schema": "public", "table_name": "orders", "new": wf.TupleData(NAMES, values(row), TYPES)}
    return wf.Insert(**{**facts, **more})


def transactions(rows: int, per: int, begin: Any, change: Change, commit: Any) -> Iterator[wf.Event]:
    """Transactions of `per` rows each; each function is called with the number of its row."""
    for first in range(0, rows, per):
        yield begin(first)
        for row in range(first, min(first + per, rows)):
            yield from change(row)
        yield commit(first)


# GaussDB: binary, JSON, TEXT


def gauss(
    format: str, *, per: int = ROWS_PER_TRANSACTION, time: Callable[[int], str] = lambda _: TIME, beat_every: int = 0
) -> Callable[[int], Messages]:
    """Batched messages; a heartbeat after each `beat_every` rows."""

    def change(row: int) -> Iterator[wf.Event]:
        yield insert(row, lsn=row + 1)
        if beat_every and row % beat_every == 0:
            yield heartbeat(row)

    def make(rows: int) -> Messages:
        events = transactions(
            rows,
            per,
            lambda row: wf.Begin(lsn=row + 1, csn=row + 1, first_lsn=row + 1, commit_time=time(row), xid=row + 1),
            change,
            lambda row: wf.Commit(lsn=row + 1, xid=row + 1),
        )
        return batched(events, format)

    return make


def batched(events: Iterable[wf.Event], format: str) -> Messages:
    """Messages of about 1 MiB."""
    options: dict[str, Any] = {"sending-batch": 1}
    if format == BINARY:
        options |= {"include-timestamp": True, "include-xids": True}
    return [*wf.encode(events, format, options=options, batch_bytes=BATCH_BYTES)]


def heartbeat(number: int) -> wf.Heartbeat:
    """A heartbeat."""
    return wf.Heartbeat(lsn=number + 1, wal_end=number + 1, wal_flushed=number + 2, time=1_763_700_000_000 + number)


def heartbeats(rows: int) -> Messages:
    """Heartbeats alone, in batches."""
    return batched(map(heartbeat, range(rows)), BINARY)


def bare_heartbeats(rows: int) -> pa.Array:
    """Heartbeats alone, a message each."""
    head = struct.Struct(">QQq")
    return pa.array([b"h" + head.pack(row + 1, row + 2, 1_763_700_000_000 + row) + b"F" for row in range(rows)])


def spoiled(format: str, every: int) -> Callable[[int], Messages]:
    """Of so many INSERTs one cannot be read."""
    good, bad = (
        (b"\0\6public\0\6orders", b"\0\6publi\xff\0\6orders") if format == BINARY else (b'"INSERT"', b'"IXSERT"')
    )

    def make(rows: int) -> Messages:
        found = []
        for message in gauss(format)(rows):
            first, *parts = message.split(good)
            pieces = ((bad if number % every == every // 2 else good) + part for number, part in enumerate(parts))
            found.append(first + b"".join(pieces))
        return found

    return make


def cut(rows: int) -> Messages:
    """Each message is cut within its last record."""
    return [message[:-5] for message in gauss(BINARY)(rows)]


def blank_in_schema(rows: int) -> Messages:
    """The name of the schema is not quoted, and has a blank."""
    return [message.replace(b"table public ", b"table my own ") for message in gauss(TEXT)(rows)]


# pgoutput


def relation(number: int) -> wf.Relation:
    """One of many tables that look the same."""
    return wf.Relation(
        relation_id=FIRST_OID + number,
        table_schema="public",
        table_name=f"orders_{number}",
        replica_identity="default",
        columns=NAMES,
        type_oids=OIDS,
        typmods=(-1,) * len(NAMES),
        key_columns=NAMES[:1],
    )


def postgres(
    change: Change, per: int = ROWS_PER_TRANSACTION, tables: int = 1, encoding: str = "utf-8"
) -> Callable[[int], pa.Array]:
    """Messages, in transactions, after descriptions of so many tables."""

    def make(rows: int) -> pa.Array:
        events = transactions(
            rows,
            per,
            lambda row: wf.Begin(commit_lsn=row + 9, commit_time=TIME, xid=row + 5),
            change,
            lambda row: wf.Commit(commit_lsn=row + 9, end_lsn=row + 10, commit_time=TIME),
        )
        described = chain(islice(events, 1), map(relation, range(tables)), events)
        return as_array(wf.encode(described, PGOUTPUT, encoding=encoding))

    return make


def as_array(messages: Iterable[bytes]) -> pa.Array:
    """Messages as an array."""
    return pa.array([*messages], pa.binary())


def row_of(row: int, table: int = 0, **more: Any) -> wf.Insert:
    """A row of one of the tables."""
    return insert(row, table_name=f"orders_{table}", relation_id=FIRST_OID + table, **more)


def described(tables: int, every: int) -> Callable[[int], pa.Array]:
    """A Relation message before each `every` rows, of another table each time; 0: of all tables first."""

    def change(row: int) -> Iterator[wf.Event]:
        table = row // (every or 1) % tables
        if every and row % every == 0:
            yield relation(table)
        yield row_of(row, table)

    return postgres(change, tables=1 if every else tables)


def halves(make: Callable[[int], pa.Array]) -> Callable[[int], pa.ChunkedArray]:
    """Returns what makes the same messages in two pieces."""

    def made(rows: int) -> pa.ChunkedArray:
        messages = make(rows)
        middle = len(messages) // 2
        return pa.chunked_array([messages[:middle], messages[middle:]])

    return made


def logical_message(row: int, content: str | bytes | None = None) -> wf.Message:
    """A message of an outbox."""
    text = f'{{"order": {row}, "status": "shipped to the customer", "note": "some more text about it"}}'
    return wf.Message(lsn=row + 1, transactional=True, prefix="outbox", content=text if content is None else content)


def with_origin(row: int) -> Iterator[wf.Event]:
    """A row after the origin of its transaction, as a subscriber sends it on."""
    yield wf.Origin(lsn=row + 1, origin="node_a")
    yield row_of(row)


def with_type(row: int) -> Iterator[wf.Event]:
    """A row after a description of one of a few types."""
    yield wf.Type(type_oid=90_000 + row % 5, namespace="public", name="mood")
    yield row_of(row)


def truncated(row: int) -> Iterator[wf.Event]:
    """TRUNCATE of the only table."""
    yield wf.Truncate(tables=(("public", "orders_0"),), relation_ids=(FIRST_OID,))


def ddl(row: int) -> Iterator[wf.Event]:
    """A statement, and before it the words that the server sends for it."""
    words = f'{{"fmt": "CREATE TABLE %{{identity}}D", "identity": "orders_{row}"}}'
    sql = f"CREATE TABLE orders_{row} (id integer, note text)"
    facts: dict[str, Any] = {"prefix": "deparse", "lsn": row + 1, "relid": FIRST_OID + row, "cmdtype": "S"}
    yield wf.Ddl(content=words, sql=sql, owner="app", **facts)


def ddl_object(row: int) -> Iterator[wf.Event]:
    """A statement alone."""
    yield wf.Ddl(sql=f'CREATE TABLE "orders_{row}" (id integer, note text)')


def ddl_template(row: int) -> Iterator[wf.Event]:
    """A statement as a template."""
    columns = [
        {"fmt": "%{name}I %{type}T", "name": name, "type": {"typename": "text", "typarray": False}} for name in NAMES
    ]
    identity = {"objname": f"orders_{row}", "schemaname": "public"}
    template = {"fmt": "CREATE TABLE %{identity}D (%{columns:, }s)", "identity": identity, "columns": columns[:2]}
    yield wf.Ddl(content=json.dumps(template))


def partly_sent(row: int) -> Iterator[wf.Event]:
    """An update; the note was not sent, except in one row of ten."""
    sent = list[Any](values(row))
    if row % 10:
        sent[TOASTED] = wf.UNCHANGED
    image = wf.TupleData(NAMES, tuple(sent), TYPES)
    yield wf.Update(table_schema="public", table_name="orders_0", relation_id=FIRST_OID, new=image)


def keepalive(number: int) -> bytes:
    """A keepalive."""
    return b"k" + struct.pack(">QqB", number + 1, MICROS + number, 0)


def keepalives(rows: int) -> pa.Array:
    """Keepalives alone."""
    return as_array(map(keepalive, range(rows)))


def with_keepalives(rows: int) -> pa.Array:
    """A keepalive after 20 messages."""
    made = postgres(lambda row: [row_of(row)])(rows).to_pylist()
    return as_array(
        one for index, message in enumerate(made) for one in ([message] if index % 20 else [message, keepalive(index)])
    )


def two_phase(rows: int) -> pa.Array:
    """Prepared transactions without rows, committed and rolled back."""
    lsns: dict[str, Any] = {"end_lsn": 10, "xid": 7, "gid": "gid-7"}
    events: list[wf.Event] = [
        wf.Begin(commit_lsn=9, commit_time=TIME, xid=7),
        wf.Prepare(lsn=9, prepare_time=TIME, **lsns),
        wf.CommitPrepared(commit_lsn=9, commit_time=TIME, **lsns),
        wf.RollbackPrepared(lsn=9, prepare_time=TIME, commit_time=TIME, **lsns),
    ]
    return as_array([*wf.encode(events, PGOUTPUT)] * (rows // 4))


def cut_rows(every: int) -> Callable[[int], pa.Array]:
    """Of so many rows one is cut at its end."""

    def make(rows: int) -> pa.Array:
        made = postgres(lambda row: [row_of(row)])(rows).to_pylist()
        return as_array(
            message[:-1] if message[:1] == b"I" and index % every == 0 else message
            for index, message in enumerate(made)
        )

    return make


def tiny(rows: int) -> list[bytes]:
    """Tiny messages: COMMIT, in a list of Python."""
    return [b"C\0" + struct.pack(">QQq", row + 1, row + 2, MICROS + row) for row in range(5 * rows)]


# test-decoding and sql-decoding


def lines(change: Change, format: str = POSTGRES_TEXT) -> Callable[[int], pa.Array]:
    """Lines of test-decoding, or of another plugin that knows the transaction by its number, in transactions."""

    def make(rows: int) -> pa.Array:
        events = transactions(
            rows, ROWS_PER_TRANSACTION, lambda row: wf.Begin(xid=row + 5), change, lambda row: wf.Commit(xid=row + 5)
        )
        return as_array(wf.encode(events, format))

    return make


def message_line(row: int) -> list[wf.Event]:
    """A message of an outbox, without an LSN."""
    return [wf.Message(transactional=True, prefix="outbox", content=logical_message(row).content)]


def statements(rows: int) -> pa.Array:
    """The rows of `lines` as statements of SQL."""
    names = tuple(f"${index}" for index in range(1, len(NAMES) + 1))
    types = tuple("?number" if name in ("id", "customer", "amount") else "?string" for name in NAMES)
    images = (wf.TupleData(names, values(row), types) for row in range(rows))
    events = transactions(
        rows,
        ROWS_PER_TRANSACTION,
        lambda _: wf.Begin(),
        lambda _: [insert(0, new=next(images))],
        lambda _: wf.Commit(),
    )
    return as_array(wf.encode(events, STATEMENTS))


def two_phase_lines(rows: int) -> pa.Array:
    """Prepared transactions without rows, committed and rolled back."""
    facts: dict[str, Any] = {"gid": "gid-7", "xid": 7}
    events: list[wf.Event] = [
        wf.Begin(xid=7),
        wf.Prepare(prepare_time=TIME, **facts),
        wf.CommitPrepared(commit_time=TIME, **facts),
        wf.RollbackPrepared(commit_time=TIME, **facts),
    ]
    return as_array([*wf.encode(events, POSTGRES_TEXT)] * (rows // 4))


PERMISSIVE, DROPMALFORMED = {"mode": "PERMISSIVE"}, {"mode": "DROPMALFORMED"}

B, B1, J, T = f"{BINARY}: rows", f"{BINARY}: one row a transaction", f"{JSON}: rows", f"{TEXT}: rows"
P, P1, PT, TD = f"{PGOUTPUT}: rows", f"{PGOUTPUT}: one row a transaction", f"{PGOUTPUT}: tiny", f"{POSTGRES_TEXT}: rows"
HALF = 20
"""How many times slower messages may be of which half of the records are corrupt, or all."""

one_row = postgres(lambda row: [row_of(row)], per=1)
mostly_good_times = gauss(BINARY, per=1, time=lambda row: TIME if row % 100 else "infinity")
half_without_zone = gauss(BINARY, per=1, time=lambda row: TIME[:-3] if row % 2 else TIME)

RECORDS: tuple[Corner, ...] = (
    Corner(B, BINARY, gauss(BINARY), None),
    Corner(B1, BINARY, gauss(BINARY, per=1), None),
    Corner(f"{BINARY}: strict, one row a transaction", BINARY, gauss(BINARY, per=1), B1, {"strict": True}),
    Corner(f"{BINARY}: skip_empty_xacts, one row", BINARY, gauss(BINARY, per=1), B1, {"skip_empty_xacts": True}),
    Corner(f"{BINARY}: skip_empty_xacts", BINARY, gauss(BINARY), B, {"skip_empty_xacts": True}),
    Corner(f"{BINARY}: heartbeats in batches", BINARY, heartbeats, B, per_row=True),
    Corner(f"{BINARY}: heartbeats alone", BINARY, bare_heartbeats, B, per_row=True),
    Corner(f"{BINARY}: a heartbeat after 20 rows", BINARY, gauss(BINARY, beat_every=20), B),
    Corner(f"{BINARY}: 1 % of commit times infinite", BINARY, mostly_good_times, B1),
    Corner(f"{BINARY}: half of commit times without a zone", BINARY, half_without_zone, B1),
    Corner(f"{BINARY}: messages cut at their end", BINARY, cut, B, PERMISSIVE),
    Corner(f"{BINARY}: 1 % corrupt, PERMISSIVE", BINARY, spoiled(BINARY, 100), B, PERMISSIVE),
    Corner(f"{BINARY}: 1 % corrupt, DROPMALFORMED", BINARY, spoiled(BINARY, 100), B, DROPMALFORMED),
    Corner(f"{BINARY}: 50 % corrupt, PERMISSIVE", BINARY, spoiled(BINARY, 2), B, PERMISSIVE, most=HALF),
    Corner(f"{BINARY}: 50 % corrupt, DROPMALFORMED", BINARY, spoiled(BINARY, 2), B, DROPMALFORMED, most=HALF),
    Corner(J, JSON, gauss(JSON), None),
    Corner(f"{JSON}: 1 % corrupt, PERMISSIVE", JSON, spoiled(JSON, 100), J, PERMISSIVE),
    Corner(f"{JSON}: 50 % corrupt, PERMISSIVE", JSON, spoiled(JSON, 2), J, PERMISSIVE, most=HALF),
    Corner(T, TEXT, gauss(TEXT), None),
    Corner(f"{TEXT}: a blank in the name of a schema", TEXT, blank_in_schema, T),
    Corner(
        f"{TEXT}: a blank in the name of a schema, known",
        *(TEXT, blank_in_schema, T),
        {"known_tables": ["my own.orders"]},
    ),
    Corner(P, PGOUTPUT, postgres(lambda row: [row_of(row)]), None),
    Corner(P1, PGOUTPUT, one_row, None),
    Corner(f"{PGOUTPUT}: strict, one row a transaction", PGOUTPUT, one_row, P1, {"strict": True}),
    Corner(f"{PGOUTPUT}: skip_empty_xacts, one row", PGOUTPUT, one_row, P1, {"skip_empty_xacts": True}),
    Corner(f"{PGOUTPUT}: MESSAGE alone", PGOUTPUT, postgres(lambda row: [logical_message(row)]), P, per_row=True),
    Corner(f"{PGOUTPUT}: MESSAGE beside rows", PGOUTPUT, postgres(lambda row: [row_of(row), logical_message(row)]), P),
    Corner(
        f"{PGOUTPUT}: MESSAGE of bytes",
        *(PGOUTPUT, postgres(lambda row: [logical_message(row, b"\xff\0" * 40)]), P),
        per_row=True,
    ),
    Corner(f"{PGOUTPUT}: keepalives alone", PGOUTPUT, keepalives, P, per_row=True),
    Corner(f"{PGOUTPUT}: a keepalive after 20 messages", PGOUTPUT, with_keepalives, P),
    Corner(f"{PGOUTPUT}: prepared transactions", PGOUTPUT, two_phase, P, per_row=True),
    Corner(f"{PGOUTPUT}: RELATION before each row", PGOUTPUT, described(1, 1), P),
    Corner(f"{PGOUTPUT}: RELATION before each row, 100 tables", PGOUTPUT, described(100, 1), P),
    Corner(f"{PGOUTPUT}: RELATION before each row, 600 tables", PGOUTPUT, described(600, 1), P),
    Corner(f"{PGOUTPUT}: RELATION before ten rows, 600 tables", PGOUTPUT, described(600, 10), P),
    Corner(f"{PGOUTPUT}: 5,000 tables, each described once", PGOUTPUT, described(5000, 0), P),
    Corner(f"{PGOUTPUT}: 2,000 tables in two pieces", PGOUTPUT, halves(described(2000, 0)), P, captures=True),
    Corner(f"{PGOUTPUT}: ORIGIN before each row", PGOUTPUT, postgres(with_origin), P),
    Corner(f"{PGOUTPUT}: TYPE before each row", PGOUTPUT, postgres(with_type), P),
    Corner(f"{PGOUTPUT}: TRUNCATE alone", PGOUTPUT, postgres(truncated), P, per_row=True),
    *(
        Corner(f"{format}: TRUNCATE alone", format, lines(truncated, format), TD, per_row=True)
        for format in (POSTGRES_TEXT, SERIAL_JSON, SERIAL_TEXT)
    ),
    *(
        Corner(f"{format}: DDL, {name}", format, lines(change, format), TD, per_row=True)
        for format in (SERIAL_JSON, SERIAL_TEXT)
        for name, change in (("lines", ddl), ("objects", ddl_object), ("templates", ddl_template))
    ),
    Corner(f"{PGOUTPUT}: values not sent in most rows", PGOUTPUT, postgres(partly_sent), P),
    Corner(f"{PGOUTPUT}: 1 % corrupt, PERMISSIVE", PGOUTPUT, cut_rows(100), P, PERMISSIVE),
    Corner(f"{PGOUTPUT}: 50 % corrupt, PERMISSIVE", PGOUTPUT, cut_rows(2), P, PERMISSIVE, most=HALF),
    Corner(PT, PGOUTPUT, lambda rows: as_array(tiny(rows)), None),
    Corner(f"{PGOUTPUT}: a list of tiny messages", PGOUTPUT, tiny, PT),
    Corner(TD, POSTGRES_TEXT, lines(lambda row: [insert(row)]), None),
    Corner(f"{POSTGRES_TEXT}: messages alone", POSTGRES_TEXT, lines(message_line), TD, per_row=True),
    Corner(f"{POSTGRES_TEXT}: prepared transactions", POSTGRES_TEXT, two_phase_lines, TD, per_row=True),
    Corner(f"{STATEMENTS}: rows", STATEMENTS, statements, TD),
)
