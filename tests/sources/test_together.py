"""Messages of small files are decoded together; errors and the order of files are those of each by itself."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.formats.registry import find_format
from wireformat.sources import arrow_data, together
from wireformat.sources.find import SourceOrder, find_sources
from wireformat.sources.source import SourceMessages
from wireformat.sources.together import pieces

from ..golden_cases import find_case
from ..handmade import SAMPLES

CASE = find_case("b_num63_single")
FORMAT = find_format("gaussdb-binary")


def write_files(folder: Path, parts: list[list[bytes]]) -> list[Path]:
    paths = [folder / f"{number}.parquet" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        pq.write_table(pa.table({"payload": pa.array(part, pa.binary())}), path)
    return paths


def in_parts(messages: list[bytes], size: int) -> list[list[bytes]]:
    return [messages[begin : begin + size] for begin in range(0, len(messages), size)]


@pytest.mark.parametrize(
    ("most_bytes", "counts"),
    [(0, [2, 2, 2, 1]), (4 * 128, [4, 3]), (5 * 128, [4, 3]), (6 * 128, [6, 1]), (1 << 24, [7])],
)
def test_small_files_are_read_together(
    most_bytes: int, counts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a size; each message counts at least 128 bytes."""
    monkeypatch.setattr(together, "MESSAGE_BATCH_BYTES", most_bytes)
    messages = [*SAMPLES.values()][:7]
    paths = write_files(tmp_path, in_parts(messages, 2))
    found = [*pieces(find_sources(paths, FORMAT))]
    assert [len(piece.messages.messages) for piece in found] == counts
    assert [message for piece in found for message in piece.messages.messages.to_pylist()] == messages
    assert sum(piece.messages.read_bytes for piece in found) == sum(path.stat().st_size for path in paths)
    begins, count = [], 0
    for piece in found:
        begins += [(index, count + before) for index, before in piece.begins]
        count += len(piece.messages.messages)
    assert begins == [(0, 0), (1, 2), (2, 4), (3, 6)]


