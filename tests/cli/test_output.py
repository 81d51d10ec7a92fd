"""What a table is written as: by the ending of the file, or by --to on standard output."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

import wireformat as wf
from wireformat.cli.output import cell_texts, csv_rows, json_rows, open_file

from .. import handmade
from ..disks import small_disk
from ..golden_cases import Case, find_case
from .commands import run, start

CASE = find_case("b_types_batch")
ENDINGS = {"csv": "changes.csv", "jsonl": "changes.JSONL", "arrow": "changes.arrow"}


def expected_rows(case: Case = CASE) -> list[dict[str, Any]]:
    return wf.arrow.changes(case.array, "gaussdb-binary", encoding=case.encoding).to_pylist()


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """What JSON can say of a row."""
    maps = {name: None if row[name] is None else dict(row[name]) for name in ("new", "old", "detail")}
    time = None if row["commit_time"] is None else f"{row['commit_time']:%Y-%m-%d %H:%M:%S.%fZ}"
    return {**row, **maps, "commit_time": time, "raw": None if row["raw"] is None else rf"\x{row['raw'].hex()}"}


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Its rows as JSON would say them; an empty cell is None."""
    of_json = ("message", "record", "lsn", "xid", "csn", "commit_lsn", "new", "old", "detail", "types", "unchanged")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: None if cell == "" else json.loads(cell) if name in of_json else cell for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("name", ["b_types_batch", "b_names_batch", "handmade_heartbeat_mixed"])
def test_json_lines(name: str, tmp_path: Path) -> None:
    case, out = find_case(name), tmp_path / "out.jsonl"
    assert run("decode", case.path, "-o", out).exit_code == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [as_json(row) for row in expected_rows(case)]


@pytest.mark.parametrize("name", ["b_types_batch", "b_names_batch", "handmade_heartbeat_mixed"])
def test_csv_holds_every_row(name: str, tmp_path: Path) -> None:
    case, out = find_case(name), tmp_path / "out.csv"
    assert run("decode", case.path, "-o", out).exit_code == 0
    assert read_csv(out) == [as_json(row) for row in expected_rows(case)]


def test_an_arrow_file_holds_the_table(tmp_path: Path) -> None:
    assert run("decode", CASE.path, "-o", tmp_path / "out.arrow").exit_code == 0
    expected = wf.arrow.changes(CASE.array, "gaussdb-binary")
    assert pa.ipc.open_file(tmp_path / "out.arrow").read_all().equals(expected)


@pytest.mark.parametrize("to", ENDINGS)
def test_standard_output_is_what_a_file_would_be(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("decode", CASE.path, "-o", ENDINGS[to]).exit_code == 0
    result = run("decode", CASE.path, "-o", "-", "--to", to.upper())
    rows, messages = f"{CASE.record_count:,}", f"{CASE.message_count:,}"
    assert (result.exit_code, result.stderr) == (0, f"standard output: {rows} rows from {messages} messages\n")
    written = Path(ENDINGS[to])
    if to == "arrow":
        assert pa.ipc.open_stream(result.stdout_bytes).read_all().equals(pa.ipc.open_file(written).read_all())
    else:
        assert result.stdout_bytes == written.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [ENDINGS[to]]


@pytest.mark.parametrize("to", ENDINGS)
def test_nothing_in_gives_a_table_without_rows(to: str) -> None:
    found = run("decode", "--columns", "lsn,new", "-", "-o", "-", "--to", to).stdout_bytes
    if to == "arrow":
        assert (
            pa.ipc.open_stream(found)
            .read_all()
            .equals(wf.arrow.changes([], columns=["lsn", "new"], format=CASE.format))
        )
    else:
        assert found == {"csv": b'"lsn","new"\n', "jsonl": b""}[to]


@pytest.mark.slow
@pytest.mark.parametrize("to", ENDINGS)
def test_a_reader_that_has_enough_ends_it_without_a_word(to: str) -> None:
    process = start("decode", find_case("b_1mb_batch").path, "-o", "-", "--to", to)
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")


def test_convert_writes_an_arrow_stream_to_standard_output(tmp_path: Path) -> None:
    stream, out = tmp_path / "in.bin", tmp_path / "out.arrow"
    stream.write_bytes(handmade.message(handmade.COMMIT))
    arguments = ("convert", stream, "-t", "gaussdb-json", "--skip")
    assert run(*arguments, "-o", out).exit_code == 0
    result = run(*arguments, "-o", "-")
    assert result.exit_code == 0
    found = pa.ipc.open_stream(result.stdout_bytes).read_all()
    assert found.num_rows == 1
    assert found.equals(pa.ipc.open_file(out).read_all())


@pytest.mark.parametrize("name", ["changes.parquet", *ENDINGS.values()])
def test_a_full_disk_is_named(name: str, tmp_path: Path) -> None:
    """The error of the operating system for a write to an open file has no path. Nothing of the file is left."""
    output = tmp_path / name
    with small_disk(100):
        result = run("decode", CASE.path, "-o", output)
    assert result.exit_code == 1
    assert f"{output}: File too large" in result.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o444, 0o666])
