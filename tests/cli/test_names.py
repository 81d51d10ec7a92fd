"""Names of tables and columns in options: quoted ones, and bytes that are not UTF-8."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer import BadParameter

import wireformat as wf
from wireformat.cli.commands import split_keys
from wireformat.cli.options import parse_schemas, split_lists, split_names

from .commands import run, start

COLUMNS = ("a,b", 'c"d', "e.f")
TABLE = '"my.s"."t=x,y"'
BAD = os.fsdecode(b"v\xff")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A Parquet file with a table whose names need quotes, and an order column that needs them too."""
    types = ("integer", "integer", "text")
    table = {"table_schema": "my.s", "table_name": "t=x,y"}
    rows = [
        wf.Insert(lsn=2 + row, new=wf.TupleData(COLUMNS, (str(row // 2), str(row), "v"), types), **table)
        for row in range(4)
    ]
    messages = [*wf.encode([wf.Begin(lsn=1, csn=5, first_lsn=1), *rows, wf.Commit(lsn=9, xid=4)], "gaussdb-binary")]
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": messages, "s,n": range(len(messages))}), path)
    return path


@pytest.mark.parametrize(
    ("keys", "rows"), [('"a,b"', 2), ('"a,b","c""d"', 4), ("e.f", 1), ('"e.f"', 1), (' "a,b" , e.f', 2)]
)
def test_keys(keys: str, rows: int, capture: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.parquet"
    assert run("latest", capture, TABLE, "--keys", keys, "-o", output).exit_code == 0
    assert pq.read_metadata(output).num_rows == rows


def test_columns_and_order_by(capture: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.csv"
    assert run("decode", capture, "--columns", '"kind",lsn', "-o", output).exit_code == 0
    with output.open() as file:
        assert next(csv.reader(file)) == ["kind", "lsn"]
    result = run("tables", capture, "--order-by", '"s,n"')
    assert (result.exit_code, result.stderr) == (0, "")


def test_keys_and_columns_of_tables() -> None:
    assert split_keys([f'{TABLE}="a,b","c""d",e', "s.t=", "s.a=b=id"]) == {
        TABLE: ["a,b", 'c"d', "e"],
        "s.t": [],
        "s.a=b": ["id"],
    }
    assert split_keys(['s.t="a=b"']) == {"s.t": ["a=b"]}
    assert parse_schemas([f'{TABLE}="a=b" bigint']) == {TABLE: {"a=b": "bigint"}}


def test_names_without_quotes() -> None:
    assert split_names(["a.b, C D", "e'f"]) == ["a.b", "C D", "e'f"]
    assert split_lists(['s."a,b",t.u']) == ['s."a,b"', "t.u"]


@pytest.mark.parametrize("names", ['"', '"a', 'a,"b', '"a"b"', 'a"b', '"a"b,"c"', '"a" "b"'])
def test_quotes_that_do_not_belong_together(names: str, capture: Path) -> None:
    with pytest.raises(BadParameter, match="double quote"):
        split_names([names])
    result = run("tables", capture, "--order-by", names)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value" in result.stderr


@pytest.mark.parametrize("given", ['s.t="a', '"s.t=a', "s.t"])
def test_quotes_that_do_not_belong_together_in_a_setting(given: str) -> None:
    with pytest.raises(BadParameter, match="expected table="):
        split_keys([given])
    with pytest.raises(BadParameter, match=r"expected (table=|columns)"):
        parse_schemas([given])


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are texts there")
@pytest.mark.parametrize(
    "arguments",
    [
        ("typed", "FILE", f"public.{BAD}"),
        ("latest", "FILE", f"public.{BAD}"),
        ("latest", "FILE", "public.t", "--keys", BAD),
        ("typed", "FILE", "public.t", "--schema", f"{BAD} bigint"),
        ("tables", "FILE", "--column", BAD),
        ("tables", "FILE", "--order-by", BAD),
        ("decode", "FILE", "-o", "o.csv", "--tables", f"public.{BAD}"),
        ("decode", "FILE", "-o", "o.csv", "--columns", BAD),
        ("write", "FILE", "--to", BAD),
        ("write", "FILE", "--to", "lake", "--tables", f"public.{BAD}"),
        ("write", "FILE", "--to", "lake", "--schema", f"public.t={BAD} bigint"),
        ("write", "FILE", "--to", "lake", "--keys", f"public.t={BAD}"),
        ("write", "FILE", "--to", "lake", "--partition-by", BAD),
        ("write", "FILE", "--to", "lake", "--mode", "PERMISSIVE", "--rejects", BAD),
    ],
    ids=" ".join,
)
def test_bytes_that_are_not_utf8(
    arguments: tuple[str, ...], capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(capture if argument == "FILE" else argument for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "UTF-8" in result.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == [capture.name]


@pytest.mark.skipif(sys.platform != "linux", reason="not every system has such names of files")
def test_files_with_such_names(capture: Path, tmp_path: Path) -> None:
    messages, output = tmp_path / BAD, tmp_path / f"{BAD}.csv"
    messages.write_bytes(b"".join(pq.read_table(capture)["payload"].to_pylist()))
    assert run("tables", messages).exit_code == 0
    assert run("decode", messages, "-o", output).exit_code == 0
    assert output.exists()
    result = run("tables", capture.rename(tmp_path / f"{BAD}.parquet"))
    assert result.exit_code == 2
    assert result.stderr.endswith(".parquet: expected a name in UTF-8, since it is a Parquet file: rename it\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="names of files are not bytes there")
@pytest.mark.parametrize("name", ["vü.parquet", "v.parquet"])
def test_where_python_does_not_use_utf8(name: str, capture: Path, tmp_path: Path) -> None:
    """The advice is to make it use UTF-8: the name is not at fault."""
    path = capture.rename(tmp_path / name)
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    process = start("decode", path, "-o", tmp_path / "o.csv", "--tables", "public.ü", env=environment)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 2
    assert b"set PYTHONUTF8=1" in stderr
    process = start("decode", path, "-o", tmp_path / "o.csv", env=environment)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == (0 if name.isascii() else 2)
    assert (b"set PYTHONUTF8=1" in stderr, b"rename" in stderr) == (not name.isascii(), False)


def test_show_looks_for_tables_by_their_bytes(capture: Path) -> None:
    result = run("show", capture, "--tables", f"public.{BAD}")
    assert result.exit_code == 0
    assert r"--tables public.v\xff: matches no table of the input" in result.stderr
