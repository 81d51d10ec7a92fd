"""Scan and declaration read bad bytes alike: the same rows, the same words, and every byte in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from .. import strategies
from ..accounting import EVERYTHING, account_all
from ..engines import ENGINES, FORMAT, MODES, agree, read
from ..handmade import OTHER_SPELLINGS, SAMPLES
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, splices, truncations


def mutants(data: bytes) -> Iterator[bytes]:
    return chain(truncations(data), changed_bytes(data), overwritten_lengths(data), inserted_and_deleted(data))


SINGLES = {name: data for name, data in SAMPLES.items() if not name.startswith("batch")}
BATCHES = {name: data for name, data in SAMPLES.items() if name.startswith("batch")}
ONE_IN = 11
"""Batches are long and made of the other samples: one mutation in so many is tried."""

SOME = [one for data in SAMPLES.values() for one in mutants(data)][::97]
"""Mutants of all samples, few enough to be read many times."""

READINGS: dict[str, dict[str, Any]] = {
    "gbk": {"encoding": "gbk"},
    "latin-1": {"encoding": "latin-1"},
    "ascii": {"encoding": "ascii"},
    "gbk, replaced": {"encoding": "gbk", "encoding_errors": "replace"},
    "utf-8, replaced": {"encoding_errors": "replace"},
    "one table": {"tables": ["public.t"]},
    "one schema, one table": {"tables": ["s.*", "*.表"]},
    "no table": {"tables": []},
    "some kinds": {"kinds": ["INSERT", "COMMIT", "UNKNOWN"]},
    "no kind": {"kinds": []},
    "a kind of a table": {"kinds": ["UPDATE", "HEARTBEAT"], "tables": ["*.t 2"], "heartbeat_unit": "us"},
    "a table in another encoding": {"encoding": "gbk", "tables": ["*.t", "schéma.*"]},
}

each_mutation = pytest.mark.parametrize("mutations", [changed_bytes, overwritten_lengths, inserted_and_deleted])


@each_mutation
@pytest.mark.parametrize("name", SINGLES)
def test_mutated_records(name: str, mutations: Callable[[bytes], Iterable[bytes]]) -> None:
    messages = list(mutations(SINGLES[name]))
    answer = agree(messages, mode="PERMISSIVE")
    assert any(isinstance(event, wf.Corrupt) for event in answer.events)
    account_all(messages, answer.by_message())


@each_mutation
@pytest.mark.parametrize("name", BATCHES)
def test_mutated_batches(name: str, mutations: Callable[[bytes], Iterable[bytes]]) -> None:
    messages = list(mutations(BATCHES[name]))[::ONE_IN]
    answer = agree(messages, mode="PERMISSIVE")
    account_all(messages, answer.by_message())


def test_splices() -> None:
    pairs = product(("insert", "begin, bare", "heartbeat, bare", "no tuple"), ("update", "commit", "heartbeat, framed"))
    for left, right in pairs:
        messages = list(splices(SAMPLES[left], SAMPLES[right], step=3))
        answer = agree(messages, mode="PERMISSIVE")
        account_all(messages, answer.by_message())


@pytest.mark.parametrize("name", READINGS)
def test_mutants_in_other_readings(name: str) -> None:
    """Encodings and filters; what cannot be read is there whatever the filters leave out."""
    answer = agree(SOME, mode="PERMISSIVE", **READINGS[name])
    corrupt = [event for event in answer.events if isinstance(event, wf.Corrupt)]
    encoding = {key: value for key, value in READINGS[name].items() if key.startswith("encoding")}
    unfiltered = read(SOME, mode="PERMISSIVE", **encoding)
    assert corrupt == [event for event in unfiltered if isinstance(event, wf.Corrupt)]
    dropped = agree(SOME, mode="DROPMALFORMED", **READINGS[name])
    assert dropped.events == [event for event in answer.events if not isinstance(event, wf.Corrupt)]
    assert dropped.table is not None
    assert dropped.table.schema.metadata[b"wireformat.dropped"] == str(len(corrupt)).encode()


def test_failfast_says_what_permissive_keeps() -> None:
    """Message by message: the events before the first bad spot, then its error in the words of the CORRUPT row."""
    bad = 0
    for message in SOME:
        kept = read([message], mode="PERMISSIVE")
        answer = agree([message])
        corrupt = [event for event in kept if isinstance(event, wf.Corrupt)]
        if not corrupt:
            assert (answer.events, answer.error) == (kept, None)
            continue
        assert answer.events == kept[: kept.index(corrupt[0])]
        assert str(answer.error) == corrupt[0].error
        bad += 1
    assert bad > len(SOME) // 2 > 20


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_mutated_other_spellings(name: str) -> None:
    messages = list(mutants(OTHER_SPELLINGS[name][0]))[::3]
    answer = agree(messages, mode="PERMISSIVE")
    account_all(messages, answer.by_message())


readings = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(MODES),
        "encoding": st.sampled_from(["utf-8", "gbk", "latin-1"]),
        "encoding_errors": st.sampled_from(["strict", "replace"]),
        "tables": st.sampled_from([None, [], ["public.*"], ["*.orders", 'public."a.b"']]),
        "kinds": st.sampled_from([None, ["INSERT", "DELETE"], ["BEGIN", "COMMIT", "HEARTBEAT"]]),
        "heartbeat_unit": st.sampled_from([None, "s", "us"]),
    }
)


@given(st.lists(strategies.events(), min_size=1, max_size=4), readings, st.data())
def test_generated_events_mutated(events: list[wf.Event], reading: dict[str, Any], data: st.DataObject) -> None:
    messages = list(wf.encode(events, FORMAT, options={**EVERYTHING[FORMAT], "sending-batch": 1}, batch_bytes=80))
    mutated = data.draw(st.lists(strategies.mutated(messages) | st.none(), min_size=1, max_size=6))
    agree(mutated, **reading)
    answer = agree(mutated, mode="PERMISSIVE")
    account_all(mutated, answer.by_message())


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes(messages: list[bytes]) -> None:
    answer = agree(messages, mode="PERMISSIVE")
    account_all(messages, answer.by_message())
    for engine in ENGINES:
        decoder = wf.Decoder(FORMAT, engine=engine, mode="PERMISSIVE")
        for message in messages:
            decoder.feed(message)
        decoder.close()
        if any(messages):
            assert decoder.events()
