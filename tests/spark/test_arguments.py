"""Arguments of the SQL functions, without Spark: each is an array of equal values, and wrong ones are named."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import wireformat as wf
from spark_udfs.sql.functions import (
    OPTIONS,
    WalChanges,
    WalTransactions,
    read_arguments,
    wal_decode,
    wal_decode_pandas,
)

from ..engines import FORMAT
from .messages import transaction


def column(value: Any, count: int = 2) -> pa.Array:
    return pa.array([value] * count)


def test_by_place_and_by_name() -> None:
    values = ["PERMISSIVE", "gbk", "replace", "s", ["public.*"], ["INSERT"], ["a b.c"], "opengauss"]
    wanted = {"format": FORMAT, **dict(zip(OPTIONS, values, strict=True))}
    columns = [column(value) for value in values]
    assert read_arguments("f", column(FORMAT), columns, {}) == wanted
    assert read_arguments("f", column(FORMAT), [], dict(zip(OPTIONS, columns, strict=True))) == wanted
    assert read_arguments("f", column(FORMAT), columns[:2], dict(zip(OPTIONS[2:], columns[2:], strict=True))) == wanted


def test_null_is_the_default() -> None:
    assert read_arguments("f", column(FORMAT), [column(None)], {"tables": column(None)}) == {"format": FORMAT}


def test_the_case_of_names_does_not_matter() -> None:
    named = {"FORMAT": column(FORMAT), "Mode": column("PERMISSIVE")}
    assert read_arguments("f", None, [], named) == {"format": FORMAT, "mode": "PERMISSIVE"}


def test_a_call_without_a_format() -> None:
    with pytest.raises(wf.OptionError, match="wal_changes: expected the name of a format, as in format => "):
        WalChanges().eval(pa.RecordBatch.from_pydict({"seq": [1], "payload": [b""]}))


OF_WHOLE_STREAMS = {"exclude_users", "skip_empty_xacts", "strict"}
"""Not there on Spark, where a task sees a part of the stream."""


def test_each_option_is_one_of_read_options() -> None:
    assert set(OPTIONS) == set(wf.ReadOptions.__dataclass_fields__) - OF_WHOLE_STREAMS


@pytest.mark.parametrize(
    ("given", "named", "text"),
    [
        ([column(None)] * 9, {}, "f: expected at most 8 options: mode, encoding, "),
        ([], {"mood": column("x")}, "f: unknown option 'mood', did you mean 'mode'?; known are format, mode, "),
        ([pa.array(["FAILFAST", "PERMISSIVE"])], {}, "f: mode must be the same in all rows"),
        ([pa.array(["FAILFAST", None])], {}, "f: mode must be the same in all rows"),
        ([], {"kinds": pa.array([["INSERT"], ["UPDATE"]])}, "f: kinds must be the same in all rows"),
    ],
)
def test_wrong_ones(given: Any, named: Any, text: str) -> None:
    with pytest.raises(wf.OptionError) as caught:
        read_arguments("f", column(FORMAT), given, named)
    assert text in str(caught.value)


@pytest.mark.parametrize("format", ["gaussdb-binry", None])
def test_wrong_format(format: str | None) -> None:
    payload = pa.array([transaction("a")] * 2)
    with pytest.raises(wf.OptionError, match=f"unknown format {format!r}"):
        wal_decode(payload, column(format))
    with pytest.raises(wf.OptionError, match=f"unknown format {format!r}"):
        wal_decode_pandas(payload.to_pandas(), pd.Series([format] * 2))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"payload": [b""]}, "the table must have one column seq, it has payload; rename with AS seq"),
        ({"seq": [1], "p": [b""]}, "the table must have one column payload, it has seq, p; rename with AS payload"),
        ({"seq": [1], "SEQ": [1], "payload": [b""]}, "the table must have one column seq, it has seq, SEQ, payload"),
        ({"seq": ["1"], "payload": [b""]}, "seq must be an integer, it is string"),
        ({"seq": [1], "payload": ["x"]}, "payload must be binary, it is string"),
    ],
)
def test_wrong_tables(table: dict[str, Any], text: str) -> None:
    with pytest.raises(wf.OptionError) as caught:
        WalChanges().eval(pa.RecordBatch.from_pydict(table), column(FORMAT, 1))
    assert f"wal_changes: {text}" in str(caught.value)


def test_values_instead_of_tables() -> None:
    for function, name in ((WalChanges, "wal_changes"), (WalTransactions, "wal_transactions")):
        with pytest.raises(wf.OptionError, match=rf"{name}: expected a table, as in {name}\(TABLE\(SELECT …\)\)"):
            [*function().eval(pa.array([5]))]


def test_no_format() -> None:
    payload = pa.array([transaction("a")] * 2)
    for decode, given in ((wal_decode, payload), (wal_decode_pandas, payload.to_pandas())):
        with pytest.raises(wf.OptionError, match="expected the name of a format, as in format => 'gaussdb-binary'"):
            decode(given)
