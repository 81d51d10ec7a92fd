"""`wireformat show`: what it prints, and how it treats bad input, encodings and filters."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wireformat.formats.registry import find_format

from .. import handmade
from ..golden_cases import CASES, Case, find_case
from .commands import run, start

PRINTED = [case for case in CASES if case.client_text is not None]

GBK_MESSAGE = handmade.message(
    handmade.change(b"I", "模式".encode("gbk"), b"t", handmade.new(handmade.cell(b'"a"', 25, "価値".encode("gbk"))))
)
BAD_TEXT_MESSAGE = handmade.message(
    handmade.change(b"I", "schéma".encode(), "表".encode(), handmade.new(handmade.cell(b"a", 25, b"\xff")))
)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One message of each shape, one after the other."""
    path = tmp_path / "capture.bin"
    path.write_bytes(b"".join(handmade.SAMPLES.values()))
    return path


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case.name)
def test_prints_what_the_client_prints(case: Case) -> None:
    result = run("show", "--format", case.format, case.path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == case.client_text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be renamed there")
@pytest.mark.parametrize("change", ["cut", "removed", "replaced"])
def test_follow_says_that_a_file_no_longer_grows(change: str, tmp_path: Path) -> None:
    path, message = tmp_path / "capture.bin", handmade.SAMPLES["commit, bare"]
    path.write_bytes(message)
    process = start("show", "--follow", path)
    assert process.stdout is not None
    assert b"COMMIT" in process.stdout.readline()
    with path.open("ab") as file:
        file.write(message)
    assert b"COMMIT" in process.stdout.readline()
    if change == "cut":
        os.truncate(path, 5)
    else:
        with path.open("ab") as file:  # which is printed, too
            file.write(message)
        path.rename(tmp_path / "capture.bin.1")
        if change == "replaced":
            path.write_bytes(message)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    assert stdout.count(b"COMMIT") == (change != "cut")
    assert stderr.startswith(f"wireformat: {path}: expected a file that only grows, got ".encode())


def test_a_text_style_prints_the_texts_of_the_records_that_are_wanted() -> None:
    case = find_case("testdec_ddl_truncate")
    texts = [message for message in case.messages if message.endswith((b"cascade", b"restart_seqs", b"(no-flags)"))]
    result = run("show", "--format", case.format, "--kinds", "TRUNCATE", case.path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert texts
    assert result.stdout_bytes == b"".join(text + b"\n" for text in texts)


def test_a_text_style_goes_on_behind_what_cannot_be_read(tmp_path: Path) -> None:
    batch = find_case("j_types_batch").messages[0]
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"seq": [0, 1], "payload": [batch[:-1], b"{"]}), path)
    result = run("show", "--format", "gaussdb-json", "--mode", "PERMISSIVE", path)
    assert (result.exit_code, result.stderr) == (0, "")
    *good, cut, bad = result.stdout_bytes.splitlines()
    assert good == list(find_format("gaussdb-json").texts(batch))
    assert cut.startswith(b"CORRUPT")
    assert bad.startswith(b"CORRUPT")


def test_the_captures_with_client_text_are_there() -> None:
    assert len(PRINTED) == 42
    assert {case.name for case in PRINTED} >= {"b_badutf8_single", "b_gbk_single", "b_1mb_batch"}


def test_with_an_encoding_the_text_is_printed_in_the_encoding_of_the_terminal() -> None:
    case = find_case("b_gbk_single")
    assert case.client_text is not None
    result = run("show", "--encoding", "gbk", case.path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == case.client_text.decode("gbk").encode()


def test_with_an_encoding_bad_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(handmade.SAMPLES["commit, bare"] + BAD_TEXT_MESSAGE)
    result = run("show", "--encoding", "utf-8", path)
    assert result.exit_code == 1
    assert result.stdout == "current_lsn: 0/10 COMMIT \n"
    assert result.stderr.startswith(f"wireformat: {path}: bad text: ")
    assert "message 1" in result.stderr
    assert "field new.cells[0].value" in result.stderr
    assert "table schéma.表" in result.stderr
    replaced = run("show", "--encoding", "utf-8", "--encoding-errors", "replace", path)
    assert replaced.stdout.endswith('INSERT INTO schéma.表 new_tuple: {a[typid = 25]: "\ufffd"}\n')


def test_tables_and_kinds_choose_the_lines(capture: Path) -> None:
    assert run("show", "--kinds", "DELETE,HEARTBEAT", "--kinds", "UNKNOWN", "--tables", "*.表", capture).stdout == (
        'current_lsn: 0/10 DELETE FROM schéma.表 old_value: {"ключ"[typid = 25]: "значение"}\n'
        r"current_lsn: 0/10 UNKNOWN raw: \x5a00ff736f6d657468696e67" + "\n"
        "current_lsn: 0/10 HEARTBEAT wal_end: 217996416 wal_flushed: 217996288 time: 1700000000000\n"
        "HEARTBEAT wal_end: 217996416 wal_flushed: 217996288 time: 1700000000000\n"
        "current_lsn: 0/12 HEARTBEAT wal_end: 217996416 wal_flushed: 217996288 time: 1700000000000\n"
        r"current_lsn: 0/12 UNKNOWN raw: \x3f" + "\n"
        'current_lsn: 0/13 DELETE FROM schéma.表 old_value: {"ключ"[typid = 25]: "значение"}\n'
    )


def test_tables_are_matched_in_the_encoding_given(tmp_path: Path) -> None:
    path = tmp_path / "gbk.bin"
    path.write_bytes(GBK_MESSAGE)
    arguments = ("show", "--tables", "模式.*", path)
    assert run(*arguments, "--encoding", "gbk").stdout.startswith("current_lsn: 0/10 INSERT INTO 模式.t new_tuple: {")
    assert run(*arguments).stdout == ""


BAD_FRAME = handmade.record(b"C")[:-1] + b"?"
CUT_BODY = handmade.message(handmade.BEGIN[:12], handmade.COMMIT)


def test_failfast_prints_what_is_good_and_names_the_spot(tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    good = handmade.message(handmade.COMMIT)
    path.write_bytes(good + CUT_BODY + good)
    result = run("show", path)
    assert result.exit_code == 1
    assert result.stdout.count("COMMIT") == 1
    assert result.stderr.startswith(f"wireformat: {path}: short data: ")
    assert f"message 1, byte {4 + 8 + 1 + 8}, stream byte {len(good) + 4 + 8 + 1 + 8}, record 0" in result.stderr
    assert "Traceback" not in result.stderr


def test_permissive_prints_a_line_for_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(CUT_BODY)
    result = run("show", "--mode", "PERMISSIVE", path)
    assert (result.exit_code, result.stderr) == (0, "")
    corrupt, commit = result.stdout.splitlines()
    assert corrupt.startswith("current_lsn: 0/10 CORRUPT error: short data: ")
    assert corrupt.endswith(rf" raw: \x{handmade.BEGIN[:12].hex()}")
    assert commit == "current_lsn: 0/11 COMMIT xid: 18446744073709551615 commit_time: infinity"


def test_dropmalformed_says_how_many_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(CUT_BODY + CUT_BODY)
    result = run("show", "--mode", "DROPMALFORMED", path)
    assert (result.exit_code, result.stderr) == (0, "2 records skipped\n")
    assert result.stdout.count("\n") == result.stdout.count("COMMIT") == 2
