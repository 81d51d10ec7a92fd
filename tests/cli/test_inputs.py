"""What can be read: Parquet, messages cut anywhere, standard input; and what cannot, with its exit code."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.cli.exits import BAD_DATA, BAD_USAGE, Failed
from wireformat.cli.inputs import all_messages, find_inputs
from wireformat.formats.registry import find_format
from wireformat.sources import files
from wireformat.sources.files import stream_source
from wireformat.sources.source import SourceMessages

from .. import handmade
from ..golden_cases import find_case
from .commands import run

FORMAT = find_format("gaussdb-binary")
BATCHES = find_case("b_timeout_batch")
MESSAGES = list(handmade.SAMPLES.values())


def messages_of(*paths: object) -> list[bytes | None]:
    return [
        message
        for part in parts_of(*paths)
        for message in (part.messages.to_pylist() if isinstance(part.messages, pa.ChunkedArray) else part.messages)
    ]


def parts_of(*paths: object) -> list[SourceMessages]:
    with find_inputs([str(path) for path in paths], FORMAT, "payload") as found:
        return list(all_messages(found))


def write_parquet(
    path: Path, messages: Sequence[bytes | None], type: pa.DataType | None = None, **options: int
) -> Path:
    pq.write_table(pa.table({"payload": pa.array(messages, type or pa.binary())}), path, **options)
    return path


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_messages_may_be_cut_anywhere(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", piece)
    path = tmp_path / "capture.bin"
    path.write_bytes(b"".join(MESSAGES))
    assert messages_of(path) == MESSAGES


def test_parts_say_how_much_was_read_and_where_they_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", 50)
    path = tmp_path / "capture.bin"
    path.write_bytes(b"".join(MESSAGES))
    parts = parts_of(path)
    assert sum(part.read_bytes for part in parts) == path.stat().st_size
    offset = 0
    for part in parts:
        assert part.stream_offset == offset
        offset += sum(map(len, part.messages))


def test_several_files_are_read_in_order_and_an_empty_one_holds_nothing(tmp_path: Path) -> None:
    first, empty, last = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    first.write_bytes(b"".join(MESSAGES[:3]))
    empty.write_bytes(b"")
    write_parquet(last, MESSAGES[3:])
    assert messages_of(first, empty, last, first) == MESSAGES + MESSAGES[:3]


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_parquet_of_any_binary_type_nulls_and_small_row_groups(type: pa.DataType, tmp_path: Path) -> None:
    messages = [None, *MESSAGES, None]
    try:
        path = write_parquet(tmp_path / "capture.parquet", messages, type, row_group_size=4)
    except pa.ArrowNotImplementedError:
        pytest.skip(f"pyarrow {pa.__version__} writes no Parquet file of {type}")
    assert messages_of(path) == messages
    result = run("show", path)
    assert (result.exit_code, result.stdout) == (0, run("show", "-", stdin=b"".join(MESSAGES)).stdout)


def test_large_messages_come_a_few_at_a_time(tmp_path: Path) -> None:
    large = [bytes([number]) * (1 << 20) for number in range(40)]
    path = write_parquet(tmp_path / "large.parquet", large, write_batch_size=1)
    sizes = [len(part.messages) for part in parts_of(path)]
    assert sum(sizes) == 40
    assert max(sizes) < 20


def test_another_column(tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": ["text"], "value": [MESSAGES[0]]}), path)
    expected = "current_lsn: 0/10 INSERT INTO public.t"
    assert run("show", "--column", "value", path).stdout.startswith(expected)
    assert run("show", path).stdout.startswith(expected)
    for name, text in (
        ("seq", "no column 'seq'; there are payload, value"),
        ("payload", "expected binary, got string"),
    ):
        result = run("show", "--column", name, path)
        assert (result.exit_code, result.stdout) == (BAD_USAGE, "")
        assert text in result.stderr


@pytest.mark.parametrize("content", [b"".join(BATCHES.messages), BATCHES.path.read_bytes()], ids=["bytes", "parquet"])
def test_standard_input(content: bytes) -> None:
    result = run("show", "-", stdin=content)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == BATCHES.client_text


class OneByteAtATime(io.RawIOBase):
    """A pipe whose writer is slow."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._data.readinto(buffer[:1])