def test_a_new_file_has_the_mode_of_the_one_it_replaces(mode: int, tmp_path: Path) -> None:
    """Before it has content, which others could read."""
    output = tmp_path / "out.csv"
    output.touch()
    output.chmod(mode)
    before = os.umask(0o022)
    try:
        with open_file(output) as file:
            (unfinished,) = {*tmp_path.iterdir()} - {output}
            assert stat.S_IMODE(unfinished.stat().st_mode) == mode
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(output.stat().st_mode) == mode
    assert output.read_bytes() == b"new"


@pytest.mark.parametrize("letter", ["a", "ü", "\udcff"], ids=ascii)
def test_a_file_with_the_longest_name(letter: str, tmp_path: Path) -> None:
    name = letter * (249 // len(os.fsencode(letter)))
    assert run("decode", CASE.path, "-o", tmp_path / f"{name}.jsonl").exit_code == 0


TABLE = pa.table(
    {
        "text": pa.array(["", None, 'a "b",\r\nc', "\x1b[31m\x9b\u202e"]),
        "map": pa.array(
            [[], None, [("a", "1"), ("a", None)], [("\x1b", "\x85\u202e")]], pa.map_(pa.string(), pa.string())
        ),
        "list": pa.array([[], None, ["x", None], ["\x7f"]], pa.list_(pa.string())),
        "bytes": pa.array([b"", None, b"\0\xff", b"\x1b"]),
        "number": pa.array([0, None, -(1 << 63), (1 << 63) - 1]),
    }
)


def written(writer: Any, table: pa.Table = TABLE, **options: Any) -> str:
    file = io.BytesIO()
    with writer(file, table.schema, **options) as write:
        for batch in table.to_batches():
            write(batch)
    return file.getvalue().decode()


def test_json_of_every_kind_of_cell() -> None:
    first, second, third, last = written(json_rows).splitlines()
    assert first == r'{"text": "", "map": {}, "list": [], "bytes": "\\x", "number": 0}'
    assert second == '{"text": null, "map": null, "list": null, "bytes": null, "number": null}'
    assert third.startswith(r'{"text": "a \"b\",\r\nc", "map": {"a": "1", "a": null}, "list": ["x", null], "bytes"')
    assert last.startswith(r'{"text": "\u001b[31m\u009b\u202e", "map": {"\u001b": "\u0085\u202e"}, "list": ["\u007f"]')
    assert json.loads(last)["text"] == "\x1b[31m\x9b\u202e"
    assert [json.loads(line)["number"] for line in (third, last)] == [-(1 << 63), (1 << 63) - 1]


def test_bytes_on_a_screen_are_those_of_csv() -> None:
    assert [*cell_texts(TABLE["bytes"].combine_chunks())] == [r"\x", "", r"\x00ff", r"\x1b"]


def test_json_of_a_slice_is_that_of_its_rows() -> None:
    assert written(json_rows, TABLE.slice(1, 2)) == "".join(
        f"{line}\n" for line in written(json_rows).splitlines()[1:3]
    )
    assert written(csv_rows, TABLE.slice(3)).splitlines()[1:] == written(csv_rows).splitlines()[-1:]


def test_csv_of_every_kind_of_cell() -> None:
    rows = [*csv.reader(io.StringIO(written(csv_rows), newline=""))]
    assert rows[0] == TABLE.column_names
    assert rows[1:3] == [["", "{}", "[]", r"\x", "0"], ["", "", "", "", ""]]
    assert rows[3] == ['a "b",\r\nc', '{"a": "1", "a": null}', '["x", null]', r"\x00ff", str(-(1 << 63))]
    assert rows[4][0] == "\x1b[31m\x9b\u202e"
    assert '"",' in written(csv_rows)  # an empty text; a null is nothing between commas
    assert "\n,,,,\n" in written(csv_rows)


NUMBERS = pa.table(
    {
        "decimal": pa.array(map(Decimal, ["0", "-1E-10", "1.5"]), pa.decimal128(38, 10)).take(
            pa.array([0, 1, 2, None])
        ),
        "real": pa.array([0.1, 1e20, -float("inf"), None], pa.float32()),
        "decimals": pa.array([[Decimal("1E-7"), None], [], None, [Decimal(7)]], pa.list_(pa.decimal256(50, 8))),
        "reals": pa.array([[0.1, 16777216], [], None, [1e-7]], pa.list_(pa.float32())),
        "text": ['"1E-7",', "1E-7", "", ",1E-7,"],
    }
)
"""Numbers that libraries write with an exponent, or with digits that the server has not sent."""

DECIMALS = ["0.0000000000", "-0.0000000001", "1.5000000000"]
LISTS_OF_DECIMALS = [["0.00000010", None], [], None, ["7.00000000"]]
LISTS_OF_REALS = [[0.1, 16777216], [], None, [1e-7]]


def test_numbers_in_json_are_those_of_the_server() -> None:
    text = written(json_rows, NUMBERS)
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["decimal"] for row in rows] == [*DECIMALS, None]
    assert [row["real"] for row in rows] == [0.1, 1e20, "-inf", None]
    assert [row["decimals"] for row in rows] == LISTS_OF_DECIMALS
    assert [row["reals"] for row in rows] == LISTS_OF_REALS
    assert [row["text"] for row in rows] == NUMBERS["text"].to_pylist()


