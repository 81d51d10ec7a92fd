"""Files of pg_recvlogical on the command line: shown as they are, decoded, and broken ones kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.sources import files

from ..engines import rows
from ..formats.test_corpora import lines
from ..text_samples import SAMPLES
from .commands import run

FORMAT = "test-decoding"
MESSAGES = [*lines("postgres_test_decoding"), *lines("postgres_server_runs"), *SAMPLES[FORMAT]]
FILE = b"".join(message + b"\n" for message in MESSAGES)

each_width = pytest.mark.parametrize("width", [100, 1 << 20])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "changes.txt"
    found.write_bytes(FILE)
    return found


@each_width
def test_show_prints_the_file(path: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", width)
    result = run("show", "--format", FORMAT, path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == FILE
    assert run("show", "--format", FORMAT, "-", stdin=FILE).stdout_bytes == FILE


@each_width
def test_decode_writes_the_rows(path: Path, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", width)
    out = tmp_path / "out.parquet"
    assert run("decode", "--format", FORMAT, path, path, "-o", out).exit_code == 0
    expected = wf.arrow.changes([*MESSAGES, *MESSAGES], FORMAT)
    assert rows(pq.read_table(out)) == rows(expected)


@each_width
def test_a_file_that_ends_in_a_record(path: Path, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", width)
    path.write_bytes(FILE + b"BEGIN 12")
    out = tmp_path / "out.parquet"
    result = run("decode", "--format", FORMAT, path, "-o", out)
    assert result.exit_code == 1
    assert "expected a record and b'\\n' after it, got the end of the stream" in result.stderr
    assert f"stream byte {len(FILE)}" in result.stderr
    assert run("decode", "--format", FORMAT, "--mode", "PERMISSIVE", path, "-o", out).exit_code == 0
    last = pq.read_table(out).to_pylist()[-1]
    assert (last["kind"], last["raw"], last["message"]) == ("CORRUPT", b"BEGIN 12", len(MESSAGES))


@each_width
def test_what_begins_no_record(path: Path, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", width)
    bad = b"pg_recvlogical: error: it's over\n" + FILE
    path.write_bytes(FILE + bad)
    out = tmp_path / "out.parquet"
    result = run("decode", "--format", FORMAT, path, "-o", out)
    assert result.exit_code == 1
    assert "expected a record of PostgreSQL's test_decoding, got other bytes" in result.stderr
    assert f"stream byte {len(FILE)}" in result.stderr
    assert run("decode", "--format", FORMAT, "--mode", "PERMISSIVE", path, "-o", out).exit_code == 0
    corrupt = [row for row in pq.read_table(out).to_pylist() if row["kind"] == "CORRUPT"]
    assert b"".join(row["raw"] for row in corrupt) == bad


def test_where_a_bad_record_lies(path: Path) -> None:
    """The line feeds count."""
    path.write_bytes(FILE + b"table s.t: INSERT: a[integer]:x\n")
    result = run("show", "--format", FORMAT, path)
    assert result.exit_code == 1
    assert f"byte 30, stream byte {len(FILE) + 30}" in result.stderr


def test_convert_to_and_from(path: Path, tmp_path: Path) -> None:
    out, back = tmp_path / "out.parquet", tmp_path / "back.parquet"
    assert run("convert", "-f", FORMAT, "-t", FORMAT, path, "-o", out).exit_code == 0
    assert pq.read_table(out)["payload"].to_pylist()[-len(SAMPLES[FORMAT]) :] == SAMPLES[FORMAT]
    only = ["--kinds", "BEGIN,INSERT,UPDATE,DELETE"]
    assert run("convert", "-f", FORMAT, "-t", "opengauss-test-decoding", *only, out, "-o", back).exit_code == 0


def test_it_is_listed() -> None:
    assert "test-decoding" in run("formats").stdout.split()
