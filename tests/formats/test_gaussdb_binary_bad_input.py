"""Bad records of gaussdb-binary: what comes after them, and the table that their error names."""

from __future__ import annotations

import pytest

import wireformat as wf

from ..engines import ENGINES, FORMAT, ask, read
from ..handmade import (
    COMMIT,
    INSERT,
    SAMPLES,
    cell,
    change,
    commit,
    message,
    new,
    old,
    record,
    short_text,
    u16,
    u32,
    u64,
)

each_engine = pytest.mark.parametrize("engine", ENGINES)


GOOD = message(INSERT)
SIZE = len(GOOD)
A = cell(b"a", 23, b"1")


def claimed(length: int, rest: bytes) -> bytes:
    """A message that begins with this length, whatever follows."""
    return u32(length) + rest


@each_engine
def test_after_a_bad_body_comes_the_next_record(engine: str) -> None:
    data = message(INSERT, commit(b"?"), b"Z", commit(b"??"), COMMIT)
    events = read([data], engine, mode="PERMISSIVE")
    assert [event.kind for event in events] == ["INSERT", "CORRUPT", "UNKNOWN", "CORRUPT", "COMMIT"]
    assert [event.lsn for event in events] == [0x10, 0x11, 0x12, 0x13, 0x14]
    table = wf.arrow.changes([data], FORMAT, engine=engine, mode="PERMISSIVE")
    assert table["record"].to_pylist() == [0, 1, 2, 3, 4]


@each_engine
def test_a_record_one_byte_short_breaks_the_framing_after_it(engine: str) -> None:
    data = claimed(SIZE - 6, GOOD[4:])
    body, rest = read([data], engine, mode="PERMISSIVE")
    assert isinstance(body, wf.Corrupt)
    assert isinstance(rest, wf.Corrupt)
    assert (body.lsn, body.raw, rest.lsn, rest.raw) == (0x10, GOOD[12:-2], None, GOOD[-2:])


@each_engine
def test_error_names_the_table_where_it_is_known(engine: str) -> None:
    for body, table in (
        (change(b"I", b"sch", b"tab", new(A[:-1])), "sch.tab"),
        (change(b"D", "schéma".encode(), "表".encode(), old(cell(b'"', 23, b""))), "schéma.表"),
        (b"I" + short_text(b"sch") + u16(1), None),
        (commit(b"?"), None),
    ):
        error = ask([message(body)], engine).error
        assert error is not None
        assert error.table == table
        assert (f", table {table}" in str(error)) == (table is not None)


def test_the_samples_are_good() -> None:
    assert all(event.kind != "CORRUPT" for event in read(list(SAMPLES.values())))
    assert message(INSERT, COMMIT)[SIZE:] == record(COMMIT, 0x11) + b"F"
    assert len(u64(1)) == 8
