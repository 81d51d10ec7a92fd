"""The same change is the same row in every style, up to the table of differences."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.formats.adapt import adapted
from wireformat.formats.differences import DIFFERENCES
from wireformat.formats.registry import ROWS

from ..accounting import EVERYTHING
from ..engines import ENGINES, read, rows
from ..golden_cases import CASES, Case

PAGE = Path(__file__).parent.parent.parent / "docs" / "formats" / "differences.md"


def same_changes() -> dict[str, list[Case]]:
    """The cases that hold the same changes, by what their names have in common."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        match = re.fullmatch(r"[bjt]_(.*)_(?:single|batch)", case.name)
        if match:
            found.setdefault(match[1].replace("toast", "notuple"), []).append(case)
    return {name: cases for name, cases in found.items() if len({case.format for case in cases}) > 1}


SAME = same_changes()
PAIRS = [(cases[0], other) for cases in SAME.values() for other in cases[1:]]


def reading(case: Case) -> dict[str, Any]:
    return case.reading | ({"encoding_errors": "replace"} if case.has_bad_text else {})


def test_there_are_pairs_of_all_styles() -> None:
    formats = {(left.format, right.format) for left, right in PAIRS}
    assert formats >= {("gaussdb-binary", "gaussdb-json"), ("gaussdb-binary", "gaussdb-text")}
    assert len(PAIRS) > 25


def ids(value: Any) -> str:
    return value.name if isinstance(value, Case) else ""


@cache
def events_of(case: Case) -> list[wf.Event]:
    """A case is in many pairs."""
    return read(case.messages, format=case.format, **reading(case))


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=ids)
def test_the_same_changes_give_the_same_events(left: Case, right: Case) -> None:
    for first, second in zip(events_of(left), events_of(right), strict=True):
        wanted, _ = adapted(first, right.format)
        assert comparable(wanted, second) == comparable(second, wanted)


def comparable(event: wf.Event, other: wf.Event) -> wf.Event:
    """The event as far as it can be compared with another one."""
    event = replace(event, lsn=None)  # of a record that is not in a batch, the carrier has it
    if not isinstance(event, wf.RowChange) or not isinstance(other, wf.RowChange):
        return event
    images: dict[str, Any] = {}
    for side in ("new", "old"):
        image, against = getattr(event, side), getattr(other, side)
        if image and against:
            types = zip(image.types, against.types, strict=True)
            pairs = zip(image.values, against.values, strict=True)
            image = replace(
                image,
                # a type that is not built in: binary has its number, the others its name
                types=tuple("" if "oid:" in one + two else one for one, two in types),
                # a value that was not sent in one style, and sent in another
                values=tuple("" if wf.UNCHANGED in (one, two) else one for one, two in pairs),
            )
        images[side] = image
    return replace(event, **images)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=ids)
def test_the_same_changes_give_the_same_rows(left: Case, right: Case, engine: str) -> None:
    columns = ["kind", "xid", "csn", "commit_time", "table_schema", "table_name", "new", "old", "unchanged", "detail"]
    tables = [
        wf.arrow.changes(case.messages, case.format, columns=columns, engine=engine, **reading(case))
        for case in (left, right)
    ]
    for one, two in zip(*map(rows, tables), strict=True):
        missing = set(one.pop("unchanged") or ()) | set(two.pop("unchanged") or ())
        for row in (one, two):
            for side in ("new", "old"):
                row[side] = row[side] and [cell for cell in row[side] if cell[0] not in missing]
                if "gaussdb-json" in (left.format, right.format):  # no tuple, or one without columns
                    row[side] = row[side] or None
        assert one == two


BEGIN = wf.Begin(lsn=1, csn=2, first_lsn=3, xid=4, commit_time="t", origin=5, username="u")
COMMIT = wf.Commit(lsn=1, csn=2, xid=4, commit_time="t", origin=5, username="u")
IMAGE = wf.TupleData(("a", "b", "c"), ("1", None, "t"), ("integer", "clob", "boolean"))
ADAPTED = {
    "gaussdb-binary": [BEGIN, replace(COMMIT, csn=None)],
    "gaussdb-json": [replace(BEGIN, username=None), replace(COMMIT, csn=None, origin=None, username=None)],
    "gaussdb-text": [replace(BEGIN, username=None), replace(COMMIT, csn=None, origin=None, username=None)],
    "mppdb-json": [wf.Begin(lsn=1, xid=4, origin=5), replace(COMMIT, origin=None, username=None)],
    "opengauss-test-decoding": [wf.Begin(lsn=1, xid=4), replace(COMMIT, origin=None, username=None)],
    "sql-decoding": [wf.Begin(lsn=1, csn=2), wf.Commit(lsn=1, csn=2, commit_time="t")],
    "test-decoding": [wf.Begin(lsn=1, xid=4), wf.Commit(lsn=1, xid=4, commit_time="t")],
    "pgoutput": [wf.Begin(lsn=1, xid=4, commit_time="t"), wf.Commit(lsn=1, commit_time="t")],
}


