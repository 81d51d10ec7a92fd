"""What does not fit is in the rejects file, in the lake or left out, as the mode says."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.lake import Lake
from wireformat.lake.rejects import Rejects

from .reading import read
from .writing import MESSAGES, Stopped, capture_of, inserts_of_types


@pytest.mark.parametrize("name", ["rejects.csv", "rejects.JSONL"])
def test_rejects_of_another_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match=f"option rejects: {name}: rejects are Parquet"):
        capture_of(MESSAGES, mode="PERMISSIVE").write(tmp_path / "lake", rejects=tmp_path / name)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_rejects(mode: str, format: str, tmp_path: Path) -> None:
    """Nothing is lost: what cannot be read, and rows with values that do not fit, with their texts."""
    messages = [*inserts_of_types(("1", "integer"), ("infinity", "date"), ("2026-11-22", "date")), MESSAGES[0][:-3]]
    path = tmp_path / "rejects.parquet"
    capture = capture_of(messages, mode=mode)
    result = capture.write(
        tmp_path / "lake", format=format, schemas={"a.t": {"id": "integer", "v": "date"}}, rejects=path
    )
    found = read(tmp_path / "lake", ("a", "t"))
    assert found["id"].to_pylist() == ([0, 1, 2] if mode == "PERMISSIVE" else [2])
    gc.collect()
    assert not [*tmp_path.glob(".*")]
    rejects = pq.read_table(path).to_pylist()
    by_kind = {kind: [row for row in rejects if row["kind"] == kind] for kind in ("INSERT", "CORRUPT")}
    assert [dict(row["new"])["v"] for row in by_kind["INSERT"]] == ["1", "infinity"]
    assert all("column v" in row["error"] and row["table_name"] == "t" for row in by_kind["INSERT"])
    assert [row["message"] for row in rejects if row["kind"] == "INSERT"] == [0, 1]
    (corrupt,) = by_kind["CORRUPT"]
    assert corrupt["raw"] in messages[-1]
    assert corrupt["error"]
    last = result.to_pylist()[-1]
    assert (last["table_name"], last["corrupt"]) == (None, 1)
    assert result.to_pylist()[0]["corrupt"] == 2
    assert result.to_pylist()[0]["dropped"] == (2 if mode == "DROPMALFORMED" else 0)


def test_a_repeated_write_keeps_the_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake has the transactions of their rows, so it does not see them again. No row comes twice."""
    path, messages = (
        tmp_path / "r.parquet",
        [*inserts_of_types(("1", "integer"), ("2026-11-22", "date")), MESSAGES[0][:-3]],
    )

    def write_rejects(some: list[bytes]) -> list[dict[str, Any]]:
        capture = capture_of(some, mode="DROPMALFORMED")
        capture.write(tmp_path / "lake", schemas={"a.t": {"id": "integer", "v": "date"}}, rejects=path)
        return list(pq.read_table(path).to_pylist())

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "commit", lambda lake, position: None)
        first = write_rejects(messages)
    assert sorted(row["kind"] for row in first) == ["CORRUPT", "INSERT"]
    for _ in range(2):
        assert write_rejects(messages) == first
    more = [*messages, MESSAGES[1][:-3]]
    assert len(write_rejects(more)) == 3
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(wf.OptionError, match="is not a rejects file"):
        write_rejects(messages)
    assert pq.read_table(path).to_pylist() == [{"id": 1}]


def test_a_rejects_file_that_was_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed leaves it; the next write to the lake writes to it again."""
    path = tmp_path / "r.parquet"
    capture = capture_of([*MESSAGES, MESSAGES[0][:-3]], mode="PERMISSIVE")

    def stop(rejects: Rejects) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Rejects, "close", stop)
        patched.setattr(Rejects, "discard", lambda rejects: None)
        with pytest.raises(Stopped):
            capture.write(tmp_path / "lake" / ".." / "lake", rejects=path)
    assert [found.name for found in tmp_path.iterdir() if found.name.endswith("-r.parquet.part")]
    capture.write(tmp_path / "lake", rejects=path)
    assert pq.read_table(path)["kind"].to_pylist() == ["CORRUPT"]
    assert {found.name for found in tmp_path.iterdir()} == {"lake", "r.parquet"}


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_pipe_is_not_replaced(make: Callable[[Path], object], tmp_path: Path) -> None:
    """As root, /dev/null would have become a file."""
    path = tmp_path / "rejects"
    make(path)
    with pytest.raises(wf.OptionError, match="is not a rejects file"):
        capture_of(MESSAGES, mode="PERMISSIVE").write(tmp_path / "lake", rejects=path)
    assert [*tmp_path.iterdir()] == [path]
    assert not path.is_file()


def test_a_manifest_is_not_replaced(tmp_path: Path) -> None:
    """Also where there is none yet: that of the lake itself would come after it."""
    with pytest.raises(wf.OptionError, match="is not a rejects file"):
        capture_of(MESSAGES, mode="PERMISSIVE").write(tmp_path, rejects=tmp_path / "_wireformat.json")
    assert [*tmp_path.iterdir()] == []


def test_modes_without_a_rejects_file(tmp_path: Path) -> None:
    messages = inserts_of_types(("1", "integer"), ("2026-11-22", "date"))
    schemas = {"a.t": {"id": "integer", "v": "date"}}
    with pytest.raises(wf.BadCell, match=r"a\.t.*column v"):
        capture_of(messages).write(tmp_path / "failfast", schemas=schemas)
    assert not (tmp_path / "failfast" / "a").exists() or not [*(tmp_path / "failfast").rglob("*.parquet*")]
    capture_of(messages, mode="PERMISSIVE").write(tmp_path / "permissive", schemas=schemas)
    assert [bool(row) for row in read(tmp_path / "permissive", ("a", "t"))["_error"].to_pylist()] == [True, False]
    result = capture_of(messages, mode="DROPMALFORMED").write(tmp_path / "drop", schemas=schemas)
    assert result["dropped"].to_pylist() == [1]
    with pytest.raises(wf.OptionError, match="option rejects"):
        capture_of(messages).write(tmp_path / "none", rejects=tmp_path / "r.parquet")


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_delta_table_of_which_all_rows_were_left_out(state: str, tmp_path: Path) -> None:
    """It is listed, without a folder that does not exist, until it has rows."""
    bad, good = (inserts_of_types((value, "date")) for value in ("infinity", "2026-11-22"))
    given: dict[str, Any] = {"format": "delta", "state": state, "keys": ["id"] if state == "latest" else None}
    result = capture_of(bad, mode="DROPMALFORMED").write(tmp_path, **given).to_pylist()
    assert [(row["table_name"], row["folder"], row["dropped"]) for row in result] == [("t", None, 1)]
    assert wf.lake.tables(tmp_path)["folder"].to_pylist() == [None]
    (made,) = capture_of(good, drop_resent=False).write(tmp_path, **given)["folder"].to_pylist()
    assert wf.lake.tables(tmp_path)["folder"].to_pylist() == [made]
    assert Path(made).is_dir()
