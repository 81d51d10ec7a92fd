"""gaussdb-text: what its tests need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import wireformat as wf

from ..text_samples import SAMPLES, insert
from .texts import LIES, stream, text_support


def known(events: Sequence[wf.Event]) -> dict[str, Any]:
    """Names of tables are bare: a reader must be told them."""
    pairs = {(event.table_schema, event.table_name) for event in events if isinstance(event, wf.RowChange)}
    return {"known_tables": ['"{}"."{}"'.format(*(name.replace('"', '""') for name in pair)) for pair in pairs]}


FORMAT = "gaussdb-text"

SUPPORT = text_support(
    FORMAT,
    good=insert(b" a[integer]:1"),
    stream=stream(wf.Begin(csn=1, first_lsn=2, xid=5), wf.Commit(xid=5)),
    # release 3.0 has another word, and so one byte more
    written={1: SAMPLES[FORMAT][1].replace(b"$", b"#").replace(b"commit_lsn", b"first_lsn")},
    known=known,
    lies=LIES,
)
