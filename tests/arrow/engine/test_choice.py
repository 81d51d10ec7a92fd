"""Engines as Spark's workers use them: many inputs one after the other, numbered on, in one engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import wireformat as wf
from wireformat.arrow.engine.choice import make_engine
from wireformat.arrow.engine.declaration_engine import Engine
from wireformat.formats.registry import find_format

from ...engines import ENGINES, FORMAT, rows
from ...handmade import BEGIN, COMMIT, DELETE, INSERT, SAMPLES, UPDATE, commit, message

each_engine = pytest.mark.parametrize("name", ENGINES)

GOOD = [message(BEGIN, INSERT), None, message(UPDATE)]
BAD = message(DELETE, commit(b"?"), COMMIT)


def make(name: str, **options: Any) -> Engine:
    return make_engine(find_format(FORMAT), wf.ReadOptions.check(**options), name)


def table(engine: Engine, messages: Any, first: int = 0) -> pa.Table:
    return pa.Table.from_batches(engine.batches(messages, wf.arrow.CHANGES, first), wf.arrow.CHANGES)


@each_engine
@pytest.mark.parametrize("source", [list, pa.array, lambda data: pa.chunked_array([data[:1], data[1:]])])
def test_messages_are_numbered_on(name: str, source: Any) -> None:
    engine = make(name, mode="PERMISSIVE")
    found = table(engine, source(GOOD), 7)
    assert list(zip(found["message"].to_pylist(), found["record"].to_pylist(), strict=True)) == [(7, 0), (7, 1), (9, 0)]
    (corrupt,) = table(engine, source([BAD, None]), 1 << 40).filter(pc.field("kind") == "CORRUPT").to_pylist()
    assert corrupt["message"] == 1 << 40
    assert f"message {1 << 40}, byte" in corrupt["error"]
    located = list(engine.events(source([BAD, None]), 5))
    assert [(item.message, item.record, item.event.kind) for item in located] == [
        (5, 0, "DELETE"),
        (5, 1, "CORRUPT"),
        (5, 2, "COMMIT"),
    ]


@each_engine
def test_errors_are_numbered_on(name: str) -> None:
    with pytest.raises(wf.BadTag) as raised:
        table(make(name), [*GOOD, BAD], 10)
    assert (raised.value.message, raised.value.record) == (13, 1)


@each_engine
def test_an_engine_reads_one_input_after_the_other(name: str) -> None:
    """The rows of each are those that an engine of its own gives, whatever came before; dropped counts all."""
    engine = make(name, mode="DROPMALFORMED")
    for count, messages in enumerate([GOOD, [BAD], [], list(SAMPLES.values()), [BAD], GOOD], 1):
        fresh = make(name, mode="DROPMALFORMED")
        assert rows(table(engine, messages)) == rows(table(fresh, messages))
        assert engine.dropped == (count > 1) + (count > 4)


@each_engine
def test_an_engine_goes_on_after_an_error(name: str) -> None:
    engine = make(name)
    with pytest.raises(wf.BadTag):
        table(engine, [BAD])
    assert rows(table(engine, GOOD)) == rows(table(make(name), GOOD))


@each_engine
def test_batches_before_an_error_hold_the_rows_before_it(name: str) -> None:
    found: list[str] = []
    batches = make(name).batches([*GOOD, BAD, *GOOD], wf.arrow.CHANGES)
    with pytest.raises(wf.BadTag):
        found.extend(kind for batch in batches for kind in batch["kind"].to_pylist())
    assert found == ["BEGIN", "INSERT", "UPDATE", "DELETE"]


@each_engine
def test_the_inputs_may_be_read_in_turns(name: str) -> None:
    """Two engines share nothing."""
    left, right = make(name), make(name)
    streams = [left.events(GOOD), right.events([message(COMMIT)] * 3)]
    kinds = [next(streams[turn % 2]).event.kind for turn in range(6)]
    assert kinds == ["BEGIN", "COMMIT", "INSERT", "COMMIT", "UPDATE", "COMMIT"]
