"""The state of streaming transactions: kept checkpoints go on, and what is damaged or of another version is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs import streaming
from spark_udfs.packing import Layout, pack
from wireformat.stream.saved import HEADER_BYTES, seal

from ..histories import table
from ..mutations import changed_bytes, truncations
from .many_streams import OFFSET, STREAM, assert_same, expected, one_table
from .saved_query import AFTER, BEFORE, KEPT, restore
from .test_streaming_transactions import PLACE, read_stream, run

VERSIONS = sorted(path.name for path in KEPT.glob("version-*"))
WRITTEN_BY = {"version-1": (4, 3)}
"""The version of Spark that wrote the checkpoint; older ones do not read it."""

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.mark.spark
@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_checkpoint_goes_on(spark: SparkSession, version: str, tmp_path: Path) -> None:
    """Rows that lay in the state come out with those that follow; nothing comes again."""
    if WRITTEN_BY[version] > SPARK:
        pytest.skip("the checkpoint is of a newer Spark")
    restore(KEPT / version, tmp_path)
    before, after = (pq.read_table(KEPT / version / name) for name in (BEFORE, AFTER))
    run(spark_udfs.transactions(read_stream(spark, tmp_path / "rows"), **PLACE), tmp_path)
    whole, first = expected(pa.concat_tables([before, after])), expected(before)
    found = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "found").glob("*.parquet")])
    assert_same(pa.concat_tables([first, found.cast(first.schema)]), whole)
    assert {"block", "prepared", "streamed"} <= {*found["table_name"].to_pylist()}


ROWS = one_table(
    {"one": table([wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t"), wf.Commit(xid=1, lsn=5)])}
)
LAYOUT = Layout(tuple(ROWS.column_names), (STREAM,), (OFFSET,))


class Value:
    """A ValueState."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class Pieces(dict[tuple[int], tuple[bytes]]):
    """A MapState."""

    getValue = dict.get  # noqa: N815 - Spark's names
    updateValue = dict.__setitem__  # noqa: N815
    removeKey = dict.__delitem__  # noqa: N815


class States:
    """The state of one stream, which outlives the processors."""

    def __init__(self) -> None:
        self.machine, self.pieces = Value(), Pieces()

    def getValueState(self, name: str, schema: str) -> Value:  # noqa: N802
        return self.machine

    def getMapState(self, name: str, key: str, schema: str) -> Pieces:  # noqa: N802
        return self.pieces

    def take(self, start: int, stop: int, layout: Layout = LAYOUT, rows: pa.Table = ROWS, **options: Any) -> int:
        """Rows of one micro-batch; returns how many came out."""
        processor = streaming.Processor(layout, options)
        processor.init(self)  # type: ignore[arg-type]
        (batch,) = rows.slice(start, stop - start).combine_chunks().to_batches()
        frames = iter([pd.DataFrame({"rows": [pack(batch)]})])
        found = [*processor.handleInputRows(('["one"]',), frames, None)]
        return sum(len(streaming.unpack(packed)) for frame in found for packed in frame["rows"])

    @property
    def state(self) -> bytes:
        assert self.machine.value is not None
        (state,) = self.machine.value
        return bytes(state)


def begun() -> States:
    states = States()
    assert states.take(0, 2) == 0
    return states


def test_the_state_is_plain_data() -> None:
    states = begun()
    header, rest = states.state[:HEADER_BYTES], states.state[HEADER_BYTES:]
    line, _, transactions = rest.partition(b"\n")
    assert {**json.loads(header), "crc32": None} == {"state": "wireformat.stream", "version": 1, "crc32": None}
    assert json.loads(line) == {"order_by": ["offset"], "last": [1, 0], "next_piece": 1}
    assert json.loads(transactions[:HEADER_BYTES])["state"] == "wireformat.transactions"
    ((key, (piece,)),) = states.pieces.items()
    assert key == (0,)
    assert {**json.loads(piece[:HEADER_BYTES]), "crc32": None} == {
        "state": "wireformat.rows",
        "version": 1,
        "crc32": None,
    }
    assert pa.ipc.open_stream(piece[HEADER_BYTES:]).read_all()["kind"].to_pylist() == ["BEGIN", "INSERT"]
    assert states.take(2, 3) == 1
    assert states.pieces == {}


