"""wal_decode and wal_decode_pandas take bytes, and nothing that only looks like them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import wireformat as wf
from spark_udfs.sql.functions import wal_decode, wal_decode_pandas

pytestmark = pytest.mark.spark

LINE = "BEGIN 7"
WRONG: list[tuple[Any, str]] = [
    (LINE, "string; CAST"),
    (7, "int64"),
    (1.5, "double"),
    (True, "bool"),
    ([7], "list"),
]


def arrow(values: Sequence[Any]) -> pa.Array:
    return wal_decode(pa.array(values), pa.array(["test-decoding"] * len(values)))


def pandas(values: Sequence[Any]) -> pa.Array:
    formats = pd.Series(["test-decoding"] * len(values))
    return pa.array(wal_decode_pandas(pd.Series(values, dtype=None if values[0] is not None else object), formats))


@pytest.mark.parametrize("decode", [arrow, pandas])
def test_types(decode: Callable[[Sequence[Any]], pa.Array]) -> None:
    for value, type in WRONG:
        with pytest.raises(wf.OptionError, match=f"the messages must be binary, they are {type}"):
            decode([value, value])
    assert decode([None, None]).to_pylist() == [None, None]
    (rows, nothing) = decode([LINE.encode(), None]).to_pylist()
    assert [row["kind"] for row in rows] == ["BEGIN"]
    assert nothing is None
