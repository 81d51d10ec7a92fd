"""Delta tables that a process keeps open between its writes: they are those of the log, whoever writes to it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import deltalake
import pytest

import wireformat as wf
from wireformat.lake.delta import folder as delta_module
from wireformat.lake.delta.folder import DeltaFolder
from wireformat.lake.stored.names import folder_of

from .histories import TABLES, messages_of, transactions
from .reading import read_all

TRANSACTIONS = [*transactions(24, more="extra")]
PARTS = [TRANSACTIONS[start : start + 4] for start in range(0, len(TRANSACTIONS), 4)]
OPTIONS = {"changes": {}, "latest": {"keys": ["id"]}}
TABLE = folder_of(("public", TABLES[0]))


def write(folder: Path, parts: Sequence[list[wf.Event]], state: str = "changes") -> None:
    capture = wf.Capture(messages_of(parts), "gaussdb-binary")
    capture.write(folder, format="delta", state=state, **OPTIONS[state])


def held(folder: Path) -> dict[tuple[str, str], list[str]]:
    """The rows of all tables. A write knows only the columns that its messages have: others are in no `_unchanged`."""
    return {
        table: sorted(
            json.dumps(row, sort_keys=True, default=str) for row in rows.drop_columns(["_unchanged"]).to_pylist()
        )
        for table, rows in read_all(folder).items()
    }


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each table is opened."""
    monkeypatch.setattr(delta_module, "_KEPT", {})
    found, opens = Counter[str](), DeltaFolder._open

    def count(folder: DeltaFolder) -> None:
        found[folder._folder] += 1
        opens(folder)

    monkeypatch.setattr(DeltaFolder, "_open", count)
    return found


@pytest.mark.parametrize("state", OPTIONS)
def test_each_is_opened_once(tmp_path: Path, opened: Counter[str], state: str) -> None:
    """At its second write. The position is that of the log, so what comes again is not written again."""
    write(tmp_path / "whole", TRANSACTIONS, state)
    for part in [*PARTS, PARTS[-1], PARTS[0]]:
        write(tmp_path / "lake", part, state)
    assert held(tmp_path / "lake") == held(tmp_path / "whole")
    assert opened == dict.fromkeys((folder_of(("public", table)) for table in TABLES), 1)


def test_only_so_many_are_kept(tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were written last."""
    monkeypatch.setattr(delta_module, "_MOST_COMMITS", 3)
    for part in PARTS[:3]:
        write(tmp_path / "lake", part)
        kept = [one.table.version() for one in delta_module._KEPT.values()]
        assert sum(kept) <= 3
    write(tmp_path / "whole", [event for part in PARTS[:3] for event in part])
    assert held(tmp_path / "lake") == held(tmp_path / "whole")


@pytest.mark.parametrize("state", OPTIONS)
def test_others_write_to_it(tmp_path: Path, opened: Counter[str], state: str) -> None:
    for part in PARTS:
        write(tmp_path / "lake", part, state)
        table = deltalake.DeltaTable(tmp_path / "lake" / TABLE)
        table.optimize.compact()
        table.delete("id < 9")
    write(tmp_path / "whole", TRANSACTIONS, state)
    whole, found = held(tmp_path / "whole"), held(tmp_path / "lake")
    deltalake.DeltaTable(tmp_path / "whole" / TABLE).delete("id < 9")
    assert found != whole
    assert found == held(tmp_path / "whole")


def test_another_lake_in_its_place(tmp_path: Path, opened: Counter[str]) -> None:
    """With logs as long, or shorter."""
    others = [*transactions(24, seed=8)]
    for count in (4, 3):
        for part in PARTS[:4]:
            write(tmp_path / "lake", part)
        moved = tmp_path / f"{count}"
        for start in range(0, 4 * count, 4):
            write(moved, others[start : start + 4])
        shutil.rmtree(tmp_path / "lake")
        moved.rename(tmp_path / "lake")
        write(tmp_path / "lake", others[4 * count :])
        write(tmp_path / "whole", others)
        assert held(tmp_path / "lake") == held(tmp_path / "whole")
        shutil.rmtree(tmp_path / "whole")
        shutil.rmtree(tmp_path / "lake")


@pytest.mark.parametrize("state", OPTIONS)
def test_a_table_that_is_gone(tmp_path: Path, opened: Counter[str], state: str) -> None:
    """Only the later rows would be in a new one, and nothing would say so."""
    write(tmp_path, PARTS[0], state)
    shutil.rmtree(tmp_path / TABLE)
    before = wf.lake.position(tmp_path)
    with pytest.raises(wf.LakeError, match=f"{TABLE}.*got none: put it back"):
        write(tmp_path, PARTS[0] + PARTS[1], state)
    assert wf.lake.position(tmp_path) == before


def insert(lsn: int, id: str) -> wf.Insert:
    return wf.Insert(lsn=lsn, table_schema="public", table_name="t", new=wf.TupleData(("id",), (id,), ("integer",)))


def delete(lsn: int, id: str) -> wf.Delete:
    return wf.Delete(lsn=lsn, table_schema="public", table_name="t", old=wf.TupleData(("id",), (id,), ("integer",)))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([insert(41, "2"), delete(42, "2")], id="a row that comes and goes"),
        pytest.param([delete(41, "9")], id="a row that is not there"),
        pytest.param([delete(41, "1"), insert(42, "1")], id="the same row again"),
    ],
)
def test_changes_that_leave_the_table_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: list[wf.Event]
) -> None:
    """deltalake makes no commit for a MERGE that changes nothing. The log has the position nevertheless."""
    parts: list[list[wf.Event]] = [
        [wf.Begin(lsn=lsn, csn=lsn, first_lsn=lsn), *own, wf.Commit(lsn=lsn + 8, xid=lsn)]
        for lsn, own in ((16, [insert(17, "1")]), (40, changes), (64, [insert(65, "3")]))
    ]
    for count in (1, 2, 3):
        monkeypatch.setattr(delta_module, "_KEPT", {})  # as in another process
        write(tmp_path, parts[:count], "latest")
    (rows,) = read_all(tmp_path).values()
    assert sorted(rows["id"].to_pylist()) == [1, 3]
