"""`wireformat inspect`: one message of a file, records found in bytes, JSON for programs, and what was guessed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.cli import tree
from wireformat.inspection.reading import RecordReader, Slice, find_records
from wireformat.options import ReadOptions
from wireformat.sources import files, picked

from .. import handmade
from ..cli.commands import run, start
from ..golden_cases import find_case
from ..support import SUPPORTED

BEGIN = handmade.SAMPLES["begin"]


@pytest.fixture
def batch() -> bytes:
    """A batch with some records."""
    return max(find_case("b_types_batch").messages[:20], key=len)


@pytest.fixture
def capture(tmp_path: Path, batch: bytes) -> Path:
    """Three messages one after the other."""
    path = tmp_path / "capture.bin"
    path.write_bytes(BEGIN + batch + BEGIN)
    return path


def leaves(*arguments: object) -> list[dict[str, object]]:
    result = run("inspect", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_message_of_a_file(capture: Path, batch: bytes) -> None:
    found = leaves(capture, "--message", 1)
    assert b"".join(bytes.fromhex(str(line["hex"])) for line in found) == batch
    tree = wf.inspect(batch)
    assert [line["path"] for line in found] == [leaf.path for leaf in tree.leaves()]
    one = leaves(capture, "--message", 1, "--record", 1)
    assert one == [line for line in found if line["record"] == 1]
    begin = len(BEGIN)
    assert leaves(capture, "--at", begin) == found


def test_lines_for_people(capture: Path) -> None:
    result = run("inspect", capture)
    assert result.exit_code == 0
    assert result.stderr.startswith("format gaussdb-binary, guessed: ")
    title, record, *lines = result.stdout.splitlines()
    assert "message 0" in title
    assert "BEGIN" in record
    assert any("csn" in line and "unsigned integer of 8 bytes" in line for line in lines)
    assert run("inspect", "-f", "gaussdb-binary", capture).stderr == ""


def test_a_parquet_file_with_several_row_groups(tmp_path: Path) -> None:
    support = SUPPORTED["pgoutput"]
    path = tmp_path / "capture.parquet"
    payload = [*support.before, support.good, support.good]
    pq.write_table(pa.table({"seq": range(len(payload)), "payload": payload}), path, row_group_size=2)
    found = leaves(path, "--message", len(payload) - 1, "-f", "pgoutput")
    assert b"".join(bytes.fromhex(str(line["hex"])) for line in found) == support.good
    result = run("inspect", path, "--message", len(payload))
    assert result.exit_code == 2
    assert f"has {len(payload)} messages" in result.stderr


def test_rows_before_the_message_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what later messages depend on is read: 200,000 rows before it took a second."""
    support = SUPPORTED["pgoutput"]
    reader = RecordReader(wf.FORMATS["pgoutput"], ReadOptions.check())
    for message in support.before:
        reader.learn(message)
    with monkeypatch.context() as patched:
        patched.setattr(RecordReader, "slices", None)
        reader.learn(support.good)
        reader.learn(b"")
    (piece,) = reader.slices(support.good)
    assert reader.outline(support.good, piece)[1] is None


@pytest.mark.parametrize("name", ["b_types_batch", "j_types_batch", "t_types_batch"])
def test_records_in_bytes_whose_beginning_is_missing(name: str, tmp_path: Path) -> None:
    case = find_case(name)
    message = max(case.messages[:20], key=len)
    whole = wf.inspect(message, case.format)
    path = tmp_path / "tail.bin"
    path.write_bytes(message[whole.records[0].start + 5 :] + b"\0garbage\0" * 3)
    found = leaves(path, "--scan", "-f", case.format)
    assert {line["record"] for line in found} == set(range(len(whole.records) - 1))
    listed = run("inspect", path, "--scan")
    assert f"{len(whole.records) - 1:,} record" in listed.stdout
    assert listed.stderr.startswith(f"format {case.format}, guessed: ")
    assert run("inspect", path, "--scan", "-f", case.format).stdout == listed.stdout
    assert run("inspect", "-", "--scan", stdin=path.read_bytes()).stderr == listed.stderr


