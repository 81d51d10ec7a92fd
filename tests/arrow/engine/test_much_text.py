"""Rows with a bad text where the second look has stopped before them, since it has made much text already."""

from __future__ import annotations

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
