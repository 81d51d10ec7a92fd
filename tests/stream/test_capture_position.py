"""Positions of captures as JSON: they come back as they were, and what was changed is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition, OpenTransaction

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


@pytest.mark.parametrize("position", [POSITION, CapturePosition("gaussdb-binary")])
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
        (changed(version=2), "expected version 1"),
        (changed(format=1), "expected a text in format"),
        (changed(open={}), "expected the fields stage"),
        (changed(more=1), "unknown"),
        (
            changed(relations=json.loads(POSITION.to_json())["relations"] | {"columns": ["no json"]}),
            "lists in relations",
        ),
    ],
)
def test_what_was_changed_is_refused(text: str, reason: str) -> None:
    with pytest.raises(wf.StateError, match=reason):
        CapturePosition.from_json(text)
