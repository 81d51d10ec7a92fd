"""Changes and options that cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from ....typed_histories import (
    KEYS,
    SEQUENCE,
    Row,
    typed_table,
)
from .changes import INSERT, STREAM, cut, moved, placed, row


def test_streams_that_cannot_be() -> None:
    typed = typed_table(placed([Row("insert", row(1))])).append_column(STREAM, pa.array([None], pa.string()))
    typed = typed.append_column("half", pa.array([0.5]))
    faults: list[tuple[Any, str]] = [
        (STREAM, "expected a list of strings"),
        (["streams"], "no column 'streams', did you mean 'stream'"),
        ([STREAM, STREAM], "'stream' is named twice"),
        (["id"], "'id' is not a column that typed kept"),
        (["_xid"], "'_xid' is not a column that typed kept"),
        (["half"], "option stream_by: expected integers or strings, 'half' is double"),
        ([STREAM], "1 change that has no value in a column of stream_by: stream"),
    ]
    for stream_by, words in faults:
        with pytest.raises(wf.BadRows if "1 change that" in words else wf.OptionError, match=words):
            wf.arrow.latest(typed, KEYS, stream_by=stream_by)
    with pytest.raises(wf.OptionError, match="'stream' is not a column of the table"):
        wf.arrow.latest(typed, [STREAM])


@pytest.mark.parametrize(
    ("name", "type", "words"),
    [
        (
            "id",
            pa.list_(pa.int32()),
            "typed, column 'id': expected the type that it has in _old, int(32|64), got list<.*>; cast both",
        ),
        (
            "_sequence",
            pa.int64(),
            "typed, column _sequence: expected struct<commit_lsn: int64, ordinal: int64>, got int64",
        ),
        (
            "_sequence",
            pa.struct({"commit_lsn": pa.int64()}),
            "column _sequence: expected .*, got struct<commit_lsn: int64>",
        ),
        ("_change_type", pa.string_view(), "typed, column _change_type: expected string, got string_view"),
        ("_unchanged", pa.string(), r"typed, column _unchanged: expected list<string>, got string"),
    ],
)
def test_columns_of_other_types(name: str, type: pa.DataType, words: str) -> None:
    """As of changes that were cast, or saved by pandas."""
    typed = typed_table([INSERT])
    other = typed.set_column(typed.schema.get_field_index(name), name, pa.nulls(1, type))
    with pytest.raises(wf.OptionError, match=words):
        wf.arrow.latest(other, KEYS)


@pytest.mark.parametrize(
    ("type", "names"),
    [
        (pa.string(), [*KEYS, "step_0"]),
        (pa.large_string(), [*KEYS, "step_0"]),
        (pa.dictionary(pa.int32(), pa.string()), ["step_0"]),
    ],
)
def test_columns_that_were_cast(type: pa.DataType, names: list[str]) -> None:
    """Beside an old row as it was."""
    changes = placed([INSERT], [moved(1, 2)], [Row("insert", row(1, "y"))])
    whole = typed_table(changes)
    typed = whole
    for name in names:
        texts = whole[name].cast(pa.string())
        typed = typed.set_column(typed.schema.get_field_index(name), name, texts.cast(type))
    found, wanted = (wf.arrow.latest(one, KEYS).select([*KEYS, "step_0"]) for one in (typed, whole))
    assert len(wanted) == 2
    texts = pa.schema([(name, pa.string()) for name in wanted.column_names])
    assert sorted(found.cast(texts).to_pylist(), key=str) == sorted(wanted.cast(texts).to_pylist(), key=str)


FAULTS: list[tuple[list[Row], Any, str]] = [
    ([INSERT], "id", "option keys: expected a list of strings"),
    ([INSERT], ["nothing"], "option keys: no column 'nothing'; there are part, id"),
    ([INSERT], ["xid"], "option keys: no column 'xid', did you mean 'id'\\?; there are part, id, "),
    ([INSERT], ["_xid"], "option keys: '_xid' is not a column of the table"),
    ([INSERT], ["id", "id"], "option keys: 'id' is named twice"),
    (
        [INSERT, replace(INSERT, new={**row(1), "id": None})],
        KEYS,
        "1 change that has no value in a column of keys: part, id",
    ),
    ([INSERT, *[replace(INSERT, change="upsert")] * 3], KEYS, "3 changes that have a _change_type other than insert,"),
    ([INSERT, Row("update", row(1), sequence=(2, 0))], [], "1 change that does not contain the whole old row"),
    (
        [INSERT, Row("update", row(1), {**row(1), "raw": None}, ("raw",), (2, 0))],
        [],
        "one that lacks values in which rows differ; pass keys",
    ),
]


@pytest.mark.parametrize(("changes", "keys", "words"), FAULTS)
def test_what_cannot_be(changes: list[Row], keys: Any, words: str) -> None:
    error = wf.BadRows if "that " in words else wf.OptionError
    for typed in (typed_table(changes), cut(typed_table(changes), range(len(changes)))):
        with pytest.raises(error, match=words):
            wf.arrow.latest(typed, keys)


def test_tables_that_cannot_be() -> None:
    typed = typed_table([INSERT])
    place = typed.column_names.index("_sequence")
    with pytest.raises(wf.BadRows, match="1 change that has no _sequence"):
        wf.arrow.latest(typed.set_column(place, "_sequence", pa.nulls(1, SEQUENCE)), KEYS)
    with pytest.raises(wf.OptionError, match="option typed: no column '_old'; there are part"):
        wf.arrow.latest(typed.drop_columns("_old"), KEYS)
    with pytest.raises(wf.OptionError, match="option keys: there are 2 columns 'id'; rename them"):
        wf.arrow.latest(typed.append_column("id", pa.array([1])), ["id"])
    with pytest.raises(wf.OptionError, match="expected a table or record batches, got none; they can be empty"):
        wf.arrow.latest([], KEYS)
    with pytest.raises(wf.OptionError, match="expected record batches with the same columns, got different ones"):
        wf.arrow.latest([typed, typed.append_column("more", pa.array([1]))], KEYS)
    with pytest.raises(TypeError, match="typed: expected a pyarrow Table or record batches, got dict"):
        wf.arrow.latest({1: typed}, KEYS)


def test_transactions_in_another_order_than_their_lsns() -> None:
    """As GaussDB sends them in CSN order. The changes of a row are in order; others are not taken."""
    changes = placed([Row("insert", row(1))], [Row("insert", row(2))], [Row("insert", row(3))], [moved(2, 4)])
    table = typed_table([changes[2], changes[0], changes[1], changes[3]])
    assert wf.arrow.latest(cut(table, range(4)), KEYS).equals(wf.arrow.latest(table, KEYS))
    assert wf.arrow.latest(table, KEYS)["id"].to_pylist() == [1, 3, 4]
    words = r"expected changes of each row in the order of _sequence, after 0/28 / 0, got 0/14 / 0; .*as one table"
    for borders in ([], [1], [1, 2, 3]):
        with pytest.raises(wf.BadRows, match=words):
            wf.arrow.latest(cut(typed_table([changes[3], changes[1]]), borders), KEYS)
    two = [replace(change, sequence=(7, ordinal)) for change, ordinal in zip(changes[:2], (1, 0), strict=True)]
    two[1] = replace(two[1], new=row(1))
    with pytest.raises(wf.BadRows, match="after 0/7 / 1, got 0/7 / 0"):
        wf.arrow.latest(cut(typed_table(two), []), KEYS)


@pytest.mark.parametrize("borders", [[], [1], [2], [1, 2, 3]])
def test_changes_without_a_key_that_a_truncate_has_removed(borders: list[int]) -> None:
    fault, truncate = replace(INSERT, new={**row(1), "id": None}), Row("truncate", {})
    whole = placed([fault, truncate, INSERT])
    assert wf.arrow.latest(cut(typed_table(whole), borders), KEYS).num_rows == 1
    with pytest.raises(wf.BadRows, match="1 change that has no value"):
        wf.arrow.latest(cut(typed_table(placed([fault, truncate, fault])), borders), KEYS)
