"""Corners of corrupt rows: texts that are wrong in another encoding, names in quotes, streamed blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

import wireformat as wf

from .corner import Corner
from .corner_encodings import corners, in_language
from .corner_records import (
    DROPMALFORMED,
    HALF,
    NAMES,
    PERMISSIVE,
    ROWS_PER_TRANSACTION,
    TD,
    TIME,
    TYPES,
    B,
    J,
    P,
    T,
    as_array,
    batched,
    gauss,
    insert,
    lines,
    postgres,
    relation,
    row_of,
    transactions,
    values,
)
from .generate import BINARY, JSON, PGOUTPUT, TEXT

GOOD, BAD = b"some length", b"some l\xffngth"
"""What is in each row, and what is in its place in a corrupt one: no text in UTF-8, GBK and EUC-JP."""

STREAMED_ROWS = 500
"""Of a streamed block. A server streams a transaction when its changes need more than logical_decoding_work_mem; these
need about the least that can be set, 64 kB."""

Make = Callable[[int], Any]

ROWS: Mapping[str, tuple[str, Make]] = {
    BINARY: (B, gauss(BINARY)),
    JSON: (J, gauss(JSON)),
    TEXT: (T, gauss(TEXT)),
    "test-decoding": (TD, lines(lambda row: [insert(row)])),
    PGOUTPUT: (P, postgres(lambda row: [row_of(row)])),
}
"""Of each format its easy case, and what makes it."""


def spoiled(make: Make, every: int) -> Make:
    """Of so many rows one has a value that is no text."""

    def spoil(rows: int) -> pa.Array:
        numbers = count()
        return as_array(_spoiled(message, every, numbers) for message in make(rows))

    return spoil


def _spoiled(message: Any, every: int, numbers: Iterator[int]) -> bytes:
    first, *others = (message if isinstance(message, bytes) else message.as_py()).split(GOOD)
    return bytes(first) + b"".join((BAD if next(numbers) % every == every // 2 else GOOD) + part for part in others)


def quoted(format: str) -> Make:
    """Schema, table and columns have names that are written in quotes."""
    names = tuple(f"The {name}" for name in NAMES)

    def change(row: int) -> list[wf.Event]:
        image = wf.TupleData(names, values(row), TYPES)
        return [insert(row, lsn=row + 1, table_schema="My shop", table_name="Orders", new=image)]

    def make(rows: int) -> list[bytes]:
        events = transactions(
            rows,
            ROWS_PER_TRANSACTION,
            lambda row: wf.Begin(lsn=row + 1, csn=row + 1, first_lsn=row + 1, commit_time=TIME, xid=row + 1),
            change,
            lambda row: wf.Commit(lsn=row + 1, xid=row + 1),
        )
        return batched(events, format)

    return make


def streamed(per: int) -> Make:
    """Transactions that are streamed, with so many rows in each block."""

    def events(rows: int) -> Iterator[wf.Event]:
        for first in range(0, rows, per):
            xid = first + 5
            yield wf.StreamStart(xid=xid, first_segment=True)
            if first == 0:
                yield replace(relation(0), xid=xid)
            for row in range(first, min(first + per, rows)):
                yield row_of(row, xid=xid)
            yield wf.StreamStop()
            yield wf.StreamCommit(xid=xid, commit_lsn=first + 9, end_lsn=first + 10, commit_time=TIME)

    return lambda rows: as_array(wf.encode(events(rows), PGOUTPUT))


def corrupt(name: str, format: str, make: Make, easy: str, **options: Any) -> Iterator[Corner]:
    """Corners of these rows: one of a hundred is corrupt, and every second one."""
    yield Corner(f"{name}, 1 % corrupt", format, spoiled(make, 100), easy, {**options, **PERMISSIVE})
    for mode in (PERMISSIVE, DROPMALFORMED):
        title = f"{name}, 50 % corrupt, {mode['mode']}"
        yield Corner(title, format, spoiled(make, 2), easy, {**options, **mode}, most=HALF)


def misread(written: str, encoding: str) -> Iterator[Corner]:
    """Names and values in another encoding than the one that is given: no row can be read, all are corrupt."""
    change = partial(in_language, "chinese")
    found = corners(f"{written} read as {encoding}", change, written, encoding=encoding, **PERMISSIVE)
    return (corner._replace(most=HALF) for corner in found)


def empty(every: int, make: Make) -> Make:
    """A message without bytes after so many others; 0: those alone."""

    def messages(rows: int) -> pa.Array:
        if not every:
            return as_array([b""] * rows)
        made = enumerate(as_array(make(rows)).to_pylist(), 1)
        return as_array(one for index, message in made for one in ([message] if index % every else [message, b""]))

    return messages


def _corners() -> Iterator[Corner]:
    yield from misread("gbk", "utf-8")
    yield from misread("utf-8", "gbk")
    for encoding, formats in (("gbk", tuple(ROWS)), ("euc_jp", (BINARY, JSON))):
        for format in formats:
            easy, make = ROWS[format]
            yield from corrupt(f"{format}: {encoding}", format, make, easy, encoding=encoding)
    for format, (easy, make) in ROWS.items():
        alone = f"{format}: messages without bytes"
        yield Corner(alone, format, empty(0, make), easy, PERMISSIVE, per_row=True)
    for format in ("test-decoding", PGOUTPUT):
        easy, make = ROWS[format]
        between = f"{format}: a message without bytes after ten others"
        yield Corner(between, format, empty(10, make), easy, PERMISSIVE)
    for format in (JSON, TEXT):
        name, make = f"{format}: names in quotes", quoted(format)
        yield Corner(name, format, make, ROWS[format][0])
        yield from corrupt(name, format, make, ROWS[format][0])
    name, make = f"{PGOUTPUT}: streamed blocks of {STREAMED_ROWS} rows", streamed(STREAMED_ROWS)
    yield Corner(name, PGOUTPUT, make, P)
    yield from corrupt(name, PGOUTPUT, make, P)


CORRUPT: tuple[Corner, ...] = tuple(_corners())
