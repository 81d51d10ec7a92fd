"""`wireformat decode`: the file equals `wireformat.arrow.change_table`, and is there only when all went well."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.cli import output
from wireformat.cli.inputs import find_inputs, progress
from wireformat.formats.registry import find_format

from .. import handmade
from ..golden_cases import BINARY, Case, find_case
from .commands import run

CUT_BODY = handmade.message(handmade.BEGIN[:12], handmade.COMMIT)


@pytest.mark.parametrize("case", [case for case in BINARY if not case.has_bad_text], ids=lambda case: case.name)
def test_equals_the_arrow_table(case: Case, tmp_path: Path) -> None:
    result = run("decode", case.path, "-o", tmp_path / "out.parquet", "--encoding", case.encoding)
    expected = wf.arrow.changes(case.array, "gaussdb-binary", encoding=case.encoding)
    found = pq.read_table(tmp_path / "out.parquet")
    assert result.exit_code == 0
    assert found.schema.equals(expected.schema)
    assert found.equals(expected)
    rows, messages = f"{case.record_count:,}", f"{case.message_count:,}"
    assert result.stderr == f"{tmp_path / 'out.parquet'}: {rows} rows from {messages} messages\n"
    assert result.stdout == ""


def test_options_are_those_of_the_arrow_table(tmp_path: Path) -> None:
    case = find_case("handmade_heartbeat_mixed")
    out = tmp_path / "out.parquet"
    options: dict[str, Any] = {
        "columns": ["lsn", "table_name", "commit_time"],
        "kinds": ["HEARTBEAT", "INSERT"],
        "tables": ["app.*"],
    }
    written = [f"--{name}={','.join(items)}" for name, items in options.items()]
    assert run("decode", case.path, "-o", out, "--heartbeat-unit", "ms", *written).exit_code == 0
    expected = wf.arrow.changes(case.array, "gaussdb-binary", heartbeat_unit="ms", **options)
    assert expected.num_rows
    assert pq.read_table(out).equals(expected)


def test_lists_are_split_outside_of_quotes_and_may_be_repeated(tmp_path: Path) -> None:
    names = ['"a,b"."c""d"', "s.t", "*.x"]
    changes = [handmade.change(b"D", *name) for name in ((b"a,b", b'c"d'), (b"s", b"t"), (b"y", b"x"), (b"s", b"u"))]
    capture, out = tmp_path / "capture.bin", tmp_path / "out.parquet"
    capture.write_bytes(handmade.message(*changes))
    assert run("decode", capture, "-o", out, "--tables", ", ".join(names[:2]), "--tables", names[2]).exit_code == 0
    assert pq.read_table(out)["table_name"].to_pylist() == ['c"d', "t", "x"]


def test_messages_are_counted_through_all_inputs(tmp_path: Path) -> None:
    case = find_case("b_types_single")
    stream, out = tmp_path / "capture.bin", tmp_path / "out.parquet"
    stream.write_bytes(b"".join(case.messages))
    assert run("decode", case.path, stream, "-", "-o", out, stdin=b"".join(case.messages)).exit_code == 0
    assert pq.read_table(out).equals(wf.arrow.changes(case.messages * 3, "gaussdb-binary"))


@pytest.mark.parametrize(
    ("mode", "summary"),
    [
        ("PERMISSIVE", "4 rows from 2 messages, 2 of them CORRUPT"),
        ("DROPMALFORMED", "2 rows from 2 messages, 2 skipped"),
    ],
)
def test_the_summary_counts_bad_records(mode: str, summary: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    result = run("decode", "--mode", mode, "--columns", "lsn,raw", "-", "-o", out, stdin=CUT_BODY * 2)
    assert (result.exit_code, result.stderr) == (0, f"{out}: {summary}\n")
    expected = wf.arrow.changes([CUT_BODY] * 2, "gaussdb-binary", mode=mode, columns=["lsn", "raw"])
    assert pq.read_table(out).equals(expected.replace_schema_metadata(None))


def test_a_format_that_does_not_fit(tmp_path: Path) -> None:
    """All records are of kinds that the format does not know: in FAILFAST nothing is written."""
    path, out = find_case("b_types_single").path, tmp_path / "out.parquet"
    result = run("decode", "--format", "pgoutput", "--columns", "lsn", path, "-o", out)
    assert (result.exit_code, out.exists()) == (1, False)
    assert "begin like those of gaussdb-binary" in result.stderr
    assert run("decode", "--format", "pgoutput", "--mode", "PERMISSIVE", path, "-o", out).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [("show",), ("convert", "--to", "pgoutput", "-o", "out.parquet"), ("decode", "--kinds", "INSERT", "-o", "out.csv")],
)
def test_a_format_that_does_not_fit_in_every_command(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = find_case("b_types_single").path
    result = run(*command, "--format", "pgoutput", path)
    assert result.exit_code == 1
    assert "gaussdb-binary" in result.stderr
    assert [*tmp_path.iterdir()] == []
    result = run(*command, "--format", "pgoutput", "--mode", "PERMISSIVE", path)
    assert "no record could be read as pgoutput" in result.stderr


def test_the_file_says_the_format(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run("decode", find_case("b_types_single").path, "-o", out).exit_code == 0
    assert pq.read_schema(out).metadata == {b"wireformat.format": b"gaussdb-binary"}


def test_nothing_in_gives_a_file_without_rows(tmp_path: Path) -> None:
    result = run("decode", "-", "-o", tmp_path / "out.parquet")
    said = "0 rows from 0 messages\nstandard input is empty: there are no messages in it\n"
    assert (result.exit_code, result.stderr) == (0, f"{tmp_path / 'out.parquet'}: {said}")
    assert pq.read_table(tmp_path / "out.parquet").schema.equals(wf.arrow.CHANGES)


def test_row_groups_are_of_even_size_and_hold_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = find_case("b_types_single")
    expected = wf.arrow.changes(case.array, "gaussdb-binary")
    monkeypatch.setattr(output, "ROW_GROUP_BYTES", expected.nbytes // 3)
    with (tmp_path / "out.parquet").open("wb") as file, output.parquet_rows(file, expected.schema) as write:
        for batch in expected.to_batches(max_chunksize=10):
            write(batch)
    written = pq.ParquetFile(tmp_path / "out.parquet")
    assert written.num_row_groups in (3, 4)
    assert written.read().equals(expected)


class TestNoHalfFile:
    """After an error there is what was there before, and nothing else."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "out.parquet").write_bytes(b"as it was")
        (tmp_path / "bad.bin").write_bytes(handmade.SAMPLES["insert"] + CUT_BODY)
        return tmp_path

    def unchanged(self, folder: Path) -> bool:
        names = sorted(path.name for path in folder.iterdir())
        return names == ["bad.bin", "out.parquet"] and (folder / "out.parquet").read_bytes() == b"as it was"

    def test_after_bad_data(self, folder: Path) -> None:
        result = run("decode", folder / "bad.bin", "-o", folder / "out.parquet")
        assert result.exit_code == 1
        assert result.stderr.startswith(f"wireformat: {folder / 'bad.bin'}: short data: ")
        assert result.stderr.count("\n") == 1
        assert self.unchanged(folder)

    @pytest.mark.parametrize(
        ("error", "code", "text"),
        [
            (KeyboardInterrupt(), 130, ""),
            (OSError(28, "No space left on device"), 1, "wireformat: No space left on device\n"),
        ],
        ids=["Ctrl-C", "full"],
    )
    def test_after_what_happens_while_it_is_written(
        self, error: BaseException, code: int, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
        result = run("decode", "--mode", "PERMISSIVE", folder / "bad.bin", "-o", folder / "out.parquet")
        assert (result.exit_code, result.stderr) == (code, text)
        assert self.unchanged(folder)

    def test_good_data_replaces_the_file(self, folder: Path) -> None:
        assert run("decode", "--mode", "PERMISSIVE", folder / "bad.bin", "-o", folder / "out.parquet").exit_code == 0
        assert pq.read_table(folder / "out.parquet")["kind"].to_pylist() == ["INSERT", "CORRUPT", "COMMIT"]
        assert sorted(path.name for path in folder.iterdir()) == ["bad.bin", "out.parquet"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.parquet").symlink_to(tmp_path / "out.parquet")
    assert run("decode", "-", "-o", tmp_path / "link.parquet").exit_code == 0
    assert (tmp_path / "link.parquet").is_symlink()
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (".", ".: expected a name that ends in .parquet, .arrow, .csv, .jsonl, or -"),
        ("/dev/null", "/dev/null: expected a name that ends in .parquet, .arrow, .csv, .jsonl, or -"),
        ("out.xlsx", "out.xlsx: expected a name that ends in .parquet, .arrow, .csv, .jsonl, or -"),
        ("csv", "csv: expected a name that ends in .parquet, .arrow, .csv, .jsonl, or -"),
        ("-", "-o - needs --to csv, jsonl, arrow"),
        ("folder.csv", "folder.csv exists and is not a regular file"),
        ("nowhere/out.parquet", "nowhere/out.parquet: there is no folder nowhere"),
        ("in.csv/out.parquet", "in.csv/out.parquet: Not a directory"),
        ("./in.csv", "in.csv: is an input, and would be overwritten"),
    ],
)
def test_an_output_that_cannot_be_is_bad_usage(
    output: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_bytes(handmade.SAMPLES["insert"])
    Path("folder.csv").mkdir()
    result = run("decode", "in.csv", "-o", output)
    assert (result.exit_code, result.stderr) == (2, f"wireformat: {text}\n")
    assert Path("in.csv").read_bytes() == handmade.SAMPLES["insert"]
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "folder.csv"}


class Terminal(io.StringIO):
    """What somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("paths", "shown"), [(["in.bin"], "12.3/20.0 kB"), (["in.bin", "-"], "12.3/? kB")])
def test_progress_is_shown_on_a_terminal_and_nowhere_else(
    paths: list[str], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    Path("in.bin").write_bytes(bytes(20_000))
    terminal, pipe = Terminal(), io.StringIO()
    with find_inputs(paths, find_format("gaussdb-binary"), "payload") as inputs:
        for stderr in (terminal, pipe):
            monkeypatch.setattr("sys.stderr", stderr)
            with progress(inputs) as advance:
                advance(12_345)
    assert shown in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_progress_of_inputs_that_are_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    Path("in.bin").write_bytes(bytes(20_000))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with (
        find_inputs(["in.bin"], find_format("gaussdb-binary"), "payload") as inputs,
        progress(inputs) as advance,
    ):
        advance(20_000)
        advance(5_000)
    assert "25.0/40.0 kB" in terminal.getvalue()
