"""pgoutput on the command line: captures as Parquet, shown, decoded and converted; the dialect."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import wireformat as wf

from ..engines import rows
from ..golden_cases import find_case
from ..handmade_pgoutput import DESCRIBED, OPENGAUSS, ROWS, STOP, start, streamed
from ..servers.captures import FOLDER, read_capture
from .commands import run

FORMAT = "pgoutput"
NAME = "18-pgoutput-4-two-phase-binary"
CAPTURE = FOLDER / f"{NAME}.parquet"


def write(path: Path, messages: list[bytes]) -> Path:
    pq.write_table(pa.table({"payload": pa.array(messages, pa.binary())}), path)
    return path


def test_it_is_listed() -> None:
    assert "pgoutput" in run("formats").stdout.split()


def test_decode_writes_the_rows(tmp_path: Path) -> None:
    """Of a file that is read in many parts."""
    out = tmp_path / "out.parquet"
    assert run("decode", "-f", FORMAT, CAPTURE, "-o", out).exit_code == 0
    assert rows(pq.read_table(out)) == rows(wf.arrow.changes(read_capture(NAME).messages, FORMAT))


def test_show_prints_a_line_a_record(tmp_path: Path) -> None:
    messages = [start(800), streamed(DESCRIBED), streamed(ROWS["update of a key"][0]), STOP, b"A" + bytes(8)]
    result = run("show", "-f", FORMAT, write(tmp_path / "in.parquet", messages))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "opening a streamed block for transaction TXN 800, its first",
        (
            "RELATION public.t relation_id: 16385 replica_identity: default columns: id, v type_oids: 23, 25 "
            "typmods: -1, -1 key_columns: id xid: 801"
        ),
        (
            'UPDATE public.t new_tuple: {id[typid = 23]: "2", v[typid = 25]: ""} old_value: {id[typid = 23]: "1"} '
            "xid: 801 old_is: key"
        ),
        "closing a streamed block for transaction",
        "aborting streamed (sub)transaction TXN 0 subxid: 0",
    ]


def test_the_dialect(tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", [DESCRIBED, *(message for message, _ in OPENGAUSS.values())])
    out = tmp_path / "out.parquet"
    assert run("show", "-f", FORMAT, path).exit_code == 1
    result = run("show", "-f", FORMAT, "--dialect", "opengauss", path)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1 + len(OPENGAUSS))
    assert run("decode", "-f", FORMAT, "--dialect", "opengauss", path, "-o", out).exit_code == 0
    assert pq.read_table(out)["kind"].to_pylist()[:4] == ["RELATION", "BEGIN", "BEGIN", "DDL"]
    result = run("show", "-f", FORMAT, "--dialect", "oracle", path)
    assert result.exit_code == 2
    assert "option dialect: expected postgresql, opengauss; got 'oracle'" in result.stderr


def test_bytes_without_bounds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.bin"
    path.write_bytes(DESCRIBED)
    result = run("show", "-f", FORMAT, path)
    assert result.exit_code == 2
    assert "do not say where they end" in result.stderr


def test_convert_to_itself(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    result = run("convert", "-f", FORMAT, "-t", FORMAT, FOLDER / "18-pgoutput-4.parquet", "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert pq.read_table(out)["payload"].to_pylist() == read_capture("18-pgoutput-4").messages


def test_convert_from_another_format(tmp_path: Path) -> None:
    """A row brings the description of its table; the LSN is the carrier's."""
    case = find_case("b_many_batch")
    out = tmp_path / "out.parquet"
    only = ("--kinds", "INSERT,UPDATE,DELETE")
    result = run("convert", "-f", case.format, "-t", FORMAT, "--skip", *only, case.path, "-o", out)
    assert result.exit_code == 0
    found = list(wf.decode(pq.read_table(out)["payload"], FORMAT, kinds=["INSERT", "UPDATE", "DELETE"]))
    sent = list(wf.decode(case.array, case.format, kinds=["INSERT", "UPDATE", "DELETE"]))
    assert found
    assert {type(event) for event in found} == {type(event) for event in sent}
    assert found[0].new == sent[0].new


def test_convert_in_the_dialect(tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", [OPENGAUSS["begin of 24 bytes"][0]])
    out = tmp_path / "out.parquet"
    dialect = ("--dialect", "opengauss", "--option", "dialect=opengauss")
    assert run("convert", "-f", FORMAT, "-t", FORMAT, *dialect, path, "-o", out).exit_code == 0
    assert pq.read_table(out)["payload"].to_pylist() == pq.read_table(path)["payload"].to_pylist()
