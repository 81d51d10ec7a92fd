"""What rows of pgoutput mean after other messages: the newest relation, those of streamed blocks, and what is lost."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import pytest

import wireformat as wf
from wireformat.arrow.engine.choice import make_engine
from wireformat.formats.pgoutput.messages import RECORDS, read_message
from wireformat.formats.pgoutput.relations import (
    ASKS,
    CLOSES,
    ENDS,
    MAY_END,
    NOTHING,
    OPENS,
    TELLS,
    Relations,
    message_of,
    role_of,
)
from wireformat.formats.registry import find_format

from ..engines import ENGINES, agree, ask
from ..handmade_pgoutput import (
    OID,
    OTHER_OID,
    OTHERS,
    ROWS,
    STOP,
    STREAMED,
    change,
    column,
    image,
    relation,
    start,
    stream_abort,
    stream_commit,
    streamed,
    text,
)

FORMAT = "pgoutput"
OLD, NEW, THIRD = (relation(column(name, 23)) for name in (b"old", b"new", b"third"))
ROW = change(b"I", image(b"N", text(b"1")))


def columns(*messages: bytes, **options: Any) -> list[str]:
    """The column of each row, by both engines; `?` where it could not be read."""
    events = agree(messages, format=FORMAT, mode="PERMISSIVE", **options).events
    rows = [event for event in events if isinstance(event, (wf.Insert, wf.Corrupt))]
    return ["?" if isinstance(event, wf.Corrupt) else event.new.names[0] for event in rows]


def block(xid: int, *messages: bytes, is_first: bool = True) -> list[bytes]:
    return [start(xid, is_first=is_first), *map(streamed, messages), STOP]


PREPARE = b"p\0" + bytes(24)


def prepare(xid: int) -> bytes:
    return PREPARE + xid.to_bytes(4, "big") + b"g\0"


ORDERS: dict[str, tuple[list[bytes], list[str]]] = {
    "the newest": ([OLD, ROW, NEW, ROW, ROW], ["old", "new", "new"]),
    "a block knows what was said before": ([OLD, *block(8, ROW)], ["old"]),
    "a block has its own": ([OLD, *block(8, NEW, ROW), ROW, *block(8, ROW)], ["new", "old", "new"]),
    "blocks of two transactions": (
        [OLD, *block(8, NEW, ROW), *block(9, THIRD, ROW), *block(8, ROW), *block(9, ROW), ROW],
        ["new", "third", "new", "third", "old"],
    ),
    "a commit makes them everybody's": ([OLD, *block(8, NEW), stream_commit(8), ROW], ["new"]),
    "so does a prepare": ([OLD, *block(8, NEW), prepare(8), ROW, *block(9, ROW)], ["new", "new"]),
    "an abort drops them": ([OLD, *block(8, NEW), stream_abort(8, 8), ROW, *block(8, ROW)], ["old", "old"]),
    "an abort of a part does not": ([OLD, *block(8, NEW), stream_abort(8, 80), *block(8, ROW), ROW], ["new", "old"]),
    "a commit of another does nothing": ([OLD, *block(8, NEW), stream_commit(9), ROW], ["old"]),
    "described outside while a block's own is open": (
        [OLD, *block(8, NEW), THIRD, ROW, *block(8, ROW), stream_commit(8), ROW],
        ["third", "third", "third"],
    ),
    "described outside after a part was rolled back": (
        [OLD, *block(8, NEW, ROW), stream_abort(8, 80), OLD, ROW, stream_commit(8), ROW, *block(9, ROW)],
        ["new", "old", "old", "old"],
    ),
    "the same of two transactions, one of which describes it again": (
        [*block(8, NEW), *block(9, NEW), OLD, *block(9, THIRD, ROW), prepare(8), ROW, stream_commit(9), ROW],
        ["third", "old", "third"],
    ),
    "lost outside": ([*block(8, NEW), OLD[:-1], stream_commit(8), ROW, *block(8, ROW)], ["?", "?", "?"]),
    "only in a block": ([*block(8, NEW, ROW), ROW, stream_commit(8), ROW], ["new", "?", "new"]),
    "a second start without a stop": ([start(8), streamed(NEW), start(9), streamed(ROW)], ["?"]),
    "stop without start": ([OLD, STOP, ROW], ["old"]),
    "transaction number 0": ([OLD, *block(0, NEW, ROW), ROW], ["new", "old"]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_which_relation_a_row_means(name: str) -> None:
    messages, wanted = ORDERS[name]
    assert columns(*messages) == wanted
    assert columns(*messages, kinds=["INSERT"]) == wanted


def test_opengauss_has_no_blocks() -> None:
    """`S` and `E` are no blocks there, and `c` and `A` are nobody's end."""
    messages = [OLD, b"S\0\0\0\x08\1", ROW, NEW, ROW, STOP, stream_abort(8, 8), ROW]
    assert columns(*messages, dialect="opengauss") == ["old", "new", "new"]


