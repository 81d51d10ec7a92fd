"""Cells of tables that `tables=` leaves out are not looked at, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.testing import stream

from .. import handmade_pgoutput as hand
from ..lake.reading import read, tables_of

KEPT, LEFT_OUT = "shop.orders_1", "shop.orders_0"
FORMATS = ["pgoutput", "gaussdb-binary", "gaussdb-json", "test-decoding"]


def with_a_bad_cell(format: str, good: bool = False) -> list[bytes]:
    """A stream in which the first row of LEFT_OUT has text that is not UTF-8."""
    options = {"sending-batch": 0} if format.startswith("gaussdb") else {}
    messages = [*map(bytes, wf.encode(stream(2, 12, seed=3, format=format), format, options=options))]
    rows = wf.arrow.changes(messages, format, columns=["message", "kind", "table_name"]).to_pylist()
    bad = next(row["message"] for row in rows if (row["kind"], row["table_name"]) == ("INSERT", "orders_0"))
    assert b"2026-" in messages[bad]
    if not good:
        messages[bad] = messages[bad].replace(b"2026-", b"\xff026-", 1)
    return messages


def typed_rows(capture: wf.Capture, tables: list[str] | None) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for table, rows in capture.typed_all(tables=tables):
        found.setdefault(table, []).extend(rows.to_pylist())
    return found


@pytest.mark.parametrize("memory", [0, 1 << 28], ids=["rows are written early", "rows wait"])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_lake_of_some_tables(format: str, mode: str, memory: int, tmp_path: Path) -> None:
    capture = wf.Capture(with_a_bad_cell(format), format, mode=mode, memory_limit=memory)
    good = wf.Capture(with_a_bad_cell(format, good=True), format, mode=mode)
    capture.write(tmp_path / "some", tables=[KEPT], schemas={KEPT: good.tables()})
    capture.write(tmp_path / "latest", tables=["shop.orders_1"], state="latest", keys={KEPT: ["id"], LEFT_OUT: ["id"]})
    assert tables_of(tmp_path / "some") == [("shop", "orders_1")]
    assert read(tmp_path / "some", ("shop", "orders_1")).to_pylist() == good.typed(KEPT).read_all().to_pylist()
    found = read(tmp_path / "latest", ("shop", "orders_1")).to_pylist()
    assert found == good.latest(KEPT, keys=["id"]).to_pylist()


@pytest.mark.parametrize("format", ["pgoutput", "gaussdb-binary", "test-decoding"])
def test_a_lake_of_some_tables_goes_on(format: str, tmp_path: Path) -> None:
    messages, good = with_a_bad_cell(format), with_a_bad_cell(format, good=True)
    cut = len(messages) // 2
    first = wf.Capture(messages[:cut], format)
    first.write(tmp_path, tables=[KEPT])
    if format == "test-decoding":
        wf.Capture(messages[cut:], format, after=first.position).write(tmp_path, tables=[KEPT])
    else:
        wf.Capture(messages, format).write(tmp_path, tables=[KEPT])
    wanted = wf.Capture(good, format).typed(KEPT).read_all()
    assert read(tmp_path, ("shop", "orders_1"))["id"].to_pylist() == wanted["id"].to_pylist()


@pytest.mark.parametrize("memory", [0, 1 << 28], ids=["rows are handed out early", "rows wait"])
@pytest.mark.parametrize("format", FORMATS)
def test_typed_rows_of_some_tables(format: str, memory: int) -> None:
    capture = wf.Capture(with_a_bad_cell(format), format, memory_limit=memory)
    good = wf.Capture(with_a_bad_cell(format, good=True), format)
    assert typed_rows(capture, [KEPT]) == {KEPT: good.typed(KEPT).read_all().to_pylist()}
    assert capture.typed(KEPT).read_all() == good.typed(KEPT).read_all()


@pytest.mark.parametrize("format", FORMATS)
def test_all_tables_are_looked_at_where_all_are_asked_for(format: str, tmp_path: Path) -> None:
    """Also by a capture that has listed some of them."""
    capture = wf.Capture(with_a_bad_cell(format), format)
    typed_rows(capture, [KEPT])
    asks: list[Callable[[], Any]] = [
        capture.tables,
        lambda: typed_rows(capture, None),
        lambda: typed_rows(capture, ["shop.*"]),
        lambda: capture.write(tmp_path),
        lambda: capture.write(tmp_path, tables=[LEFT_OUT]),
        lambda: capture.typed(LEFT_OUT).read_all(),
    ]
    for ask in asks:
        with pytest.raises(wf.BadText) as error:
            ask()
        assert error.value.names == ("shop", "orders_0")


def test_the_list_of_tables_has_all_of_them() -> None:
    """Also after a question about some."""
    messages = with_a_bad_cell("gaussdb-binary", good=True)
    capture, other = (wf.Capture(messages, "gaussdb-binary") for _ in range(2))
    typed_rows(capture, [KEPT])
    assert capture.tables() == other.tables()
    assert {*typed_rows(capture, None)} == {KEPT, LEFT_OUT}


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_is_not_there(format: str) -> None:
    for ask in (wf.Capture.typed, wf.Capture.latest):
        with pytest.raises(wf.BadRows, match=r"shop\.orders_2"):
            ask(wf.Capture(with_a_bad_cell(format), format), "shop.orders_2")
        with pytest.raises(wf.BadRows, match=r"did you mean shop\.orders_1"):
            ask(wf.Capture(with_a_bad_cell(format, good=True), format), "shop.orders_11")


def test_a_stream_that_describes_other_tables_again_and_again() -> None:
    """Whatever was asked before. The first table has a name that another one gets, and then a column more."""
    columns = [hand.column(b"id", 23, is_key=True), hand.column(b"v"), hand.column(b"w")]
    described = [(1, b"a", 2), (2, b"b", 2), (1, b"c", 2), (3, b"a", 1), (2, b"b", 3), (3, b"a", 3), (1, b"c", 2)]
    messages = []
    for number, (oid, table, count) in enumerate(described):
        facts = hand.u64(100 + number) + hand.TIME
        row = hand.change(b"I", hand.image(b"N", *[hand.text(b"%d" % number)] * count), oid=oid)
        messages += [b"B" + facts + hand.u32(700 + number), hand.relation(*columns[:count], oid=oid, table=table), row]
        messages += [b"C\0" + hand.u64(100 + number) + hand.u64(101 + number) + hand.TIME]
    listed = wf.Capture(messages, "pgoutput")
    assert listed.tables()["version"].to_pylist() == [1, 2, 3, 1, 2, 1]
    for table in ("public.a", "public.b", "public.c"):
        assert wf.Capture(messages, "pgoutput").typed(table).read_all() == listed.typed(table).read_all()
        assert wf.Capture(messages, "pgoutput").latest(table) == listed.latest(table)
    capture = wf.Capture(messages, "pgoutput")
    capture.typed("public.a").read_all()
    assert capture.tables() == listed.tables()
    first = wf.Capture(messages[:12], "pgoutput")
    first.committed().read_all()
    for table in ("public.a", "public.b", "public.c"):
        rest, other = (wf.Capture(messages[12:], "pgoutput", after=first.position) for _ in range(2))
        other.tables()
        assert rest.typed(table).read_all() == other.typed(table).read_all()
