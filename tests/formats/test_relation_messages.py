"""Relation messages that are read without construct: as the declaration reads them, or not at all."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.pgoutput.messages import REPLICA_IDENTITIES, read_relation
from wireformat.formats.pgoutput.reader import PgOutput
from wireformat.framing.frames import Frame
from wireformat.options import ReadOptions

from ..handmade import u32
from ..handmade_pgoutput import BLOCK_XID, column, relation

NAMES = st.binary(max_size=5).map(lambda name: name.replace(b"\0", b"")) | st.sampled_from([b"id", "é".encode()])
COLUMNS = st.builds(
    column, NAMES, st.integers(0, (1 << 32) - 1), is_key=st.booleans(), typmod=st.binary(min_size=4, max_size=4)
)
RECORDS = st.builds(
    lambda columns, oid, schema, table, identity, xid: relation(
        *columns, oid=oid, schema=schema, table=table, identity=bytes([identity]), xid=xid
    ),
    st.lists(COLUMNS, max_size=4),
    st.integers(0, (1 << 32) - 1),
    NAMES,
    NAMES,
    st.sampled_from([*REPLICA_IDENTITIES, ord("x")]),
    st.sampled_from([b"", BLOCK_XID]),
)


@given(RECORDS, st.data())
def test_as_the_declaration_reads_them(record: bytes, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(["", "", "cut", "byte", "more"]))
    if change == "cut":
        record = record[: data.draw(st.integers(1, len(record) - 1))]
    elif change == "byte":
        at = data.draw(st.integers(1, len(record) - 1))
        record = record[:at] + bytes([data.draw(st.integers(0, 255))]) + record[at + 1 :]
    elif change == "more":
        record += data.draw(st.binary(min_size=1, max_size=12))
    encoding, errors = data.draw(st.sampled_from([("utf-8", "strict"), ("utf-8", "replace"), ("gbk", "strict")]))
    streamed = data.draw(st.booleans())
    reader = PgOutput()
    reader.relations.block = 7 if streamed else None
    options = ReadOptions(encoding=encoding, encoding_errors=errors)
    try:
        expected = reader._parsed(record, Frame(0, 0, len(record), None), options)
    except wf.DecodeError:
        assert read_relation(record, streamed, encoding, errors) is None
    else:
        assert read_relation(record, streamed, encoding, errors) == expected


def test_many_zero_bytes_and_flags_take_no_longer() -> None:
    head = b"R" + u32(1) + b"s\0t\0d\xff\xff"
    for rest in (bytes(1 << 20), b"\1" * (1 << 20)):
        assert read_relation(head + rest, False, "utf-8", "strict") is None


def test_an_lsn_is_that_of_the_frame() -> None:
    event = read_relation(relation(column(b"a")), False, "utf-8", "strict")
    assert event is not None
    assert event.lsn is None
    assert replace(event, lsn=5) == PgOutput().read(
        relation(column(b"a")), Frame(0, 0, len(relation(column(b"a"))), 5), ReadOptions()
    )
