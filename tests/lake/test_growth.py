"""Lakes of many writes, or tables: what a write reads and writes of earlier ones, and what a table says of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import wireformat as wf
from wireformat.lake.stored import manifest
from wireformat.lake.stored.store import Store

from .histories import TABLES, messages_of, transactions
from .reading import manifest_of, read, values

ALL = [*transactions(40)]
MESSAGES = messages_of(ALL)
PARTS = [messages_of(ALL[begin : begin + 4]) for begin in range(0, len(ALL), 4)]
BEGUN = ".wireformat-begun"


def write(messages: list[bytes], folder: Path) -> None:
    wf.Capture(messages, "gaussdb-binary").write(folder)


def check(folder: Path) -> None:
    for table in TABLES:
        wanted = wf.Capture(MESSAGES, "gaussdb-binary").typed(f"public.{table}").read_all()
        assert values(read(folder, ("public", table))) == values(wanted), table


def test_the_manifest_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of earlier writes are in lists of their own, which are not read or written by later writes."""
    monkeypatch.setattr(manifest, "MOST_FILES", 5)
    touched: list[str] = []
    for name in ("read", "write"):
        method = getattr(Store, name)

        def noted(store: Store, path: str, *rest: Any, method: Any = method) -> Any:
            touched.append(path)
            return method(store, path, *rest)

        monkeypatch.setattr(Store, name, noted)
    monkeypatch.setattr(Store, "files", lambda *_: pytest.fail("all files are looked at"))
    for part in PARTS:
        touched.clear()
        write(part, tmp_path)
        there = manifest_of(tmp_path)
        assert sum(len(table["files"]) for table in there["tables"]) <= 5
        assert {*touched} <= {"_wireformat.json", BEGUN, *there["earlier"][-1:]}
    assert len(there["earlier"]) > 2
    assert not (tmp_path / BEGUN).exists()
    check(tmp_path)


def test_a_list_whose_manifest_was_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake stays as it was, and the next write replaces the list."""
    monkeypatch.setattr(manifest, "MOST_FILES", 0)
    write(PARTS[0], tmp_path)
    before = manifest_of(tmp_path)
    move = Store.move

    def stop(store: Store, path: str, target: str) -> None:
        if target == "_wireformat.json":
            raise OSError("no space left")
        move(store, path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "move", stop)
        with pytest.raises(OSError, match="no space left"):
            write(MESSAGES, tmp_path)
    assert manifest_of(tmp_path) == before
    write(MESSAGES, tmp_path)
    check(tmp_path)
    assert manifest_of(tmp_path)["earlier"] == [f"_wireformat/files-00000{number}.json" for number in (1, 2)]


@pytest.mark.parametrize("text", [None, "{}", json.dumps({"kind": manifest.EARLIER_KIND, "version": 1, "files": 1})])
def test_a_list_that_is_damaged(text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MOST_FILES", 0)
    write(PARTS[0], tmp_path)
    (path,) = (tmp_path / "_wireformat").iterdir()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(wf.StateError, match="files-000001"):
        wf.lake.tables(tmp_path)
    assert wf.lake.position(tmp_path).delivered.transactions, "which does not need the list"


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_no_table_describes_all_others(format: str, tmp_path: Path) -> None:
    """With the relations of all tables in the files or commits of each, these would grow with their square."""
    made = wf.testing.stream(30, transactions=60, seed=5, format="pgoutput")
    capture = wf.Capture([*wf.encode(made, "pgoutput")], "pgoutput")
    capture.write(tmp_path, format=format)
    position = wf.lake.position(tmp_path)
    assert position is not None
    assert len(position.relations) == 30
    if format == "parquet":
        files = tmp_path.rglob("*.parquet")
        texts = [pq.read_metadata(path).metadata[b"wireformat.position"].decode() for path in files]
    else:
        folders = [path.parent for path in tmp_path.rglob("_delta_log")]
        texts = [DeltaTable(folder).history(1)[0]["wireformat.position"] for folder in folders]
    assert len(texts) == 30
    assert {*map(wf.CapturePosition.from_json, texts)} == {position._replace(relations=())}