@pytest.mark.parametrize("on_screen", [False, True])
def test_numbers_in_csv_are_those_of_the_server(on_screen: bool) -> None:
    text = written(csv_rows, NUMBERS, on_screen=on_screen)
    assert text.splitlines()[1].startswith("0.0000000000,0.1,")  # without quotes, so that readers see numbers
    rows = [*csv.DictReader(io.StringIO(text, newline=""))]
    assert [row["decimal"] for row in rows] == [*DECIMALS, ""]
    assert [row["real"] for row in rows] == ["0.1", "1e+20", "-inf", ""]
    assert [json.loads(row["decimals"] or "null") for row in rows] == LISTS_OF_DECIMALS
    assert [json.loads(row["reals"] or "null") for row in rows] == LISTS_OF_REALS
    assert [row["text"] for row in rows] == NUMBERS["text"].to_pylist()


def test_numbers_on_a_screen_are_those_of_the_server() -> None:
    cells = {name: [*cell_texts(NUMBERS[name].combine_chunks())] for name in NUMBERS.column_names}
    assert cells["decimal"] == [*DECIMALS, ""]
    assert cells["real"] == ["0.1", "1e+20", "-inf", ""]
    assert cells["decimals"] == ['["0.00000010", null]', "[]", "", '["7.00000000"]']
    assert cells["reals"] == ["[0.1, 16777216.0]", "[]", "", "[1e-07]"]


@pytest.mark.parametrize("to", ["csv", "jsonl"])
def test_a_single_column_loses_no_null(to: str, tmp_path: Path) -> None:
    """Readers leave out empty lines, so CSV of a column with nulls is refused."""
    out = tmp_path / f"out.{to}"
    result = run("decode", CASE.path, "--columns", "table_name", "-o", out)
    if to == "jsonl":
        assert [json.loads(line)["table_name"] for line in out.read_text().splitlines()] == [
            row["table_name"] for row in expected_rows()
        ]
        return
    assert result.exit_code == 2
    assert "single column table_name" in result.stderr
    assert not [*tmp_path.iterdir()]
    for columns in ("table_name,kind", "message"):
        assert run("decode", CASE.path, "--columns", columns, "-o", out).exit_code == 0


def test_csv_on_a_screen_holds_nothing_that_steers_it() -> None:
    shown = written(csv_rows, on_screen=True)
    assert r'"\x1b[31m\x9b\u202e"' in shown
    assert r'"a ""b"",\r\nc"' in shown
    assert all(character.isprintable() for character in shown.replace("\n", ""))
