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
            found.append(wf.Insert(lsn=lsn, table_schema="s", table_name=table, new=wf.TupleData()))
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


def _committed(reading: ChunkedReading) -> list[Any]:
    if reading.planned.error is not None:
        raise reading.planned.error
    return without_messages(reading.committed())
