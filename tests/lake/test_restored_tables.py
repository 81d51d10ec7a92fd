"""Delta tables that others change between two writes: rows that were taken away are noticed, other changes are not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.lake.delta import folder as delta_module

from .reading import read
from .writing import MESSAGES, check, expected, write

pytestmark = pytest.mark.parametrize("state", ["changes", "latest"])

ORDERS = Path("public", "orders")


@pytest.fixture(autouse=True, params=["kept", "opened"])
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that the process has kept since the write before, and those that it opens."""
    if request.param == "opened":
        monkeypatch.setattr(delta_module, "_MOST_COMMITS", 0)
    monkeypatch.setattr(delta_module, "_KEPT", {})


def written_twice(folder: Path, state: str) -> deltalake.DeltaTable:
    for end in (20, 40):
        write(MESSAGES[:end], folder, "delta", state)
    return deltalake.DeltaTable(folder / ORDERS)


def by_version(table: deltalake.DeltaTable, version: int) -> None:
    table.restore(version)


def by_time(table: deltalake.DeltaTable, version: int) -> None:
    (commit,) = (one for one in table.history() if one["version"] == version)
    table.restore(datetime.fromtimestamp(commit["timestamp"] / 1000, timezone.utc))


def by_spark(table: deltalake.DeltaTable, version: int) -> None:
    """Whose commit names the time as a text."""
    table.restore(version)
    log = max(Path(table.table_uri.removeprefix("file://")).glob("_delta_log/*.json"))
    log.write_text(log.read_text().replace(f'{{"version":"{version}"}}', '{"timestamp":"2026-11-26 10:00:00"}'))


@pytest.mark.parametrize("restore", [by_version, by_time, by_spark])
def test_a_restored_table(restore: Callable[[deltalake.DeltaTable, int], None], state: str, tmp_path: Path) -> None:
    """What the error says to do works."""
    table = written_twice(tmp_path, state)
    last = table.version()
    restore(table, 0)
    table.optimize.compact()
    position = wf.lake.position(tmp_path)
    for _ in range(2):
        with pytest.raises(wf.LakeError, match=rf"{ORDERS}.*restored.*restore\({last}\)"):
            write(MESSAGES, tmp_path, "delta", state)
    assert wf.lake.position(tmp_path) == position
    deltalake.DeltaTable(tmp_path / ORDERS).restore(last)
    write(MESSAGES, tmp_path, "delta", state)
    check(MESSAGES, tmp_path, state)


