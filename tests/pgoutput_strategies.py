"""Generated streams of pgoutput: tables described and altered, rows of them in and out of streamed blocks, two-phase
commit, and every other message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import wireformat as wf
from wireformat.formats.pgoutput.messages import FIRST_NORMAL_XID
from wireformat.formats.pgoutput.relations import OUTSIDE
from wireformat.pgtypes import type_name, type_oid
from wireformat.pgtypes.binary import binary_text
from wireformat.times import parse_commit_time, time_text

from .strategies import I32, U64, characters, type_texts, values

U32 = st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]) | st.integers(0, (1 << 32) - 1)
ODD_TIMES = (
    "4713-01-01 00:00:00+00 BC",
    "0001-12-31 23:59:59.999999+00 BC",
    "0001-01-01 00:00:00+00",
    "2000-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00",
    "10000-01-01 00:00:00.1+00",
    "294246-12-31 23:59:59.999999+00",
)
MICROS = [parse_commit_time(text) or 0 for text in ODD_TIMES]
TIMES = st.sampled_from(ODD_TIMES) | st.integers(min(MICROS), max(MICROS)).map(time_text)
IDENTITIES = st.sampled_from(["default", "nothing", "full", "index"])
UNKNOWN_KINDS = sorted(set(range(256)) - set(b"BCORYIUDTMSEcAbPKrpwk"))


@cache
def texts(encoding: str, most: int = 12) -> SearchStrategy[str]:
    """Names and other texts that end with a zero byte."""
    return st.text(characters(encoding, "\0"), max_size=most)


@cache
def names(encoding: str) -> SearchStrategy[str]:
    hostile = st.sampled_from(["id", "public", "pg_catalog", "", '"', "a b", "Upper", "x" * 300])
    return hostile | texts(encoding)


@cache
@st.composite
def relations(draw: Callable[..., Any], number: int, encoding: str) -> wf.Relation:
    """A description of one table. Its name is never another's: a writer finds a table by its name."""
    columns = draw(st.lists(names(encoding), max_size=4, unique=True))
    return wf.Relation(
        relation_id=number,
        table_schema=draw(names(encoding)) or "pg_catalog",
        table_name=f"{draw(names(encoding))}{number}",
        replica_identity=draw(IDENTITIES),
        columns=tuple(columns),
        type_oids=tuple(type_oid(draw(type_texts())) for _ in columns),
        typmods=tuple(draw(I32) for _ in columns),
        key_columns=tuple(name for name in columns if draw(st.booleans())),
    )


def _image(draw: Callable[..., Any], relation: wf.Relation, encoding: str, binary: set[str], kind: str) -> wf.TupleData:
    cells = []
    for name, oid in zip(relation.columns, relation.type_oids, strict=True):
        value = draw(values(encoding) | st.just(wf.UNCHANGED))
        if isinstance(value, str) and name in binary:
            value = f"\\x{draw(st.binary(max_size=9)).hex()}"
        if kind != "key" or value is not None or name in relation.key_columns:
            cells.append((name, value, type_name(oid)))
    found = tuple(zip(*cells, strict=True)) if cells else ((), (), ())
    return wf.TupleData(*found)


def _row(draw: Callable[..., Any], relation: wf.Relation, encoding: str, xid: int | None) -> wf.RowChange:
    kind = draw(st.sampled_from([wf.Insert, wf.Update, wf.Delete]))
    old_kind = None if kind is wf.Insert else draw(st.sampled_from(["key", "full"]))
    if kind is wf.Update and draw(st.booleans()):
        old_kind = None
    pairs = zip(relation.columns, relation.type_oids, strict=True)
    unknown = {name for name, oid in pairs if _has_no_text(oid)}
    binary = {name for name in sorted(unknown) if draw(st.integers(0, 4)) == 0}
    sides: dict[str, wf.TupleData] = {}
    if old_kind is not None:
        sides["old"] = _image(draw, relation, encoding, binary, old_kind)
    if kind is not wf.Delete:
        sides["new"] = _image(draw, relation, encoding, binary, "full")
    sent = {
        name: None
        for image in sides.values()
        for name, value in zip(image.names, image.values, strict=True)
        if name in binary and isinstance(value, str)
    }
    table = {"table_schema": relation.table_schema, "table_name": relation.table_name}
    return kind(**table, **sides, old_kind=old_kind, binary=tuple(sent), xid=xid)  # type: ignore[arg-type]


def _has_no_text(oid: int) -> bool:
    """Whether a value of this type in binary form stays as it is."""
    try:
        return binary_text(oid, b"", "utf-8", "strict") is None
    except ValueError:
        return False


def messages(encoding: str, xid: SearchStrategy[int | None]) -> SearchStrategy[wf.Event]:
    """MESSAGE and TYPE, which carry a transaction id in a block: of a MESSAGE one that PostgreSQL gives."""
    content = values(encoding).map(lambda text: text or "") | st.binary(max_size=9).filter(
        lambda data: _is_no_text(data, encoding)
    )
    message = st.builds(
        wf.Message, lsn=U64, transactional=st.booleans(), prefix=texts(encoding), content=content, xid=xid
    )
    return st.one_of(
        message.map(lambda one: one if one.xid is None else replace(one, xid=max(one.xid, FIRST_NORMAL_XID))),
        st.builds(
            wf.Type,
            type_oid=U32,
            namespace=names(encoding).map(lambda name: name or "pg_catalog"),
            name=names(encoding),
            xid=xid,
        ),
    )


