"""Small messages for tests that are about Spark, not about bytes."""

from __future__ import annotations

import wireformat as wf

from ..engines import FORMAT

EARLY, LATE = "2026-11-01 01:30:00.123456-04", "2026-11-01 01:30:00.123456-05"
"""An hour apart, and the same local time in New York."""


def transaction(*values: str | None, commit_time: str = EARLY) -> bytes:
    """One message: a BEGIN, an INSERT into public.t for each value, and a COMMIT."""
    events: list[wf.Event] = [wf.Begin(lsn=16, csn=1, first_lsn=16, xid=7, commit_time=commit_time)]
    for place, value in enumerate(values, 1):
        image = wf.TupleData(("id", "v"), (str(place), value), ("integer", "text"))
        events.append(wf.Insert(lsn=16 + place, table_schema="public", table_name="t", new=image, old=None))
    events.append(wf.Commit(lsn=99, xid=7, commit_time=commit_time))
    options = {"sending-batch": 1, "include-timestamp": True}
    return b"".join(wf.encode(events, FORMAT, options=options))


TORN = transaction("a")[:-20]
"""A message whose end is missing."""
