"""What may hold messages: iterables and every Arrow array of bytes; the same rows, and Arrow's bytes are not copied."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.arrow.engine.scanner import BatchScan
from wireformat.arrow.scan.message_batches import COUNTED_BYTES, BatchSizes, message_batches, size_of

from ...engines import ENGINES, FORMAT, MODES, read, rows
from ...handmade import COMMIT, DELETE, HEARTBEAT, INSERT, SAMPLES, UPDATE, commit, message
from .small_limits import shrink

each_engine = pytest.mark.parametrize("engine", ENGINES)

MESSAGES = [*SAMPLES.values(), None, message(commit(b"?")), b"", None, message(INSERT, DELETE)]
"""Good ones, bad ones, an empty one and null ones."""

BARE = HEARTBEAT + b"F"


def sliced(kind: pa.DataType) -> pa.Array:
    return pa.array([b"junk", None, *MESSAGES, b"more junk"], kind).slice(2, len(MESSAGES))


def through_a_file(messages: list[bytes | None]) -> pa.ChunkedArray:
    file = io.BytesIO()
    table = pa.table({"payload": pa.array(messages, pa.binary())})
    pq.write_table(table, file, row_group_size=3)
    return pq.read_table(file)["payload"]


def through_a_stream(messages: list[bytes | None]) -> pa.Array:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"payload": pa.array([b"x" * 9, *messages], pa.binary())})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch.slice(1))
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch().column(0)


def in_chunks(sizes: list[int]) -> pa.ChunkedArray:
    parts = []
    start = 0
    for size in [*sizes, len(MESSAGES)]:
        parts.append(pa.array(MESSAGES[start : start + size], pa.binary()))
        start += size
    return pa.chunked_array(parts)


def optional(kind: Callable[[bytes], Any]) -> list[Any]:
    return [None if data is None else kind(data) for data in MESSAGES]


INPUTS: dict[str, Callable[[], Any]] = {
    "list": lambda: MESSAGES,
    "tuple": lambda: tuple(MESSAGES),
    "generator": lambda: iter(MESSAGES),
    "bytearrays": lambda: optional(bytearray),
    "memoryviews": lambda: optional(memoryview),
    "numpy array of objects": lambda: np.array(MESSAGES, object),
    "binary": lambda: pa.array(MESSAGES, pa.binary()),
    "large binary": lambda: pa.array(MESSAGES, pa.large_binary()),
    "binary view": lambda: pa.array(MESSAGES, pa.binary_view()),
    "sliced binary": lambda: sliced(pa.binary()),
    "sliced large binary": lambda: sliced(pa.large_binary()),
    "sliced binary view": lambda: sliced(pa.binary_view()),
    "chunked": lambda: in_chunks([1, 0, 5, 3]),
    "chunked large binary": lambda: in_chunks([4, 4]).cast(pa.large_binary()),
    "sliced chunked": lambda: pa.chunked_array([[b"junk"], *in_chunks([2, 7]).chunks]).slice(1),
    "of a Parquet file": lambda: through_a_file(MESSAGES),
    "of an IPC stream": lambda: through_a_stream(MESSAGES),
}

NOTHING: dict[str, Callable[[], Any]] = {
    "list": list,
    "generator": lambda: iter(()),
    "nones": lambda: [None, None],
    "nulls and nothing, without offsets": lambda: pa.Array.from_buffers(
        pa.binary(), 0, [None, None, pa.py_buffer(b"")]
    ),
    "binary": lambda: pa.array([], pa.binary()),
    "large binary": lambda: pa.array([], pa.large_binary()),
    "binary view": lambda: pa.array([], pa.binary_view()),
    "empty slice": lambda: pa.array([b"x", b"y"], pa.binary()).slice(1, 0),
    "without offsets": lambda: pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")]),
    "no chunks": lambda: pa.chunked_array([], pa.binary()),
    "empty chunks": lambda: pa.chunked_array([pa.array([], pa.binary())] * 2),
    "nulls": lambda: pa.nulls(3, pa.binary()),
    "nulls without a type": lambda: pa.nulls(3),
}


@each_engine
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_gives_the_same_rows(name: str, engine: str) -> None:
    expected = wf.arrow.changes(MESSAGES, FORMAT, mode="PERMISSIVE")
    table = wf.arrow.changes(INPUTS[name](), FORMAT, engine=engine, mode="PERMISSIVE")
    table.validate(full=True)
    assert rows(table) == rows(expected)
    events = read(INPUTS[name](), engine, mode="PERMISSIVE")
    assert events == read(MESSAGES, mode="PERMISSIVE")
    assert set(table["message"].to_pylist()) == {index for index, data in enumerate(MESSAGES) if data is not None}


@each_engine
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_names_the_same_message(name: str, engine: str) -> None:
    with pytest.raises(wf.DecodeError) as raised:
        wf.arrow.changes(INPUTS[name](), FORMAT, engine=engine)
    assert raised.value.message == MESSAGES.index(message(commit(b"?")))


@each_engine
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NOTHING)
def test_no_message_gives_no_rows_with_all_columns(name: str, mode: str, engine: str) -> None:
    table = wf.arrow.changes(NOTHING[name](), FORMAT, engine=engine, mode=mode)
    assert table.num_rows == 0
    assert table.schema.equals(wf.arrow.CHANGES)
    assert read(NOTHING[name](), engine, mode=mode) == []


@each_engine
def test_fixed_size_binary(engine: str) -> None:
    array = pa.array([b"?" * 26, BARE, None, BARE], pa.binary(26)).slice(1)
    table = wf.arrow.changes(array, FORMAT, engine=engine)
    assert table["message"].to_pylist() == [0, 2]
    assert set(table["kind"].to_pylist()) == {"HEARTBEAT"}


@each_engine
@pytest.mark.parametrize(
    "messages", [pa.array(["a"]), pa.array([1]), pa.array([[b"a"]]), b"one message", bytearray(b"one"), "text", 5, None]
)
def test_what_holds_no_messages(messages: Any, engine: str) -> None:
    with pytest.raises(TypeError):
        wf.arrow.changes(messages, FORMAT, engine=engine)


@each_engine
@pytest.mark.parametrize("bad", ["text", 5, 1.5])
def test_what_is_no_message(bad: Any, engine: str) -> None:
    with pytest.raises(TypeError):
        read([BARE, bad], engine)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_bytes_of_an_array_are_not_copied(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches that the scan reads lie inside the array's own data buffer, sliced or not, one chunk or many."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100)
    for array in (pa.array(MESSAGES, kind), sliced(kind)):
        data = array.buffers()[2]
        found = list(message_batches(array))
        assert len(found) > 3
        for batch in found:
            begin = batch.buffer.__array_interface__["data"][0]
            assert data.address <= begin
            assert begin + batch.buffer.nbytes <= data.address + data.size
            assert not batch.buffer.flags.writeable
        seen = {
            int(index): batch.message(place) for batch in found for place, index in enumerate(batch.indexes.tolist())
        }
        assert seen == {index: message for index, message in enumerate(MESSAGES) if message is not None}


def test_batches_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch holds as many messages as fit, and one at least, however large that one is."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100)
    messages = [b"x" * size for size in (60, 40, 1, 300, 50, 50, 0, 0, 99)]
    for source in (messages, pa.array(messages, pa.binary())):
        assert [batch.indexes.tolist() for batch in message_batches(source, 5)] == [
            [5, 6],
            [7],
            [8],
            [9, 10, 11, 12],
            [13],
        ]


def test_a_message_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, MESSAGE_BYTES=50)
    fits, too_long = message(COMMIT), message(UPDATE)
    for engine in ENGINES:
        assert len(read([fits], engine)) == 1
        for source in ([fits, too_long], pa.array([fits, too_long], pa.binary())):
            with pytest.raises(wf.LimitExceeded, match="MESSAGE_BYTES is 50"):
                read(source, engine)


@each_engine
def test_iterables_are_read_as_far_as_needed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages may be made while they are read; no more than a batch is held."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100)
    taken = []

    def source() -> Any:
        for index in range(100):
            taken.append(index)
            yield BARE

    events = wf.decode(source(), FORMAT, engine=engine)
    next(events)
    assert len(taken) <= 5
    assert len(list(events)) == 99


@each_engine
def test_the_input_may_be_released(engine: str) -> None:
    """Rows do not hold on to the messages."""
    array = pa.array([message(INSERT)] * 100, pa.binary())
    table = wf.arrow.changes(array, FORMAT, engine=engine)
    expected = rows(wf.arrow.changes([message(INSERT)] * 100, FORMAT, engine=engine))
    del array
    assert rows(table) == expected


@pytest.mark.parametrize(
    "sizes", [[], [0], [0, 0, 5], [3, 4, 1, 0, 8, 9, 10, 0, 1, 7], [None, 3, None, 20, 0, None]], ids=str
)
@pytest.mark.parametrize("batch_bytes", [1, 8, 9, 1000])
def test_a_list_is_cut_as_any_other_iterable(
    sizes: list[int | None], batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wireformat.arrow.scan.message_batches.MESSAGE_BATCH_BYTES", batch_bytes)
    messages = [None if size is None else bytes([index]) * size for index, size in enumerate(sizes)]
    found = [[list(map(list, batch)) for batch in message_batches(same, 7)] for same in (messages, tuple(messages))]
    assert found[0] == found[1]
    together = [pair for batch in message_batches(messages, 7) for pair in batch.messages()]
    assert together == [(index, data) for index, data in enumerate(messages, 7) if data is not None]


def test_small_chunks_are_read_together() -> None:
    """To scan a chunk by itself takes as long as to scan thousands of messages."""
    chunks = pa.chunked_array([pa.array([one], pa.binary()) for one in MESSAGES * 100])
    (found,) = message_batches(chunks, 7)
    expected = [(index, one) for index, one in enumerate(MESSAGES * 100, 7) if one is not None]
    assert [*found.messages()] == expected


@pytest.mark.parametrize(
    ("threads", "are_large", "lengths"),
    [(1, False, [10] * 5), (2, False, [10] * 5), (1, True, [40, 10]), (2, True, [20, 15, 10, 5])],
)
def test_chunks_are_joined_to_a_batch(
    threads: int, are_large: bool, lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the size that a single array would be cut into; each message counts, however small it is."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=10 * COUNTED_BYTES, STEPPED_TIMES=4)
    chunks = pa.chunked_array([pa.array([b"x"] * 5, pa.binary())] * 10)
    sizes = BatchSizes(1, threads, are_large)
    assert [len(batch.starts) for batch in message_batches(chunks, 0, sizes)] == lengths


@each_engine
def test_rows_before_an_error_of_a_generator_are_not_lost(engine: str) -> None:
    """As with `decode` and with captures."""

    def broken() -> Iterator[bytes]:
        yield from [BARE] * 3
        raise ConnectionError("the server has gone")

    batches = wf.arrow.batches(broken(), FORMAT, engine=engine)
    assert next(batches)["message"].to_pylist() == [0, 1, 2]
    with pytest.raises(ConnectionError):
        next(batches)


def test_large_batches_are_shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is divided, so that no thread waits long for another one; no batch is smaller than usual."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100, STEPPED_TIMES=4)
    messages = pa.array([b"x" * 10] * 100, pa.binary())
    sizes = BatchSizes(2, 2, are_large=True)
    assert [len(batch.buffer) for batch in message_batches(messages, 0, sizes)] == [200] * 4 + [100, 50, 50]
    sizes.are_large = False
    assert [len(batch.buffer) for batch in message_batches(messages, 0, sizes)] == [50] * 20


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("are_many", [False, True], ids=["few", "many"])
def test_batches_are_as_large_as_the_rows_that_a_filter_keeps_allow(
    threads: int, are_many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=1000)
    found: list[int] = []
    step = BatchScan.step

    def stepping(scan: BatchScan) -> int:
        found.append(len(scan.message_batch.buffer))
        return step(scan)

    monkeypatch.setattr(BatchScan, "step", stepping)
    messages = pa.array([message(INSERT)] * 1000, pa.binary())
    expected = wf.arrow.changes(messages, FORMAT, threads=1)
    of_all = wf.arrow.changes(messages, FORMAT, threads=threads, tables=["*.*" if are_many else "no.table"])
    assert of_all.equals(expected if are_many else expected.slice(0, 0))
    assert (max(found[-4:]) <= 500) == are_many


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.string_view()])
def test_slices_of_views_have_sizes_of_their_own(kind: pa.DataType) -> None:
    """The buffers that they share are those of the whole array."""
    values = ["", "short", None, "x" * 1000, "y" * 2000]
    views = pa.array(values, kind)
    sizes = [16, 16 + 5, 16, 16 + 1000, 16 + 2000]
    assert [size_of(views.slice(index, 1)) for index in range(len(views))] == sizes
    chunks = pa.chunked_array([views.slice(1, 3), views.slice(4), views.slice(5)])
    assert size_of(chunks) == sum(sizes[1:])
    assert size_of(pa.chunked_array([], kind)) == size_of(views.slice(5)) == 0
    assert size_of(pa.table({"a": views, "b": pa.array(range(5), pa.int64())})) == sum(sizes) + 40
