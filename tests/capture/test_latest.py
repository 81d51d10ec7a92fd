"""`Capture.latest`: by which columns it finds the rows, and what it gives without changes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables import latest

from .streams import AB, ABC, committed, insert, position_after, relation, rows_of


@pytest.mark.parametrize("keys", [None, ["id"]])
def test_a_table_without_committed_changes_has_no_rows(keys: list[str] | None) -> None:
    first = committed(10, *rows_of(None))
    messages = list(wf.encode(first, "pgoutput"))
    for capture in (
        wf.Capture(messages[:-1], "pgoutput"),
        wf.Capture([], "pgoutput", after=position_after(first)),
    ):
        found = capture.latest("public.t", keys=keys)
        assert found.schema == wf.Capture(messages, "pgoutput").latest("public.t", keys=keys).schema
        assert not len(found)
    found = wf.Capture(messages, "pgoutput").latest("public.nothing", keys=["id"], schema={"id": "integer"})
    assert (len(found), found.schema.field("id").type) == (0, pa.int32())


def test_latest_counts_equal_rows_if_the_whole_row_is_the_identity() -> None:
    before = committed(16, relation("a", keys=("a",), identity="full"), insert("a", values=("1",)))
    messages = list(wf.encode([*before, *committed(32, insert("a", values=("1",)))], "pgoutput"))
    assert wf.Capture(messages, "pgoutput").latest("public.t").num_rows == 2


def test_latest_loses_no_rows_if_a_column_is_added() -> None:
    """With REPLICA IDENTITY FULL, an older row has any value of the new column; a row that is equal goes first."""
    inserted = insert(*AB, values=("1", "x"))
    before = committed(16, relation(*AB, keys=AB, identity="full"), inserted, inserted)
    new = insert(*ABC, values=("1", "x", "p"))
    deleted = wf.Delete(table_schema="public", table_name="t", old=new.new, old_kind="full")
    after = committed(32, relation(*ABC, keys=ABC, identity="full"), new)
    for count, wanted in ((0, [None, None, "p"]), (1, [None, None]), (2, [None]), (3, [])):
        deletes = committed(48, *[deleted] * count)
        capture = wf.Capture(list(wf.encode([*before, *after, *deletes], "pgoutput")), "pgoutput")
        rows = capture.latest("public.t").to_pylist()
        assert [row["c"] for row in rows] == wanted
        assert [row["_unchanged"] for row in rows] == [["c"] if value is None else None for value in wanted]


@pytest.mark.parametrize("keys", [None, []])
def test_latest_takes_the_identity_that_the_stream_states(keys: list[str] | None) -> None:
    """A DELETE by a key has the key alone: the whole row would not find it."""
    described = relation(*AB, keys=("a",), identity="default")
    old = wf.TupleData(("a",), ("1",), ("text",))
    deleted = wf.Delete(table_schema="public", table_name="t", old=old, old_kind="key")
    events = committed(16, described, insert(*AB, values=("1", "x")), insert(*AB, values=("2", "x")), deleted)
    rows = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput").latest("public.t", keys=keys)
    assert rows["a"].to_pylist() == ["2"]


def test_latest_finds_rows_by_the_replica_identity_that_each_change_had() -> None:
    before = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x")))
    new = wf.TupleData(ABC, ("1", "y", "p"), ("text",) * 3)
    inserted = insert(*ABC, values=("1", "y", "o"))
    updated = wf.Update(table_schema="public", table_name="t", new=new)
    after = committed(32, relation(*ABC, keys=AB, identity="default"), inserted, updated)
    capture = wf.Capture(list(wf.encode([*before, *after], "pgoutput")), "pgoutput")
    for keys in (None, ["a", "b"]):
        rows = capture.latest("public.t", keys=keys).to_pylist()
        assert [(row["a"], row["b"], row["c"]) for row in rows] == [("1", "x", None), ("1", "y", "p")]


@pytest.mark.parametrize("batch_rows", [3, latest.BATCH_ROWS])
def test_a_column_is_added_and_dropped_again_and_again(batch_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows have it from the last time on; they are not gathered anew each time."""
    monkeypatch.setattr(latest, "BATCH_ROWS", batch_rows)
    monkeypatch.setattr(latest, "COMPACTED_ROWS", 5)
    random = Random(5)
    events: list[wf.Event] = []
    wanted: dict[str, tuple[str | None, list[str] | None]] = {}
    for number in range(60):
        columns = AB if number % 3 else ("a",)
        changes: list[wf.Event] = [relation(*columns, keys=("a",), identity="default")]
        wanted = {key: (None, ["b"]) for key in wanted} if columns == ("a",) else wanted
        for _ in range(random.randrange(1, 4)):
            values = (str(random.randrange(8)), f"value {number}")[: len(columns)]
            row = wf.TupleData(columns, values, ("text",) * len(columns))
            changes.append(
                (wf.Update if values[0] in wanted else wf.Insert)(table_schema="public", table_name="t", new=row)
            )
            wanted[values[0]] = (values[1], None) if len(values) > 1 else (None, ["b"])
        events += committed(16 + 16 * number, *changes)
    result = latest.LatestRows.result
    with patch.object(latest.LatestRows, "result", autospec=True, side_effect=result) as results:
        rows = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput").latest("public.t").to_pylist()
    assert {row["a"]: (row["b"], row["_unchanged"]) for row in rows} == wanted
    assert results.call_count == 1


