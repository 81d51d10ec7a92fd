"""`wireformat tables`, `typed`, `latest` and `write`: what they print and write is what `Capture` returns."""

from __future__ import annotations

import csv
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer import BadParameter

import wireformat as wf
from wireformat.cli import captures as commands_of_tables
from wireformat.cli.options import parse_columns

from ..lake.histories import messages_of, transactions
from ..lake.reading import read, values
from ..lake.test_repeated_parts import parts_of_an_altered_table
from ..test_documentation import ROOT
from .commands import run

MESSAGES = messages_of([*transactions(40)])
SAMPLE = ROOT / "examples" / "sample_capture.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for number, part in ((9, MESSAGES[:25]), (10, MESSAGES[25:])):
        pq.write_table(pa.table({"value": part}), folder / f"{number}.parquet")
    return folder


def capture() -> wf.Capture:
    return wf.Capture(MESSAGES, "gaussdb-binary")


def test_tables(folder: Path, tmp_path: Path) -> None:
    shown = run("tables", folder)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["table", "version", "columns", "key", "changes", "first", "last"]
    assert [line.split()[0] for line in lines[2:]] == [
        f"public.{name}" for name in capture().tables()["table_name"].to_pylist()
    ]
    output = tmp_path / "tables.parquet"
    assert run("tables", folder, "-o", output).exit_code == 0
    assert pq.read_table(output).to_pylist() == capture().tables().to_pylist()


def test_typed_and_latest_as_files(folder: Path, tmp_path: Path) -> None:
    typed, latest = capture().typed("public.orders").read_all(), capture().latest("public.orders", keys=["id"])
    for command, wanted, more in (("typed", typed, ()), ("latest", latest, ("--keys", "id"))):
        for ending in ("parquet", "arrow", "csv", "jsonl"):
            output = tmp_path / f"{command}.{ending}"
            result = run(command, folder, "public.orders", *more, "--threads", 1, "-o", output)
            assert result.exit_code == 0
            assert f"{len(wanted)} rows" in result.stderr
        assert pq.read_table(tmp_path / f"{command}.parquet").to_pylist() == wanted.to_pylist()
        assert pa.ipc.open_file(tmp_path / f"{command}.arrow").read_all().to_pylist() == wanted.to_pylist()
        rows = [json.loads(line) for line in (tmp_path / f"{command}.jsonl").read_text().splitlines()]
        with (tmp_path / f"{command}.csv").open() as file:
            cells = [*csv.DictReader(file)]
        for row, cell, of_table in zip(rows, cells, wanted.to_pylist(), strict=True):
            for name in ("id", "text", "_sequence"):
                assert row[name] == of_table[name]
            assert json.loads(cell["_sequence"]) == of_table["_sequence"]


def test_on_the_screen(folder: Path) -> None:
    result = run("latest", folder, "public.orders", "--keys", "id", "--rows", 2)
    assert result.exit_code == 0
    first = capture().latest("public.orders", keys=["id"]).to_pylist()[0]
    assert first["text"] in result.stdout
    assert len(result.stdout.splitlines()) == 4
    assert "only the first 2 rows" in result.stderr
    everything = run("typed", folder, "public.orders", "--rows", 1000)
    assert len(everything.stdout.splitlines()) == 2 + len(capture().typed("public.orders").read_all())
    assert everything.stderr == ""


def test_what_steers_a_terminal_is_printed_as_an_escape(tmp_path: Path) -> None:
    row = wf.TupleData(("a\x1b[1m",), ("b\x1b[2m[red]",), ("text",))
    insert = wf.Insert(lsn=17, table_schema="s", table_name="t\x1b", new=row)
    events = [wf.Begin(lsn=16, csn=5, first_lsn=16), insert, wf.Commit(lsn=32, xid=9)]
    pq.write_table(pa.table({"payload": list(wf.encode(events, "gaussdb-binary"))}), tmp_path / "c.parquet")
    for result in (
        run("tables", tmp_path / "c.parquet"),
        run("typed", tmp_path / "c.parquet", "s.t\x1b"),
        run("write", tmp_path / "c.parquet", "--to", tmp_path / "lake"),
    ):
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout
    assert r"b\x1b[2m[red]" in run("typed", tmp_path / "c.parquet", "s.t\x1b").stdout


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write(folder: Path, tmp_path: Path, format: str) -> None:
    lake = tmp_path / "lake"
    result = run("write", folder, "--to", lake, "--format", format, "--threads", 2)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["table", "rows", "files", "open", "dropped", "corrupt"]
    assert len(lines) == 5
    for name, count, *_ in lines[2:]:
        typed = capture().typed(name).read_all()
        assert int(count) == len(typed)
        assert values(read(lake, ("public", name.removeprefix("public.")))) == values(typed)
    again = run("write", folder, "--to", lake, "--format", format)
    assert again.exit_code == 0
    assert len(again.stdout.splitlines()) == 2


