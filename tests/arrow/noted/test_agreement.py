"""A capture that reads the notes of a scan gives what one gives that reads record batches, position by position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import wireformat as wf

from ...histories import histories
from ..scan.small_limits import shrink

COLUMNS = ("id", "name", "long")
TYPES = ("integer", "text", "text")
OIDS = (23, 25, 25)
TIME = "2026-11-21 01:02:03+00"
ENDS_OF_BLOCKS = {"BEGIN", "STREAM_STOP", "STREAM_COMMIT", "STREAM_ABORT", "STREAM_PREPARE", "COMMIT_PREPARED"}
TABLES = {"a": 1, "b": 2}


@st.composite
def damaged_streams(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """The same, with a message that ends too early."""
    format, messages = draw(streams())
    if messages:
        index = draw(st.integers(0, len(messages) - 1))
        messages[index] = messages[index][:-1]
    return format, messages


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A format and messages: transactions that are plain, streamed, prepared, rolled back, sent again, or go on."""
    flavour = draw(st.sampled_from(["pgoutput", "gaussdb"]))
    events = draw(histories(flavours=[flavour]))
    chance = draw(st.randoms(use_true_random=False))
    rows = [*_with_rows(events, flavour, chance)]
    if flavour == "pgoutput":
        rows = [*map(_relation, TABLES), *rows]
        try:
            return flavour, [*wf.encode(rows, "pgoutput")]
        except wf.EncodeError:  # of a stream that breaks within a block, some records cannot be said
            reject()
    options = {"sending-batch": int(draw(st.booleans())), "include-timestamp": True, "include-user": True}
    return "gaussdb-binary", [*wf.encode(rows, "gaussdb-binary", options=options, batch_bytes=200)]


def _relation(name: str) -> wf.Relation:
    return wf.Relation(
        relation_id=TABLES[name],
        table_schema="public",
        table_name=name,
        replica_identity="default",
        columns=COLUMNS,
        type_oids=OIDS,
        typmods=(-1,) * len(COLUMNS),
        key_columns=("id",),
    )


def _with_rows(events: list[wf.Event], flavour: str, chance: Any) -> Iterator[wf.Event]:
    """The events, with changes of all kinds and of two tables in place of the INSERTs."""
    is_in_block = False
    for event in events:
        is_in_block = event.kind == "STREAM_START" or (is_in_block and event.kind not in ENDS_OF_BLOCKS)
        if not is_in_block and isinstance(event, (wf.Insert, wf.Truncate, wf.Message)):
            event = replace(event, xid=None)  # only the rows of a block say it
        if isinstance(event, wf.Insert):
            for _ in range(chance.choice([1, 1, 3])):
                yield _change(event, flavour, chance)
        elif isinstance(event, wf.Truncate) and flavour == "pgoutput":
            yield replace(event, tables=(("public", "a"), ("public", "b")), relation_ids=(1, 2))
        elif not isinstance(event, (wf.Truncate, wf.Relation, wf.Ddl, wf.Unknown)):
            if flavour == "pgoutput":
                yield _sayable(event)
            elif not isinstance(event, (wf.Message, wf.Heartbeat)):
                yield event


def _sayable(event: wf.Event) -> wf.Event:
    """The event with the fields that pgoutput always sends."""
    kind = "BEGIN PREPARE" if isinstance(event, wf.Begin) and event.gid is not None else event.kind
    sent = SENT.get(kind, {})
    return replace(event, **{name: value for name, value in sent.items() if getattr(event, name) is None})


SENT: dict[str, dict[str, Any]] = {
    "ORIGIN": {"lsn": 1},
    "MESSAGE": {"lsn": 1, "content": "x"},
    "HEARTBEAT": {"reply": False},
    "BEGIN PREPARE": {"end_lsn": 2},
    "PREPARE": {"end_lsn": 2},
    "STREAM_PREPARE": {"end_lsn": 2},
    "ROLLBACK_PREPARED": {"prepare_time": TIME, "end_lsn": 4},
}