@pytest.mark.parametrize("value", ["3", wf.UNCHANGED])
def test_a_row_that_is_updated_after_a_column_was_dropped_has_it_no_more(value: Any) -> None:
    described, narrower = (relation(*names, keys=("a",), identity="default") for names in (ABC, ("a", "c")))
    new = wf.TupleData(("a", "c"), ("1", value), ("text", "text"))
    events = committed(16, described, insert(*ABC, values=("1", "x", "2")), narrower)
    events += committed(32, wf.Update(table_schema="public", table_name="t", new=new))
    capture = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput")
    unsent = ["c"] if value is wf.UNCHANGED else None
    assert capture.typed("public.t").read_all()["_unchanged"].to_pylist() == [None, unsent]
    (row,) = capture.latest("public.t").to_pylist()
    assert (row["b"], row["c"], row["_unchanged"]) == (None, "2" if unsent else "3", None)


def test_a_table_that_gets_its_name_back_after_changes_of_another_one() -> None:
    """What became of its columns meanwhile is not known."""

    def of(oid: int, *columns: str, values: tuple[str, ...]) -> list[wf.Event]:
        described = replace(relation(*columns, keys=("a",), identity="default"), relation_id=oid)
        return [described, replace(insert(*columns, values=values), relation_id=oid)]

    events = committed(16, *of(1, "a", "c", "d", values=("1", "old", "x")))
    events += committed(32, *of(2, "a", "c", values=("9", "y")))
    events += committed(48, *of(1, "a", "d", "c", values=("2", "x", "new")))
    rows = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput").latest("public.t").to_pylist()
    assert [(row["a"], row["c"], row["d"], row["_unchanged"]) for row in rows] == [
        ("1", None, None, ["c", "d"]),
        ("2", "new", "x", None),
    ]


def test_changes_of_rows_that_have_gone_need_no_key() -> None:
    """Also if a column was added before the TRUNCATE."""
    before = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", None)))  # type: ignore[arg-type]
    gone = wf.Truncate(tables=(("public", "t"),))
    described = relation(*ABC, keys=("a",), identity="default")
    after = committed(32, described, gone, insert(*ABC, values=("2", "x", "y")))
    capture = wf.Capture(list(wf.encode([*before, *after], "pgoutput")), "pgoutput")
    assert capture.latest("public.t", keys=["b"])["a"].to_pylist() == ["2"]