def test_advice_is_in_the_words_of_the_command(folder: Path) -> None:
    result = run("latest", folder, "public.orders")
    assert result.exit_code == 2
    assert "name the key columns with --keys" in result.stderr


def test_advice_about_a_lake_is_in_the_words_of_the_command(tmp_path: Path) -> None:
    for number, part in enumerate(parts_of_an_altered_table()):
        pq.write_table(pa.table({"value": part}), tmp_path / f"{number}.parquet")
    for number in (0, 1):
        assert run("write", "-f", "pgoutput", tmp_path / f"{number}.parquet", "--to", tmp_path / "lake").exit_code == 0
    again = run("write", "-f", "pgoutput", tmp_path / "1.parquet", "--to", tmp_path / "lake")
    assert "the lake has the first transactions of this input already: pass messages that begin" in again.stderr
    write = ("write", "-f", "pgoutput", tmp_path / "0.parquet", "--to", tmp_path / "latest", "--state", "latest")
    assert run(*write).exit_code == 0
    assert "use --format delta" in run(*write).stderr


def test_a_stream_without_positions_goes_on_with_the_option_that_the_error_names(tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"BEGIN 5\ntable s.t: INSERT: id[integer]:1\nCOMMIT 5\n")
    options = ("--from", "test-decoding", "--to", tmp_path / "lake")
    assert run("write", lines, *options).exit_code == 0
    again = run("write", lines, *options)
    assert again.exit_code == 2
    assert "pass --go-on, and messages that begin where the lake ends" in again.stderr
    assert run("write", lines, *options, "--go-on").exit_code == 0


def test_json_for_programs(folder: Path, tmp_path: Path) -> None:
    for command in (("tables", folder), ("typed", folder, "public.orders"), ("latest", folder, "public.orders")):
        keys = ("--keys", "id") if command[0] == "latest" else ()
        result = run(*command, *keys, "--json")
        assert result.exit_code == 0
        assert result.stdout == run(*command, *keys, "-o", "-", "--to", "jsonl").stdout != ""
        assert "standard output: " in result.stderr
    result = run("write", folder, "--to", tmp_path / "lake", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.stderr == ""
    assert {row["table_name"]: row["rows"] for row in rows if row["table_name"] == "orders"} == {
        "orders": len(capture().typed("public.orders").read_all())
    }
    assert run("tables", folder, "--json", "-o", "x.csv").exit_code == 2


def test_write_current_rows(folder: Path, tmp_path: Path) -> None:
    keys = [text for name in ("orders", "lines", "Notes") for text in ("--keys", f"public.{name}=id")]
    for path in (folder / "9.parquet", folder):
        result = run("write", path, "--to", tmp_path / "lake", "--format", "delta", "--state", "latest", *keys)
        assert result.exit_code == 0
    found = read(tmp_path / "lake", ("public", "orders"))
    assert values(found) == values(capture().latest("public.orders", keys=["id"]))


def test_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"payload": MESSAGES}), path)
    assert run("tables", "-", stdin=path.read_bytes()).stdout == run("tables", path).stdout


@pytest.mark.parametrize("output", [(), ("-o", "-", "--to", "jsonl")], ids=["screen", "file"])
@pytest.mark.parametrize(
    ("command", "skipped"),
    [
        (("tables",), "1 record"),
        (("typed", "s.t"), "2 records"),
        (("typed", "s.t", "--rows", 1), "2 records"),
        (("latest", "s.t", "--keys", "id"), "2 records"),
    ],
    ids=["tables", "typed", "the first row", "latest"],
)
def test_dropmalformed_says_how_many_are_missing(
    command: tuple[object, ...], output: tuple[object, ...], skipped: str, tmp_path: Path
) -> None:
    rows = [("1", "2020-01-01"), ("2", "2020-01-02"), ("3", "infinity")]
    lines = [f"table s.t: INSERT: id[integer]:{id} day[date]:'{day}'\n" for id, day in rows]
    path = tmp_path / "lines.txt"
    path.write_text("".join(["BEGIN 5\n", *lines, "COMMIT 5\n", "BEGIN 6\n", "table s.t: INSERT: id[inte\n"]))
    name, *more = command
    result = run(name, "-f", "test-decoding", "--mode", "dropmalformed", path, *more, *output)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == f"{skipped} skipped"