def _is_no_text(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return True
    return False


@cache
def others(encoding: str) -> SearchStrategy[wf.Event]:
    """Messages that say nothing about relations; those of the kinds OUTSIDE end a block that is open."""
    committed = {"commit_lsn": U64, "end_lsn": U64, "commit_time": TIMES}
    prepared = {"lsn": U64, "end_lsn": U64, "prepare_time": TIMES, "xid": U32, "gid": texts(encoding)}
    kinds = st.sampled_from([bytes([kind]) for kind in UNKNOWN_KINDS])
    return st.one_of(
        st.builds(wf.Begin, commit_lsn=U64, commit_time=TIMES, xid=U32),
        st.builds(wf.Begin, **prepared),
        st.builds(wf.Commit, **committed),
        st.builds(wf.Prepare, **prepared),
        st.builds(wf.CommitPrepared, **committed, xid=U32, gid=texts(encoding)),
        st.builds(
            wf.RollbackPrepared,
            lsn=U64,
            end_lsn=U64,
            prepare_time=TIMES,
            commit_time=TIMES,
            xid=U32,
            gid=texts(encoding),
        ),
        st.builds(wf.Origin, lsn=U64, origin=texts(encoding)),
        st.builds(wf.Heartbeat, wal_end=U64, time=st.integers(0, 1 << 60), reply=st.booleans()),
        st.builds(wf.Unknown, raw=st.builds(bytes.__add__, kinds, st.binary(max_size=9))),
    )


ASIDE = st.builds(
    wf.Message,
    lsn=st.integers(0, (1 << 40) - 1),
    transactional=st.just(False),
    prefix=texts("ascii"),
    content=st.just(""),
)
"""Messages that are known as ones outside of blocks, wherever they come."""

_TOP_XIDS = (700, 800, 0xFFFFFFFF)


@cache
@st.composite
def streams(draw: Callable[..., Any], encoding: str = "utf-8", steps: int = 14) -> list[wf.Event]:
    """A stream as a server may send it: a row only of a table that was described, as it was described last.

    Its connection may break inside a block.
    """
    events: list[wf.Event] = []
    known: dict[int, wf.Relation] = {}
    own: dict[int, dict[int, wf.Relation]] = {}
    block: int | None = None
    for _ in range(draw(st.integers(1, steps))):
        xid = None if block is None else draw(U32)
        step = draw(st.sampled_from(["row", "row", "row", "relation", "relation", "block", "end", "other", "truncate"]))
        here = known if block is None else {**known, **own[block]}
        if step == "relation":
            found = draw(relations(draw(st.sampled_from([1, 2, 70_000])), encoding))
            for described in own.values() if block is None else ():  # a server describes it again in the blocks
                described.pop(found.relation_id, None)
            (known if block is None else own[block])[found.relation_id] = found
            events.append(replace(found, xid=xid))
        elif step == "row" and here:
            events.append(_row(draw, here[draw(st.sampled_from(sorted(here)))], encoding, xid))
        elif step == "truncate" and here:
            some = [here[number] for number in draw(st.lists(st.sampled_from(sorted(here)), max_size=3))]
            tables = tuple((one.table_schema, one.table_name) for one in some)
            flags = {"cascade": draw(st.booleans()), "restart_identity": draw(st.booleans())}
            events.append(wf.Truncate(tables=tables, xid=xid, **flags))
        elif step == "block" and block is None:
            block = draw(st.sampled_from(_TOP_XIDS))
            events.append(wf.StreamStart(xid=block, first_segment=block not in own))
            own.setdefault(block, {})
        elif step == "block":
            events.append(wf.StreamStop())
            block = None
        elif step == "end" and block is None and own:
            events.append(_end(draw, draw(st.sampled_from(sorted(own))), known, own, encoding))
        elif step == "other":
            events.append(found := draw(messages(encoding, st.just(xid)) | others(encoding) | ASIDE))
            is_outside = isinstance(found, OUTSIDE) or (isinstance(found, wf.Message) and found.xid is None)
            if block is not None and is_outside:  # a connection broke
                block = None
                own.clear()
    return events


def _end(
    draw: Callable[..., Any],
    xid: int,
    known: dict[int, wf.Relation],
    own: dict[int, dict[int, wf.Relation]],
    encoding: str,
) -> wf.Event:
    """One of the ends of a streamed transaction, or of a part of it."""
    end = draw(st.sampled_from(["commit", "prepare", "abort", "parallel abort", "abort of a part"]))
    facts = {"xid": xid, "end_lsn": draw(U64)}
    if end in ("commit", "prepare"):
        known.update(own.pop(xid))
        if end == "commit":
            return wf.StreamCommit(**facts, commit_lsn=draw(U64), commit_time=draw(TIMES))
        return wf.StreamPrepare(**facts, lsn=draw(U64), prepare_time=draw(TIMES), gid=draw(texts(encoding)))
    if end == "abort of a part":
        return wf.StreamAbort(xid=xid, subxid=5)
    own.pop(xid)
    if end == "abort":
        return wf.StreamAbort(xid=xid, subxid=xid)
    return wf.StreamAbort(xid=xid, subxid=xid, lsn=draw(U64), commit_time=draw(TIMES))
