"""Generated histories of one stream: what a server sends, also when its connection breaks or records are lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.columns.rows_from_events import build
from wireformat.stream.reader import Located

FLAVOURS = ("pgoutput", "gaussdb", "serial", "text")
"""How positions are told: LSNs in BEGIN and COMMIT; csn in BEGIN and LSN of COMMIT; csn in COMMIT; not at all."""

ENDS = ("commit", "abort", "prepare", "prepare, commit", "prepare, rollback", None)
"""How a transaction ends; None and a prepare alone: not in this history."""


@dataclass
class _Transaction:
    """What happens in it.

    blocks   rows of each streamed block, or all rows as one; a row is (kind, subtransaction or None)
    undone   subtransactions that are rolled back, each behind this block
    """

    number: int
    is_streamed: bool
    end: str | None
    blocks: list[list[tuple[str, int | None]]]
    undone: dict[int, int]
    steps: list[int] = field(default_factory=list)
    """When each of its blocks, ends and so on is in the log."""

    @property
    def xid(self) -> int:
        return 100 + 10 * self.number


@st.composite
def histories(
    draw: st.DrawFn, *, restarts: bool = True, losses: bool = False, flavours: Sequence[str] = FLAVOURS
) -> list[wf.Event]:
    """The events of a stream that begins between transactions and may end anywhere.

    restarts   the connection may break, and what was not confirmed is sent again
    losses     records may be missing, doubled or in another place
    """
    flavour = draw(st.sampled_from(flavours))
    transactions = [draw(_transactions(number, flavour)) for number in range(draw(st.integers(0, 5)))]
    for step, number in enumerate(draw(st.permutations([one.number for one in transactions for _ in _steps(one)]))):
        transactions[number].steps.append(step)
    events: list[wf.Event] = []
    confirmed = -1
    for _ in range(draw(st.integers(0, 2)) if restarts else 0):
        sent = list(_session(transactions, flavour, confirmed))
        sent = sent[: draw(st.integers(0, len(sent)))]
        events += [event for _, event in sent]
        ended = [step for step, event in sent if event.kind in _CONFIRMED]
        if flavour == "text":  # a COMMIT PREPARED that is sent again without its PREPARE cannot be told from a new one
            continue
        confirmed = draw(st.sampled_from([confirmed, *(step for step in ended if step > confirmed)]))
    last = [event for _, event in _session(transactions, flavour, confirmed)]
    events += last[: draw(st.integers(0, len(last)))] if draw(st.booleans()) else last
    for place in draw(st.lists(st.integers(0, len(events)), max_size=3)):
        events.insert(place, draw(st.sampled_from(_BESIDE)))
    if losses and events:
        for _ in range(draw(st.integers(1, 2))):
            place, other = (draw(st.integers(0, len(events) - 1)) for _ in range(2))
            event = events[place]
            if draw(st.booleans()) and len(events) > 1:
                del events[place]
            events.insert(min(other, len(events)), event)
            if draw(st.booleans()):
                del events[draw(st.integers(0, len(events) - 1))]
                if not events:
                    break
    assume(not events or any(not isinstance(event, wf.Unknown) for event in events))  # else it is of another format
    return events


_CONFIRMED = {"COMMIT", "STREAM_COMMIT", "PREPARE", "STREAM_PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED"}
_BESIDE: list[wf.Event] = [
    wf.Heartbeat(wal_end=1, time=1),
    wf.Unknown(raw=b"?"),
    wf.Message(transactional=False, prefix="beside", lsn=7),
    wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity="default",
        columns=("id",),
        type_oids=(23,),
        typmods=(-1,),
        key_columns=("id",),
    ),
]
"""What may stand anywhere and says nothing of transactions."""


@st.composite
def _transactions(draw: st.DrawFn, number: int, flavour: str) -> _Transaction:
    may_be_other = flavour in ("pgoutput", "text")
    is_streamed = may_be_other and draw(st.booleans())
    ends = [end for end in ENDS if may_be_other or end == "commit"]
    if not is_streamed:
        ends = [end for end in ends if end not in ("abort", None)]
    kinds = st.sampled_from(["insert", "insert", "message", "truncate", "ddl"])
    subs = st.sampled_from([None, None, 1, 2]) if is_streamed and flavour == "pgoutput" else st.none()
    rows = st.lists(st.tuples(kinds, subs), max_size=4)
    blocks = draw(st.lists(rows, min_size=1, max_size=3)) if is_streamed else [draw(rows)]
    undone = draw(st.dictionaries(st.sampled_from([1, 2]), st.integers(0, 2))) if is_streamed else {}
    return _Transaction(number, is_streamed, draw(st.sampled_from(ends)), blocks, undone)


def _steps(one: _Transaction) -> list[str]:
    blocks = ["block"] * len(one.blocks) if one.is_streamed else []
    return blocks + ["end"] * (0 if one.end is None else len(one.end.split(", ")))


def _session(transactions: list[_Transaction], flavour: str, confirmed: int) -> Iterator[tuple[int, wf.Event]]:
    """What a server sends to somebody who has confirmed all up to a step; each event with its step."""
    todo = sorted((step, one.number, place) for one in transactions for place, step in enumerate(sorted(one.steps)))
    for step, number, place in todo:
        one = transactions[number]
        steps = sorted(one.steps)
        blocks = len(one.blocks) if one.is_streamed else 0
        ended = steps[blocks] if len(steps) > blocks else None
        if (ended if place <= blocks and ended is not None else step) <= confirmed and ended is not None:
            continue
        for event in _block(one, place, flavour) if place < blocks else _end(one, place - blocks, step, flavour):
            yield step, event


def _block(one: _Transaction, place: int, flavour: str) -> Iterator[wf.Event]:
    says = flavour == "pgoutput"
    yield wf.StreamStart(xid=one.xid, first_segment=place == 0 if says else None, lsn=5 if says else None)
    if place == 0 and says and one.number % 3 == 0:
        yield wf.Origin(origin=f"node {one.number}")
    yield from _rows(one, place, flavour)
    yield wf.StreamStop(xid=None if says else one.xid)
    for sub, behind in sorted(one.undone.items()):
        if behind == place and says:
            yield wf.StreamAbort(xid=one.xid, subxid=one.xid + sub)


def _rows(one: _Transaction, place: int, flavour: str) -> Iterator[wf.Event]:
    for row, (kind, sub) in enumerate(one.blocks[place]):
        name = f"{one.number} {place} {row}"
        xid = one.xid + (sub or 0) if one.is_streamed and flavour == "pgoutput" else None
        lsn = None if flavour == "text" else 3
        if kind == "message":
            yield wf.Message(transactional=True, prefix=name, content="x", xid=xid, lsn=lsn)
        elif kind == "truncate":
            yield wf.Truncate(tables=(("public", f"{name} a"), ("public", f"{name} b")), xid=xid, lsn=lsn)
        elif kind == "ddl" and flavour == "serial":
            yield wf.Ddl(content=name, lsn=lsn)
        else:
            new = wf.TupleData(("id",), (name,), ("text",))
            yield wf.Insert(table_schema="public", table_name=name, new=new, xid=xid, lsn=lsn)


def _end(one: _Transaction, place: int, step: int, flavour: str) -> Iterator[wf.Event]:
    says = flavour == "pgoutput"
    lsn = 1000 + 10 * step
    at = {"lsn": lsn + 1, "commit_lsn": lsn, "end_lsn": lsn + 1} if says else {}
    time = f"2026-11-21 01:02:{step % 60:02d}+00"
    word = (one.end or "").split(", ")[place]
    gid = f"gid {one.number}"
    prepare: dict[str, int | None] = {"lsn": lsn if says else None, "xid": one.xid}
    if word == "prepare":
        if one.is_streamed:
            yield wf.StreamPrepare(gid=gid, prepare_time=time, **prepare)
            return
        yield wf.Begin(gid=gid if says else None, prepare_time=time if says else None, **prepare)
        yield from _rows(one, 0, flavour)
        yield wf.Prepare(gid=gid, prepare_time=time, **prepare)
    elif place == 1 and word == "commit":
        yield wf.CommitPrepared(gid=gid, xid=one.xid, commit_time=time, **at)
    elif place == 1:
        yield wf.RollbackPrepared(gid=gid, xid=one.xid, commit_time=time, lsn=lsn if says else None)
    elif one.is_streamed and word == "commit":
        yield wf.StreamCommit(xid=one.xid, commit_time=time, **at)
    elif one.is_streamed:
        yield wf.StreamAbort(xid=one.xid, subxid=one.xid if says else None)
    elif flavour == "text" and not one.number % 2:  # without xids, and a transaction with nothing but a message
        yield wf.Begin()
        yield from _rows(one, 0, flavour)
        yield wf.Commit(commit_time=time)
        yield wf.Message(transactional=True, prefix="lone", content="x")
    elif flavour == "text":
        yield wf.Begin(xid=one.xid)
        yield from _rows(one, 0, flavour)
        yield wf.Commit(xid=one.xid, commit_time=time)
    elif flavour == "gaussdb":
        yield wf.Begin(csn=500 + step, first_lsn=9, lsn=9, commit_time=time, username="u", origin=one.number)
        yield from _rows(one, 0, flavour)
        yield wf.Commit(lsn=lsn, xid=one.xid)
    elif flavour == "serial":
        yield wf.Begin(xid=one.xid)
        yield from _rows(one, 0, flavour)
        yield wf.Commit(xid=one.xid, csn=500 + step, commit_time=time)
    else:
        yield wf.Begin(xid=one.xid, lsn=lsn, commit_lsn=lsn, commit_time=time)
        if one.number % 3 == 0:
            yield wf.Origin(origin=f"node {one.number}")
        yield from _rows(one, 0, flavour)
        yield wf.Commit(commit_time=time, **at)


def table(events: list[wf.Event]) -> pa.Table:
    """The row changes of the events, each a message of its own."""
    located = [Located(message, 0, event) for message, event in enumerate(events)]
    return pa.Table.from_batches(build(located, wf.arrow.CHANGES, 0))
