"""strict, exclude_users and skip_empty_xacts of a streaming DataFrame: the rows and errors of wf.Capture, however the
messages are cut into micro-batches.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from ..chunks.test_records import events_of_users
from ..chunks.test_records import streams as formats_of_records
from ..examples import at_most
from .raw_streams import OFFSET, PLACE, Streams, assert_same, expected
from .test_capture_filters import ALL
from .test_capture_streams import States, ask, found_rows, in_micro_batches, read_stream, run, write_in_files

__all__ = ["ask"]

pytestmark = pytest.mark.spark

USERS = "gaussdb-binary"
STREAMS: dict[str, tuple[str, Streams]] = {
    "users": (USERS, {f"of {seed}": events_of_users(seed) for seed in range(3)}),
    "batches": (USERS, {f"of {seed}": events_of_users(seed, records=4) for seed in range(3)}),
    "pgoutput": ("pgoutput", {"one": formats_of_records()["pgoutput"][1]}),
}
TYPED: dict[str, Any] = {"users": ("s.t", {"id": "bigint"}), "batches": ("s.t", {"id": "bigint"})}
ORDERS: Any = ("shop.orders_0", {"id": "bigint", "status": "text", "total": "text"})

QUESTIONS: dict[str, Callable[[Any, str], Any]] = {
    "changes": lambda one, _: one.changes(),
    "some changes": lambda one, _: one.changes(columns=["kind"], kinds=["BEGIN", "COMMIT"], tables=["s.t"]),
    "committed": lambda one, _: one.committed(),
    "messages": lambda one, _: one.messages(),
    "typed": lambda one, name: one.typed(TYPED.get(name, ORDERS)[0], schema=TYPED.get(name, ORDERS)[1]),
}


def of_one_machine(name: str, question: str) -> pa.Table:
    format, streams = STREAMS[name]

    def wanted(_: str, messages: Any) -> pa.Table:
        one = wf.Capture(messages, format, **ALL)
        if "changes" not in question:
            return QUESTIONS[question](one, name).read_all()
        columns = ["message", "kind"] if question == "some changes" else None
        filters = {"kinds": ["BEGIN", "COMMIT"], "tables": ["s.t"]} if columns else {}
        rows = one.changes(columns=columns, **filters).read_all()
        return rows.add_column(0, OFFSET, rows["message"])

    return expected(streams, wanted)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", STREAMS)
def test_questions(ask: Callable[..., Any], name: str, question: str) -> None:
    format, streams = STREAMS[name]
    asked, wanted = QUESTIONS[question](ask(format, **ALL), name), of_one_machine(name, question)

    @at_most(4)
    @given(seed=st.integers(0, 10_000), count=st.integers(1, 30))
    def check(seed: int, count: int) -> None:
        assert_same(in_micro_batches(streams, asked, Random(seed), count), wanted)

    check()


@pytest.mark.slow
def test_a_stream_that_stops_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Records that wait are in the state of the query, also for `changes`."""
    format, streams = STREAMS["users"]
    write_in_files(streams, tmp_path / "all", 2, Random(2))
    (tmp_path / "rows").mkdir()
    for number in range(2):
        shutil.copy2(tmp_path / "all" / f"{number:04}.parquet", tmp_path / "rows")
        capture = spark_udfs.capture(read_stream(spark, tmp_path / "rows"), "value", format, **PLACE, **ALL)
        run(capture.changes(), tmp_path)
    assert_same(found_rows(spark, tmp_path), of_one_machine("users", "changes"))


def test_errors(ask: Callable[..., Any]) -> None:
    """A COMMIT that is lost: the BEGIN after it is out of order, in another micro-batch."""
    messages = events_of_users(3)
    kinds = wf.arrow.changes(messages, USERS, columns=["message", "kind"]).to_pylist()
    del messages[[row["message"] for row in kinds if row["kind"] == "COMMIT"][4]]
    with pytest.raises(wf.OrderError) as one:
        wf.Capture(messages, USERS, strict=True).tables()
    at, open = one.value.message, str(one.value.open)
    assert at is not None
    begun = int(open.rpartition(" ")[2])
    for question in (ask(USERS, strict=True).changes(), ask(USERS, strict=True).committed()):
        states = States("one", question)
        for offset in range(at):
            states.take(messages, [offset])
        with pytest.raises(wf.OrderError) as other:
            states.take(messages, [at])
        assert other.value.note == f"stream=one, {OFFSET}={at}"
        assert str(other.value.open) == open.replace(f"message {begun}", f"stream=one, {OFFSET}={begun}")


@pytest.mark.parametrize("option", ALL)
def test_a_query_keeps_its_options(ask: Callable[..., Any], option: str) -> None:
    messages = events_of_users(1)
    states = States("one", ask(USERS, **ALL).committed())
    states.take(messages, [0])
    states.question = ask(USERS, **{name: value for name, value in ALL.items() if name != option}).committed()
    with pytest.raises(wf.OptionError, match=f"option {option}: expected the one with which the query was begun"):
        states.take(messages, [1])