@pytest.mark.parametrize("format", ADAPTED)
def test_facts_that_a_format_has_no_place_for(format: str) -> None:
    assert [adapted(event, format)[0] for event in (BEGIN, COMMIT)] == ADAPTED[format]
    for event in ADAPTED[format]:
        assert adapted(event, format) == (event, ())


def test_what_was_changed_is_said() -> None:
    event = wf.Insert(table_schema="s", table_name="t", new=IMAGE, old=wf.TupleData())
    assert adapted(event, "gaussdb-binary") == (event, ())
    json, said = adapted(event, "gaussdb-json")
    assert (json.new.types, json.old) == (("integer", "text", "boolean"), None)
    assert said == ("a tuple without columns: no tuple", "the type clob: named text, as the server does")
    sql, said = adapted(event, "sql-decoding")
    assert sql.new == wf.TupleData(("$1", "$2", "$3"), IMAGE.values, ("?number", "?null", "?boolean"))
    assert [words.split(":")[0] for words in said] == [
        "an old tuple of an INSERT, a new tuple of a DELETE",
        "types",
        "names of the columns of a new tuple",
    ]


@pytest.mark.parametrize(
    ("event", "wanted", "words"),
    [
        (wf.StreamAbort(xid=5, subxid=6), wf.StreamAbort(xid=6), "the number of what is dropped"),
        (wf.Truncate(tables=(("s", "t"),), xid=5), wf.Truncate(tables=(("s", "t"),)), "left out"),
        (wf.Truncate(tables=(), xid=5), wf.Truncate(tables=(), xid=5), None),
        (wf.Message(transactional=True, prefix="", content="", xid=5), None, "left out"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_postgres_streams_in_its_text(event: wf.Event, wanted: wf.Event | None, words: str | None) -> None:
    found, said = adapted(event, "test-decoding")
    assert found == (replace(event, xid=None) if wanted is None else wanted)  # type: ignore[call-arg]
    assert [text.rpartition(": ")[2] for text in said] == ([] if words is None else [words])
    (message,) = wf.encode([found], "test-decoding")
    assert read([message], format="test-decoding") == [found]


COMMITTED = {"commit_lsn": 6, "commit_time": "2026-11-21 01:02:03.5+00"}
NEEDED: dict[str, dict[str, dict[str, Any]]] = {
    "pgoutput": {"BEGIN": COMMITTED, "COMMIT": {**COMMITTED, "end_lsn": 7}},
}
"""What events must say, that other formats do not: format, kind, facts."""


@pytest.mark.parametrize("format", wf.FORMATS)
def test_what_was_adapted_can_be_written(format: str) -> None:
    table = {"lsn": 1, "table_schema": "s", "table_name": "t", "new": IMAGE, "old": IMAGE}
    rows = [wf.Insert(**table), wf.Update(**table, old_kind="full"), wf.Delete(**table, old_kind="full")]
    given = [replace(event, **NEEDED.get(format, {}).get(event.kind, {})) for event in (BEGIN, *rows, COMMIT)]
    events = [adapted(event, format)[0] for event in given]
    messages = list(wf.encode(events, format, options=EVERYTHING[format]))
    found = [event for event in read(messages, format=format) if not isinstance(event, wf.Relation)]
    assert [replace(event, lsn=1) for event in found] == events


def test_formats_name_rows_of_the_table() -> None:
    for row in ROWS.values():
        row.check_differences()


def test_the_table_is_printed() -> None:
    for row in DIFFERENCES:
        formats = [format.name for format in ROWS.values() if row.name in format.cannot_say]
        names = "all" if formats == [*ROWS] else ", ".join(f"`{name}`" for name in formats)
        assert f"| {names} | {row.what} | {row.becomes} |" in PAGE.read_text(encoding="utf-8")