def _change(event: wf.Insert, flavour: str, chance: Any) -> wf.RowChange:
    name = chance.choice([*TABLES])
    number = chance.choice(["1", "2", "3", "12", "no number"])
    values = (number, chance.choice(["x", None, "äöü", ""]), chance.choice(["long", wf.UNCHANGED]))
    if flavour == "gaussdb" or chance.random() < 0.5:
        values = (*values[:2], "long")
    new, key = wf.TupleData(COLUMNS, values, TYPES), wf.TupleData(COLUMNS[:1], (number[::-1],), TYPES[:1])
    known: dict[str, Any] = {"table_schema": "public", "table_name": name, "lsn": event.lsn, "xid": event.xid}
    if flavour == "pgoutput":
        known |= {"relation_id": TABLES[name], "lsn": None}
    kind = chance.choice([wf.Insert, wf.Update, wf.Update, wf.Delete])
    if kind is wf.Insert:
        return wf.Insert(new=replace(new, values=tuple("y" if one is wf.UNCHANGED else one for one in values)), **known)
    old_kind = {"old_kind": "key"} if flavour == "pgoutput" else {}
    if kind is wf.Delete:
        return wf.Delete(old=key, **known, **old_kind)
    return wf.Update(new=new, **known, **(chance.choice([{}, {"old": key, **old_kind}])))


SMALL: dict[str, int] = {"MESSAGE_BATCH_BYTES": 300, "MESSAGE_BATCH_ROWS": 8}
"""So small that transactions go on in other message batches."""


def outcome(make: Any) -> Any:
    """What a call gives, or its error."""
    try:
        return make()
    except wf.WireformatError as error:
        return type(error), str(error)


def read(reader: pa.RecordBatchReader) -> list[dict[str, Any]]:
    """The rows as Python objects: NaN aside, equal rows are equal objects."""
    return reader.read_all().to_pylist()


TYPED_OPTIONS: list[dict[str, Any]] = [
    {},
    {"images": "both", "complete": True, "keep": ["lsn", "record", "username"]},
    {"split_key_changes": True, "keys": ["id"]},
    {"schema": {"id": "integer", "long": "text"}, "evolution": "error"},
]


def same(messages: list[bytes], format: str, **options: Any) -> None:
    """Compares each verb of a capture that reads notes with that of one that reads record batches."""

    def both(verb: Any) -> None:
        noted, batches = (
            outcome(lambda engine=engine: verb(wf.Capture(messages, format, engine=engine, threads=1, **options)))
            for engine in ("scan", "declaration")
        )
        assert noted == batches

    def with_state(capture: wf.Capture, found: Any) -> tuple[Any, ...]:
        return found, capture.position, capture.unknown_prepared, capture.dropped

    both(lambda capture: with_state(capture, read(capture.committed())))
    both(lambda capture: with_state(capture, read(capture.committed(tables=["public.a"]))))
    both(lambda capture: read(capture.committed(tables=[])))
    both(lambda capture: capture.open().to_pylist())
    both(lambda capture: capture.tables().to_pylist())
    both(lambda capture: read(capture.messages()))
    for typed in TYPED_OPTIONS:
        for table in ("public.a", "public.b"):
            both(lambda capture, table=table, typed=typed: with_state(capture, read(capture.typed(table, **typed))))


@given(streams(), st.sampled_from(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]), st.sampled_from(["commit", "prepare"]))
def test_histories(made: tuple[str, list[bytes]], mode: str, two_phase: str) -> None:
    same(made[1], made[0], mode=mode, two_phase=two_phase)


@given(
    st.one_of(streams(), streams(), damaged_streams()),
    st.sampled_from(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]),
    st.sampled_from([1, 3, 1000]),
    st.booleans(),
    st.sampled_from([1, 20, 1000]),
)
def test_histories_in_small_batches(
    made: tuple[str, list[bytes]], mode: str, settled_rows: int, drop_resent: bool, group_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, **SMALL)
        patch.setattr("wireformat.arrow.noted.tables.GROUP_ROWS", group_rows)
        patch.setattr("wireformat.arrow.committed.output.SETTLED_ROWS", settled_rows)
        same(made[1], made[0], mode=mode, drop_resent=drop_resent, memory_limit=1000)


@given(streams(), st.data())
def test_a_history_is_continued_after_a_position(made: tuple[str, list[bytes]], data: st.DataObject) -> None:
    format, messages = made
    first = wf.Capture(messages[: data.draw(st.integers(0, len(messages)))], format)
    if isinstance(outcome(lambda: first.committed().read_all()), tuple):
        return
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, **SMALL)
        same(messages, format, after=first.position)
