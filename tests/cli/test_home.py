"""`~` at the beginning of a path is the home folder, in every place that takes a path."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..lake.histories import messages_of, transactions
from ..lake.reading import manifest_of
from .commands import run

MESSAGES = messages_of([*transactions(8)])
FORMAT = "gaussdb-binary"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a capture; the working folder is another one, which stays empty."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    pq.write_table(pa.table({"value": MESSAGES}), home / "day.parquet")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(elsewhere)
    return home


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_capture_and_its_lake(home: Path, format: str, kind: type) -> None:
    wf.Capture(kind("~/day.parquet"), FORMAT, mode="PERMISSIVE").write(
        kind("~/lake"), format=format, rejects="~/bad.parquet"
    )
    assert wf.lake.position("~/lake") == wf.lake.position(home / "lake")
    assert [Path(folder).relative_to(home) for folder in wf.lake.tables("~/lake")["folder"].to_pylist()]
    assert (home / "bad.parquet").is_file()
    assert wf.Capture(["~/day*.parquet"], FORMAT, column="value").changes().read_all().num_rows
    assert not [*Path().iterdir()]


def test_commands(home: Path) -> None:
    """`--to=~/lake` comes as it is from a shell."""
    for command in (
        ("write", "~/day.parquet", "--to=~/lake", "--mode", "permissive", "--rejects=~/bad.parquet"),
        ("decode", "~/day.parquet", "--output=~/rows.jsonl"),
        ("convert", "~/day.parquet", "--to", FORMAT, "--output=~/again.parquet"),
        ("tables", "~/day.parquet", "--output=~/tables.jsonl"),
        ("typed", "~/day.parquet", "public.orders", "--output=~/orders.jsonl"),
        ("inspect", "~/day.parquet", "--html=~/page.html"),
        ("show", "~/day.parquet"),
    ):
        done = run(*command)
        assert done.exit_code == 0, done.output
    assert manifest_of(home / "lake")["writes"] == 1
    names = {"bad.parquet", "rows.jsonl", "again.parquet", "tables.jsonl", "orders.jsonl", "page.html"}
    assert {path.name for path in home.iterdir()} == names | {"day.parquet", "lake"}
    assert not [*Path().iterdir()]


def test_other_tildes_stay_as_they_are(home: Path) -> None:
    """Those of users that are not there, and those that do not begin a path."""
    for name in ("~no such user", "a~", "./~"):
        wf.Capture(MESSAGES, FORMAT).write(name)
        assert Path.cwd().joinpath(name, "_wireformat.json").is_file()
    assert [path.name for path in home.iterdir()] == ["day.parquet"]
