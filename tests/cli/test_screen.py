"""Nothing in a capture steers the terminal: values, names of tables and of files are shown with escapes there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.cli.output import csv_rows, json_rows
from wireformat.cli.screen import print_rows
from wireformat.printable import printable

from .. import handmade
from .commands import run, start

EVIL = "[bold]\x1b[2J\x1b]0;title\x07\rgone\n\x9b1m\x7f\u202e\u2066end"
BINARY = "gaussdb-binary"
SHOWN = r"[bold]\x1b[2J\x1b]0;title\x07\rgone\n\x9b1m\x7f\u202e\u2066end"
ROW = handmade.message(handmade.change(b"I", EVIL.encode(), b"t", handmade.new(handmade.cell(b"a", 25, EVIL.encode()))))


def test_printable_leaves_other_text_alone() -> None:
    text = "a\tb \u00e9 模式 🙂 [bold] \\x1b שלום"
    assert printable(text) == text


def test_printable_escapes_what_steers() -> None:
    assert printable(EVIL) == SHOWN


def on_a_terminal(*arguments: object, **environment: str) -> tuple[int, bytes, bytes]:
    """Run the command with a terminal as standard output: the exit code, what the terminal gets, standard error."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    in_environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "TERM": "xterm", **environment}
    process = start(*arguments, stdin=None, stdout=theirs, env=in_environment)
    os.close(theirs)
    got = b""
    while True:
        try:
            some = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not some:
            break
        got += some
    os.close(ours)
    _, stderr = process.communicate(timeout=120)
    return process.returncode, got.replace(b"\r\n", b"\n"), stderr


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.bin"
    path.write_bytes(ROW)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are those of POSIX")
class TestOnATerminal:
    @pytest.mark.parametrize("encoding", [[], ["--encoding", "utf-8"]], ids=" ".join)
    def test_show_prints_one_line_a_record(self, capture: Path, encoding: list[str]) -> None:
        code, got, stderr = on_a_terminal("show", *encoding, capture)
        assert (code, stderr) == (0, b"")
        assert got.decode() == f'current_lsn: 0/10 INSERT INTO {SHOWN}.t new_tuple: {{a[typid = 25]: "{SHOWN}"}}\n'

    @pytest.mark.slow
    def test_the_kind_has_a_colour_unless_no_color_says_no(self, capture: Path) -> None:
        _, got, _ = on_a_terminal("show", capture, NO_COLOR="")
        assert b"\x1b[32mINSERT\x1b[0m" in got
        assert got.count(b"\x1b") == 2
        assert on_a_terminal("show", capture, NO_COLOR="", TERM="dumb")[1] == on_a_terminal("show", capture)[1]

    @pytest.mark.slow
    def test_a_pager_gets_the_escapes_and_colours_of_the_terminal(self, capture: Path) -> None:
        _, got, _ = on_a_terminal("show", "--pager", capture, PAGER="sed s/INSERT/PAGED/", NO_COLOR="")
        assert f"\x1b[32mPAGED\x1b[0m INTO {SHOWN}.t" in got.decode()

    @pytest.mark.slow
    def test_show_escapes_what_is_no_text_of_the_terminal(self, tmp_path: Path) -> None:
        path = tmp_path / "gbk.bin"
        path.write_bytes(handmade.message(handmade.change(b"I", "中文".encode("gbk"), b"t", handmade.new())))
        _, got, _ = on_a_terminal("show", path)
        assert got == (b"current_lsn: 0/10 INSERT INTO \\xd6\\xd0\\xce\\xc4.t new_tuple: {}\n")

    @pytest.mark.slow
    @pytest.mark.parametrize("to", ["csv", "jsonl"])
    def test_tables_hold_no_control_characters(self, capture: Path, to: str) -> None:
        code, got, _ = on_a_terminal("decode", capture, "-o", "-", "--to", to)
        assert code == 0
        assert b"[bold]" in got
        assert all(character.isprintable() for character in got.decode().replace("\n", ""))

    @pytest.mark.slow
    def test_arrow_is_not_for_terminals(self, capture: Path) -> None:
        code, got, stderr = on_a_terminal("decode", capture, "-o", "-", "--to", "arrow")
        assert (code, got) == (2, b"")
        assert stderr.startswith(b"wireformat: standard output is a terminal")


def lines_on_a_terminal(
    columns: int,
    names: list[str],
    rows: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    are_numbers: Sequence[bool] = (),
) -> list[str]:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_rows(names, rows, are_numbers)
    return terminal.getvalue().splitlines()