def test_a_scan_prints_what_it_has_found(tmp_path: Path, batch: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads each record once, and does not wait for the last one: Ctrl-C keeps what was found."""
    path = tmp_path / "tail.bin"
    path.write_bytes(batch[3:] + batch)
    whole = run("inspect", "--scan", "-f", "gaussdb-binary", path).stdout.splitlines()
    json_lines = run("inspect", "--scan", "--json", "-f", "gaussdb-binary", path).stdout.splitlines()
    stop = len(whole) - 6
    assert stop > tree.MOST_RECORDS

    def interrupted(reader: RecordReader, data: bytes) -> Iterator[tuple[Slice, wf.Event]]:
        yield from islice(find_records(reader, data), stop)
        raise KeyboardInterrupt

    monkeypatch.setattr(tree, "find_records", interrupted)
    monkeypatch.setattr(RecordReader, "outline", None)
    result = run("inspect", "--scan", "-f", "gaussdb-binary", path)
    assert (result.exit_code, result.stdout.splitlines()) == (130, whole[: stop + 1])
    result = run("inspect", "--scan", "--json", "-f", "gaussdb-binary", path)
    found = result.stdout.splitlines()
    assert (result.exit_code, found) == (130, json_lines[: len(found)])
    assert json.loads(found[-1])["record"] == stop - 1


@pytest.mark.parametrize("first", [0, 3, 100])
def test_a_scan_that_stops_says_where_to_continue(
    first: int, tmp_path: Path, batch: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is lost in between, and nothing is said at the end of the file."""
    path = tmp_path / "tail.bin"
    path.write_bytes(batch)
    arguments = ("inspect", "--scan", "-f", "gaussdb-binary", path, "--at")
    *records, last = run(*arguments, first).stdout.splitlines()[1:]
    assert "continues" not in last
    monkeypatch.setattr(tree, "SCANNED_BYTES", len(batch) // 2)
    found = []
    while True:
        *some, last = run(*arguments, first).stdout.splitlines()[1:]
        found += some
        if "continues" not in last:
            break
        in_json = run(*arguments, first, "--json")
        first = int(last.split("--at ")[1].split()[0])
        assert f"--at {first} continues after these bytes" in in_json.stderr
    offsets, wanted = ([line.split()[0] for line in lines] for lines in (found, records))
    assert offsets == wanted


def test_scan_of_records_without_length(tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(SUPPORTED["pgoutput"].good)
    result = run("inspect", path, "--scan", "-f", "pgoutput")
    assert result.exit_code == 2
    assert "have no length" in result.stderr


@pytest.mark.parametrize("option", [("--scan",), ("--at", "0")])
def test_a_parquet_file_has_no_bytes_to_search(option: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": [b"BEGIN 7"]}), path)
    result = run("inspect", path, *option, "-f", "gaussdb-binary")
    assert result.exit_code == 2
    assert "of a Parquet file, pass --message N" in result.stderr


def test_standard_input_has_a_name() -> None:
    result = run("inspect", "-", "-f", "gaussdb-binary", stdin=SUPPORTED["gaussdb-binary"].good)
    assert result.stdout.startswith("standard input, message 0, ")


def test_a_page_needs_a_folder(tmp_path: Path) -> None:
    result = run("inspect", tmp_path / "nothing.bin", "--html", tmp_path / "none" / "page.html")
    assert (result.exit_code, result.stderr.count("is not a folder")) == (2, 1)


def test_scan_that_finds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "zeros.bin"
    path.write_bytes(bytes(100))
    for option in ((), ("-f", "gaussdb-binary")):
        result = run("inspect", path, "--scan", *option)
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "0 records")
        assert ("no record of a known format is found" in result.stderr) == (not option)


def test_bad_bytes(tmp_path: Path, batch: bytes) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": [batch[:-9]]}), path)
    result = run("inspect", path)
    assert result.exit_code == 0
    assert "read to byte" in result.stdout
    assert "bytes there" in result.stdout


HUGE = 10**30
"""More than any number that a system takes."""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--message", HUGE), "has 3 messages, from 0 on; got 1000"),
        (("--message", 1, "--record", HUGE), "records, from 0 on; got 1000"),
        (("--at", HUGE), "bytes; got 1000"),
        (("--scan", "--at", HUGE), "bytes; got 1000"),
        (("--message", -1), "--message"),
    ],
    ids=str,
)
def test_numbers_that_are_too_large(
    arguments: tuple[object, ...], text: str, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picked, "PYTHON_BYTES", 0)
    for more in ((), ("--json",)):
        result = run("inspect", "-f", "gaussdb-binary", *arguments, *more, capture)
        assert (result.exit_code, result.stdout) == (2, "")
        assert text in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--html", "page.html", "--message", 0),
            "--html, a page of the whole file, cannot be combined with --message",
        ),
        (("--html", "page.html", "--record", 0, "--json"), "cannot be combined with --record and --json"),
        (("--html", "page.html", "--scan", "--at", 0), "cannot be combined with --at and --scan"),
        (("--scan", "--message", 0), "--at and --scan, which read bytes, cannot be combined with --message"),
        (("--at", 0, "--message", 1), "--at and --scan, which read bytes, cannot be combined with --message"),
        (("--records", "0"), "--records chooses the trees of a page: it needs --html"),
    ],
    ids=str,
)
def test_options_that_exclude_each_other(
    arguments: tuple[object, ...], text: str, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("inspect", *arguments, capture)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert not Path("page.html").exists()


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "one.bin"
    path.write_bytes(BEGIN)
    result = run("inspect", "-f", "gaussdb-binary", "--record", 1, path)
    assert (result.exit_code, result.stderr) == (2, "wireformat: --record: there is 1 record, from 0 on; got 1\n")


@pytest.mark.parametrize(
    "records", [f"0-{HUGE}", "0-1999,2000", "²", "5-3", "1-", "-1", "", "a", "9" * 5000, "0-" + "9" * 5000]
)
def test_records_that_cannot_be_chosen(records: str, capture: Path, tmp_path: Path) -> None:
    result = run("inspect", capture, "--html", tmp_path / "page.html", "--records", records)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--records: expected " in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_page_never_replaces_what_it_shows(capture: Path, tmp_path: Path) -> None:
    before = capture.read_bytes()
    other = tmp_path / "link.html"
    other.symlink_to(capture)
    for output in (capture, other):
        result = run("inspect", capture, "--html", output)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "is an input, and would be overwritten" in result.stderr
    assert capture.read_bytes() == before


def test_a_page_on_standard_output(capture: Path, tmp_path: Path) -> None:
    assert run("inspect", capture, "--html", tmp_path / "page.html").exit_code == 0
    result = run("inspect", capture, "--html", "-")
    assert result.exit_code == 0
    assert result.stdout_bytes == (tmp_path / "page.html").read_bytes()
    assert "standard output: " in result.stderr


def test_a_null_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": pa.array([None, BEGIN], pa.binary())}), path)
    result = run("inspect", path)
    assert result.exit_code == 0
    assert "message 0, a null, which has no records" in result.stdout
    assert run("inspect", path, "--json").stdout == ""
    assert run("inspect", path, "--record", 0).exit_code == 2
    assert run("inspect", path, "--html", tmp_path / "page.html").exit_code == 0
    assert "2 messages, 1 record of" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_empty_message_is_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": pa.array([b"", BEGIN], pa.binary())}), path)
    result = run("inspect", path)
    assert result.exit_code == 0
    assert "bytes there: none, the message ends" in result.stdout


@pytest.mark.parametrize("option", [(), ("--scan",), ("--at", 0)], ids=str)
def test_an_empty_file(option: tuple[object, ...], tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    for name, stdin in ((path, b""), ("-", b"")):
        result = run("inspect", *option, name, stdin=stdin)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "is empty" in result.stderr


@pytest.mark.parametrize("option", [("--at", len(BEGIN)), ("--scan",), ("--message", 1)], ids=str)
def test_standard_input_is_read_as_a_file_is(option: tuple[object, ...], capture: Path) -> None:
    command = ("inspect", "-f", "gaussdb-binary", "--json", *option)
    assert run(*command, "-", stdin=capture.read_bytes()).stdout == run(*command, capture).stdout != ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
@pytest.mark.parametrize("option", [(), ("--at", len(BEGIN)), ("--message", 1)], ids=str)
def test_a_pipe_is_read_as_a_file_is(option: tuple[object, ...], capture: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError):  # the rest of the file is not read
            pipe.write_bytes(capture.read_bytes())

    with ThreadPoolExecutor() as pool:
        written = pool.submit(write)
        result = run("inspect", "--json", *option, pipe)
        written.result()
    assert result.stdout == run("inspect", "--json", *option, capture).stdout != ""
    guessed = (
        f"{pipe} cannot be read twice" if "--at" not in option else "the message begins like those of gaussdb-binary"
    )
    assert f"guessed: {guessed}" in result.stderr


def test_bytes_after_broken_framing_are_no_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message begins in them where nobody can know it: what `decode` says of them is what the tree says."""
    monkeypatch.setattr(files, "READ_BYTES", len(BEGIN))
    path = tmp_path / "capture.bin"
    path.write_bytes(BEGIN + b"\0\0\0\3".ljust(len(BEGIN), b"\0") + BEGIN)
    for message, text in ((1, "bad length"), (2, "expected a message, got bytes after broken framing")):
        result = run("inspect", "-f", "gaussdb-binary", "--message", message, path)
        assert result.exit_code == 0
        assert text in result.stdout
        assert "BEGIN" not in result.stdout
    assert run("inspect", path, "--html", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"kinds":["BEGIN","CORRUPT"]' in page


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names of text only")
def test_names_that_are_no_text(capture: Path, tmp_path: Path) -> None:
    """In a process of its own, whose standard output is as strict as a terminal's."""
    path = tmp_path / os.fsdecode(b"\xff \x1b[31m'\"name.bin")
    capture.rename(path)
    for command in (
        ("inspect", path),
        ("inspect", path, "--json"),
        ("inspect", path, "--html", tmp_path / "page.html"),
    ):
        process = start(*command)
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
        assert b"\x1b" not in stdout + stderr
    assert b"\\x1b[31m" in (tmp_path / "page.html").read_bytes()


def test_wrong_usage(capture: Path, tmp_path: Path) -> None:
    for arguments in (
        ("inspect", tmp_path / "missing"),
        ("inspect", capture, "--record", "99"),
        ("inspect", capture, "-f", "gausdb-binary"),
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.stderr
        assert result.stderr.count("\n") <= 2


def test_show_follows_a_file_that_grows(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that another process writes are shown; Ctrl-C ends it."""
    sleeps = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) > 1:
            raise KeyboardInterrupt
        with capture.open("ab") as file:
            file.write(handmade.SAMPLES["delete"])

    before = run("show", capture).stdout_bytes
    monkeypatch.setattr("wireformat.sources.files.time.sleep", sleep)
    result = run("show", "--follow", capture)
    assert result.exit_code == 130
    assert result.stdout_bytes.startswith(before)
    assert result.stdout_bytes[len(before) :].count(b"DELETE") == 1


def test_a_parquet_file_cannot_be_followed() -> None:
    result = run("show", "--follow", find_case("b_types_batch").path)
    assert result.exit_code == 2
    assert "does not grow" in result.stderr


def test_formats_for_programs() -> None:
    found = [json.loads(line) for line in run("formats", "--json").stdout.splitlines()]
    assert [row["name"] for row in found] == list(wf.FORMATS)
    assert "--install-completion" in run("--help").stdout


def test_show_guesses_the_format_and_says_so(tmp_path: Path) -> None:
    case = find_case("testdec_ddl_truncate")
    guessed = run("show", case.path)
    given = run("show", "--format", guessed.stderr.split()[1].rstrip(","), case.path)
    assert guessed.stdout_bytes == given.stdout_bytes
    assert ", guessed: " in guessed.stderr
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"BEGIN 7\ntable public.t: INSERT: a[integer]:1\nCOMMIT 7\n")
    result = run("show", lines)
    assert result.stdout_bytes == lines.read_bytes()
    assert result.stderr.startswith("format test-decoding, guessed: ")
