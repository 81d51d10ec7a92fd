"""A filter that no table of the input matches is told, with the tables that it may mean."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wireformat.cli.decoding import TableFilter

from .. import handmade
from ..handmade_pgoutput import DESCRIBED, ROWS
from .commands import run

NAMES = ["public.orders", "public.order_lines", "sales.invoices", 'public."Order"']


def change(name: str) -> bytes:
    return handmade.message(change_body(name))


def change_body(name: str) -> bytes:
    schema, table = (part.strip('"').encode() for part in name.split("."))
    return handmade.change(b"I", schema, table, handmade.new(handmade.cell(b"id", 20, b"1")))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.bin"
    path.write_bytes(handmade.message(handmade.BEGIN, *map(change_body, NAMES), handmade.commit()))
    return path


TOLD = {
    "public.order": "did you mean public.Order or public.orders or public.order_lines?",
    "PUBLIC.ORDERS": "did you mean public.orders or public.Order or public.order_lines?",
    "*.invoice": "did you mean sales.invoices?",
    "x.*": "there are public.Order, public.order_lines, public.orders, sales.invoices",
    '"a.b"."*"': "table of the input; there are public.Order, public.order_lines, public.orders, sales.invoices",
}


@pytest.mark.parametrize("pattern", TOLD)
@pytest.mark.parametrize("command", ["show", "decode", "convert", "write"])
def test_it_is_told(command: str, pattern: str, capture: Path, tmp_path: Path) -> None:
    more = {
        "show": (),
        "decode": ("-o", tmp_path / "o.csv"),
        "convert": ("-t", "gaussdb-binary", "-o", tmp_path / "o.arrow"),
        "write": ("--to", tmp_path / "lake"),
    }
    result = run(command, "--tables", f"public.orders,{pattern}", capture, *more[command])
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if line.startswith("--tables")]
    assert len(told) == 1
    assert told[0].startswith(f"--tables {pattern}: matches no table of the input")
    assert told[0].endswith(TOLD[pattern])


def test_a_new_lake_of_no_table_is_not_written(capture: Path, tmp_path: Path) -> None:
    result = run("write", "--tables", "public.ordres", capture, "--to", tmp_path / "lake")
    words = "wireformat: option tables: no table of the stream matches public.ordres, did you mean public.orders or "
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(words)
    assert not (tmp_path / "lake").exists()


def test_a_table_that_was_written_is_not_looked_for(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`write` reads the input again only for patterns for which it has written nothing."""
    monkeypatch.setattr(TableFilter, "look", lambda *_: pytest.fail("the input is read again"))
    result = run("write", "--tables", "public.orders,sales.*", capture, "--to", tmp_path / "lake")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "public.orders" in result.stdout


@pytest.mark.parametrize("pattern", ["public.orders", "*.*", "sales.*", '"public"."Order"', "*.orders,*.invoices"])
def test_what_matches_is_not_told(pattern: str, capture: Path) -> None:
    assert run("show", "--tables", pattern, "--kinds", "COMMIT", capture).stderr == ""


def test_many_tables_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(b"".join(change(f"a.t{number}") for number in range(1200)))
    stderr = run("show", "--tables", "public.orders", path).stderr
    assert stderr.endswith("; there are a.t0, a.t1, a.t10, a.t100, a.t1000 and 1,195 more\n")


def test_an_input_without_tables() -> None:
    result = run("show", "--tables", "public.orders", "-", stdin=handmade.SAMPLES["commit, bare"])
    assert result.stderr == "--tables public.orders: matches no table of the input; it names none\n"


def test_a_relation_is_enough_and_state_goes_from_part_to_part(tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": [DESCRIBED, ROWS["insert"][0]]}), path, row_group_size=1)
    for kinds in ("INSERT", "COMMIT"):
        assert run("show", "-f", "pgoutput", "--tables", "*.*", "--kinds", kinds, path).stderr == ""


def test_bad_records_are_not_in_the_way(capture: Path) -> None:
    cut = handmade.message(handmade.BEGIN[:12])
    result = run("show", "--mode", "PERMISSIVE", "--tables", "public.ordes", "-", stdin=cut + change("public.orders"))
    assert result.stderr.endswith("did you mean public.orders?\n")
    assert result.stdout.count("CORRUPT") == 1


def test_names_are_read_in_the_encoding_given(tmp_path: Path) -> None:
    path = tmp_path / "gbk.bin"
    path.write_bytes(handmade.message(handmade.change(b"I", "模式".encode("gbk"), b"t", handmade.new())))
    stderr = run("show", "--encoding", "gbk", "--tables", "模式.u", path).stderr
    assert stderr == "--tables 模式.u: matches no table of the input, did you mean 模式.t?\n"
