"""What errors of a stream that goes on after a position say of the transactions that were open there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from ..capture.streams import TIME, XID, block, committed, insert, position_after, rows_of

pytestmark = pytest.mark.spark

FORMAT = "pgoutput"
ROW = insert("id", values=("2",))
IN_BLOCK = insert("id", values=("2",), xid=XID)
BEGUN = [*committed(50, *rows_of(None)), wf.Begin(xid=9, commit_lsn=100, commit_time=TIME), ROW]

VERBS: dict[str, tuple[Callable[[spark_udfs.Capture], Any], Callable[[wf.Capture], Any]]] = {
    "changes": (lambda capture: capture.changes().collect(), lambda one: one.changes().read_all()),
    "committed": (lambda capture: capture.committed().collect(), lambda one: one.committed().read_all()),
    "tables": (lambda capture: capture.tables(), lambda one: one.tables()),
    "typed": (lambda capture: capture.typed("public.t").collect(), lambda one: one.typed("public.t").read_all()),
    "open": (lambda capture: capture.open().collect(), lambda one: one.open()),
    "position": (lambda capture: capture.position, lambda one: one.committed().read_all()),
}


def captures_of(
    spark: SparkSession, messages: Sequence[bytes], after: CapturePosition, **options: Any
) -> tuple[spark_udfs.Capture, wf.Capture]:
    df = spark.createDataFrame([*enumerate(map(bytes, messages))], "seq bigint, value binary").repartition(3)
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=["seq"], chunks=3, after=after, **options)
    return capture, wf.Capture([*messages], FORMAT, after=after, **options)


def assert_same_error(verb: str, both: tuple[spark_udfs.Capture, wf.Capture], words: str) -> None:
    """The text is that of one machine, with the name of the message in place of its index."""
    (on_spark, on_one), (capture, one) = VERBS[verb], both
    with pytest.raises(wf.WireformatError, match=words) as wanted:
        on_one(one)
    assert isinstance(wanted.value, (wf.DecodeError, wf.OrderError))
    start, end = str(wanted.value).split("[")[0], wanted.value.hint or ""
    with pytest.raises((type(wanted.value), PythonException)) as found:
        on_spark(capture)
    assert re.search(rf"{re.escape(start)}.*\bseq={wanted.value.message}\].*{re.escape(end)}", str(found.value))


@pytest.mark.parametrize("verb", VERBS)
def test_rows_that_look_damaged(spark: SparkSession, verb: str) -> None:
    """A row in a block begins with an xid, which is not expected without the beginning of the block."""
    messages = list(wf.encode([*committed(20, *rows_of(None)), *block(XID, *rows_of(XID), IN_BLOCK)], FORMAT))
    position = position_after([*committed(20, *rows_of(None)), *block(XID, *rows_of(XID))][:-1])
    both = captures_of(spark, [*messages[:4], *messages[7:]], position)
    assert_same_error(verb, both, "open at the position: block transaction xid 5; begin the input at")


def test_damage_after_the_beginning_of_what_was_open(spark: SparkSession) -> None:
    messages = list(wf.encode(block(XID, *rows_of(XID), IN_BLOCK), FORMAT))
    after = position_after(block(XID, *rows_of(XID))[:-1])
    capture, _ = captures_of(spark, [*messages, messages[2][:-1]], after)
    with pytest.raises(wf.DecodeError) as found:
        capture.changes()
    assert "open at the position" not in str(found.value)


@pytest.mark.parametrize("verb", ["committed", "open", "position"])
def test_a_transaction_that_is_left_out(spark: SparkSession, verb: str) -> None:
    """The error names the message with which a later one begins or ends, and what broke the order before."""
    position = position_after(BEGUN)
    first = list(wf.encode([*BEGUN, *committed(200, ROW), *committed(300, ROW)], FORMAT))
    later = first[len(BEGUN) :]
    assert_same_error(verb, captures_of(spark, later, position), "the beginning of the plain transaction xid 9")
    without_begin = [first[2], *later]
    assert_same_error(verb, captures_of(spark, without_begin, position), "open at the position: plain")
    permissive = captures_of(spark, [later[1][:-1]], position, mode="PERMISSIVE")
    assert_same_error(verb, permissive, "got CORRUPT.*open at the position: plain")
