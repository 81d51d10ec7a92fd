"""Lakes that tests write, and what has to be in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import wireformat as wf

from .histories import TABLES, messages_of, transactions
from .reading import read, values

ALL = [*transactions(60)]
MESSAGES = messages_of(ALL)
KEYS = ["id"]
KINDS = [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")]
"""Lakes that go on."""


def capture_of(messages: list[bytes], **options: Any) -> wf.Capture:
    return wf.Capture(messages, "gaussdb-binary", **options)


def write(messages: list[bytes], folder: Path, format: str, state: str, **options: Any) -> pa.Table:
    given = {"keys": KEYS} if state == "latest" else {}
    return capture_of(messages, **options).write(folder, format=format, state=state, **given)


def expected(messages: list[bytes], table: str, state: str) -> list[str]:
    return _expected(tuple(messages), table, state)


@cache
def _expected(messages: tuple[bytes, ...], table: str, state: str) -> list[str]:
    """Many tests compare with the same few streams."""
    capture, name = capture_of([*messages]), f"public.{table}"
    return values(capture.latest(name, keys=KEYS) if state == "latest" else capture.typed(name).read_all())


def check(messages: list[bytes], folder: Path, state: str) -> None:
    for table in TABLES:
        assert values(read(folder, ("public", table))) == expected(messages, table, state), table


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Stopped(BaseException):
    pass


def inserts_of_types(*kinds: tuple[str, str]) -> list[bytes]:
    """Transactions that insert a value of a type each."""
    parts: list[list[wf.Event]] = []
    for number, (value, sql_type) in enumerate(kinds):
        lsn = 100 + 50 * number
        row = wf.TupleData(("id", "v"), (str(number), value), ("integer", sql_type))
        insert = wf.Insert(lsn=lsn + 8, table_schema="a", table_name="t", new=row)
        parts.append([wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn), insert, wf.Commit(lsn=lsn + 16, xid=number)])
    return messages_of(parts)