def test_other_versions_are_refused() -> None:
    states = begun()
    states.machine.update((seal(streaming.STREAM_KIND, 2, b""),))
    with pytest.raises(
        wf.StateError, match=r"version 1 of wireformat.stream, .* got version 2: .* a new checkpoint fold"
    ):
        states.take(2, 3)
    states.machine.update((pickle.dumps((b"", 0, (1, 0))),))
    with pytest.raises(wf.StateError, match="got a pickle, which is never loaded"):
        states.take(2, 3)
    states = begun()
    states.pieces[(0,)] = (seal(streaming.ROWS_KIND, 3, b""),)
    with pytest.raises(wf.StateError, match=r"version 1 of wireformat.rows, .* got version 3"):
        states.take(2, 3)


def test_damage_is_found() -> None:
    states = begun()
    whole, piece = states.state, states.pieces[(0,)][0]
    for other in [*truncations(whole), *list(changed_bytes(whole))[::7]]:
        try:
            found = streaming.read_stream(other, LAYOUT)
        except wf.StateError:
            continue
        assert found == streaming.read_stream(whole, LAYOUT)
    for other in [*truncations(piece), *list(changed_bytes(piece))[::23]]:
        try:
            rows = streaming.read_piece(other)
        except wf.StateError:
            continue
        assert rows.equals(streaming.read_piece(piece))


NUMBERS = pa.record_batch({"a": pa.array(range(1000))})


@pytest.mark.parametrize(
    "bad",
    [b"", b"x", pa.schema([("a", pa.int64())]).serialize().to_pybytes(), pack(NUMBERS)[:-100]],
    ids=["nothing", "no stream", "no batch", "a cut one"],
)
def test_a_piece_that_is_no_batch(bad: bytes) -> None:
    states = begun()
    states.pieces[(0,)] = (seal(streaming.ROWS_KIND, 1, bad),)
    with pytest.raises(
        wf.StateError, match=r"wireformat.rows: expected an Arrow IPC stream of one batch, got other bytes"
    ):
        states.take(2, 3)


def test_a_piece_that_is_missing() -> None:
    states = begun()
    states.pieces.clear()
    with pytest.raises(wf.StateError, match="rows of open transactions in the store, got none or others"):
        states.take(2, 3)


def test_the_order_stays() -> None:
    other = Layout(LAYOUT.names, LAYOUT.stream_by, ("lsn",))
    with pytest.raises(
        wf.OptionError, match="with which the query was begun, offset, got lsn: name the first, or begin"
    ):
        begun().take(2, 3, other)
    place = ROWS.column_names.index(OFFSET)
    text = ROWS.set_column(place, OFFSET, ROWS[OFFSET].cast(pa.string()))
    with pytest.raises(
        wf.OptionError, match=r"expected offset, record of the types in earlier micro-batches of stream \["
    ):
        begun().take(2, 3, rows=text)
    with pytest.raises(wf.OptionError, match="two_phase: expected the one with which the state was saved, 'commit'"):
        begun().take(2, 3, two_phase="prepare")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"last": [1]}, "a value for each column of order_by in last"),
        ({"last": [None, 0]}, "expected a text or a whole number of 64 bits in last, got null"),
        ({"next_piece": -1}, "expected a count in next_piece, got a number out of range"),
        ({"more": 1}, "expected the fields order_by, last, next_piece at the top, got 1 unknown"),
    ],
)
def test_fields_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    good = {"order_by": ["offset"], "last": [1, 0], "next_piece": 1}
    state = seal(streaming.STREAM_KIND, 1, json.dumps({**good, **fields}).encode() + b"\n")
    with pytest.raises(wf.StateError, match=words):
        streaming.read_stream(state, LAYOUT)
