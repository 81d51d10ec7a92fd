"""The scan runs out of room at every place where it can, goes on, and gives the same rows as with plenty."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.columns import row_limits as row_ranges
from wireformat.arrow.columns import rows_from_events as builder
from wireformat.arrow.scan.kernels import pgoutput as scan_pgoutput
from wireformat.arrow.scan.kernels import transaction_lines as scan_lines
from wireformat.arrow.scan.notes import make_notes
from wireformat.arrow.scan.relations import relation_table
from wireformat.limits import RECORD_BYTES

from ... import strategies
from ...accounting import EVERYTHING
from ...engines import ENGINES, FORMAT, SCANS, agree, ask, read, rows
from ...golden_cases import CASES, Case, find_case
from ...handmade import SAMPLES, begin, cell, change, commit, message, new, old, origin, row_bodies, time, u16, xid
from ...handmade_pgoutput import NULL, binary, column, image, relation, text
from ...handmade_pgoutput import change as row_of
from .small_limits import shrink

MIXED = message(*row_bodies(800))
"""More rows than the engine ever keeps room for at the least, of zero to nine columns, some of them bad."""

MESSAGES = [*SAMPLES.values(), MIXED, message(commit(b"?")), b"", MIXED[:-1], MIXED + b"?"]

MOST_CELLS = 40
"""Room for the cells of any record in MESSAGES; with less the scan could not go on."""

ROOMS = [
    {"MESSAGE_BATCH_ROWS": most_rows, "MESSAGE_BATCH_CELLS": most_cells, "MESSAGE_BATCH_BYTES": most_bytes}
    for most_rows, most_cells, most_bytes in product((2, 700), (MOST_CELLS, MOST_CELLS + 1, 10_000), (1, 1 << 20))
]


class Expected(NamedTuple):
    table: list[dict[str, Any]]
    events: list[wf.Event]
    filtered: list[dict[str, Any]]


@cache
def with_plenty() -> Expected:
    """What the declaration gives, which needs no room."""
    options: dict[str, Any] = {"mode": "PERMISSIVE", "engine": "declaration"}
    table, filtered = (wf.arrow.changes(MESSAGES, FORMAT, tables=tables, **options) for tables in (None, ["s.t1"]))
    return Expected(rows(table), list(wf.decode(MESSAGES, FORMAT, **options)), rows(filtered))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: "-".join(map(str, room.values())))
def test_little_room_gives_the_same_rows(room: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = with_plenty()
    shrink(monkeypatch, **room)
    table = wf.arrow.changes(MESSAGES, FORMAT, mode="PERMISSIVE")
    table.validate(full=True)
    assert rows(table) == expected.table
    assert read(MESSAGES, mode="PERMISSIVE") == expected.events
    assert rows(wf.arrow.changes(MESSAGES, FORMAT, mode="PERMISSIVE", tables=["s.t1"])) == expected.filtered


@pytest.mark.parametrize("size_in_rows", [2, 3, 7])
def test_few_rows_at_once_make_many_batches(size_in_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [message(*[commit(xid(number)) for number in range(5000)])]
    shrink(monkeypatch, MESSAGE_BATCH_ROWS=size_in_rows)
    found = list(wf.arrow.batches(good, FORMAT))
    assert len(found) > 3
    table = pa.Table.from_batches(found)
    assert table["record"].to_pylist() == list(range(5000))
    assert table["xid"].to_pylist() == list(range(5000))


MOST_TEXT = 300
"""Bytes of texts in a column of a batch; characters may have four each."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads", [1, 2])
def test_texts_that_are_too_many_for_a_batch_make_more_batches(
    engine: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = with_plenty()
    shrink(monkeypatch, BATCH_TEXT_BYTES=MOST_TEXT)
    found = list(wf.arrow.batches(MESSAGES, FORMAT, mode="PERMISSIVE", engine=engine, threads=threads))
    assert all(batch.num_rows == 1 or batch["raw"].nbytes < 2 * MOST_TEXT for batch in found)
    for batch in found:
        batch.validate(full=True)
    assert rows(pa.Table.from_batches(found)) == expected.table
    assert read(MESSAGES, engine, mode="PERMISSIVE") == expected.events


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_texts_of_a_second_look_make_more_batches(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are transcoded, and values in binary form, of which some become long texts and some none."""
    zeros = binary(u16(1) + u16(250) + u16(0) + u16(0) + u16(1))
    described = relation(column(b"v", 25), column(b"n", 1700))
    cells = [(NULL, binary(b"?")), (NULL, zeros), (text("äöü".encode(encoding)), NULL), (text(b"a"), zeros)]
    inserts = [row_of(b"I", image(b"N", *pair)) for pair in cells * 20]
    options: dict[str, Any] = {"format": "pgoutput", "mode": "PERMISSIVE", "encoding": encoding}
    expected = ask([described, *inserts], "declaration", **options)
    shrink(monkeypatch, BATCH_TEXT_BYTES=MOST_TEXT)
    answer = agree([described, *inserts], **options)
    assert answer.events == expected.events
    assert rows(answer.table) == rows(expected.table)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_with_more_text_than_a_column_holds(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column has no room for it, whatever the batch."""
    wide = change(b"I", b"s", b"t", new(*[cell(b"a", 25, b"x" * 60)] * 5))
    for module in (row_ranges, builder):
        monkeypatch.setattr(module, "BATCH_TEXT_BYTES", MOST_TEXT - 1)
        monkeypatch.setattr(module, "COLUMN_BYTES", MOST_TEXT - 1)
    found = wf.arrow.batches([message(commit(), wide)], FORMAT, engine=engine, columns=["kind", "new"])
    with pytest.raises(wf.LimitExceeded, match=r"COLUMN_BYTES is 299, .* of record 1 of message 0 "):
        list(found)


def test_names_for_which_a_batch_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows are read by the declaration."""
    relations = [relation(column(b"x" * 100), oid=number) for number in range(20000, 20003)]
    inserts = [row_of(b"I", image(b"N", text(b"v")), oid=number) for number in range(20000, 20003)]
    expected = ask([*relations, *inserts], "declaration", format="pgoutput")
    monkeypatch.setattr(relation_table, "MOST_TEXT_OF_BATCH", 250)
    assert ask([*relations, *inserts], "scan", format="pgoutput").table == expected.table


@pytest.mark.parametrize("open_record", [scan_pgoutput.open_record, scan_lines.open_record, scan_lines.open_message])
def test_records_that_are_longer_than_servers_send(open_record: Callable[..., tuple[int, int, int, bool]]) -> None:
    """Their places would need more than 31 bits, with what a scan writes behind them: the declaration reads them."""
    buffer = np.frombuffer(b"BEGIN", np.uint8)
    assert open_record(buffer, 0, RECORD_BYTES, 0, 0)[1] == RECORD_BYTES
    assert open_record(buffer, 0, RECORD_BYTES + 1, 0, 0)[1] == -1


@pytest.mark.parametrize("name", ["b_timeout_batch", "b_wide_batch", "handmade_heartbeat_mixed"])
def test_captures_with_little_room(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = find_case(name).messages
    table = wf.arrow.changes(messages, FORMAT)
    shrink(
        monkeypatch,
        MESSAGE_BATCH_ROWS=5,
        MESSAGE_BATCH_CELLS=max(map(len, messages)) // 10 + 1,
        MESSAGE_BATCH_BYTES=3000,
    )
    assert rows(wf.arrow.changes(messages, FORMAT)) == rows(table)


TEXT_CASES = [case for case in CASES if case.format in SCANS and case.format != FORMAT and not case.has_bad_text]


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("tables", [None, ["public.*"]], ids=["all", "some"])
def test_text_styles_with_little_room(case: Case, tables: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that the filters drop, and rows whose cells find no room, are remembered by nobody."""
    options: dict[str, Any] = {**case.reading, "tables": tables}
    expected = wf.arrow.changes(case.array, case.format, engine="declaration", **options)
    assert wf.arrow.changes(case.array, case.format, **options) == expected
    shrink(monkeypatch, MESSAGE_BATCH_ROWS=7, MESSAGE_BATCH_CELLS=60, MESSAGE_BATCH_BYTES=3000)
    assert wf.arrow.changes(case.array, case.format, **options) == expected


def test_text_that_the_scan_writes_itself_with_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, type numbers and names with doubled quotes stand nowhere in the input: they need room of their own."""
    odd = cell(b'"' + b'""' * 200 + b'"', 0xFFFFFFFF, b"")
    wide = change(b"U", b"s", b"t", new(*[odd] * 30), old(*[odd] * 30))
    messages = [message(begin(1, (1 << 64) - 1, origin(-(1 << 31))), wide, begin(1, 1, time(b"t")), wide)]
    expected = wf.arrow.changes(messages, FORMAT, engine="declaration")
    shrink(
        monkeypatch, MESSAGE_BATCH_BYTES=1, MESSAGE_BATCH_ROWS=2, MESSAGE_BATCH_CELLS=max(map(len, messages)) // 10 + 1
    )
    assert rows(wf.arrow.changes(messages, FORMAT)) == rows(expected)


def test_the_room_grows_with_a_larger_message() -> None:
    """One engine reads small and large messages in turn; no row keeps anything of the one before."""
    small = message(commit())
    large = message(change(b"I", b"s", b"t", new(*[cell(b"a", 23, b"x" * 50)] * 500)))
    messages = [small, large, small, MIXED, large, small]
    expected = wf.arrow.changes(messages, FORMAT, mode="PERMISSIVE", engine="declaration")
    assert rows(wf.arrow.changes(messages, FORMAT, mode="PERMISSIVE")) == rows(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_generated_events_with_little_room(encoding: str) -> None:
    @given(st.lists(strategies.events(encoding), min_size=1, max_size=8))
    def check(events: list[wf.Event]) -> None:
        options = {**EVERYTHING[FORMAT], "sending-batch": 1}
        messages = list(wf.encode(events, FORMAT, options=options, encoding=encoding))
        with pytest.MonkeyPatch.context() as monkeypatch:
            shrink(
                monkeypatch,
                MESSAGE_BATCH_ROWS=2,
                MESSAGE_BATCH_CELLS=max(map(len, messages)) // 10 + 1,
                MESSAGE_BATCH_BYTES=1,
            )
            assert read(messages, encoding=encoding) == events

    check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork processes")
def test_a_forked_process_has_its_own_memory() -> None:
    """Scratch that waits for the next scan is in both processes, which write into it at the same time."""
    notes = make_notes(10, 10, 10)
    notes.rows[0, 0] = 1
    child = os.fork()
    if not child:
        notes.rows[0, 0] = 2
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    assert notes.rows[0, 0] == 1
