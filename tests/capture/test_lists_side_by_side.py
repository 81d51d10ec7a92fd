"""The list of tables that a capture keeps, where one reading goes on after another one."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.scan import message_batches
from wireformat.sources import groups

FORMAT = "test-decoding"


def transaction(xid: int, table: str, columns: str) -> list[bytes]:
    row = f"table public.{table}: INSERT: {columns}".encode()
    return [b"BEGIN %d" % xid, *[row] * 10, b"COMMIT %d" % xid]


def test_a_list_is_not_made_of_a_part_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """While rows are read whose tables are known, another reading makes another list, in place of that one."""
    monkeypatch.setattr(groups, "GROUP_ROWS", 10)
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    before, after = "id[integer]:1 gone[integer]:7", "id[integer]:1"
    pieces = [
        transaction(1, "other", before),
        *[transaction(xid, "t", before) for xid in range(2, 6)],
        *[transaction(xid, "t", after) for xid in range(6, 10)],
    ]
    capture = wf.Capture(pa.chunked_array(pieces, pa.binary()), FORMAT, threads=1)
    expected = [rows for _, rows in capture.typed_all(tables=["public.t"])]
    again = capture.typed_all(tables=["public.t"])
    found = [next(again)[1] for _ in range(4)]  # all that have the column `gone`
    assert [len(rows) for _, rows in capture.typed_all(tables=["public.other"])] == [10]
    found += [rows for _, rows in again]
    assert "gone" in expected[0].schema.names
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(expected))
    assert capture.typed("public.t").read_all().equals(pa.Table.from_batches(expected))
