"""Events from one format to the next and back: nothing changes that all of them can say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.adapt import adapted

from .. import strategies
from ..accounting import EVERYTHING
from ..engines import read
from ..support import SUPPORTED


@given(strategies.row_changes())
def test_from_binary_to_json_to_text_to_binary(event: wf.RowChange) -> None:
    """Nothing changes that all of them can say."""
    said: wf.Event = event
    route = ["gaussdb-json", "gaussdb-text", "gaussdb-binary"]
    for format in ("gaussdb-binary", *route):
        said, _ = adapted(said, format)
    options = {"include-xids": True, "sending-batch": 1}
    found = said
    for format in route:
        try:
            messages = list(wf.encode([found], format, options=options))
        except wf.EncodeError:  # a type that has no name, a value that is none of its type, a name of no bytes
            return
        (found,) = read(messages, format=format, **SUPPORTED[format].known([found]))
    assert found == said


@given(st.sampled_from(strategies.U64_ENDS), st.sampled_from(strategies.U64_ENDS))
def test_transactions_from_binary_to_json_to_text_to_binary(number: int, lsn: int) -> None:
    events: list[wf.Event] = [
        wf.Begin(lsn=lsn, csn=number, first_lsn=lsn, xid=number, commit_time="2026-11-21 01:02:03+08", origin=-1),
        wf.Commit(lsn=lsn, xid=number, commit_time="infinity"),
    ]
    found = events
    for format in ("gaussdb-json", "gaussdb-text", "gaussdb-binary"):
        options = {**EVERYTHING[format], "sending-batch": 1}
        found = read(list(wf.encode(found, format, options=options)), format=format)
    assert found == events
