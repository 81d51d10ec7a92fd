"""What the chunks of a pgoutput stream change of its relations leads to the relations before each of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.chunks.relations import event_of, needed_messages, relation_changes, relations_after, relations_before
from wireformat.formats.pgoutput.reader import PgOutput
from wireformat.formats.pgoutput.relations import Relations
from wireformat.options import ReadOptions

OPTIONS = ReadOptions.check(mode="PERMISSIVE")
XIDS = st.integers(1, 3)


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")


def relation(xid: int | None, oid: int, column: str) -> bytes:
    """A Relation message, with an xid in a block."""
    own = b"" if xid is None else number(xid)
    columns = number(1, 2) + b"\1" + column.encode() + b"\0" + number(25) + number(0xFFFFFFFF)
    return b"R" + own + number(oid) + b"public\0" + f"t{oid}".encode() + b"\0d" + columns


def begin(xid: int) -> bytes:
    return b"B" + number(16, 8) + number(0, 8) + number(xid)


def stream_commit(xid: int) -> bytes:
    return b"c" + number(xid) + b"\0" + number(16, 8) + number(24, 8) + number(0, 8)


RELATIONS = st.builds(relation, st.none() | XIDS, st.integers(1, 3), st.sampled_from("ab"))
MESSAGES = st.one_of(
    RELATIONS,
    RELATIONS.map(lambda message: message[:-3]),  # cannot be read: the relation is lost
    XIDS.map(lambda xid: b"S" + number(xid) + b"\1"),
    st.just(b"E"),
    XIDS.map(begin),
    XIDS.map(stream_commit),
    XIDS.map(lambda xid: b"A" + number(xid) + number(xid)),
)


def known(relations: Relations) -> Any:
    """Returns what is known, without the LSNs of the messages."""
    scopes = {
        scope: {oid: one and replace(one, lsn=None) for oid, one in of_scope.items()}
        for scope, of_scope in relations.scopes.items()
        if of_scope
    }
    return relations.block, scopes


@given(chunks=st.lists(st.lists(MESSAGES, max_size=4), max_size=6))
def test_relations_before_each_chunk(chunks: list[list[bytes]]) -> None:
    needed = [(index, needed_messages(chunk)) for index, chunk in enumerate(chunks)]
    changes = [*relation_changes(needed, OPTIONS)]
    reader = PgOutput()
    for index, chunk in enumerate(chunks):
        assert known(relations_before(index, changes)) == known(reader.relations), index
        for message in chunk:
            event_of(reader, message, OPTIONS)
    assert known(relations_after(changes)) == known(reader.relations)


@pytest.mark.parametrize("repeats", [1, 50])
def test_what_travels_grows_with_tables_not_with_blocks(repeats: int) -> None:
    """Each block describes the table again, as a server does after each new connection."""
    block = [b"S" + number(7) + b"\1", relation(7, 1, "a"), b"E", b"A" + number(7) + number(7)]
    chunks = [[begin(5), relation(None, 1, "a"), *chain.from_iterable([block] * repeats)] for _ in range(20)]
    changes = [*relation_changes(enumerate(map(needed_messages, chunks)), OPTIONS)]
    assert len(changes) == 1
    assert sum(map(len, changes[0].changed.values())) == 1


def test_relations_that_were_known_before() -> None:
    reader = PgOutput()
    event_of(reader, relation(None, 1, "a"), OPTIONS)
    chunks = [(0, [relation(None, 1, "a")]), (1, [relation(None, 1, "b")])]
    described = [one for one in reader.relations.scopes[None].values() if one is not None]
    changes = [*relation_changes(chunks, OPTIONS, described)]
    assert [one.chunk for one in changes] == [-1, 1]
    assert known(relations_before(0, changes)) == known(reader.relations)
