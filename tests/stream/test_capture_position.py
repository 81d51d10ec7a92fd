"""Positions of captures as JSON: they come back as they were, and what was changed is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition, OpenTransaction, SlotPosition

POSITION = CapturePosition(
    "pgoutput",
    wf.Position(7, 2**64 - 1, 5, (("gid é", None), ("other", 3))),
    (
        OpenTransaction("plain", 5, csn=7, commit_lsn=2**64 - 1, changes=3),
        OpenTransaction("streamed", 6, changes=2),
        OpenTransaction("prepared", gid="gid"),
    ),
    (
        wf.Relation(
            relation_id=16385,
            table_schema="public",
            table_name='a "table"',
            replica_identity="full",
            columns=("id", "é"),
            type_oids=(23, 25),
            typmods=(-1, -1),
            key_columns=("id",),
        ),
    ),
)

OF_SLOT = POSITION._replace(slot=SlotPosition("7301", 'a "slot"', 2**64 - 1))


ON_TIMELINE = POSITION._replace(slot=SlotPosition("7301", "s", 5, 3))


COPYING = (
    POSITION._replace(slot=SlotPosition("7301", "s", 5, 0, ())),
    POSITION._replace(
        slot=SlotPosition("7301", "s", 5, 3, (("a", "é"), ("b", 'a ".'))),
    ),
)


(RELATION,) = POSITION.relations
IN_BLOCKS = [
    one._replace(relations=(RELATION, replace(RELATION, xid=2**32 - 1, columns=("id", "new"))))
    for one in (POSITION, OF_SLOT, ON_TIMELINE, *COPYING)
]


@pytest.mark.parametrize(
    "position", [POSITION, CapturePosition("gaussdb-binary"), OF_SLOT, ON_TIMELINE, *COPYING, *IN_BLOCKS]
)
def test_a_position_comes_back(position: CapturePosition) -> None:
    assert CapturePosition.from_json(position.to_json()) == position


def changed(**fields: Any) -> str:
    return json.dumps(json.loads(POSITION.to_json()) | fields)


RELATIONS = json.loads(POSITION.to_json())["relations"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected JSON"),
        ("[1]", "expected one of wireformat.capture_position"),
        (changed(kind="x"), "expected one of wireformat.capture_position"),
        (changed(version=9), "expected version 1 to 8"),
        (changed(version=5), "expected the fields .*xid"),
        (changed(relations=RELATIONS | {"xid": [None]}), "unknown"),
        (changed(version=5, relations=RELATIONS | {"xid": [-1]}), "number out of range"),
        (changed(version=True), "expected version 1 to 8"),
        (changed(version=2), "expected the fields .*slot"),
        (changed(version=3, slot={"system": "1", "slot": "s", "lsn": 1}), "expected the fields .*timeline"),
        (
            changed(version=4, slot={"system": "1", "slot": "s", "lsn": 1, "timeline": 0}),
            "expected the fields .*copied",
        ),
        (changed(slot={"system": "1", "slot": "s", "lsn": 1}), "unknown"),
        (changed(version=2, slot={"system": "1", "slot": "s", "lsn": -1}), "number out of range"),
        (changed(format=1), "expected a text in format"),
        (changed(open={}), "expected the fields stage"),
        (changed(more=1), "unknown"),
        (
            changed(relations=RELATIONS | {"columns": ["no json"]}),
            "lists in relations",
        ),
    ],
)
def test_what_was_changed_is_refused(text: str, reason: str) -> None:
    with pytest.raises(wf.StateError, match=reason):
        CapturePosition.from_json(text)


def test_a_capture_of_a_slot_reaches_its_lsn_at_the_end() -> None:
    messages = [b"BEGIN 5", b"table s.t: INSERT: id[integer]:1", b"COMMIT 5"]
    slot = SlotPosition("7301", "s", 99)
    capture = wf.Capture(messages, "test-decoding", slot=slot)
    rows = iter(capture.committed())
    next(rows)
    assert capture.position.slot is None
    assert next(rows, None) is None
    assert capture.position.slot == slot
    later = wf.Capture([], "test-decoding", after=capture.position)
    later.committed().read_all()
    assert later.position.slot == slot


def test_a_position_of_another_slot_is_refused() -> None:
    after = CapturePosition("pgoutput", slot=SlotPosition("7301", "s", 9))
    for slot in (SlotPosition("7302", "s", 9), SlotPosition("7301", "t", 9)):
        with pytest.raises(wf.OptionError, match=r"expected a position of slot [st] of system 730"):
            wf.Capture([], "pgoutput", after=after, slot=slot)
    with pytest.raises(wf.OptionError, match="expected a SlotPosition"):
        wf.Capture([], "pgoutput", slot=5)  # type: ignore[arg-type]
