"""What messages may be given as: paths, Arrow data of every kind, iterables; in which order they come; and errors."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.formats.registry import find_format
from wireformat.sources.find import find_sources

from .. import handmade

FORMAT = find_format("gaussdb-binary")
MESSAGES = list(handmade.SAMPLES.values())


def read(messages: Any, **options: Any) -> list[bytes | None]:
    found: list[bytes | None] = []
    for source in find_sources(messages, FORMAT, **options):
        for given in source.read():
            assert not given.is_lost
            is_arrow = isinstance(given.messages, pa.ChunkedArray)
            found += given.messages.to_pylist() if is_arrow else list(given.messages)
    return found


class Stream:
    """Data of another library, which has nothing but the Arrow C interface."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


class OneArray:
    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_array__(requested_schema)


ARRAY = pa.array(MESSAGES, pa.binary())
TABLE = pa.table({"offset": range(len(MESSAGES)), "payload": ARRAY})

IN_MEMORY: dict[str, Callable[[], Any]] = {
    "a list": lambda: MESSAGES,
    "a tuple": lambda: tuple(MESSAGES),
    "a list of views": lambda: [memoryview(message) for message in MESSAGES],
    "a generator": lambda: iter(MESSAGES),
    "binary": lambda: ARRAY,
    "large binary": lambda: ARRAY.cast(pa.large_binary()),
    "binary view": lambda: pa.array(MESSAGES, pa.binary_view()),
    "chunks": lambda: pa.chunked_array([MESSAGES[:2], [], MESSAGES[2:]], pa.binary()),
    "a table": lambda: TABLE,
    "a batch": lambda: TABLE.to_batches()[0],
    "a reader": TABLE.to_reader,
    "a dataset": lambda: ds.dataset(TABLE),
    "a stream of batches": lambda: Stream(TABLE),
    "a stream of arrays": lambda: Stream(pa.chunked_array([ARRAY])),
    "a C array": lambda: OneArray(ARRAY),
    "a C batch": lambda: OneArray(TABLE.to_batches()[0]),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_messages_in_memory(kind: str) -> None:
    assert [bytes(message) for message in read(IN_MEMORY[kind]()) if message is not None] == MESSAGES


def test_a_generator_may_use_its_buffer_again() -> None:
    """As one does that receives into it; without a length, messages are joined before they are decoded."""

    def received() -> Iterator[bytearray | None]:
        buffer = bytearray()
        for message in MESSAGES:
            buffer[:] = message
            yield buffer
            yield None

    assert [message for message in read(received()) if message is not None] == MESSAGES
    assert wf.guess_format(received()).name == FORMAT.name


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_it_is_known_what_can_be_read_twice(kind: str) -> None:
    (source,) = find_sources(IN_MEMORY[kind](), FORMAT)
    assert source.is_repeatable == (kind not in ("a generator", "a reader"))
    if source.is_repeatable:
        first, second = (sum(len(given.messages) for given in source.read()) for _ in range(2))
        assert first == second == len(MESSAGES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, the last of which has no message bounds, and files that are not read."""
    pq.write_table(pa.table({"payload": MESSAGES[:2]}), tmp_path / "part-2.parquet")
    pq.write_table(pa.table({"payload": MESSAGES[2:3]}), tmp_path / "part-10.parquet")
    (tmp_path / "part-11.bin").write_bytes(b"".join(MESSAGES[3:]))
    (tmp_path / ".hidden").write_bytes(b"x")
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


@pytest.mark.parametrize("given", ["", "part-*", "{list}"])
def test_files_come_in_the_natural_order_of_their_names(folder: Path, given: str) -> None:
    names = ["part-2.parquet", "part-10.parquet", "part-11.bin"]
    messages = [str(folder / name) for name in names] if given == "{list}" else str(folder / given)
    assert read(messages) == MESSAGES
    assert [Path(source.name).name for source in find_sources(messages, FORMAT)] == names


@pytest.mark.parametrize("names", [("part.bin", "part2.bin", "part10.bin"), ("day/1.bin", "day2/1.bin", "day10/1.bin")])
def test_a_name_without_a_number_comes_first(names: tuple[str, ...], tmp_path: Path) -> None:
    for name, message in zip(names, MESSAGES, strict=False):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(message)
    assert read(str(tmp_path / "**" / "*.bin")) == MESSAGES[: len(names)]


def test_a_list_of_paths_keeps_its_order(folder: Path) -> None:
    assert read([folder / "part-10.parquet", folder / "part-2.parquet"]) == [MESSAGES[2], *MESSAGES[:2]]


def test_the_column_is_found(tmp_path: Path) -> None:
    keys = pa.array([b"key"] * len(MESSAGES), pa.binary())
    assert read(pa.table({"key": keys, "value": ARRAY})) == MESSAGES
    assert read(pa.table({"offset": range(len(MESSAGES)), "anything": ARRAY})) == MESSAGES
    assert read(pa.table({"payload": keys, "other": ARRAY}), column="other") == MESSAGES
    with pytest.raises(
        wf.OptionError, match="the table: expected one binary column, got a, b; pass the one with the messages"
    ):
        read(pa.table({"a": keys, "b": keys}))
    with pytest.raises(wf.OptionError, match="expected a binary column with the messages, got a \\(int64\\)"):
        read(pa.table({"a": [1]}))


@pytest.mark.parametrize(
    ("messages", "options", "text"),
    [
        (TABLE, {"column": "payloads"}, "no column 'payloads', did you mean 'payload'"),
        (TABLE, {"column": "offset"}, "column 'offset': expected binary, got int64"),
        (TABLE, {"column": 1}, "expected the name of a column, got 1"),
        (ARRAY, {"column": "payload"}, "an array has no columns"),
        (MESSAGES, {"column": "payload"}, "an iterable of bytes has no columns"),
        (pa.array(["a"]), {}, "expected a binary array, got string"),
        ("nothing-*.parquet", {}, "no file matches nothing-"),
        (TABLE, {"order_by": []}, "expected at least one column"),
        (TABLE, {"order_by": ["offsets"]}, "no column 'offsets', did you mean 'offset'"),
        (
            TABLE.append_column("offset", TABLE["offset"]),
            {"order_by": ["offset"]},
            "expected one column 'offset', got several",
        ),
        (TABLE, {"order_by": ["offset", "offset"]}, "option order_by: 'offset' is named twice"),
        (pa.table([MESSAGES, MESSAGES], ["payload", "payload"]), {}, "expected one column 'payload', got several"),
        (TABLE, {"order_by": ["payload"]}, "expected integers or strings in 'payload', got binary"),
        (TABLE, {"order_by": "offset"}, "expected a list of strings"),
        (MESSAGES, {"order_by": ["offset"]}, "a table, dataset or DataFrame with Arrow's C interface, got list"),
    ],
)
def test_what_is_refused(messages: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(wf.OptionError, match=text):
        read(messages, **options)


@pytest.mark.parametrize("messages", [b"bytes", 5, None, io.BytesIO(b"read by lines\n")])
def test_what_are_no_messages(messages: Any) -> None:
    with pytest.raises(TypeError, match="expected paths, Arrow data or an iterable of bytes"):
        read(messages)


@pytest.mark.parametrize("call", [wf.Capture, wf.arrow.changes, lambda *given: list(wf.decode(*given))])
@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (set(MESSAGES), "expected them in the order in which they came, got a set"),
        (frozenset(MESSAGES), "got a frozenset"),
        (
            np.array(MESSAGES),
            r"a numpy array of \|S\d+, which drops zero bytes at their ends; make it with dtype=object",
        ),
    ],
)
def test_what_has_lost_order_or_bytes(call: Callable[..., Any], messages: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call(messages, FORMAT.name)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.bin"):
        read("missing.bin")


CUT = r"{}\.parquet: expected a complete Parquet file, got one that is cut or damaged \(.*\): write it again, or leave "
"""What is said of a file that cannot be read."""


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(OSError, match=r"cut\.parquet: "):
        read(path)


@pytest.mark.parametrize("size", [-1, 1000, 6, 4])
def test_a_parquet_file_that_is_cut(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"payload": MESSAGES * 100}), path, compression="none")
    path.write_bytes(path.read_bytes()[:size])
    for order_by in (None, ["offset"]):
        with pytest.raises(OSError, match=CUT.format("cut")) as raised:
            read(path, order_by=order_by)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("size", "said"), [(0, "no bytes"), (1, "only 1 byte"), (3, "only 3 bytes")])
def test_a_parquet_file_without_its_first_bytes(tmp_path: Path, size: int, said: str) -> None:
    path = tmp_path / "begun.parquet"
    path.write_bytes(b"PAR1"[:size])
    with pytest.raises(wf.OptionError, match=rf"begun\.parquet has {said}, so it is not .*remove it"):
        read(path)


VERBS: dict[str, Callable[[wf.Capture], Any]] = {
    "changes": lambda capture: capture.changes().read_all(),
    "committed": lambda capture: capture.committed().read_all(),
    "typed": lambda capture: capture.typed("public.orders").read_all(),
    "tables": lambda capture: capture.tables(),
    "open": lambda capture: capture.open(),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["b.parquet", "b.bin"])
def test_a_file_that_is_removed_before_it_is_read(tmp_path: Path, verb: str, name: str) -> None:
    path = tmp_path / name
    if path.suffix == ".bin":
        path.write_bytes(b"".join(MESSAGES))
    else:
        pq.write_table(pa.table({"payload": MESSAGES}), path)
    capture = wf.Capture([path], "gaussdb-binary")
    path.unlink()
    with pytest.raises(
        OSError, match=rf"{name}: No such file or directory; it was there .*: put it back, or"
    ) as raised:
        VERBS[verb](capture)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_damaged_before_it_is_read(tmp_path: Path, verb: str) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"payload": MESSAGES * 100}), path, compression="snappy", use_dictionary=False)
    capture = wf.Capture([path], "gaussdb-binary")
    data = path.read_bytes()
    for now in (data[:-100], data[:100] + bytes([255] * 500) + data[600:]):
        path.write_bytes(now)
        with pytest.raises(OSError, match=CUT.format("c")):
            VERBS[verb](capture)


def parts(tmp_path: Path, *ranges: list[int]) -> Iterator[Path]:
    for index, offsets in enumerate(ranges):
        path = tmp_path / f"{index}.parquet"
        pq.write_table(pa.table({"offset": offsets, "payload": [MESSAGES[offset] for offset in offsets]}), path)
        yield path


@pytest.mark.parametrize(
    "ranges",
    [
        [[0, 1], [2, 3]],
        [[2, 3], [0, 1]],
        [[1, 0], [3, 2]],
        [[0, 2], [1, 3]],
        [[3], [0, 2], [1]],
    ],
)
def test_columns_order_the_messages_of_all_files(tmp_path: Path, ranges: list[list[int]]) -> None:
    paths = list(parts(tmp_path, *ranges))
    assert read(paths, order_by=["offset"]) == MESSAGES[:4]
    shuffled = TABLE.take([3, 1, 0, 2])
    assert read(shuffled, order_by=["offset"]) == MESSAGES[:4]
    assert read(ds.dataset([str(path) for path in paths]), order_by=["offset"]) == MESSAGES[:4]


@pytest.mark.parametrize("make", [Stream, lambda table: table.to_reader(), lambda table: table.to_batches()[0]])
def test_columns_order_all_that_has_the_c_interface(make: Callable[[pa.Table], Any]) -> None:
    shuffled = TABLE.take([3, 1, 0, 2])
    assert read(make(shuffled), order_by=["offset"]) == MESSAGES[:4]


def test_columns_order_tables_of_views(tmp_path: Path) -> None:
    """Polars hands such columns over, and pyarrow does not sort them."""
    shuffled = TABLE.take([3, 1, 0, 2])
    views = [pa.array(["d", "b", "a", "c"], pa.string_view()), shuffled["payload"].cast(pa.binary_view())]
    table = pa.table(views, names=["key", "payload"])
    assert read(Stream(table), order_by=["key"]) == MESSAGES[:4]
    assert read(table, order_by=["key"]) == MESSAGES[:4]
    assert read(ds.dataset(table), order_by=["key"]) == MESSAGES[:4]
    pq.write_table(table, tmp_path / "views.parquet")
    assert read(tmp_path / "views.parquet", order_by=["key"]) == MESSAGES[:4]


def test_what_is_in_order_is_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.sources.ordered.OrderedSource.read", None)
    assert read(list(parts(tmp_path, [2, 3], [0, 1])), order_by=["offset"]) == MESSAGES[:4]
    assert read(ds.dataset(TABLE), order_by=["offset"]) == MESSAGES


def test_a_stream_of_arrays_has_no_columns_to_order_it() -> None:
    with pytest.raises(wf.OptionError, match="got Stream"):
        read(Stream(pa.chunked_array([ARRAY])), order_by=["offset"])


def test_texts_and_several_columns_order_messages() -> None:
    table = pa.table({"day": ["b", "a", "b"], "offset": [1, 5, 0], "payload": MESSAGES[:3]})
    assert read(table, order_by=["day", "offset"]) == [MESSAGES[1], MESSAGES[2], MESSAGES[0]]


@pytest.mark.parametrize("ranges", [[[0, 0]], [[0, 1], [1, 2]], [[0, 2], [1, 2]], [[0], [0]]])
def test_positions_are_unique(tmp_path: Path, ranges: list[list[int]]) -> None:
    with pytest.raises(wf.BadRows, match="unique positions, got two with the same offset"):
        read(list(parts(tmp_path, *ranges)), order_by=["offset"])


def test_positions_are_never_null() -> None:
    with pytest.raises(wf.BadRows, match="got one without 'offset'"):
        read(pa.table({"offset": [1, None], "payload": MESSAGES[:2]}), order_by=["offset"])


OTHER_TYPES = [
    ({"offset": pa.array([0, 3], pa.int32())}, "expected offset int32, payload binary, as in .*, got offset int64"),
    ({"offset": ["0", "3"]}, "expected offset string, payload binary, as in .*, got offset int64"),
    ({"payload": pa.array(MESSAGES[:2], pa.large_binary())}, "payload large_binary, as in .*, got offset int64"),
    ({"payload": None, "value": MESSAGES[:2]}, "expected offset int64, value binary, as in .*, got offset int64"),
]


@pytest.mark.parametrize(("columns", "text"), OTHER_TYPES)
def test_files_that_are_sorted_together_have_the_same_columns(
    tmp_path: Path, columns: dict[str, Any], text: str
) -> None:
    found = {"offset": [0, 3], "payload": MESSAGES[:2], **columns}
    pq.write_table(pa.table({name: values for name, values in found.items() if values is not None}), tmp_path / "1")
    pq.write_table(pa.table({"offset": [1, 2], "payload": MESSAGES[:2]}), tmp_path / "2")
    with pytest.raises(wf.OptionError, match=text):
        read(tmp_path, order_by=["offset"])


def test_a_file_whose_column_is_gone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "replaced.parquet"
    pq.write_table(pa.table({"payload": MESSAGES}), path)
    (source,) = find_sources(path, FORMAT)
    pq.write_table(pa.table({"other": MESSAGES}), path)
    with pytest.raises(wf.OptionError, match=r"replaced\.parquet: no column 'payload'"):
        list(source.read())


def test_what_steers_a_terminal_is_escaped_in_the_repr(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m.bin"
    path.write_bytes(b"")
    assert r"a\x1b[31m.bin" in repr(wf.Capture(path, "gaussdb-binary"))


@pytest.mark.parametrize("messages", ["", [""], "a\0b"])
def test_what_is_no_path(messages: Any) -> None:
    """An empty one would be the current folder."""
    with pytest.raises(wf.OptionError, match="expected a path, a folder or a pattern, got"):
        find_sources(messages, FORMAT)


def test_a_uri_is_no_path() -> None:
    with pytest.raises(wf.OptionError, match=r"^s3://bucket/x.parquet is a URI, not a path: pass a dataset"):
        find_sources("s3://bucket/x.parquet", FORMAT)


@pytest.mark.parametrize("pattern", ["", "*.bin"])
def test_a_link_to_a_file_that_is_missing_is_not_left_out(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "1.bin").write_bytes(MESSAGES[0])
    (tmp_path / "2.bin").symlink_to(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match=r"2\.bin"):
        find_sources(tmp_path / pattern, FORMAT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    """Its writer would be told that nobody reads, or wait for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(wf.OptionError, match="pipe is not a regular file, and can be read only once: save"):
        find_sources(pipe, FORMAT)


def test_a_parquet_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"lat\xe9.parquet")
    try:
        pq.write_table(TABLE, tmp_path / "a.parquet")
        (tmp_path / "a.parquet").rename(path)
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    with pytest.raises(wf.OptionError, match="expected a name in UTF-8, since it is a Parquet file: rename it"):
        find_sources(path, FORMAT)
