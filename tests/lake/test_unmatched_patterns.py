"""Patterns that match no table of the stream: a new lake would be empty, and would keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.lake.options import LakeOptions

from .histories import messages_of, transactions
from .reading import tables_of
from .writing import KEYS, KINDS

TIME = "2026-11-22 10:00:00+00"
WRONG = ["public.ordres", "sales.*"]
SAID = r"option tables: no table of the stream matches public\.ordres or sales\.\*, did you mean public\.orders"


def stream(format: str, *tables: str) -> list[bytes]:
    """A transaction with a row of each table."""
    begin, commit = {
        "gaussdb-binary": (wf.Begin(lsn=100, first_lsn=100, csn=1), wf.Commit(xid=9, lsn=200)),
        "pgoutput": (
            wf.Begin(xid=9, commit_lsn=100, commit_time=TIME),
            wf.Commit(commit_lsn=100, end_lsn=208, commit_time=TIME),
        ),
        "test-decoding": (wf.Begin(xid=9), wf.Commit(xid=9)),
    }[format]
    events: list[wf.Event] = [begin]
    for number, name in enumerate(tables, 1):
        if format == "pgoutput":
            events.append(
                wf.Relation(
                    relation_id=number,
                    table_schema="public",
                    table_name=name,
                    replica_identity="default",
                    columns=("id",),
                    type_oids=(23,),
                    typmods=(-1,),
                    key_columns=("id",),
                )
            )
        new = wf.TupleData(("id",), ("1",), ("integer",))
        lsn = 100 + number if format == "gaussdb-binary" else None
        events.append(wf.Insert(lsn=lsn, table_schema="public", table_name=name, new=new))
    return [*map(bytes, wf.encode([*events, commit], format))]


@pytest.mark.parametrize("format", ["gaussdb-binary", "pgoutput", "test-decoding"])
@pytest.mark.parametrize(("kind", "state"), KINDS)
def test_nothing_is_written(format: str, kind: str, state: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"format": kind, "state": state, "rejects": tmp_path / "rejects.parquet"}
    capture = wf.Capture(stream(format, "orders", "notes"), format, mode="PERMISSIVE")
    if state == "latest":
        options["keys"] = KEYS
    with pytest.raises(wf.OptionError, match=SAID):
        capture.write(tmp_path / "lake", tables=WRONG, **options)
    assert [*tmp_path.iterdir()] == []
    capture.tables()  # then the list is known beforehand
    with pytest.raises(wf.OptionError, match=SAID):
        capture.write(tmp_path / "lake", tables=WRONG, **options)
    assert [*tmp_path.iterdir()] == []
    capture.write(tmp_path / "lake", tables=["public.orders", *WRONG], **options)
    assert [*tables_of(tmp_path / "lake")] == [("public", "orders")]


@pytest.mark.parametrize(("format", "readings"), [("pgoutput", 1), ("gaussdb-binary", 2)])
def test_a_stream_that_describes_its_tables_is_read_once(format: str, readings: int, tmp_path: Path) -> None:
    read: list[int] = []
    with pytest.raises(wf.OptionError, match=SAID):
        wf.Capture(stream(format, "orders"), format, progress=read.append).write(tmp_path / "lake", tables=WRONG)
    assert len(read) == readings


def test_tables_whose_records_cannot_be_read(tmp_path: Path) -> None:
    """What is not wanted is stepped over, and may be damaged: then the other tables are those of the other records."""
    good, bad = stream("gaussdb-binary", "orders"), stream("gaussdb-binary", "notes")
    capture = wf.Capture([*good, *(one.replace(b"\0\0\0\x011", b"\0\0\0\x01\xff") for one in bad)], "gaussdb-binary")
    with pytest.raises(wf.DecodeError):
        capture.tables()
    with pytest.raises(wf.OptionError, match=SAID):
        capture.write(tmp_path / "lake", tables=WRONG)


@pytest.mark.parametrize("messages", [[], stream("gaussdb-binary")], ids=["no messages", "no tables"])
def test_a_stream_that_names_no_table(messages: list[bytes], tmp_path: Path) -> None:
    """Tables may come later."""
    wf.Capture(messages, "gaussdb-binary").write(tmp_path / "lake", tables=["public.orders"])
    later = wf.Capture(messages_of([*transactions(20)]), "gaussdb-binary")
    later.write(tmp_path / "lake", tables=["public.orders"])
    assert [*tables_of(tmp_path / "lake")] == [("public", "orders")]


def test_a_later_write_without_changes_of_the_tables(tmp_path: Path) -> None:
    for table in ("orders", "notes"):
        capture = wf.Capture(stream("gaussdb-binary", table), "gaussdb-binary")
        capture.write(tmp_path / "lake", tables=["public.orders"])
    assert [*tables_of(tmp_path / "lake")] == [("public", "orders")]


def test_a_batch_of_a_slot(tmp_path: Path) -> None:
    """The next one may have the tables."""
    capture = wf.Capture(stream("pgoutput", "notes"), "pgoutput")
    given: dict[str, Any] = dict.fromkeys(
        ("partition_by", "keys", "schemas", "rejects", "filesystem", "storage_options")
    )
    patterns = [("public", "orders")]
    options = LakeOptions.check(
        format="parquet", state="changes", tables=patterns, mode="FAILFAST", is_batch=True, **given
    )
    capture.write_some(tmp_path / "lake", options, patterns)
    assert json.loads((tmp_path / "lake" / "_wireformat.json").read_text())["patterns"] == ["public.orders"]