@pytest.mark.parametrize("content", [b"".join(MESSAGES), BATCHES.path.read_bytes()], ids=["bytes", "parquet"])
def test_a_slow_pipe(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(OneByteAtATime(content))))
    expected = MESSAGES if content[:4] != files.PARQUET_MAGIC else BATCHES.messages
    assert messages_of("-") == expected


def test_what_comes_fast_through_a_pipe_is_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gives 64 kB at a time; what is decoded at once costs as much as thousands of messages."""
    monkeypatch.setattr(files, "ARRIVAL_SECONDS", 600)  # the other process is fast, however busy the machine is
    monkeypatch.setattr(files, "READY_SECONDS", 600)
    path = tmp_path / "capture.bin"
    messages = MESSAGES * 2_000
    path.write_bytes(b"".join(messages))
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as process, ExitStack() as held:
        assert process.stdout is not None
        parts = [*stream_source("pipe", process.stdout, FORMAT, None, held).read()]
    assert [message for part in parts for message in part.messages] == messages
    assert len(parts) <= path.stat().st_size / files.READ_BYTES + 3


def test_what_comes_slowly_through_a_pipe_is_read_as_it_comes() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as writer, ExitStack() as held:
        writer.write(MESSAGES[0])
        parts = (part for part in stream_source("pipe", file, FORMAT, None, held).read() if part.messages)
        assert next(parts).messages == [MESSAGES[0]]
        writer.write(MESSAGES[1] + MESSAGES[2])
        assert next(parts).messages == MESSAGES[1:3]
        writer.close()
        assert [*parts] == []


class BreaksOff(io.RawIOBase):
    """A pipe that breaks after some bytes."""

    def __init__(self) -> None:
        self._data: list[bytes] = [MESSAGES[0], MESSAGES[1]]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._data:
            raise ConnectionResetError("the other side has gone")
        data = self._data.pop(0)
        buffer[: len(data)] = data
        return len(data)


def test_what_came_before_a_pipe_broke_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_is_ready", lambda file: True)
    with ExitStack() as held:
        parts = stream_source("pipe", io.BufferedReader(BreaksOff()), FORMAT, None, held).read()
        assert next(parts).messages == MESSAGES[:2]
        with pytest.raises(OSError, match="the other side has gone"):
            next(parts)


def test_after_broken_framing_all_bytes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The good message, at the end, stands where nobody can know that a message begins."""
    monkeypatch.setattr(files, "READ_BYTES", len(MESSAGES[0]) + 3)
    path = tmp_path / "bad.bin"
    bad = b"\0\0\0\3" + bytes(len(MESSAGES[0]) + 2)
    path.write_bytes(MESSAGES[0] + bad + MESSAGES[0])
    permissive = run("decode", "--mode", "PERMISSIVE", path, path, "-o", tmp_path / "out.parquet")
    assert permissive.exit_code == 0
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert "".join(row["kind"][0] for row in rows) == "ICCICC"
    assert b"".join(row["raw"] or b"" for row in rows) == (bad + MESSAGES[0]) * 2
    assert [row["message"] for row in rows] == list(range(6))
    errors = [row["error"] for row in rows]
    assert errors[1].startswith("bad length: ")
    after = "bad data: expected a message, got bytes after broken framing [gaussdb-binary: message"
    assert errors[2] == f"{after} 2, stream byte {2 * files.READ_BYTES}]"
    assert errors[5] == f"{after} 5, stream byte {2 * files.READ_BYTES}]"
    shown = run("show", "--mode", "PERMISSIVE", path).stdout.splitlines()
    assert [line.split(" error: ")[1].split(" raw: ")[0] for line in shown[1:]] == errors[1:3]
    dropped = run("show", "--mode", "DROPMALFORMED", path)
    assert (len(dropped.stdout.splitlines()), dropped.stderr) == (1, "2 records skipped\n")


def test_a_message_that_is_cut_off_is_bad_data(tmp_path: Path) -> None:
    path = tmp_path / "cut.bin"
    path.write_bytes(MESSAGES[0][:-1])
    result = run("show", path)
    assert result.exit_code == BAD_DATA
    assert result.stderr.startswith(f"wireformat: {path}: short data: ")