def test_rejects(tmp_path: Path) -> None:
    pq.write_table(pa.table({"payload": [*MESSAGES, MESSAGES[0][:-3]]}), tmp_path / "c.parquet")
    rejects = tmp_path / "rejects.parquet"
    command = ("write", tmp_path / "c.parquet", "--to", tmp_path / "lake", "--rejects", rejects)
    assert run(*command, "--mode", "permissive").exit_code == 0
    assert pq.read_table(rejects)["kind"].to_pylist() == ["CORRUPT"]
    without = run(*command[:4], "--mode", "permissive").stderr
    assert (
        "; FAILFAST says what is wrong with the record; to deliver the rest, pass --mode DROPMALFORMED, or " in without
    )
    assert without.endswith(" for `write` and `follow` --rejects\n")


@pytest.mark.parametrize(("command", "keys"), [("typed", ()), ("latest", ("--keys", "id"))])
def test_a_table_in_several_files(command: str, keys: tuple[str, ...], tmp_path: Path) -> None:
    for number, messages in enumerate((MESSAGES[:20], MESSAGES[20:])):
        pq.write_table(pa.table({"payload": messages}), tmp_path / f"{number}.parquet")
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    found, expected = (run(command, *paths, "public.orders", *keys, "--json") for paths in (files, [tmp_path]))
    assert (found.exit_code, found.stdout, found.stderr) == (0, expected.stdout, expected.stderr)


WRONG: dict[tuple[object, ...], str] = {
    ("write", SAMPLE, "--to", "x", "--format", "pgoutput"): "pass --from pgoutput",
    ("write", SAMPLE, "--to", "x", "--format", "orc"): "option format: expected",
    ("write", SAMPLE, "--to", "x", "--rejects", "y"): "option rejects: needs --mode PERMISSIVE",
    ("write", SAMPLE, "--to", "x", "--keys", "a.b=c"): "option keys: expected --state latest",
    ("write", SAMPLE, "--to", "x", "--schema", "a.b=c text"): "--schema: the stream has no changes of a.b",
    ("write", SAMPLE, "--to", "foo://x"): "--to: Unrecognized filesystem type in URI: foo://x\n",
    ("write", SAMPLE, "--to", "x", "--state", "latest", "--keys", "orders"): "table=column",
    ("typed", SAMPLE, "public.ordrs"): "did you mean public.orders",
    ("latest", SAMPLE, "public.orders"): "name the key columns",
    ("tables", "no such file"): "no such file: No such file",
}


@pytest.mark.parametrize("command", WRONG, ids=lambda command: " ".join(map(str, command[:1] + command[2:])))
def test_errors(command: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*command)
    assert result.exit_code in (1, 2)
    assert WRONG[command] in result.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
def test_a_pipe_is_copied(tmp_path: Path) -> None:
    path, pipe = tmp_path / "c.parquet", tmp_path / "pipe"
    pq.write_table(pa.table({"payload": MESSAGES}), path)
    os.mkfifo(pipe)
    for data, code in ((path.read_bytes(), 0), (b"no message", 1)):
        with ThreadPoolExecutor() as pool:
            written = pool.submit(pipe.write_bytes, data)
            result = run("typed", pipe, "public.orders")
            assert written.result()
        assert result.exit_code == code
        assert "wireformat-" not in result.stderr
    assert str(pipe) in result.stderr
    assert run("tables", "/dev/null").exit_code == run("tables", "-", stdin=b"").exit_code


@pytest.mark.parametrize("more", [(), ("--rows", 3)], ids=str)
@pytest.mark.parametrize("command", [("tables",), ("typed", "public.orders"), ("latest", "public.orders")], ids=str)
def test_a_format_of_standard_output_needs_the_output(command: tuple[str, ...], more: tuple[object, ...]) -> None:
    verb, *table = command
    result = run(verb, SAMPLE, *table, "--to", "csv", *(more if table else ()))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "add `-o -`" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("output", "text"),
    [("x.txt", "expected a name that ends in"), ("-", "-o - needs --to"), (SAMPLE, "is an input")],
    ids=["ending", "no --to", "input"],
)
@pytest.mark.parametrize("command", [("tables",), ("typed", "public.orders"), ("latest", "public.orders")], ids=str)
def test_an_output_is_checked_before_anything_is_read(
    command: tuple[str, ...], output: object, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands_of_tables, "opened", None)
    verb, *table = command
    result = run(verb, SAMPLE, *table, "-o", output)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr


