"""Rows of a table that changes: each chunk reads them as the whole stream does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.typed_tables.batch import TypedOptions
from wireformat.arrow.typed_tables.observations import first_versions
from wireformat.arrow.typed_tables.table import TypedPart
from wireformat.chunks.files import survey

from ..examples import at_most
from .reading import ChunkedReading, divided

TIME = "2026-11-01 01:30:00.123456+00"
VERSIONS: list[dict[str, tuple[str, int, int, str]]] = [
    {"id": ("integer", 23, -1, "1"), "a": ("numeric", 1700, (12 << 16 | 4) + 4, "1.2345"), "b": ("text", 25, -1, "x")},
    {"id": ("integer", 23, -1, "1"), "a": ("numeric", 1700, (6 << 16 | 2) + 4, "1.23"), "b": ("text", 25, -1, "x")},
    {"id": ("integer", 23, -1, "1"), "a": ("numeric", 1700, (6 << 16 | 2) + 4, "1.23")},
    {"id": ("bigint", 20, -1, "1"), "a": ("text", 25, -1, "y"), "c": ("text", 25, -1, "z")},
]
"""The columns of a table over time: type, its OID and modifier, and a value."""


def stream_of(format: str, versions: Sequence[int], updates: Collection[int] = ()) -> list[bytes]:
    """Returns a stream with a transaction for each of these versions: an INSERT, or if it goes on, an UPDATE.

    updates   numbers of transactions that have an UPDATE although the version is another one

    Where UPDATE omits columns that were not sent, it omits the last one.
    """
    described: list[wf.Event] = []
    before = -1
    for number, version in enumerate(versions, 1):
        columns = VERSIONS[version]
        types, oids, typmods, values = zip(*columns.values(), strict=True)
        change: type[wf.Insert] | type[wf.Update] = wf.Update if version == before or number in updates else wf.Insert
        facts: dict[str, Any] = {"table_schema": "s", "table_name": "t", "old": None}
        if format == "pgoutput":
            described.append(wf.Begin(commit_lsn=number, xid=number, commit_time=TIME))
            if version != before:
                relation = wf.Relation(
                    relation_id=7,
                    table_schema="s",
                    table_name="t",
                    replica_identity="default",
                    columns=tuple(columns),
                    type_oids=oids,
                    typmods=typmods,
                    key_columns=("id",),
                )
                described.append(relation)
            new = wf.TupleData(tuple(columns), values, types)
            described.append(change(**facts, new=new, relation_id=7))
            described.append(wf.Commit(commit_lsn=number, end_lsn=number, commit_time=TIME))
        else:
            sent = len(columns) - (change is wf.Update)
            new = wf.TupleData(tuple(columns)[:sent], values[:sent], types[:sent])
            described += [wf.Begin(xid=number), change(**facts, new=new), wf.Commit(xid=number)]
        before = version
    return [*map(bytes, wf.encode(described, format))]


def rows_of_chunks(messages: Sequence[bytes], format: str, cuts: Sequence[int]) -> Iterator[dict[str, Any]]:
    reading = ChunkedReading(divided(messages, cuts), format)
    observed = ((chunk, one) for chunk, summary in enumerate(reading.summaries) for one in summary.observed)
    versions = first_versions(observed, format).get(("s", "t"), {})
    listed = wf.Capture(messages, format).tables()
    for chunk, capture in zip(reversed(range(len(reading.chunks))), reading.captures(), strict=True):
        part = TypedPart(
            "s.t",
            schema=listed,
            options=TypedOptions("FAILFAST", "new", False, False, None),
            evolution="union",
            kept=(),
            format=format,
            current=versions.get(chunk, -1),
        )
        for batch in capture.typed_by(part, "s.t"):
            yield from batch.to_pylist()


@pytest.mark.parametrize("format", ["pgoutput", "mppdb-json"])
@at_most(10)
@given(
    st.lists(st.sampled_from(range(len(VERSIONS))), min_size=1, max_size=8),
    st.sets(st.integers(1, 8)),
    st.lists(st.integers(0, 10_000), max_size=4),
)
def test_versions_of_any_order(format: str, versions: list[int], updates: set[int], cuts: list[int]) -> None:
    messages = stream_of(format, versions, updates)
    wanted = wf.Capture(messages, format).typed("s.t").read_all().to_pylist()
    assert len(wanted) == len(versions)
    found = rows_of_chunks(messages, format, cuts)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_a_column_that_is_not_sent_in_a_later_chunk() -> None:
    """The newest version fits such a row, too, and does not have the column."""
    messages = stream_of("mppdb-json", [1, 1, 2])
    wanted = [None, ["b"], None]
    assert wf.Capture(messages, "mppdb-json").typed("s.t").read_all()["_unchanged"].to_pylist() == wanted
    found = [row["_unchanged"] for row in rows_of_chunks(messages, "mppdb-json", [3])]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_an_update_after_a_column_was_dropped() -> None:
    """The version before fits such a row, too. One reading of the stream does not know where the RELATION was."""
    messages = stream_of("pgoutput", [0, 2], {2})
    wanted = wf.Capture(messages, "pgoutput").typed("s.t").read_all()["_unchanged"].to_pylist()
    for cut in range(1, len(messages)):
        found = [row["_unchanged"] for row in rows_of_chunks(messages, "pgoutput", [cut])]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_a_later_file(tmp_path: Path) -> None:
    messages = stream_of("mppdb-json", [1, 1, 2])
    for number, part in enumerate((messages[:3], messages[3:])):
        pq.write_table(pa.table({"payload": part}), tmp_path / f"{number}.parquet")
    assert [chunk.versions for chunk in survey(tmp_path, "mppdb-json").chunks] == [{("s", "t"): 0}] * 2


def test_a_stream_that_begins_with_an_update() -> None:
    messages = [*stream_of("mppdb-json", [1, 1])[3:], *stream_of("mppdb-json", [1, 2])]
    found = wf.Capture(messages, "mppdb-json").typed("s.t").read_all()
    assert found["_unchanged"].to_pylist() == [["b"], None, None]


def test_a_modifier_that_becomes_smaller() -> None:
    """Rows do not name modifiers."""
    messages = stream_of("pgoutput", [0, 0, 1, 1])
    found = wf.Capture(messages, "pgoutput").typed("s.t").read_all()["a"].to_pylist()
    assert [*map(str, found)] == ["1.2345", "1.2345", "1.2300", "1.2300"]