def test_parquet_that_is_damaged_is_bad_data(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(BATCHES.path.read_bytes()[:1000])
    result = run("show", path)
    assert result.exit_code == BAD_DATA
    assert result.stderr.startswith(f"wireformat: {path}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("missing.bin", "No such file or directory"),
        (".", "is a folder; expected a file, or files such as *"),
        ("no_binary.parquet", "expected a binary column with the messages, got seq (int64), value (string)"),
        ("text.parquet", "expected a binary column with the messages, got payload (string)"),
        ("nested.parquet", "expected a binary column with the messages, got payload (struct<a: binary>)"),
    ],
)
def test_what_cannot_be_read_is_bad_usage(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"seq": [1], "value": ["a"]}), "no_binary.parquet")
    pq.write_table(pa.table({"payload": ["a"]}), "text.parquet")
    pq.write_table(pa.table({"payload": [{"a": b""}]}), "nested.parquet")
    Path("good.bin").write_bytes(MESSAGES[0])
    for command in (("show",), ("decode", "-o", "out.parquet")):
        result = run(*command, "good.bin", name)
        assert (result.exit_code, result.stdout, result.stderr) == (BAD_USAGE, "", f"wireformat: {name}: {text}\n")
    assert not Path("out.parquet").exists()


def test_a_file_without_permission_is_bad_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Failed, match=r"secret\.bin: Permission denied") as error:
        parts_of("secret.bin")
    assert error.value.code == BAD_USAGE


def test_an_error_while_reading_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(MESSAGES[0])
    with find_inputs([str(path)], FORMAT, "payload") as found:
        path.unlink()
        with pytest.raises(Failed, match=rf"{path}: No such file or directory") as error:
            list(all_messages(found))
    assert error.value.code == BAD_DATA


def test_standard_input_only_once() -> None:
    result = run("show", "-", "-")
    assert (result.exit_code, result.stderr) == (2, "wireformat: - (standard input) can be read only once\n")


def test_messages_of_a_part_are_read_as_wireformat_reads_them() -> None:
    assert [event.kind for event in wf.decode(messages_of(BATCHES.path), "gaussdb-binary")] == [
        record["kind"] for record in BATCHES.truth
    ]


@pytest.mark.parametrize("command", ["show", "decode", "convert", "tables", "write"])
def test_an_empty_input_is_said_to_be_empty(command: str, tmp_path: Path) -> None:
    more = {
        "show": (),
        "decode": ("-o", tmp_path / "o.csv"),
        "convert": ("-t", "gaussdb-binary", "-o", tmp_path / "o.arrow"),
        "tables": (),
        "write": ("--to", tmp_path / "lake"),
    }[command]
    (tmp_path / "empty.bin").touch()
    pq.write_table(pa.table({"payload": pa.array([], pa.binary())}), tmp_path / "empty.parquet")
    for path, name in {"-": "standard input", **{str(path): str(path) for path in tmp_path.glob("empty.*")}}.items():
        result = run(command, path, *more)
        assert result.exit_code == 0
        assert f"{name} is empty: there are no messages in it\n" in result.stderr
    (tmp_path / "some.bin").write_bytes(handmade.SAMPLES["insert"])
    assert "is empty" not in run(command, tmp_path / "some.bin", *more).stderr


LINES = b"BEGIN 5\ntable public.t: INSERT: id[integer]:1\nCOMMIT 5\n"
TO_READ_LINES = "the file looks like one of pg_recvlogical with lines of test-decoding; pass -f test-decoding\n"