def test_values_that_do_not_fit_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Current rows have no `_error`."""
    schema = {"id": "integer", "day": "date"}
    described = relation("id", "day", keys=("id",), identity="default")
    messages = [
        *wf.encode(committed(16, described, insert("id", "day", values=("1", "2020-01-01"))), "pgoutput"),
        *wf.encode(committed(32, described, insert("id", "day", values=("2", "infinity"))), "pgoutput"),
    ]
    capture = wf.Capture(messages, "pgoutput", mode="PERMISSIVE")
    found = capture.latest("public.t", keys=["id"], schema=schema)
    assert [row["day"] is None for row in found.to_pylist()] == [False, True]
    (record,) = caplog.records
    assert "1 change of public.t had values that do not fit their types" in record.message
    caplog.clear()
    good = wf.Capture(messages, "pgoutput", mode="PERMISSIVE")
    assert good.latest("public.t", keys=["id"], schema={"id": "integer", "day": "text"}).num_rows == 2
    assert not caplog.records


TABLE = {"table_schema": "public", "table_name": "t"}
OMITTING = ("gaussdb-binary", "gaussdb-json", "mppdb-json")
"""The formats whose UPDATEs leave out values that were not sent."""


def image(**values: tuple[str | None, str]) -> wf.TupleData:
    """A row image: the value and the type of each column."""
    texts, types = zip(*values.values(), strict=True)
    return wf.TupleData(tuple(values), texts, types)


def messages_of(format: str, *changes: wf.Event) -> list[bytes]:
    """The messages of one transaction."""
    if format == "gaussdb-binary":
        begin, end = wf.Begin(lsn=8, csn=1, first_lsn=8), wf.Commit(lsn=900, xid=5)
        changes = tuple(replace(change, lsn=16 + 8 * number) for number, change in enumerate(changes))
    elif format in ("gaussdb-json", "gaussdb-text"):
        begin, end = wf.Begin(csn=1, first_lsn=8), wf.Commit(xid=5)
    else:
        begin, end = wf.Begin(xid=5), wf.Commit(xid=5)
    return list(wf.encode([begin, *changes, end], format))


INT, BIGINT, LARGE = ("1", "integer"), ("2", "bigint"), ("large", "text")


@pytest.mark.parametrize("format", OMITTING)
@pytest.mark.parametrize(
    "second", [{"n": INT, "c": (None, "integer")}, {"n": BIGINT}, {"n": INT, "c": INT, "d": LARGE}]
)
def test_values_that_an_update_omits_are_kept_when_it_shows_another_column_or_type(
    format: str, second: dict[str, tuple[str | None, str]]
) -> None:
    inserted = wf.Insert(**TABLE, new=image(id=INT, n=INT, big=LARGE))
    updated = wf.Update(**TABLE, new=image(id=INT, **second))
    capture = wf.Capture(messages_of(format, inserted, updated, updated), format)
    rows = capture.latest("public.t", keys=["id"]).to_pylist()
    assert [row["big"] for row in rows] == ["large"]
    assert [row["_unchanged"] for row in capture.typed("public.t").read_all().to_pylist()][1:] == [["big"]] * 2
    gone = wf.Insert(**TABLE, new=image(id=("2", "integer"), **second))
    capture = wf.Capture(messages_of(format, inserted, updated, gone, updated), format)
    unchanged = [row["_unchanged"] for row in capture.typed("public.t").read_all().to_pylist()]
    assert unchanged[2:] == [None, None]  # an INSERT shows that the column was dropped


@pytest.mark.parametrize("format", [*OMITTING, "gaussdb-text", "test-decoding", "opengauss-test-decoding"])
@pytest.mark.parametrize("change", ["DELETE", "UPDATE"])
@pytest.mark.parametrize("value", [None, "5"])
def test_a_column_that_came_and_went_does_not_hide_a_row_that_is_found_as_a_whole(
    format: str, change: str, value: str | None
) -> None:
    before, after = image(a=("2", "text"), b=("y", "text")), image(a=("4", "text"), b=("y", "text"))
    inserts = [
        image(a=("1", "text"), b=("x", "text")),
        image(a=("2", "text"), b=("y", "text"), c=(value, "text")),
        image(a=("3", "text"), b=("z", "text")),
    ]
    last = wf.Delete(**TABLE, old=before) if change == "DELETE" else wf.Update(**TABLE, old=before, new=after)
    messages = messages_of(format, *(wf.Insert(**TABLE, new=row) for row in inserts), last)
    rows = wf.Capture(messages, format).latest("public.t", keys=[]).to_pylist()
    assert [row["a"] for row in rows] == ["1", "3", *(["4"] if change == "UPDATE" else [])]
    assert {row["c"] for row in rows} == {None}


@pytest.mark.parametrize("keys", ["id", {"id": 0}, ["id", "id"]])
def test_keys_are_a_list_of_different_names(keys: Any) -> None:
    messages = list(wf.encode(committed(10, *rows_of(None)), "pgoutput"))
    with pytest.raises(wf.OptionError, match="option keys"):
        wf.Capture(messages, "pgoutput").latest("public.t", keys=keys)


@pytest.mark.parametrize("keys", [None, ["a"]])
def test_a_schema_without_the_key(keys: list[str] | None) -> None:
    """The error is about the schema: the stream has stated the key, or keys names it."""
    described = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x")))
    messages = list(wf.encode(described, "pgoutput"))
    words = r"option schema: no column 'a', which identifies the rows of public\.t; there is only b; add it to the"
    with pytest.raises(wf.OptionError, match=words):
        wf.Capture(messages, "pgoutput").latest("public.t", keys=keys, schema={"b": "text"})
    found = wf.Capture(messages, "pgoutput").latest("public.t", keys=["b"], schema={"b": "text"})
    assert found["b"].to_pylist() == ["x"]


def test_a_wrong_key_that_the_schema_may_have() -> None:
    capture = wf.Capture([], "pgoutput")
    with pytest.raises(wf.OptionError, match=r"option schema: no column 'orderid'.*, did you mean 'order_id'\?; there"):
        capture.latest("public.t", keys=["orderid"], schema={"order_id": "integer"})
    with pytest.raises(
        wf.OptionError, match="option keys: the table, or its schema, has no column 'id'; there is only"
    ):
        capture.typed("public.t", split_key_changes=True, keys=["id"], schema={"note": "text"})
