"""Events of row changes with the same layout: only the first of them is read in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf
from wireformat.arrow.columns import events_from_notes

from ...golden_cases import CASES, Case, answer_of
from ...handmade_pgoutput import NULL, UNCHANGED, binary, change, column, image, relation, text
from ...servers.captures import capture_names, read_capture

LIKE_ONE_ANOTHER = [
    relation(column(b"a", 23, is_key=True), column(b"b"), column(b"c", 16390)),
    *(
        change(kind, *old, image(b"N", text(b"1"), first, second), xid=xid)
        for xid in (b"", b"\0\0\0\7")
        for kind, old in (
            (b"I", []),
            (b"U", []),
            (b"U", [image(b"K", text(b"0"), NULL, NULL)]),
            (b"U", [image(b"O", text(b"0"), NULL, NULL)]),
        )
        for first in (NULL, UNCHANGED, text(b""), text(b"x"))
        for second in (UNCHANGED, text(b"x"), binary(b"\1"))
    ),
    change(b"D", image(b"K", text(b"0"), NULL, NULL)),
    change(b"D", image(b"O", text(b"0"), NULL, NULL)),
]


@pytest.fixture(autouse=True)
def every_row_has_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_from_notes, "FEW_ROWS", 0)


def check(
    messages: Sequence[bytes], format: str, wanted: Sequence[wf.Event] | None = None, **options: Any
) -> list[wf.Event]:
    """Returns the events, which are those of the declaration."""
    found = list(wf.decode(messages, format, mode="PERMISSIVE", **options))
    if wanted is None:
        wanted = list(wf.decode(messages, format, mode="PERMISSIVE", engine="declaration", **options))
    assert found == wanted
    assert [getattr(event, "relation_id", None) for event in found] == [
        getattr(event, "relation_id", None) for event in wanted
    ]  # which does not count in comparisons
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_captures(case: Case) -> None:
    check(case.messages, case.format, answer_of(case, "declaration").events, **case.reading)


@pytest.mark.parametrize("name", sorted(capture_names(), reverse=True))
def test_captures_of_servers(name: str) -> None:
    check(read_capture(name).messages, "pgoutput" if "pgoutput" in name else "test-decoding")


def test_rows_that_differ_in_one_thing() -> None:
    found = check([message for message in LIKE_ONE_ANOTHER for _ in range(2)], "pgoutput")
    assert len({repr(event) for event in found}) > 50


def test_rows_without_images_of_many_tables() -> None:
    """What tells them apart is the table alone."""
    deletes = [wf.Delete(lsn=16, table_schema="s", table_name=f"t{number % 3}") for number in range(60)]
    events = [wf.Begin(lsn=16, csn=1, first_lsn=16), *deletes, wf.Commit(lsn=17, xid=1)]
    messages = [*wf.encode(events, "gaussdb-binary", options={"sending-batch": 1})]
    assert [event.table_name for event in wf.decode(messages, "gaussdb-binary") if event.kind == "DELETE"] == [
        one.table_name for one in deletes
    ]


def test_a_class_with_slots_of_its_own_for_inherited_fields() -> None:
    """As each class of events has them in Python 3.10."""
    own = type("Own", (wf.Update,), {"__slots__": tuple(wf.Update.__dataclass_fields__)})
    like = own(table_schema="s", table_name="t", old_kind="K", relation_id=7, binary=("new",))
    new, old = (wf.TupleData(("a",), (value,), ()) for value in "12")
    made = events_from_notes._maker(own)(like, 1, new, old, 5)
    assert made == replace(like, lsn=1, new=new, old=old, xid=5)
