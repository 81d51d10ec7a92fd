"""`wireformat options`: the table, and what a set of options means."""

from __future__ import annotations

import io
import json

import pytest

import wireformat as wf
from wireformat.cli import server_options

from .commands import run


def test_the_table_has_a_line_for_each_option_and_no_cell_is_cut() -> None:
    result = run("options")
    assert (result.exit_code, result.stderr) == (0, "")
    head, _, *lines = result.stdout.splitlines()
    assert head.split() == ["option", "values", "default", "needs", "servers", "sentence"]
    for row, line in zip(wf.Options.table(), lines, strict=True):
        assert "".join(line.split()) == "".join("".join(row).split())
        assert line == line.rstrip()


@pytest.mark.parametrize("columns", ["40", "160"])
def test_no_word_is_cut_on_a_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    server_options.print_table()
    shown = terminal.getvalue().split()
    for row in wf.Options.table():
        assert {*" ".join(row).split()} <= {*shown}


def checked(*arguments: str) -> dict[str, str]:
    result = run("options", "--check", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return {name: text.lstrip() for name, text in (line.split("  ", 1) for line in result.stdout.splitlines())}


def test_check() -> None:
    given = ["skip-empty-xacts=on", "white-table-list=public.*,*.t", "exclude-users=a=b"]
    options = wf.Options.gaussdb(dict(setting.split("=", 1) for setting in given), plugin="sql_decoding")
    assert checked(*given, "--plugin", "sql_decoding") == {
        "mode": "serial",
        "format": "sql-decoding",
        "START_REPLICATION": options.start_replication(),
        "pg_logical_slot_peek_changes": options.peek_changes(),
        "pg_logical_get_area_changes": options.area_changes(),
        "filter tables": "public.*, *.t",
        "filter exclude_users": "a=b",
        "filter skip_empty_xacts": "True",
        "filter kinds": ", ".join(options.filters["kinds"]),
    }


def test_check_of_nothing() -> None:
    assert checked()["mode"] == "serial"
    assert checked("--via", "area", "--product", "openGauss")["START_REPLICATION"] == "no options"


def test_what_a_function_refuses_is_said() -> None:
    found = checked("parallel-decode-num=2", "max-txn-in-memory=20", "--max-process-memory", "80")
    assert found["format"] == "gaussdb-binary"
    assert found["pg_logical_slot_peek_changes"].startswith("refuses: option parallel-decode-num: needs START_REPLIC")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a=b"], "options to check need --check"),
        (["--check", "a"], "expected name=value, got 'a'"),
        (["--check", "a=1", "a=2"], "a is given twice"),
        (["--check", "sending-bach=1"], "unknown option 'sending-bach', did you mean 'sending-batch'?"),
        (["--check", "parallel-decode-num=40"], "option parallel-decode-num: expected 1..20, got '40'"),
        (["--check", "--via", "kafka"], "via: expected streaming, sql, area; got 'kafka'"),
        (["--check", "--plugin", "wal2json"], "plugin: expected mppdb_decoding, "),
    ],
)
def test_bad_usage(arguments: list[str], text: str) -> None:
    result = run("options", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_json_for_programs() -> None:
    rows = [json.loads(line) for line in run("options", "--json").stdout.splitlines()]
    assert rows == [row._asdict() for row in wf.Options.table()]
    (line,) = run("options", "--json", "--check", "parallel-decode-num=4").stdout.splitlines()
    facts = json.loads(line)
    assert (facts["mode"], facts["format"]) == ("parallel", "gaussdb-binary")
    assert facts["start_replication"] == "(\"parallel-decode-num\" '4')"
    assert facts["peek_changes"] is None
    assert "needs START_REPLICATION" in facts["refused"]["peek_changes"]