@pytest.mark.parametrize(("memory_limit", "counts"), [(0, [2, 2, 2, 1]), (8 * 4 * 128, [4, 3]), (1 << 28, [7])])
def test_a_memory_limit_bounds_what_is_put_together(
    memory_limit: int, counts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eighth of it, of small files and of the parts of one source that are not tiny."""
    monkeypatch.setattr(together, "TINY_BYTES", 0)
    messages = [*SAMPLES.values()][:7]
    parts = in_parts(messages, 2)
    write_files(tmp_path, parts)
    for given in (tmp_path, pa.table({"payload": pa.chunked_array([pa.array(part) for part in parts])})):
        sources = find_sources(given, FORMAT)
        found = [*pieces(sources, memory_limit)]
        assert [len(piece.messages.messages) for piece in found] == counts
        assert [message for piece in found for message in piece.messages.messages.to_pylist()] == messages
        assert sum(piece.messages.read_bytes for piece in found) == sum(source.size or 0 for source in sources)
        assert sorted({index for piece in found for index, _ in piece.begins}) == [*range(len(sources))]


def test_files_of_several_kinds_are_read_in_order(tmp_path: Path) -> None:
    """Files of messages are put together, too, but not with Parquet files; one without rows is alone."""
    messages = [*SAMPLES.values()][:7]
    first, empty, last = write_files(tmp_path, [messages[:2], [], messages[5:]])
    binary = [tmp_path / "a.bin", tmp_path / "b.bin"]
    for path, part in zip(binary, (messages[2:4], messages[4:5]), strict=True):
        path.write_bytes(b"".join(part))
    paths = [first, *binary, empty, last]
    found = [*pieces(find_sources(paths, FORMAT))]
    assert [{index for index, _ in piece.begins} for piece in found] == [{0}, {1, 2}, {3}, {4}]
    assert wf.Capture(paths, FORMAT.name).changes().read_all().num_rows == len([*wf.decode(messages, FORMAT.name)])


def test_messages_before_a_file_that_cannot_be_read_are_not_lost(tmp_path: Path) -> None:
    paths = write_files(tmp_path, [[b"first"], [b"second"], [b"third"]])
    sources = find_sources(paths, FORMAT)
    paths[2].unlink()
    found = pieces(sources)
    assert next(found).messages.messages.to_pylist() == [b"first", b"second"]
    with pytest.raises(OSError, match=r"2\.parquet"):
        next(found)


@pytest.mark.parametrize("is_together", [True, False])
@pytest.mark.parametrize("kind", ["parquet", "bin"])
@pytest.mark.parametrize("bad", range(7))
def test_an_error_names_its_file(
    bad: int, kind: str, is_together: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the byte in it, if it is a file of messages."""
    if not is_together:
        monkeypatch.setattr(together, "MESSAGE_BATCH_BYTES", 0)
    messages = [SAMPLES["insert"]] * 7
    messages[bad] = messages[bad].replace(b"public", b"publi\xff")
    parts = in_parts(messages, 2)
    paths = write_files(tmp_path, parts)
    if kind == "bin":
        for index, part in enumerate(parts):
            paths[index].unlink()
            paths[index] = paths[index].with_suffix(".bin")
            paths[index].write_bytes(b"".join(part))
    for _ in range(2):
        with pytest.raises(wf.DecodeError) as raised:
            wf.Capture(tmp_path, FORMAT.name).changes().read_all()
        error = raised.value
        assert (error.source, error.message, error.source_message) == (str(paths[bad // 2]), bad, bad % 2)
        before = sum(map(len, parts[bad // 2][: bad % 2]))
        assert error.message_offset is not None
        assert error.stream_offset == (None if kind == "parquet" else before + error.message_offset)


@pytest.mark.parametrize("swapped", [1, 2, 3])
def test_files_in_a_wrong_order_are_named(swapped: int, tmp_path: Path) -> None:
    """Each file begins where one before it begins, or after; it does not matter which are read together."""
    messages = CASE.messages
    begins = [index for index, event in enumerate(wf.decode(messages, CASE.format)) if event.kind == "BEGIN"]
    bounds = [*begins[:4], len(messages)]
    parts = [messages[start:stop] for start, stop in pairwise(bounds)]
    parts[swapped - 1], parts[swapped] = parts[swapped], parts[swapped - 1]
    write_files(tmp_path, parts)
    with pytest.raises(wf.OrderError, match=rf"{swapped - 1}\.parquet.*{swapped}\.parquet") as raised:
        wf.Capture(tmp_path, CASE.format).changes().read_all()
    assert raised.value.source == str(tmp_path / f"{swapped}.parquet")


def test_a_file_that_is_named_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second place is looked at by itself, also if its first one is read together with it."""
    messages = CASE.messages
    begins = [index for index, event in enumerate(wf.decode(messages, CASE.format)) if event.kind == "BEGIN"]
    x, a, b = write_files(tmp_path, [messages[start:stop] for start, stop in pairwise(begins[:4])])
    for most_bytes in range(0, 2000, 100):
        monkeypatch.setattr(together, "MESSAGE_BATCH_BYTES", most_bytes)
        with pytest.raises(wf.OrderError, match=rf"{b.name}.*{a.name}"):
            wf.Capture([x, a, b, a], CASE.format).changes().read_all()


@pytest.mark.parametrize("most_bytes", [0, 1 << 24])
def test_a_begin_that_an_option_holds_back(most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of its own file, though the row before which it comes is in the next one."""
    monkeypatch.setattr(together, "MESSAGE_BATCH_BYTES", most_bytes)
    messages = CASE.messages
    begins = [index for index, event in enumerate(wf.decode(messages, CASE.format)) if event.kind == "BEGIN"]
    transactions = [messages[start:stop] for start, stop in pairwise(begins) if stop - start > 2]
    first, second = transactions[:2]
    write_files(tmp_path, [second[:1], second[1:], first])
    with pytest.raises(wf.OrderError, match=r"0\.parquet.*2\.parquet"):
        wf.Capture(tmp_path, CASE.format, skip_empty_xacts=True).changes().read_all()


def test_each_source_begins_with_its_own_first_position() -> None:
    """Positions may fall within a source, and rows of several sources may come in any number of batches."""

    def rows(*positions: tuple[int, int]) -> pa.RecordBatch:
        messages, values = zip(*positions, strict=True)
        nulls = [None] * len(values)
        columns = {"kind": ["BEGIN"] * len(values), "message": messages, "csn": values, "commit_lsn": nulls}
        return pa.RecordBatch.from_pydict(columns)

    order = SourceOrder("gaussdb-binary")
    for first, source in ((0, "a"), (4, "b"), (6, "c")):
        order.add(first, source)
    order.take(rows((0, 5)))
    order.take(rows((2, 1), (3, 9), (5, 7)))
    order.add(8, "d")
    order.take(rows((8, 7)))
    order.add(9, "e")
    with pytest.raises(wf.OrderError, match="d, at csn 7, got e, which begins at 6"):
        order.take(rows((8, 1), (9, 6)))


def test_sources_without_positions_do_not_wait() -> None:
    """Once there is a BEGIN of a later source: else each batch would look at all of them again."""
    order = SourceOrder("test-decoding")
    for number in range(100):
        order.add(number, str(number))
        rows = {"kind": ["BEGIN"], "message": [number], "csn": [None], "commit_lsn": [None]}
        order.take(pa.RecordBatch.from_pydict(rows))
    assert order.first is None
    assert len(order._waiting) == 1


def test_what_comes_slowly_is_not_held_back() -> None:
    """A source that can be read once is read as it comes."""

    class Slow:
        name, size, is_repeatable = "slow", None, False

        def read(self) -> Iterator[SourceMessages]:
            for number in range(3):
                taken.append(number)
                yield SourceMessages("slow", [b"x"], 1)

    taken: list[int] = []
    found = pieces([Slow()])
    for number in range(3):
        next(found)
        assert taken == [*range(number + 1)]


def test_an_iterable_without_a_length_is_read_in_its_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sizes are not known, so they are not put together."""
    monkeypatch.setattr(arrow_data, "MESSAGE_BATCH_BYTES", 1000)

    class Again:
        def __iter__(self) -> Iterator[bytes]:
            return (bytes(500) for _ in range(10))

    found = [*pieces(find_sources(Again(), FORMAT))]
    assert [len(piece.messages.messages) for piece in found[:5]] == [2] * 5


def test_other_columns_of_a_stream_are_let_go() -> None:
    """All columns of a batch from a file or a socket lie in one buffer."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"payload": [b"x" * 20], "other": [b"y" * 100_000]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(50):
            writer.write_batch(batch)
    (source,) = find_sources(pa.ipc.open_stream(io.BytesIO(sink.getvalue().to_pybytes())), FORMAT, "payload")
    before = pa.total_allocated_bytes()
    (found,) = source.read()
    assert len(found.messages) == 50
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_tiny_arrays_are_joined_before_they_are_looked_at() -> None:
    """But not larger ones, nor those of other types."""
    tiny = [pa.array([b"a"]), pa.array([None], pa.binary()), pa.array([b"bc", b""])]
    large = pa.array([bytes(together.TINY_BYTES)])
    other = [pa.array([b"d"], pa.large_binary()), pa.array([b"e"], pa.large_binary())]
    first, last = together.chunked([*tiny, large, *tiny, *other])
    assert first.chunks == [pa.array([b"a", None, b"bc", b""]), large, pa.array([b"a", None, b"bc", b""])]
    assert last.chunks == [pa.array([b"d", b"e"], pa.large_binary())]
    assert first.chunk(1).buffers()[2].address == large.buffers()[2].address