def test_an_older_copy_in_its_place(state: str, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    write(MESSAGES[:20], folder, "delta", state)
    shutil.copytree(folder / ORDERS, tmp_path / "copy")
    write(MESSAGES[:40], folder, "delta", state)
    (folder / ORDERS).rename(tmp_path / "newer")
    shutil.copytree(tmp_path / "copy", folder / ORDERS)
    with pytest.raises(wf.LakeError, match=rf"{ORDERS}.*an older one"):
        write(MESSAGES, folder, "delta", state)
    shutil.rmtree(folder / ORDERS)
    (tmp_path / "newer").rename(folder / ORDERS)
    write(MESSAGES, folder, "delta", state)
    check(MESSAGES, folder, state)


def test_an_older_copy_of_the_lake(state: str, tmp_path: Path) -> None:
    """Its manifest is as old as its tables."""
    write(MESSAGES[:20], tmp_path / "lake", "delta", state)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    write(MESSAGES[:40], tmp_path / "lake", "delta", state)
    shutil.rmtree(tmp_path / "lake")
    (tmp_path / "copy").rename(tmp_path / "lake")
    write(MESSAGES, tmp_path / "lake", "delta", state)
    check(MESSAGES, tmp_path / "lake", state)


def test_what_others_may_do(state: str, tmp_path: Path) -> None:
    """They compact, vacuum, append, delete, and restore what they have done themselves."""
    table = written_twice(tmp_path, state)
    last = table.version()
    rows = table.to_pyarrow_table()
    table.delete()
    table.restore(last)
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    table.restore(table.version() - 1)
    table.create_checkpoint()
    write(MESSAGES[:50], tmp_path, "delta", state)
    check(MESSAGES[:50], tmp_path, state)
    table = deltalake.DeltaTable(tmp_path / ORDERS)
    foreign = rows.slice(0, 1).set_column(0, "id", [[-1]])
    deltalake.write_deltalake(table, foreign.cast(rows.schema), mode="append")
    write(MESSAGES, tmp_path, "delta", state)
    assert len(read(tmp_path, ("public", "orders"))) == len(expected(MESSAGES, "orders", state)) + 1


def test_a_manifest_of_an_earlier_release(state: str, tmp_path: Path) -> None:
    """It does not say how far each table is; a table that was restored is noticed all the same."""
    table = written_twice(tmp_path, state)
    path = tmp_path / "_wireformat.json"
    manifest = json.loads(path.read_text())
    for one in manifest["tables"]:
        del one["reached"]
    path.write_text(json.dumps(manifest))
    write(MESSAGES[:50], tmp_path, "delta", state)
    check(MESSAGES[:50], tmp_path, state)
    table.update_incremental()
    table.restore(0)
    with pytest.raises(wf.LakeError, match="restored"):
        write(MESSAGES, tmp_path, "delta", state)


def test_a_log_that_was_cleaned(state: str, tmp_path: Path) -> None:
    """A checkpoint has the position, but not the commit: then nothing can be said about it, and the write goes on."""
    table = written_twice(tmp_path, state)
    deltalake.write_deltalake(table, table.to_pyarrow_table().slice(0, 0), mode="append")
    table = deltalake.DeltaTable(tmp_path / ORDERS)
    table.create_checkpoint()
    for commit in sorted((tmp_path / ORDERS).glob("_delta_log/*.json"))[:-1]:
        commit.unlink()
    write(MESSAGES, tmp_path, "delta", state)
    check(MESSAGES, tmp_path, state)


def test_a_table_that_spark_has_restored_to_its_first_version(state: str, tmp_path: Path) -> None:
    """Which has all rows. Spark writes the version as a number."""
    write(MESSAGES[:20], tmp_path, "delta", state)
    table = deltalake.DeltaTable(tmp_path / ORDERS)
    table.optimize.z_order(["id"])
    table.restore(0)
    log = max((tmp_path / ORDERS).glob("_delta_log/*.json"))
    log.write_text(log.read_text().replace('{"version":"0"}', '{"version":0,"timestamp":null}'))
    write(MESSAGES, tmp_path, "delta", state)
    check(MESSAGES, tmp_path, state)


def test_other_partitions(state: str, tmp_path: Path) -> None:
    """Files of the lake would be added without the values of their columns. What the error says to do works."""
    table = written_twice(tmp_path, state)
    rows = table.to_pyarrow_table()
    for columns, is_refused in ((["id"], True), ([], False)):
        deltalake.write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=columns)
        if is_refused:
            with pytest.raises(wf.LakeError, match=rf"{ORDERS} with .* by \[\], got .* \[.id.\]: overwrite"):
                write(MESSAGES, tmp_path, "delta", state)
    write(MESSAGES, tmp_path, "delta", state)
    check(MESSAGES, tmp_path, state)


NOT_NULL = pa.schema([pa.field("id", pa.int32(), nullable=False)])
GENERATED = pa.schema([pa.field("id", pa.int32(), metadata={"delta.invariants": '{"expression": "id > 0"}'})])


@pytest.mark.parametrize("rule", ["CHECK", NOT_NULL, GENERATED])
def test_rules_for_rows(rule: str | pa.Schema, state: str, tmp_path: Path) -> None:
    """deltalake does not check them in files that are added; a MERGE keeps them."""
    table = written_twice(tmp_path, state)
    if isinstance(rule, str):
        table.alter.add_constraint({"small": "id < 1000000"})
        name = "delta.constraints.small"
    else:
        rows = table.to_pyarrow_table()
        index, field = rows.schema.get_field_index("id"), rule.field(0)
        rows = rows.set_column(index, field, rows["id"].cast(field.type))
        deltalake.write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")
        name = "delta.invariants of id" if field.nullable else "NOT NULL of id"
    if state == "changes":
        position = wf.lake.position(tmp_path)
        with pytest.raises(wf.LakeError, match=rf"{ORDERS} without rules for its rows, .*, got {name}: drop them"):
            write(MESSAGES, tmp_path, "delta", state)
        assert wf.lake.position(tmp_path) == position
    else:
        write(MESSAGES, tmp_path, "delta", state)
        check(MESSAGES, tmp_path, state)