def aside(lsn: int, prefix: bytes = b"prefix") -> bytes:
    """A message that is not transactional: it may come first in a connection."""
    return b"M\0" + lsn.to_bytes(8, "big") + prefix + b"\0" + bytes(4)


OPENING = {
    **{name: OTHERS[name][0] for name in OTHERS if name not in ("origin", "keepalive")},
    **{name: STREAMED[name][0] for name in ("stream commit", "stream abort, parallel", "stream prepare")},
    "abort of a part": stream_abort(5, 6),
    "message": aside(0x153D120),
    "message without prefix": aside(0x153D120, b""),
    "message behind 4 GiB": aside(0x1_0153_D120),
    "message behind 2 TiB": aside(0x201_0153_D120),
    "message behind 8 TiB": aside(0x8FF_0153_D120),
}
"""What cannot be in a block, and so begins a connection after one that broke there."""


@pytest.mark.parametrize("name", OPENING)
def test_a_connection_that_broke_inside_a_block(name: str) -> None:
    """What comes next has no transaction ids, and means what was described outside of blocks."""
    broken = [OLD, *block(9, THIRD), start(8), streamed(NEW), streamed(ROW)]
    messages = [*broken, OPENING[name], ROW, relation(column(b"more", 23)), ROW, *block(9, ROW), *block(8, ROW)]
    assert columns(*messages) == ["new", "old", "more", "more", "more"]
    assert not any(event.kind == "CORRUPT" for event in agree(messages, format=FORMAT).events)


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"origin", "keepalive"}))
def test_one_that_cannot_be_read_ends_the_block_too(name: str) -> None:
    assert columns(OLD, start(8), streamed(ROW), OTHERS[name][0] + b"?", ROW) == ["old", "?", "old"]


@pytest.mark.parametrize("name", ["begin", "commit"])
def test_a_stop_that_cannot_be_read_closes_nothing(name: str) -> None:
    """The block is still open then, until a message comes that cannot be in one."""
    assert columns(OLD, start(8), streamed(NEW), b"E\0", streamed(ROW), OPENING[name], ROW) == ["?", "new", "old"]


def test_what_may_be_in_a_block_does_not_end_it() -> None:
    between = [OTHERS["keepalive"][0], OTHERS["origin"][0], b"Z?", streamed(ROWS["type"][0]), streamed(aside(5))]
    transactional = streamed(b"M\1" + bytes(7) + b"\5p\0" + bytes(4))
    assert columns(OLD, start(8), streamed(NEW), *between, transactional, streamed(ROW)) == ["new"]


def test_many_that_broke() -> None:
    """In one chunk, each behind another."""
    once = [OPENING["begin"], OLD, ROW, OPENING["commit"], start(8), streamed(NEW), streamed(ROW)]
    assert columns(*once * 300) == ["old", "new"] * 300


@pytest.mark.parametrize("size", [1, 2, 3])
def test_broken_where_messages_come_a_few_at_a_time(size: int) -> None:
    """The state is kept from one call to the next, and the engines of Arrow and events have the same."""
    once = [OPENING["begin"], OLD, ROW, OPENING["commit"], start(8), streamed(NEW), streamed(ROW)]
    messages = once * 3
    parts = [messages[place : place + size] for place in range(0, len(messages), size)]
    engine = make_engine(find_format(FORMAT), wf.ReadOptions.check(kinds=["INSERT"]))
    found = [
        row[0][0]
        for number, part in enumerate(parts)
        for batch in engine.batches(part, wf.arrow.CHANGES, number)
        for row in batch["new"].to_pylist()
    ]
    assert found == ["old", "new"] * 3


LOST = [NEW[:-1], NEW + b"?", NEW[:5] + b"\xff" + NEW[6:], NEW[:15]]
"""Relation messages that cannot be read, but for the number of their table."""


