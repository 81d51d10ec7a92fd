"""Streams for lakes: transactions on a few tables, with keys that exist."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import wireformat as wf

TABLES = ("orders", "lines", "Notes")
TYPES = {"id": "integer", "text": "text"}


def transactions(count: int, seed: int = 7, more: str | None = None) -> Iterator[list[wf.Event]]:
    """Yields transactions.

    more   the name of a column that the rows of the second half have too
    """
    random_number = random.Random(seed)
    held: dict[str, dict[int, str]] = {name: {} for name in TABLES}
    lsn = 100
    for number in range(count):
        day = f"2026-11-{10 + number // 20} 10:00:00+00"
        events: list[wf.Event] = [wf.Begin(lsn=lsn, csn=number + 10, first_lsn=lsn, commit_time=day)]
        for _ in range(random_number.randrange(1, 12)):
            lsn += 8
            table = random_number.choice(TABLES)
            extra = (more,) if more and number >= count // 2 else ()
            events.append(_change(random_number, table, held[table], lsn, extra))
        lsn += 8
        events.append(wf.Commit(lsn=lsn, xid=number + 1000))
        lsn += 8
        yield events


def _change(chance: random.Random, table: str, rows: dict[int, str], lsn: int, extra: Sequence[str]) -> wf.Event:
    name = {"table_schema": "public", "table_name": table, "lsn": lsn}
    key = chance.choice([*rows]) if rows and chance.random() < 0.6 else max(rows, default=0) + 1
    text = f"text {lsn} {'x' * chance.randrange(40)}"
    if key not in rows:
        rows[key] = text
        return wf.Insert(**name, new=_row(key, text, extra))
    if chance.random() < 0.3:
        del rows[key]
        return wf.Delete(**name, old=_row(key, None, ()))
    target = key if chance.random() < 0.8 else max(rows) + 1
    del rows[key]
    rows[target] = text
    return wf.Update(**name, new=_row(target, text, extra), old=_row(key, None, ()))


def _row(key: int, text: str | None, extra: Sequence[str]) -> wf.TupleData:
    columns = {"id": str(key), **({} if text is None else {"text": text}), **dict.fromkeys(extra, str(key))}
    types = tuple(TYPES.get(name, "bigint") for name in columns)
    return wf.TupleData(tuple(columns), tuple(columns.values()), types)


def messages_of(parts: Sequence[list[wf.Event]]) -> list[bytes]:
    """Returns the messages of transactions, one each."""
    options = {"sending-batch": 1, "include-timestamp": True}
    return [message for part in parts for message in wf.encode(part, "gaussdb-binary", options=options)]
