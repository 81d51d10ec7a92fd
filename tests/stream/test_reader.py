"""What the filters keep of an event."""

from __future__ import annotations

import wireformat as wf
from wireformat.stream.reader import selected


def test_a_filter_takes_tables_out_of_a_truncate() -> None:
    event = wf.Truncate(tables=(("s", "a"), ("t", "b"), ("s", "c")))
    assert selected(event, wf.ReadOptions.check()) == event
    assert selected(event, wf.ReadOptions.check(tables=["s.*"])) == wf.Truncate(tables=(("s", "a"), ("s", "c")))
    assert selected(event, wf.ReadOptions.check(tables=["u.*"])) is None
    assert selected(event, wf.ReadOptions.check(kinds=["INSERT"])) is None
    assert selected(wf.Ddl(sql="x"), wf.ReadOptions.check(tables=["u.*"])) == wf.Ddl(sql="x")