@pytest.mark.parametrize("columns", [80, 20])
def test_a_row_of_many_columns_is_a_paragraph(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table, each column would be one character wide, or none."""
    names = [f"列 {index}" for index in range(100)]
    rows = [[f"a value {index}" for index in range(100)], [""] * 100]
    lines = lines_on_a_terminal(columns, names, rows, monkeypatch)
    assert (lines[0], lines[101]) == ("row 1", "row 2")
    assert lines[1:101] == [f"{name}{' ' * (7 - len(name))}a value {index}" for index, name in enumerate(names)]
    assert lines[102:] == names


def test_what_fits_is_a_table_of_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_on_a_terminal(20, ["id", "text"], [["1", "one of many words"]], monkeypatch) == [
        "id   text",
        "────────────────────",
        "1    one of many",
        "     words",
    ]


def test_a_table_without_rows_still_has_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"column {index}" for index in range(40)]
    assert lines_on_a_terminal(80, names, [], monkeypatch) == names
    assert lines_on_a_terminal(80, ["a", "b"], [], monkeypatch) == ["a   b", "─────"]


def test_a_tab_is_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal would move to another column."""
    lines = lines_on_a_terminal(80, ["a", "b\tc"], [["1\t2", "x"], ["3", "y"]], monkeypatch)
    assert lines == [r"a      b\tc", "───────────", r"1\t2   x", "3      y"]


def test_a_pipe_gets_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    """However many columns there are, and however long a value is."""
    names = [f"column_{index}" for index in range(2000)]
    print_rows(names, [["x" * 20_000] + ["two words"] * 1999, ["y"] * 2000])
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [2000, 1, 1 + 2 * 1999, 2000]


def test_wide_characters_take_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_on_a_terminal(30, ["数量", "名"], [["1", "茶"], ["12345", "x"]], monkeypatch, [True, False])
    assert lines == [" 数量   名", "──────────", "    1   茶", "12345   x"]


@pytest.mark.parametrize("rows", [partial(csv_rows, on_screen=True), json_rows], ids=["csv", "jsonl"])
def test_names_of_columns_are_escaped_as_values_are(rows: Any) -> None:
    batch = pa.RecordBatch.from_pylist([{EVIL: {EVIL: EVIL}, "n": 1}])
    file = BytesIO()
    with rows(file, batch.schema) as write:
        write(batch)
    text = file.getvalue().decode()
    assert text.count("[bold]") == 3
    assert text.replace("\n", "").isprintable()


def test_a_pipe_gets_the_bytes_as_they_are(capture: Path) -> None:
    assert EVIL.encode() in run("show", capture).stdout_bytes


def test_errors_are_one_line_whatever_the_names_hold(tmp_path: Path) -> None:
    path = tmp_path / "bad\x1b[31m\nname.bin"
    bad = handmade.new(handmade.cell(b"a", 25, b"\xff"))
    path.write_bytes(handmade.message(handmade.change(b"I", EVIL.encode(), b"t", bad)))
    result = run("decode", path, "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert f"table {SHOWN}.t" in result.stderr
    assert "bad\\x1b[31m\\nname.bin: bad text" in result.stderr
    assert result.stderr[:-1].isprintable()


@pytest.mark.slow
def test_warnings_are_one_line_as_errors_are(tmp_path: Path) -> None:
    """In a process of its own: pytest has a handler for what is logged."""
    path = tmp_path / "misfit.bin"
    row = wf.TupleData(("id", "n"), ("1", "no number"), ("integer", "integer"))
    insert = wf.Insert(lsn=17, table_schema="s", table_name=EVIL, new=row)
    events = [wf.Begin(lsn=16, csn=5, first_lsn=16), insert, wf.Commit(lsn=32, xid=9)]
    path.write_bytes(b"".join(wf.encode(events, BINARY)))
    table = f's."{EVIL}"'
    process = start("latest", path, table, "--keys", "id", "--mode", "PERMISSIVE")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0
    said = stderr.decode()
    assert said.startswith("wireformat: latest: 1 change of ")
    assert said[:-1].isprintable()
    assert said.count("\n") == 1


def test_summaries_are_one_line(tmp_path: Path) -> None:
    out = tmp_path / "a\x1bb.csv"
    result = run("decode", "--tables", f"{EVIL[:8]}.x", "-", "-o", out, stdin=ROW)
    assert result.exit_code == 0
    assert "a\\x1bb.csv: 0 rows" in result.stderr
    assert all(line.isprintable() for line in result.stderr.splitlines())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="terminals are those of POSIX")
def test_a_narrow_terminal_shows_fewer_bytes_in_a_line(capture: Path) -> None:
    for columns, most in ((200, 16), (80, 8)):
        code, got, _ = on_a_terminal("inspect", capture, COLUMNS=str(columns))
        assert code == 0
        assert max(map(len, re.findall(rb"(?: [0-9a-f]{2})+(?= )", got))) == 3 * most


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("tables",),
        ("typed", "模式.表"),
        ("latest", "模式.表", "--keys", "列"),
        ("inspect",),
        ("inspect", "--json"),
        ("show", "--encoding", "utf-8"),
        ("decode", "-o", "-", "--to", "csv"),
    ],
    ids=" ".join,
)
def test_an_encoding_without_the_characters_gets_escapes(command: tuple[str, ...], tmp_path: Path) -> None:
    """In a process of its own: the streams of this one take any text."""
    row = wf.TupleData(("列",), ("é🙂" + "x" * 70,), ("text",))
    insert = wf.Insert(lsn=17, table_schema="模式", table_name="表", new=row)
    path = tmp_path / "茶.bin"
    path.write_bytes(
        b"".join(wf.encode([wf.Begin(lsn=16, csn=5, first_lsn=16), insert, wf.Commit(lsn=32, xid=9)], BINARY))
    )
    verb, *more = command
    process = start(verb, path, *more, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, b"Traceback" in stderr) == (0, False), stderr
    assert stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="terminals are those of POSIX")
@pytest.mark.parametrize("pager", ["less '", " ", "/no/such/program"])
def test_a_pager_that_cannot_be_started_is_left_out(pager: str, capture: Path) -> None:
    code, got, stderr = on_a_terminal("show", "--pager", capture, PAGER=pager, PATH="")
    assert (code, stderr) == (0, b"")
    assert b"INSERT INTO" in got
