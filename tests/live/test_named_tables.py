"""Tables that options name and the publication does not have: `follow` warns of them, since they may come later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.live import Progress

from ..cli.commands import run
from .databases import Database, told

SAID = "no table of the publication is public.tt, did you mean public.t?; correct the name, or add the table"


def warned(db: Database, lake: Path, **options: Any) -> set[str]:
    """What `follow` warns of, in all that it reports."""
    found: list[Progress] = []
    db.follow(lake, create_slot=True, on_progress=found.append, **options)
    assert found
    return {warning for progress in found for warning in progress.warnings}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keys", {"public.tt": ["id"], "public.t": ["id"]}),
        ("partition_by", {"public.tt": "id", "public.t": "name"}),
        ("schemas", {"public.tt": None}),
        ("tables", ["public.t", "public.tt"]),
    ],
)
def test_a_misspelt_table_is_told(db: Database, tmp_path: Path, name: str, value: Any) -> None:
    more = {"format": "delta", "state": "latest"} if name == "keys" else {}
    (warning,) = warned(db, tmp_path / "lake", **{name: value}, **more)
    assert warning.startswith(f"{name}: {SAID}")


def test_tables_that_are_there_are_no_reason_to_warn(db: Database, tmp_path: Path) -> None:
    db.execute('create table "odd Name" (id int primary key)', 'alter publication p add table "odd Name"')
    options = {"tables": ["public.*"], "partition_by": {'public."odd Name"': "id"}}
    assert warned(db, tmp_path / "lake", **options) == set()


@pytest.mark.parametrize("pattern", ["public.parts_2", "public.parts_2a", "*.parts_2a"])
@pytest.mark.parametrize("publication", [["whole"], ["leaves", "whole"]])
def test_partitions_whose_rows_are_sent_as_those_of_their_table(
    db: Database, tmp_path: Path, publication: list[str], pattern: str
) -> None:
    db.execute(
        "create table parts (id int primary key) partition by range (id)",
        "create table parts_2 partition of parts for values from (10) to (20) partition by range (id)",
        "create table parts_2a partition of parts_2 for values from (10) to (15)",
        "create publication whole for table parts with (publish_via_partition_root)",
        "create publication leaves for table parts_2",
    )
    told = f"the publication sends the rows of {pattern} as those of public.parts; name that table"
    lake = tmp_path / "lake"
    assert warned(db, lake, publication=publication, tables=[pattern]) == {f"tables: {told}"}
    db.execute("insert into parts values (11)")
    assert warned(db, lake, publication=publication, tables=[pattern]) == {f"tables: {told}"}
    assert wf.lake.tables(lake).num_rows == 0


def test_partitions_whose_rows_are_sent_as_their_own(db: Database, tmp_path: Path) -> None:
    db.execute(
        "create table parts (id int primary key) partition by range (id)",
        "create table parts_1 partition of parts for values from (0) to (10)",
        "create publication leaves for table parts",
    )
    lake = tmp_path / "lake"
    assert warned(db, lake, publication="leaves", tables=["public.parts_1"]) == set()
    db.execute("insert into parts values (1)")
    assert warned(db, lake, publication="leaves", tables=["public.parts_1"]) == set()
    assert told(lake, "public.parts_1") == [("insert", 1)]


@pytest.mark.parametrize(("before", "now"), [("p", "q"), ("p", ["p", "q"]), (["p", "q"], "q")])
def test_another_publication_on_the_same_lake(
    db: Database, tmp_path: Path, before: str | list[str], now: str | list[str]
) -> None:
    """A table that only one of them publishes has a gap in the lake, of which nothing else tells."""
    db.execute("create table u (id int primary key)", "create publication q for table u")
    lake = tmp_path / "lake"
    assert warned(db, lake, publication=before) == set()
    db.execute("insert into u values (1)")
    assert warned(db, lake, publication=before) == set()
    db.execute("insert into u values (2)")
    (warning,) = warned(db, lake, publication=now)
    names = [", ".join([one] if isinstance(one, str) else one) for one in (before, now)]
    assert warning.startswith(f"publication: the lake was written with {names[0]}, and goes on with {names[1]}: ")
    assert f"pass {names[0]} again" in warning
    assert warned(db, lake, publication=now) == set()


def test_on_the_command_line(db: Database, tmp_path: Path) -> None:
    """Each warning is printed once, and the run goes on."""
    db.execute(
        f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')", "insert into t values (1, 'a', 1)"
    )
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
    done = run("follow", db.dsn, *options, "--tables", "public.t,public.tt", "--metrics", "-")
    assert done.exit_code == 0, done.output
    assert done.stderr.count(f"warning: tables: {SAID}") == 1
    for line in done.stdout.splitlines():
        tables, lake = json.loads(line)["warnings"]
        assert tables.startswith(f"tables: {SAID}")
        assert lake.startswith("lake: there is none, it begins where the slot is")
    assert told(tmp_path / "lake") == [("insert", 1)]