def test_an_input_in_a_folder_is_not_overwritten(folder: Path) -> None:
    before = (folder / "9.parquet").read_bytes()
    for inputs in (folder, folder / "*.parquet"):
        result = run("typed", inputs, "public.orders", "-o", folder / "9.parquet")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "is an input, and would be overwritten" in result.stderr
    assert (folder / "9.parquet").read_bytes() == before


def test_a_damaged_file_is_bad_data(folder: Path) -> None:
    path = folder / "9.parquet"
    path.write_bytes(path.read_bytes()[:500])
    for command in (("tables", folder), ("typed", folder, "public.orders"), ("write", folder, "--to", folder / "lake")):
        result = run(*command)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert f"{path}: " in result.stderr


def test_an_error_while_writing_names_the_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for format in ("parquet", "delta"):
        result = run("write", folder, "--to", tmp_path / "file" / "lake", "--format", format)
        assert result.exit_code in (1, 2)
        assert str(tmp_path / "file") in result.stderr
        assert "Traceback" not in result.stderr


def test_several_binary_columns(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"a": MESSAGES, "b": MESSAGES}), path)
    for command in (("tables",), ("show",), ("decode", "-o", tmp_path / "o.csv"), ("inspect",)):
        result = run(command[0], path, *command[1:])
        assert (result.exit_code, result.stdout) == (2, "")
        text = f"{path}: expected one binary column, got a, b; pass the one with the messages as --column\n"
        assert result.stderr.endswith(text)
        assert run(command[0], path, *command[1:], "--column", "b").exit_code == 0


def test_a_schema_for_a_format_without_types(tmp_path: Path) -> None:
    """Inserts of sql-decoding name neither columns nor types."""
    file = tmp_path / "messages.parquet"
    messages = [b"BEGIN 5", b"insert into shop.t values (1, 'a');", b"COMMIT 5"]
    pq.write_table(pa.table({"payload": messages}), file)
    without = run("typed", file, "shop.t", "-f", "sql-decoding")
    assert without.exit_code == 1
    assert "rows that name the types of their values, or --schema, got none" in without.stderr
    given = ("--schema", "id bigint", "--schema", '"Note" character varying(3)')
    for command, keys in (("typed", ()), ("latest", ("--keys", "id"))):
        result = run(command, file, "shop.t", "-f", "sql-decoding", "--json", *given, *keys)
        assert result.exit_code == 0, result.stderr
        row = json.loads(result.stdout)
        assert (row["id"], row["Note"]) == (1, "a")
    options = ("--from", "sql-decoding", "--to", tmp_path / "lake")
    assert run("write", file, *options, "--schema", "shop.t=id integer, note text").exit_code == 0
    assert read(tmp_path / "lake", ("shop", "t"))["id"].to_pylist() == [1]


def test_arrays_of_two_dimensions_need_a_schema(tmp_path: Path) -> None:
    """A column `integer[]` of PostgreSQL takes arrays of any number of dimensions."""
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"BEGIN 5\ntable s.t: INSERT: id[integer]:1 cells[integer[]]:'{{1,2}}'\nCOMMIT 5\n")
    command = ("typed", "-f", "test-decoding", lines, "s.t", "--json")
    refused = run(*command)
    assert refused.exit_code == 1
    assert "got an array of more than 1 dimension; in --schema, give its type as T[][], or as text" in refused.stderr
    for type, wanted in (("integer[][]", [[1, 2]]), ("text", "{{1,2}}")):
        assert json.loads(run(*command, "--schema", f"cells {type}").stdout)["cells"] == wanted


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id bigint", {"id": "bigint"}),
        ('"My ""id""" numeric(10, 2) , note  "char"', {'My "id"': "numeric(10, 2)", "note": '"char"'}),
        ("at timestamp(3) with time zone,tags text[]", {"at": "timestamp(3) with time zone", "tags": "text[]"}),
        *((wrong, None) for wrong in ("", "id", "id=bigint", "id bigint,", "id  ,x int", '"id bigint', "id a, id b")),
    ],
)
def test_columns_as_in_create_table(text: str, columns: dict[str, str] | None) -> None:
    if columns is None:
        with pytest.raises(BadParameter):
            parse_columns([text])
    else:
        assert parse_columns([text]) == columns
