"""Keys of every type: which values are equal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from ....typed_histories import (
    SEQUENCE,
)
from .changes import cut

VALUES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "smallint": (pa.int16(), [[-32768], [0], [32767]]),
    "bigint": (pa.int64(), [[-(2**63)], [-1], [0], [2**63 - 1]]),
    "boolean": (pa.bool_(), [[False], [True]]),
    "text": (pa.string(), [[""], ["a"], ["a "], ["A"], ["\0"]]),
    "numeric": (pa.decimal128(38, 2), [[Decimal("0.10")], [Decimal("-0.10")], [Decimal("9" * 36)]]),
    "date": (pa.date32(), [[date(1, 1, 1)], [date(9999, 12, 31)]]),
    "timestamp": (pa.timestamp("us", "UTC"), [[datetime(1, 1, 1)], [datetime(2026, 11, 22, 1, 2, 3, 4)]]),  # noqa: DTZ001
    "time": (pa.time64("us"), [[0], [1]]),
    "bytea": (pa.binary(), [[b""], [b"\0"], [b"\0\0"]]),
    "real": (pa.float32(), [[0.0, -0.0], [float("nan")], [float("inf")], [1.5]]),
    "double precision": (pa.float64(), [[-0.0, 0.0], [float("nan"), -float("nan")], [5e-324]]),
    "integer[]": (pa.list_(pa.int32()), [[[]], [[None]], [[1, 2]], [[1], [1]], [[2, 1]], [[1, None]]]),
    "text[][]": (
        pa.list_(pa.list_(pa.string())),
        [[[]], [[[]]], [[None]], [[["a", "b"]]], [[["a"], ["b"]]], [[["ab"]]]],
    ),
    "double precision[]": (pa.list_(pa.float64()), [[[0.0], [-0.0]], [[float("nan")]], [[0.0, 0.0]]]),
}
"""For types of columns, values of which those in one list are equal."""


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("others", [(), ("other",)], ids=["alone", "beside another column"])
def test_keys_of_every_type(name: str, others: tuple[str, ...]) -> None:
    """Inserts, updates by equal values, moves to the next value and back, deletes; also with a column that is equal."""
    type, groups = VALUES[name]
    columns = pa.schema([pa.field("k", type), pa.field("other", pa.int32()), pa.field("v", pa.int64())])
    inserts = [("insert", values[0], None) for values in groups]
    updates = [("update", values[-1], values[0]) for values in groups]
    away = [("update", values[0], others[-1]) for values, others in zip(groups[1:], groups, strict=False)][::-1]
    deletes = [("delete", values[-1], values[-1]) for values in groups]

    def after(changes: list[tuple[str, Any, Any]], keys: Sequence[str]) -> pa.Table:
        images = [pa.array([one[place] for one in changes], type) for place in (1, 2)]
        numbers = pa.array(range(len(changes)), pa.int64())
        same = pa.array([7] * len(changes), pa.int32())
        has_old = [one[0] != "insert" for one in changes]
        old = pa.StructArray.from_arrays(
            [images[1], same, pa.array([0] * len(changes))],
            fields=list(columns),
            mask=pa.array([not one for one in has_old]),
        )
        typed = pa.table(
            {
                **dict(zip(columns.names, [images[0], same, numbers], strict=True)),
                "_change_type": [one[0] for one in changes],
                "_sequence": pa.array([{"commit_lsn": place, "ordinal": 0} for place in range(len(changes))], SEQUENCE),
                "_xid": numbers,
                "_commit_time": pa.nulls(len(changes), pa.timestamp("us", "UTC")),
                "_old": old,
                "_unchanged": pa.nulls(len(changes), pa.list_(pa.string())),
            }
        )
        rows = wf.arrow.latest(typed, keys)
        one_by_one = wf.arrow.latest(cut(typed, range(len(typed))), keys)
        assert repr(one_by_one.to_pylist()) == repr(rows.to_pylist())  # NaN is not equal to itself
        return rows

    keys = ["k", *others]
    count = len(groups)
    assert after(inserts, keys)["v"].to_pylist() == list(range(count))
    assert after([*inserts, *updates], keys)["v"].to_pylist() == list(range(count, 2 * count))
    assert after([*inserts, *updates, *deletes], keys).num_rows == 0
    assert after([*inserts, deletes[-1], *away], keys).num_rows == count - 1
    assert after([*inserts, *deletes[1:]], keys)["v"].to_pylist() == [0]
