"""Parts of a stream that are written again, with the position before them, onto a lake that has them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .reading import read_all, values

FORMAT = "pgoutput"
TIME = "2026-11-22 10:00:00+00"
KINDS = [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")]


def capture_of(messages: list[bytes], after: CapturePosition | None = None) -> wf.Capture:
    return wf.Capture(messages, FORMAT, after=after)


def described(*columns: str) -> wf.Relation:
    return wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity="default",
        columns=columns,
        type_oids=(25,) * len(columns),
        typmods=(-1,) * len(columns),
        key_columns=columns[:1],
    )


def insert(**values: str) -> wf.Event:
    new = wf.TupleData((*values,), (*values.values(),), ("text",) * len(values))
    return wf.Insert(table_schema="public", table_name="t", new=new)


def transaction(lsn: int, *events: wf.Event) -> list[wf.Event]:
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=TIME)
    return [begin, *events, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]


def parts_of_an_altered_table() -> tuple[list[bytes], list[bytes], list[bytes]]:
    """The table gets another column in the middle of the second part."""

    first = transaction(10, described("id"), insert(id="1"))
    second = [*transaction(20, insert(id="2")), *transaction(30, described("id", "v"), insert(id="3", v="x"))]
    third = transaction(40, insert(id="4", v="y"))
    messages = [*wf.encode([*first, *second, *third], FORMAT)]
    ends = len(first), len(first) + len(second)
    return messages[: ends[0]], messages[ends[0] : ends[1]], messages[ends[1] :]


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_part_in_which_a_table_is_altered(format: str, state: str, tmp_path: Path) -> None:
    first, second, third = parts_of_an_altered_table()
    options: dict[str, Any] = {"format": format, "state": state}
    capture_of(first).write(tmp_path, **options)
    before = wf.lake.position(tmp_path)
    capture_of(second, before).write(tmp_path, **options)
    reached, rows = wf.lake.position(tmp_path), read_all(tmp_path)
    again = capture_of(second, before)
    assert sum(again.write(tmp_path, **options)["rows"].to_pylist()) == 0
    now = wf.lake.position(tmp_path)
    assert now == again.position == CapturePosition.from_json(now.to_json())
    assert (now.relations, now.delivered.lsn) == (reached.relations, reached.delivered.lsn)
    assert read_all(tmp_path) == rows
    capture_of([*second, *third], before).write(tmp_path, **options)
    assert read_all(tmp_path)["public", "t"]["id"].to_pylist() == ["1", "2", "3", "4"]
    assert read_all(tmp_path)["public", "t"]["v"].to_pylist() == [None, None, "x", "y"]


def test_less_of_a_part(tmp_path: Path) -> None:
    """The lake stays where it is, with the relations that the rest of the stream needs."""
    first, second, third = parts_of_an_altered_table()
    capture_of(first).write(tmp_path)
    before = wf.lake.position(tmp_path)
    capture_of(second, before).write(tmp_path)
    reached = wf.lake.position(tmp_path)
    capture_of(second[:3], before).write(tmp_path)
    assert wf.lake.position(tmp_path) == reached
    capture_of(third, reached).write(tmp_path)
    assert read_all(tmp_path)["public", "t"]["v"].to_pylist() == [None, None, "x", "y"]


def test_the_next_part_with_an_old_position(tmp_path: Path) -> None:
    """Where the messages begin counts, not the position that is given."""
    first, second, third = parts_of_an_altered_table()
    capture_of(first).write(tmp_path)
    before = wf.lake.position(tmp_path)
    capture_of(second, before).write(tmp_path)
    capture_of(third, before).write(tmp_path)
    assert read_all(tmp_path)["public", "t"]["v"].to_pylist() == [None, None, "x", "y"]


def test_a_part_without_its_position(tmp_path: Path) -> None:
    first, second, _ = parts_of_an_altered_table()
    capture_of(first).write(tmp_path)
    capture_of(second).write(tmp_path)
    rows = read_all(tmp_path)
    with pytest.raises(wf.DecodeError, match="pass as `after` the position where the input begins"):
        capture_of(second).write(tmp_path)
    assert read_all(tmp_path) == rows


@pytest.mark.parametrize(
    ("format", "state", "seed"),
    [("parquet", "changes", 1), ("parquet", "changes", 3), *((*kind, seed) for kind in KINDS[1:] for seed in (1, 4))],
)
def test_parts_of_a_stream(format: str, state: str, seed: int, tmp_path: Path) -> None:
    """Each part begins with the oldest message that is needed, and comes again, also an earlier one.

    With these seeds, no column of a Delta table is widened.
    """
    chance = random.Random(seed)
    messages = [*map(bytes, wf.encode(wf.testing.stream(3, 40, seed=seed), FORMAT))]
    options: dict[str, Any] = {"format": format, "state": state}
    if state == "latest":
        options["keys"] = ["id"]
    capture_of(messages).write(tmp_path / "whole", **options)
    starts: list[tuple[int, CapturePosition | None]] = [(0, None)]
    ends = sorted(chance.sample(range(len(messages)), 5))
    for end in [*ends, len(messages)]:
        for start, after in starts[-1:] + chance.sample(starts, 1):
            capture_of(messages[start:end], after).write(tmp_path / "parts", **options)
        position = wf.lake.position(tmp_path / "parts")
        open = capture_of(messages[:end]).open()
        begun = min(open["message"].to_pylist(), default=end)
        starts.append((begun, position))
    whole, parts = (read_all(tmp_path / name) for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for table, rows in whole.items():
        # rows that were written before a column was added do not list it
        columns = [name for name in sorted(rows.column_names) if name not in ("_unchanged", "_old")]
        assert values(parts[table].select(columns)) == values(rows.select(columns)), table


def prepared(xid: int, lsn: int, *events: wf.Event, streamed: bool = False) -> list[wf.Event]:
    facts: dict[str, Any] = {"xid": xid, "gid": "g"}
    if streamed:
        blocks = [wf.StreamStart(xid=xid, first_segment=True), *events, wf.StreamStop()]
        return [*blocks, wf.StreamPrepare(lsn=lsn, end_lsn=lsn + 4, prepare_time=TIME, **facts)]
    begin = wf.Begin(lsn=lsn, end_lsn=lsn + 4, prepare_time=TIME, **facts)
    return [begin, *events, wf.Prepare(lsn=lsn, end_lsn=lsn + 4, prepare_time=TIME, **facts)]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_next_part_begins_with_a_prepared_transaction(streamed: bool, tmp_path: Path) -> None:
    """It is the oldest message that the lake needs, so the relations are those of the lake."""
    old, new = described("id", "v"), described("id", "w")
    insert_g = insert(id="5", w="5")
    if streamed:
        insert_g = replace(insert_g, xid=25)
    of_g = prepared(25, 25, *([replace(new, xid=25)] if streamed else []), insert_g, streamed=streamed)
    parts = [
        transaction(10, old, insert(id="1", v="1")),
        [*transaction(20, insert(id="2", v="2")), *transaction(22, new, insert(id="3", w="3"))],
        of_g,
        transaction(30, insert(id="4", w="4")),
        [wf.CommitPrepared(xid=25, gid="g", commit_lsn=40, end_lsn=44, commit_time=TIME)],
        transaction(50, insert(id="6", w="6")),
    ]
    messages = [*wf.encode([event for part in parts for event in part], FORMAT)]
    bounds = [0]
    for part in parts:
        bounds.append(bounds[-1] + len(part))
    assert bounds[-1] == len(messages)
    capture_of(messages[: bounds[1]]).write(tmp_path)
    before = wf.lake.position(tmp_path)
    capture_of(messages[bounds[1] : bounds[4]], before).write(tmp_path)
    capture_of(messages[bounds[2] : bounds[5]], before).write(tmp_path)
    capture_of(messages[bounds[5] :], wf.lake.position(tmp_path)).write(tmp_path)
    rows = {row["id"]: row for row in read_all(tmp_path)["public", "t"].to_pylist()}
    assert {key: row["w"] for key, row in rows.items()} == {"1": None, "2": None, **{key: key for key in "3456"}}
    assert [rows[key]["v"] for key in "12"] == ["1", "2"]