@pytest.mark.parametrize("format", [format for format in wf.FORMATS if format != "test-decoding"])
def test_a_file_of_pg_recvlogical_is_recognised(format: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(LINES)
    for command in ("show", "tables"):
        result = run(command, "-f", format, path)
        assert result.exit_code
        assert result.stderr.endswith(f"; {TO_READ_LINES}")
    assert run("show", "-f", "test-decoding", path).exit_code == 0


def test_a_file_of_pg_recvlogical_is_recognised_in_permissive_mode_and_from_a_pipe(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = run("decode", "--mode", "PERMISSIVE", "-", "-o", out, stdin=LINES)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"standard input: {TO_READ_LINES}")


@pytest.mark.parametrize("data", [b"hello\nworld\n", b"BEGIN 5\nother\n", b"BEGIN 5", b"insert into s.t values (1);\n"])
def test_other_files_are_not_taken_for_lines(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    for format in wf.FORMATS:
        assert "pg_recvlogical" not in run("show", "-f", format, path).stderr


@pytest.mark.parametrize("format", ["pgoutput", "mppdb-json", "opengauss-test-decoding", "sql-decoding"])
def test_formats_without_bounds_are_told_what_to_do_in_the_shell(format: str) -> None:
    result = run("show", "-f", format, "-", stdin=b"xyz")
    text = (
        f"messages of {format} do not say where they end, so none can be found in a file of them; "
        "give a Parquet file with one message per row"
    )
    assert (result.exit_code, result.stderr) == (BAD_USAGE, f"wireformat: standard input: {text}\n")


def test_advice_is_given_as_options(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "text.parquet", [b"BEGIN 5", b"table s.t: INSERT: a[text]:'\xb0'", b"COMMIT 5"])
    stderr = run("decode", "-f", "test-decoding", path, "-o", tmp_path / "out.csv").stderr
    assert stderr.endswith("; if the server uses another encoding, pass its Python name with --encoding\n")
    binary = write_parquet(tmp_path / "binary.parquet", BATCHES.messages[:1] * 2)
    stderr = run("decode", "-f", "pgoutput", binary, "-o", tmp_path / "out.csv").stderr
    assert stderr.endswith("; pass it with -f\n")
    stderr = run("write", "--from", "pgoutput", binary, "--to", tmp_path / "lake").stderr
    assert stderr.endswith("; pass it with -f\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (gzip.compress(MESSAGES[0], mtime=0), "is compressed with gzip; decompress it first"),
        (b"\x04\x22\x4d\x18rest", "is compressed with lz4; decompress it first"),
        (b"ARROW1\0\0", "is an Arrow file; write it as Parquet"),
        (b"PK\x03\x04", "is a zip archive; unpack it first"),
    ],
)
def test_files_of_other_kinds_are_bad_usage(data: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(data)
    for arguments in (("show", path), ("tables", path), ("decode", path, "-o", tmp_path / "out.parquet")):
        result = run(*arguments)
        assert result.exit_code == BAD_USAGE
        assert result.stderr.startswith(f"wireformat: {path} {text}")
    assert run("show", "-", stdin=data).stderr.startswith(f"wireformat: standard input {text}")


@pytest.mark.parametrize("command", ["show", "tables"])
@pytest.mark.parametrize(
    "data",
    [b"id,name\n1,one\n2,two\n", b'{"a": 1}\n{"a": 2}\n', b"BEGIN CSN: 5 first_lsn: 0/9 xid: 7\ncommit xid: 7\n"],
)
def test_a_file_of_text_is_told(command: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_bytes(data)
    result = run(command, path)
    assert result.exit_code == BAD_DATA
    text = "which does not say where messages end; give a Parquet file with one message per row\n"
    assert result.stderr.endswith(f"; the file begins with text, {text}")


def test_only_parquet_files_can_be_ordered_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(MESSAGES[0])
    result = run("tables", path, "--order-by", "seq")
    text = f"wireformat: --order-by: {path}: expected a Parquet file, which has columns\n"
    assert (result.exit_code, result.stderr) == (BAD_USAGE, text)


def test_a_folder_without_files_is_bad_usage(tmp_path: Path) -> None:
    result = run("tables", tmp_path)
    text = f"wireformat: {tmp_path}: the folder has no files; names that begin with . or _ do not count\n"
    assert (result.exit_code, result.stderr) == (BAD_USAGE, text)


def test_a_lake_in_a_file_is_bad_usage(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"")
    result = run("write", BATCHES.path, "--to", path)
    text = f"wireformat: --to: {path} is a file; expected the folder of a lake\n"
    assert (result.exit_code, result.stderr) == (BAD_USAGE, text)


def test_a_parquet_file_without_bytes_is_not_an_input_without_messages(tmp_path: Path) -> None:
    pq.write_table(pa.table({"payload": MESSAGES}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").touch()
    for command in ("show", "tables"):
        result = run(command, tmp_path / "2.parquet")
        assert result.exit_code == BAD_USAGE
        assert "2.parquet has no bytes" in result.stderr
    with pytest.raises(wf.OptionError, match=r"2\.parquet has no bytes"):
        wf.Capture(tmp_path, "gaussdb-binary")
