"""Rows of a table without a key, found by old rows as each format sends them: with NULLs, or without."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.formats.registry import FORMATS

FORMATS_WITH_NAMES = sorted({*FORMATS} - {"sql-decoding"})
PLAIN = ("mppdb-json", "opengauss-test-decoding", "test-decoding")
"""Formats whose records have no positions."""
TYPES = {"a": "integer", "b": "text", "c": "text"}
Row = dict[str, str | None]


def image(row: Row, *, omits: bool = False) -> wf.TupleData:
    """omits   whether NULLs are left out, as test_decoding and openGauss 3.0 leave them out of old rows"""
    shown = {name: value for name, value in row.items() if value is not None or not omits}
    return wf.TupleData((*shown,), (*shown.values(),), tuple(TYPES[name] for name in shown))


def capture(format: str, *transactions: list[tuple[str, Row | None, Row | None]], omits: bool) -> wf.Capture:
    """Changes: the kind, the old and the new row."""
    is_pgoutput, is_plain = format == "pgoutput", format in PLAIN
    events: list[wf.Event] = []
    for number, changes in enumerate(transactions):
        lsn = 100 * (number + 1)
        at = {} if is_pgoutput or is_plain else {"lsn": lsn + 1}
        of_table: dict[str, Any] = {"table_schema": "public", "table_name": "t", **at}
        if is_pgoutput:
            events.append(wf.Begin(xid=lsn, commit_lsn=lsn, commit_time="2026-01-01 00:00:00+00"))
            columns = tuple(changes[0][2] or changes[0][1] or ())
            oids = tuple({"integer": 23, "text": 25}[TYPES[name]] for name in columns)
            of_table["relation_id"] = 7
            events.append(
                wf.Relation(
                    **of_table,
                    replica_identity="full",
                    columns=columns,
                    key_columns=columns,
                    type_oids=oids,
                    typmods=(-1,) * len(columns),
                )
            )
        elif is_plain:
            events.append(wf.Begin(xid=lsn))
        else:
            events.append(wf.Begin(lsn=lsn, csn=lsn, first_lsn=lsn))
        for kind, old, new in changes:
            images: dict[str, Any] = {}
            if old is not None:
                images["old"] = image(old, omits=omits and not is_pgoutput)
                images |= {"old_kind": "full"} if is_pgoutput else {}
            if new is not None:
                images["new"] = image(new)
            events.append({"insert": wf.Insert, "update": wf.Update, "delete": wf.Delete}[kind](**of_table, **images))
        if is_pgoutput:
            events.append(wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time="2026-01-01 00:00:00+00"))
        else:
            events.append(wf.Commit(xid=lsn) if is_plain else wf.Commit(lsn=lsn + 2, xid=lsn))
    return wf.Capture([*map(bytes, wf.encode(events, format))], format)


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.get(name) for name in TYPES) for row in found.to_pylist()), key=repr)


@pytest.mark.parametrize("omits", [False, True])
@pytest.mark.parametrize("format", FORMATS_WITH_NAMES)
def test_a_null_is_a_value(format: str, omits: bool) -> None:
    """The twin that has a value there stays."""
    null, text = ({"a": "1", "b": None, "c": "z"}, {"a": "1", "b": "x", "c": "z"})
    found = capture(
        format,
        [("insert", None, null), ("insert", None, text), ("insert", None, null)],
        [("delete", null, None)],
        [("update", null, {**null, "c": None})],
        [("update", text, {**text, "b": None})],
        omits=omits,
    )
    assert rows(found.latest("public.t", keys=[])) == [(1, None, "z"), (1, None, None)]


@pytest.mark.parametrize("omits", [False, True])
@pytest.mark.parametrize("format", FORMATS_WITH_NAMES)
def test_a_column_is_dropped(format: str, omits: bool) -> None:
    """Once an INSERT shows it, as in pgoutput the description of the table does."""
    whole: Row = {"a": "1", "b": "x", "c": None}
    less: Row = {"a": "1", "c": None}
    found = capture(
        format,
        [("insert", None, whole), ("insert", None, {**whole, "b": None}), ("insert", None, {**whole, "a": "2"})],
        [("insert", None, {**less, "a": "3"}), ("delete", less, None), ("delete", less, None)],
        [("update", {**less, "a": "2"}, {**less, "a": "4"})],
        omits=omits,
    )
    assert rows(found.latest("public.t", keys=[])) == [(3, None, None), (4, None, None)]


@pytest.mark.parametrize("omits", [False, True])
@pytest.mark.parametrize("format", FORMATS_WITH_NAMES)
def test_a_column_is_added(format: str, omits: bool) -> None:
    """An old row has its default, or NULL, which may be left out."""
    less: Row = {"a": "1", "b": "x"}
    other: Row = {"a": "2", "b": "x"}
    found = capture(
        format,
        [("insert", None, less), ("insert", None, other), ("insert", None, {**other, "a": "5"})],
        [("insert", None, {**less, "c": "n"}), ("delete", {**less, "c": "d"}, None)],
        [("update", {**other, "c": None}, {**other, "c": "m"})],
        omits=omits,
    )
    assert rows(found.latest("public.t", keys=[])) == [(1, "x", "n"), (2, "x", "m"), (5, "x", None)]
