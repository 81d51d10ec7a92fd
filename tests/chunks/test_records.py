"""`strict` and the filters of whole transactions give the same rows and errors, however a stream is cut into chunks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.typed_tables.batch import TypedOptions
from wireformat.arrow.typed_tables.table import TypedPart

from ..examples import at_most
from ..servers.captures import read_capture
from .reading import ChunkedReading, divided, in_order

OPTIONS: list[dict[str, Any]] = [
    {"strict": True},
    {"skip_empty_xacts": True},
    {"exclude_users": ["a"]},
    {"strict": True, "skip_empty_xacts": True, "exclude_users": ["a"]},
]


def events_of_users(seed: int, records: int | None = None) -> list[bytes]:
    """Transactions of several users, some of them empty, in small messages.

    records   how many a message has; it may begin or end anywhere in a transaction. None: one
    """
    chance, found = Random(seed), []
    for number in range(12):
        lsn = 10 * number + 1
        found.append(wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn, username=chance.choice(["a", "b", None])))
        for _ in range(chance.choice([0, 0, 1, 3])):
            table = chance.choice(["t", "u"])
            row = wf.TupleData(("id", "text"), (str(len(found) % 7), f"row {len(found)}"), ("bigint", "text"))
            found.append(wf.Insert(lsn=lsn, table_schema="s", table_name=table, new=row))
            if chance.random() < 0.2:
                found.append(wf.Heartbeat(lsn=lsn, wal_end=lsn, wal_flushed=1, time=1))
        found.append(wf.Commit(lsn=lsn + 1, xid=number))
    options = {"include-user": True, "sending-batch": 0 if records is None else 1}
    parts = [found[at : at + (records or len(found))] for at in range(0, len(found), records or len(found))]
    return [bytes(message) for part in parts for message in wf.encode(part, "gaussdb-binary", options=options)]


NAMES = ("users", "batches", "pgoutput", "test-decoding", "mppdb-json", "streamed")


@lru_cache
def streams() -> dict[str, tuple[str, list[bytes]]]:
    found = {
        "users": ("gaussdb-binary", events_of_users(1)),
        "batches": ("gaussdb-binary", events_of_users(1, records=3)),
    }
    for format in ("pgoutput", "test-decoding", "mppdb-json"):
        made = wf.testing.stream(2, 14, seed=5, format=format)
        found[format] = format, [*map(bytes, wf.encode(made, format))]
    streamed = [*map(bytes, read_capture("18-pgoutput-4").messages)]
    few = [message for at, message in enumerate(streamed) if message[:1] != b"I" or at % 10 == 0]
    found["streamed"] = "pgoutput", few
    return found


def damaged(messages: Sequence[bytes], seed: int) -> list[bytes]:
    """Leaves out one message, or sends one twice, or none."""
    chance, found = Random(seed), [*messages]
    at = chance.randrange(len(found))
    if seed % 3 == 1:
        del found[at]
    elif seed % 3 == 2:
        found.insert(chance.randrange(len(found)), found[at])
    return found


def outcome(ask: Any) -> Any:
    """Returns what a question gives, or the text of its error."""
    try:
        return ask()
    except wf.WireformatError as error:
        return str(error)


def by_record(rows: pa.Table) -> list[Any]:
    return sorted(rows.to_pylist(), key=lambda row: (row["message"], row["record"], str(row["table_name"])))


def without_messages(rows: pa.Table) -> list[Any]:
    return in_order(rows.drop_columns(["message"])).to_pylist() if len(rows) else []


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
@pytest.mark.parametrize("name", NAMES)
@at_most(6)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), st.integers(0, 30), st.booleans())
def test_cut_anywhere(name: str, options: dict[str, Any], cuts: list[int], seed: int, of_tables: bool) -> None:
    format, messages = streams()[name]
    messages = damaged(messages, seed)
    filters = {"tables": ["s.t", "shop.orders_0"]} if of_tables else {}
    one = wf.Capture(messages, format, threads=1, **options)
    wanted = outcome(lambda: by_record(one.changes(**filters).read_all()))
    chunks = divided(messages, cuts)
    found = outcome(lambda: by_record(ChunkedReading(chunks, format, **options).changes(**filters)))
    assert found == wanted
    committed = outcome(lambda: without_messages(one.committed().read_all()))
    of_chunks = outcome(lambda: _committed(ChunkedReading(chunks, format, **options)))
    if isinstance(committed, list):
        assert of_chunks == committed
    else:
        assert isinstance(of_chunks, str)


def test_a_whole_transaction_ends_one_of_an_excluded_user() -> None:
    """Whose end was lost: what follows without a BEGIN is of nobody."""

    def transaction(lsn: int, username: str) -> list[wf.Event]:
        row = wf.TupleData(("id",), (str(lsn),), ("bigint",))
        begin = wf.Begin(lsn=lsn, csn=lsn, first_lsn=lsn, username=username)
        return [begin, wf.Insert(lsn=lsn, table_schema="s", table_name="t", new=row), wf.Commit(lsn=lsn + 1, xid=lsn)]

    events = [*transaction(10, "a")[:2], *transaction(20, "b"), *transaction(30, "b")[1:]]
    options = {"include-user": True, "sending-batch": 0}
    messages = [bytes(*wf.encode([event], "gaussdb-binary", options=options)) for event in events]
    wanted = by_record(wf.Capture(messages, "gaussdb-binary", exclude_users=["a"]).changes().read_all())
    assert [row["kind"] for row in wanted] == ["BEGIN", "INSERT", "COMMIT", "INSERT", "COMMIT"]
    reading = ChunkedReading(divided(messages, [5]), "gaussdb-binary", exclude_users=["a"])
    assert by_record(reading.changes()) == wanted


def _committed(reading: ChunkedReading) -> list[Any]:
    if reading.planned.error is not None:
        raise reading.planned.error
    return without_messages(reading.committed())


TABLES = {"users": "s.t", "batches": "s.t", "streamed": "public.big"}
COLUMNS = {"id": "bigint", "status": "text", "text": "text"}


@pytest.mark.parametrize("name", NAMES)
@at_most(6)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), st.integers(0, 10_000))
def test_other_questions_cut_anywhere(name: str, cuts: list[int], end: int) -> None:
    """Of a stream that ends anywhere, also in a transaction."""
    format, messages = streams()[name]
    messages = messages[: end % len(messages) + 1]
    table = TABLES.get(name, "shop.orders_0")
    one = wf.Capture(messages, format, threads=1, **OPTIONS[-1])
    reading = ChunkedReading(divided(messages, cuts), format, **OPTIONS[-1])
    opened, others = (found.drop_columns(["message"]).to_pylist() for found in (reading.open(), one.open()))
    assert sorted(map(repr, opened)) == sorted(map(repr, others))

    def part() -> TypedPart:
        return TypedPart(
            table,
            schema=COLUMNS,
            options=TypedOptions("FAILFAST", "new", False, False, None),
            evolution="union",
            kept=(),
            format=format,
        )

    questions: list[tuple[Any, Any]] = [
        (one.messages(), lambda chunk: chunk.messages()),
        (one.typed(table, schema=COLUMNS), lambda chunk: chunk.typed_by(part(), table)),
    ]
    for wanted, ask in questions:
        found = [row for chunk in reading.captures() for batch in ask(chunk) for row in batch.to_pylist()]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted.read_all().to_pylist()))
