"""Corrupt records are noted beside the records that the scan has read: no row is joined with others afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

import wireformat as wf
from wireformat.arrow.engine import faults
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan.message_batches import MessageBatch
from wireformat.arrow.scan.notes import CORRUPT, KIND
from wireformat.formats.registry import find_format
from wireformat.framing import gauss_batch
from wireformat.framing.frames import Frame
from wireformat.options import ReadOptions

from ... import handmade
from ...engines import MODES, agree
from ..scan.small_limits import shrink

GOOD = [wf.Insert(lsn=n, table_schema="s", table_name="t", new=wf.TupleData(("a",), ("é",), ("text",))) for n in (1, 2)]


def messages_of(format: str, spoil: tuple[bytes, bytes]) -> list[bytes]:
    """Good messages, and the same with other bytes in some places, in turn."""
    options = {"sending-batch": 1} if format.startswith("gaussdb") else None
    (message,) = wf.encode(GOOD, format, options=options)
    bad = message.replace(*spoil)
    assert bad != message
    return [message, bad, message, message.replace(*spoil, 1), bad]


CASES = {
    "a name that is no text": ("gaussdb-binary", (b"\0\1s\0\1t", b"\0\1\xff\0\1t")),
    "a value that is no text": ("gaussdb-binary", ("é".encode(), b"\xff\xff")),
    "a length that is too large": ("gaussdb-binary", (b"\0\0\0\2\xc3", b"\0\0\2\0\xc3")),
    "an unknown kind of row": ("gaussdb-json", (b"INSERT", b"IXSERT")),
    "a value that is no literal": ("gaussdb-text", (b":'", b":?")),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@pytest.mark.parametrize("tables", [None, ["s.*"], ["x.*"]])
def test_both_engines_agree(case: str, mode: str, encoding: str, tables: list[str] | None) -> None:
    format, spoil = CASES[case]
    messages = messages_of(format, spoil)
    agree(messages, format=format, mode=mode, encoding=encoding, tables=tables)


@pytest.mark.parametrize("case", CASES)
def test_they_are_noted(case: str) -> None:
    format, spoil = CASES[case]
    scanner = Scanner(find_format(format), ReadOptions.check(mode="PERMISSIVE"))
    (scanned,) = scanner.scan(messages_of(format, spoil))
    assert scanned.events == {}
    assert (scanned.rows[KIND, : scanned.row_count] == CORRUPT).sum() == 5


def test_dropped_rows_are_no_objects() -> None:
    """Thousands of objects set off Python's search for garbage, which takes longer the more objects a process has."""
    relation = wf.Relation(
        relation_id=1,
        table_schema="s",
        table_name="t",
        replica_identity="default",
        columns=("a",),
        type_oids=(25,),
        typmods=(-1,),
        key_columns=(),
        xid=5,
    )
    events = [wf.StreamStart(xid=5, first_segment=True), relation, replace(GOOD[0], lsn=None, xid=5), wf.StreamStop()]
    *begin, row, end = wf.encode(events, "pgoutput")
    messages = [*begin, *[row, row.replace("é".encode(), b"\xff\xff")] * 10_000, end]
    wf.arrow.changes(messages, "pgoutput", mode="DROPMALFORMED", threads=1)  # which loads compiled code
    searches: list[str] = []
    threshold = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1000)
    gc.callbacks.append(lambda phase, _: searches.append(phase))
    try:
        wf.arrow.changes(messages, "pgoutput", mode="DROPMALFORMED", threads=1)
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*threshold)
    assert len(searches) < 4


@pytest.mark.parametrize("format", ["gaussdb-binary", "gaussdb-json", "gaussdb-text"])
@pytest.mark.parametrize("tables", [None, ["s.t", "x.*"]])
def test_messages_that_are_cut(format: str, tables: list[str] | None) -> None:
    """Only the last record's framing is read again. Rows that are not ASCII are finished after the scan."""
    others = [wf.Insert(lsn=n, table_schema="s", table_name="ü", new=GOOD[0].new) for n in (1, 2)]
    (message,) = wf.encode([*others, *GOOD, *others], format, options={"sending-batch": 1})
    for size in {*range(1, len(message), 1 + len(message) // 100), *range(len(message) - 20, len(message) + 1)}:
        cut = message[:size]
        agree([cut, cut], format=format, mode="PERMISSIVE", tables=tables)
    agree([message[:-7]], format=format, mode="PERMISSIVE", tables=tables, encoding="latin-1")


def test_a_long_message_that_is_cut_is_framed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = wf.encode(GOOD * 500, "gaussdb-binary", options={"sending-batch": 1})
    format = find_format("gaussdb-binary")
    framed = []
    frames = gauss_batch.frames

    def counted(*given: int) -> Iterator[Frame]:
        for frame in frames(*given):
            framed.append(frame.record)
            yield frame

    monkeypatch.setattr(gauss_batch, "frames", counted)
    for cut in (message[:-1], message[:-20]):
        (scanned,) = Scanner(format, ReadOptions.check(mode="PERMISSIVE")).scan([cut])
        assert scanned.row_count > 990
    assert framed == [999]


def test_a_large_message_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in each step of the scan that finds bad records in it: that took minutes for a gigabyte."""
    copied: list[int] = []
    copy = MessageBatch.message

    def counted(batch: MessageBatch, index: int) -> bytes:
        copied.append(index)
        return copy(batch, index)

    bodies = [handmade.COMMIT, handmade.commit(b"?")] * 600
    messages = [handmade.message(*bodies), handmade.message(*bodies)]
    shrink(monkeypatch, MESSAGE_BATCH_ROWS=10)
    monkeypatch.setattr(faults, "FEW", len(bodies) * len(messages))
    monkeypatch.setattr(MessageBatch, "message", counted)
    assert len(wf.arrow.changes(messages, "gaussdb-binary", mode="PERMISSIVE", threads=1)) == 2400
    assert copied == [0, 1]
