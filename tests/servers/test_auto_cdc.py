"""What Spark's AutoCDC asks of its source, on the workload's tables. Its targets need jars that Spark comes without.

pyspark.pipelines.create_auto_cdc_flow, Spark 4.3: keys are flat columns that are never null, sequence_by orders the
events of a key and no two of them are equal. SCD type 1 keeps the last event of a key, unless that is a delete.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import wireformat as wf

from ..test_documentation import ROOT
from .captures import read_capture, read_tables
from .conftest import Runs
from .current_tables import keys_of, lines, quoted, typed_rows
from .replica import Table
from .tables import Row, all_tables

TRUNCATED = ("by_index", "by_nothing", "child", "other_big", "parent", "without_key", "z1_1", "z1_2")
"""Tables that the workload empties: AutoCDC of Spark 4.3 has no word for that."""


def events_of(rows: pa.Table, listed: pa.Table, table: Table) -> pa.Table:
    """The source of a flow, as docs/current_tables.md makes it."""
    typed = wf.arrow.typed(
        rows,
        quoted(table),
        schema=listed,
        mode="PERMISSIVE",
        complete=True,
        split_key_changes=True,
        keys=keys_of(table),
    )
    return typed.filter(pc.not_equal(typed["_change_type"], "truncate"))


def check(changes: pa.Table, held: dict[Table, list[Row]]) -> None:
    rows, listed = wf.arrow.transactions(changes), wf.arrow.tables(changes)
    applied = 0
    for table in held:
        keys = keys_of(table)
        if not keys:
            continue
        events = events_of(rows, listed, table).to_pylist()
        places = {(*(row[key] for key in keys), *row["_sequence"].values()) for row in events}
        assert len(places) == len(events), table
        assert not any(part is None for place in places for part in place), table
        if table[1] not in TRUNCATED and not any(row["_unchanged"] for row in events):
            names = list(held[table][0])
            wanted = typed_rows(table, held[table], listed)
            assert lines(current(events, keys), names) == lines(wanted, names), table
            applied += 1
    assert applied > 12


def current(events: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """SCD type 1."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in events:
        key = tuple(row[name] for name in keys)
        if key not in last or tuple(last[key]["_sequence"].values()) < tuple(row["_sequence"].values()):
            last[key] = row
    return [row for row in last.values() if row["_change_type"] != "delete"]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("18-pgoutput-1", "pgoutput"),
        ("15-pgoutput-3-streaming", "pgoutput"),
        ("15-test-decoding-plain", "test-decoding"),
    ],
)
def test_captures(name: str, format: str) -> None:
    check(wf.arrow.changes(read_capture(name).messages, format), read_tables(name.split("-")[0]))


def test_a_slot_that_is_read_live(runs: Runs) -> None:
    server, stream = runs(18)
    assert stream is not None
    with server.connect() as session:
        held = {table: rows for table, rows in all_tables(session).items() if rows}
    check(wf.arrow.changes(stream.payloads, "pgoutput"), held)


def test_the_call_of_the_page() -> None:
    """Its arguments are those of the function that is installed."""
    from pyspark.pipelines import create_auto_cdc_flow

    page = (ROOT / "docs" / "current_tables.md").read_text(encoding="utf-8")
    call = re.search(r"^    (dp\.create_auto_cdc_flow\(.*?^    \))$", page, re.MULTILINE | re.DOTALL)
    assert call is not None
    given: dict[str, Any] = {}
    exec(textwrap.dedent("    " + call[1]).replace("dp.create_auto_cdc_flow", "given.update"), {"given": given})
    inspect.signature(create_auto_cdc_flow).bind(**given)
    typed = wf.arrow.typed([], "public.orders", schema={"order_id": "bigint"})
    assert given["except_column_list"] == typed.column_names[1:]
    assert given["sequence_by"] == "_sequence"
    assert given["keys"] == ["order_id"]