@pytest.mark.parametrize("bad", LOST)
def test_a_relation_that_cannot_be_read_is_not_the_one_before(bad: bytes) -> None:
    """Nobody knows how the table looks from there on, so its rows are refused; those of others are not."""
    other = relation(column(b"other", 23), oid=OTHER_OID)
    other_row = change(b"I", image(b"N", text(b"1")), oid=OTHER_OID)
    events = agree([OLD, other, bad, ROW, other_row, NEW, ROW], format=FORMAT, mode="PERMISSIVE").events
    kinds = [event.kind for event in events]
    assert kinds == ["RELATION", "RELATION", "CORRUPT", "CORRUPT", "INSERT", "RELATION", "INSERT"]
    assert "expected a relation that an earlier message describes, got oid 16385" in events[3].error


def test_one_lost_in_a_block() -> None:
    """It is lost there; outside only once the transaction is committed."""
    messages = [OLD, *block(8, NEW[:-1], ROW), ROW, stream_commit(8), ROW]
    assert columns(*messages) == ["?", "?", "old", "?"]


def test_one_without_a_number_says_nothing() -> None:
    assert columns(OLD, NEW[:4], ROW) == ["?", "old"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unknown_relation_names_the_oid(engine: str) -> None:
    row = change(b"I", image(b"N", text(b"secret")), oid=70_000)
    error = ask([OLD, row], engine, format=FORMAT).error
    assert isinstance(error, wf.errors.UnknownRelation)
    assert str(error) == (
        "unknown relation: expected a relation that an earlier message describes, got oid 70000 "
        f"[pgoutput: message 1, byte 1, record 0, field relation_id]; {wf.UnknownRelation.usual_hint}"
    )
    truncate = b"T" + (2).to_bytes(4, "big") + b"\0" + OID.to_bytes(4, "big") + (7).to_bytes(4, "big")
    assert "[pgoutput: message 1, byte 10, record 0, field relation_ids[1]" in str(
        ask([OLD, truncate], engine, format=FORMAT).error
    )
    in_block = [*block(8, row)]
    assert "byte 5, record 0, field relation_id" in str(ask(in_block, engine, format=FORMAT).error)


def test_thousands_of_relations() -> None:
    """Each row has its own, in one chunk; every tenth is described again, with another column."""
    count = 3000
    messages = [relation(column(b"c%d" % oid, 23), oid=oid, table=b"t%d" % oid) for oid in range(count)]
    messages += [relation(column(b"d%d" % oid, 23), oid=oid, table=b"t%d" % oid) for oid in range(0, count, 10)]
    messages += [change(b"I", image(b"N", text(b"1")), oid=oid) for oid in range(count)]
    table = wf.arrow.changes(messages, FORMAT, kinds=["INSERT"])
    assert table["table_name"].to_pylist() == [f"t{oid}" for oid in range(count)]
    names = [row[0][0] for row in table["new"].to_pylist()]
    assert names == [f"{'c' if oid % 10 else 'd'}{oid}" for oid in range(count)]
    assert wf.arrow.changes(messages[-500:], FORMAT, mode="DROPMALFORMED").num_rows == 0


def test_rows_and_relations_in_turn() -> None:
    """A table that is described before every row, as by a server that forgot."""
    messages = [message for number in range(800) for message in (relation(column(b"c%d" % number, 23)), ROW)]
    names = [row[0][0] for row in wf.arrow.changes(messages, FORMAT, kinds=["INSERT"])["new"].to_pylist()]
    assert names == [f"c{number}" for number in range(800)]


def _relation(number: int, table: str, *names: str) -> wf.Relation:
    return wf.Relation(
        relation_id=number,
        table_schema="s",
        table_name=table,
        replica_identity="default",
        columns=names,
        type_oids=(23,) * len(names),
        typmods=(-1,) * len(names),
        key_columns=(),
    )


def test_a_table_by_its_name() -> None:
    """A name is the table's that has it now: after a rename nobody's, or another's."""
    known = Relations(names=True)
    first, renamed, second = _relation(1, "a"), _relation(1, "b"), _relation(2, "a")
    known.take(first)
    assert known.named("s", "a") == first
    known.take(wf.StreamStart(xid=8, first_segment=True))
    known.take(renamed)
    assert (known.named("s", "a"), known.named("s", "b")) == (None, renamed)
    known.take(wf.StreamStop())
    assert (known.named("s", "a"), known.named("s", "b")) == (first, None)
    known.take(wf.StreamCommit(xid=8))
    known.take(second)
    assert (known.named("s", "a"), known.named("s", "b")) == (second, renamed)


def test_a_copy_learns_by_itself() -> None:
    known = Relations(names=True)
    known.take(_relation(1, "a"))
    known.take(wf.StreamStart(xid=8, first_segment=True))
    known.take(_relation(1, "b"))
    other = known.copy()
    other.take(_relation(1, "c"))
    other.take(wf.StreamStop())
    assert (known.find(1), known.block) == (_relation(1, "b"), 8)
    assert (other.find(1), other.block) == (_relation(1, "a"), None)


class TestRoles:
    """The role of each kind, which the scan and Spark go by, is what `Relations.take` does with it."""

    IN_BLOCK, OUTSIDE, AFTER_BLOCK = "in a block", "outside", "after a block"
    FIELDS: ClassVar[dict[str, Any]] = {
        "xid": 700,
        "subxid": 700,
        "first_segment": True,
        "relation_id": 2,
        "replica_identity": "full",
        "gid": "g",
        "origin": "o",
        "type_oid": 1,
        "namespace": "s",
        "name": "n",
        "table_schema": "s",
        "table_name": "t",
        "tables": (("s", "t"),),
        "columns": (),
        "type_oids": (),
        "typmods": (),
        "key_columns": (),
        "transactional": True,
        "prefix": "",
        "content": "",
        "time": 0,
        "reply": False,
        "wal_end": 0,
    }

    def made(self, kind: type[wf.Event], **fields: Any) -> wf.Event:
        known = {**self.FIELDS, **fields}
        return kind(**{name: known[name] for name in kind.__dataclass_fields__ if name in known})

    def relations(self, state: str) -> Relations:
        found = Relations()
        found.take(self.made(wf.Relation, relation_id=1, xid=None))
        if state != self.OUTSIDE:
            found.take(self.made(wf.StreamStart))
            found.take(self.made(wf.Relation, relation_id=3))
        if state == self.AFTER_BLOCK:
            found.take(self.made(wf.StreamStop))
        return found

    def knows(self, relations: Relations) -> tuple[Any, ...]:
        """The open block, and the relations known outside and in a block of transaction 700."""
        outside, inside = relations.copy(), relations.copy()
        if relations.block is None:
            inside.take(self.made(wf.StreamStart))
        else:
            outside.take(self.made(wf.StreamStop))
        return relations.block, *(known.find(number) for known in (outside, inside) for number in (1, 2, 3))

    @pytest.mark.parametrize("state", [IN_BLOCK, OUTSIDE, AFTER_BLOCK])
    @pytest.mark.parametrize("kind", sorted({kind for kind, _ in RECORDS["postgresql"].values()}, key=str))
    def test_of_each_kind_in_each_state(self, kind: type[wf.Event], state: str) -> None:
        relations = self.relations(state)
        before = self.knows(relations)
        relations.take(self.made(kind))
        after = self.knows(relations)
        role = role_of(kind)
        is_in_block = state == self.IN_BLOCK
        if role in (NOTHING, ASKS, MAY_END) or (role == ENDS and not is_in_block):
            assert after == before
        elif role == TELLS:
            assert after != before
            assert after[0] == before[0]
        elif role == OPENS:
            assert after[0] == 700
        else:
            assert role in (CLOSES, ENDS)
            assert after[0] is None
            assert is_in_block <= (after != before)

    @pytest.mark.parametrize("state", [IN_BLOCK, OUTSIDE])
    def test_a_message_without_a_transaction_id_ends_a_block(self, state: str) -> None:
        relations = self.relations(state)
        relations.take(self.made(wf.Message, xid=None))
        assert relations.block is None
        assert role_of(wf.Message) == MAY_END

    def test_in_opengauss_only_relations_matter(self) -> None:
        """It streams no blocks, so the kinds that would end one change nothing."""
        roles = {role_of(kind) for kind, _ in RECORDS["opengauss"].values()}
        assert roles == {NOTHING, ASKS, TELLS, ENDS}


@pytest.mark.parametrize("as_bytes", [False, True])
def test_what_a_message_says_becomes_an_event_when_it_is_asked_for(as_bytes: bool) -> None:
    (event,) = wf.decode([OLD], FORMAT)
    assert isinstance(event, wf.Relation)
    described = OLD if as_bytes else message_of(event)
    relations = Relations()
    relations.describe([(OID, described)], partial(read_message, encoding="utf-8", errors="strict"), None)
    assert relations.find(OID) == event
    assert relations.find(OID) is relations.find(OID)
    assert relations.scopes == {None: {OID: event}}
