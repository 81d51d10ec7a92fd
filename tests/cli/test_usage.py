"""Help, version, the list of formats, and what is said about options that cannot be."""

from __future__ import annotations

import pytest

import wireformat as wf

from .. import handmade
from .commands import run


def test_version() -> None:
    assert run("--version").stdout == f"wireformat {wf.__version__}\n"


def test_formats_lists_all_of_them() -> None:
    result = run("formats")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert lines == [[name, format.sentence] for name, format in wf.FORMATS.items()]


@pytest.mark.parametrize("command", ["show", "decode", "convert", "options"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_examples(command: str, flag: str) -> None:
    result = run(command, flag)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: wireformat {command} ")
    assert f"\n    wireformat {command} --" in result.stdout


def test_without_a_command_the_help_is_shown() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["shwo"], "No such command 'shwo'"),
        (["show"], "Missing argument 'FILE...'"),
        (["show", "--colour", "-"], "No such option: --colour"),
        (["decode", "-"], "Missing option '--output'"),
        (["show", "--format", "gaussdb-bin", "-"], "unknown format 'gaussdb-bin', did you mean 'gaussdb-binary'?"),
        (["show", "--mode", "LAX", "-"], "option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED; got 'LAX'"),
        (["show", "--tables", "orders", "-"], 'got "orders": write "public.orders", or "*.orders" for'),
        (["show", "--kinds", "INSERTS", "-"], "option kinds: expected BEGIN, INSERT, "),
        (["show", "--encoding", "klingon", "-"], "option encoding: expected a Python encoding"),
        (["decode", "--columns", "lsm", "-", "-o", "x"], "option columns: no column 'lsm', did you mean 'lsn'?"),
        (["decode", "--columns", " , ", "-", "-o", "x"], "expected a list, as a,b; got nothing"),
        (["decode", "--heartbeat-unit", "min", "-", "-o", "x"], "--heartbeat-unit: expected s, ms, us; got 'min'"),
        (["decode", "", "-o", "x.csv"], "expected a name, got an empty text"),
        (["decode", "-", "-o", "-"], "-o - needs --to csv, jsonl, arrow"),
        (["decode", "-", "-o", "-", "--to", "xml"], "-o - needs --to csv, jsonl, arrow, got 'xml'"),
        (["decode", "-", "-o", "a.csv", "--to", "csv"], "--to says what `-o -` writes; of a.csv its ending says it"),
        (["check", "x", "--slot", "s", "--failover"], "--failover is for a new slot: add --create-slot"),
        (
            ["follow", "x", "--slot", "s", "--to", "x", "--batch-mb", "nan"],
            "--batch-mb: expected a number of megabytes, got nan",
        ),
        (["follow", "x", "--slot", "s", "--to", "x", "--retained-alarm", "inf"], "a number of megabytes, got inf"),
        (
            ["follow", "x", "--slot", "s", "--to", "x", "--retained-alarm", "-1"],
            "--retained-alarm: expected a number of",
        ),
        (
            ["follow", "x", "--slot", "s", "--to", "x", "--batch-mb", "0"],
            "--batch-mb: expected a number above 0, got 0",
        ),
        (["follow", "x", "--slot", "s", "--to", "x", "--idle-seconds", "-1"], "--idle-seconds: expected a number"),
        (["decode", "--encoding-errors", "skip", "-", "-o", "x"], "--encoding-errors: expected strict, replace"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_usage(arguments: list[str], text: str) -> None:
    result = run(*arguments, stdin=handmade.SAMPLES["insert"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "small",
    [
        ["--mode", "permissive"],
        ["--mode", "DropMalformed"],
        ["--kinds", "insert,Update"],
        ["--kinds", "commit_prepared", "--kinds", "insert"],
    ],
    ids=" ".join,
)
def test_modes_and_kinds_may_be_written_small(small: list[str]) -> None:
    stream = handmade.SAMPLES["insert"] + handmade.SAMPLES["commit, bare"]
    large = [word if word.startswith("--") else word.upper() for word in small]
    found, expected = (run("show", *words, "-", stdin=stream) for words in (small, large))
    assert (found.exit_code, found.stdout, found.stderr) == (0, expected.stdout, "")
    assert found.stdout.count("INSERT") == 1


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("insp", ["inspect"]),
        ("inspect --rec", ["--record", "--records"]),
        ("show --format pg", ["pgoutput"]),
        ("convert --to gaussdb-", ["gaussdb-binary", "gaussdb-json", "gaussdb-text"]),
        ("show --mode PERM", ["PERMISSIVE"]),
        ("decode --kinds INSERT,UP", ["INSERT,UPDATE"]),
        ("write --from sql", ["sql-decoding"]),
        ("write --format ", ["parquet", "delta"]),
        ("follow --state l", ["latest"]),
        ("show --dialect mysql", []),
    ],
)
def test_completion_in_a_shell(words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands, options and the values of options."""
    monkeypatch.setenv("_WIREFORMAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"wireformat {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    result = run()
    assert (result.exit_code, result.stdout.split()) == (0, offered)
