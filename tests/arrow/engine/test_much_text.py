"""Rows with more text than is made at once, also with a bad text where the second look has stopped before them."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.arrow.engine import faults

from ...engines import MODES, agree, ask, rows
from ...handmade_pgoutput import DESCRIBED, change, image, text
from ..scan.small_limits import shrink

BAD_TEXTS = {
    "gaussdb-binary": b"\0\0\0\x22" + bytes(8) + b"I\0\1s\0\1tN\0\1\0\1a\0\0\0\x19\0\0\0\2\xff\xffF",
    "gaussdb-text": b"table public t INSERT: a[text]:'\xff\xff'",
    "opengauss-test-decoding": b"table public.t: INSERT: a[text]:'\xff\xff'",
    "mppdb-json": b'{"table_name":"public.t","op_type":"INSERT","columns_name":["a"],"columns_type":["text"],'
    b'"columns_val":["\'\xff\xff\'"],"old_keys_name":[],"old_keys_type":[],"old_keys_val":[]}',
    "pgoutput": change(b"I", image(b"N", text(b"\xff\xff"), text(b"b"))),
}
"""A row whose value is no GBK, in formats whose faults compiled walks find."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", BAD_TEXTS)
def test_they_are_still_bad(format: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were once read as rows of empty names and values."""
    bad = BAD_TEXTS[format]
    messages = [*[DESCRIBED] * (format == "pgoutput"), bad[:-1], bad, bad, bad[:-1], bad]
    options = {"format": format, "mode": mode, "encoding": "gbk"}
    expected = ask(messages, "declaration", **options)
    monkeypatch.setattr(faults, "FEW", 0)
    shrink(monkeypatch, BATCH_TEXT_BYTES=100)
    found = agree(messages, **options)
    assert found.events == expected.events
    if expected.table is not None:
        assert rows(found.table) == rows(expected.table)
    if mode == "PERMISSIVE":
        assert sum(isinstance(event, wf.Corrupt) for event in found.events) == 5


@pytest.mark.parametrize("format", ["gaussdb-binary", "gaussdb-json", "test-decoding", "pgoutput"])
def test_events_of_rows_with_more_text_than_a_column_may_have_together(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few of them are read in full: the values of the others are made later, from texts that are divided by then."""
    facts: dict[str, Any] = {"lsn": 8} if format.startswith("gaussdb") else {}
    row = wf.TupleData(("a", "b"), ("x" * 40, "y"), ("text", "text"))
    table = {"table_schema": "public", "table_name": "t", **facts}
    described = wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity="default",
        columns=row.names,
        type_oids=(25, 25),
        typmods=(-1, -1),
        key_columns=("a",),
    )
    inserts = [wf.Insert(**table, new=row) for _ in range(60)]
    options = {"sending-batch": 1} if format.startswith("gaussdb") else None
    messages = list(wf.encode([*[described] * (format == "pgoutput"), *inserts], format, options=options))
    expected = [*wf.decode(messages, format, engine="declaration")]
    assert len(expected) >= 60
    shrink(monkeypatch, BATCH_TEXT_BYTES=500)
    assert [*wf.decode(messages, format)] == expected
