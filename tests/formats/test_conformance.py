"""What every format must pass, those of other packages too: tests/support has what differs between them."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.registry import ROWS, find_format

from .. import strategies, text_strategies
from ..accounting import account, account_all
from ..codec_checks import check_message, check_pieces, check_same_bytes, check_whole
from ..engines import ENGINES, MODES, agree, ask, check_live, events_and_error, read, record_text
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, splices, truncations
from ..support import SUPPORTED, Support

OUTSIDE = Path(__file__).parents[1] / "outside"
ENCODINGS = ("gbk", "latin-1", "gb18030", "big5")

Mutations = Callable[[bytes], Iterable[bytes]]


@pytest.fixture(autouse=True)
def outside_installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format of another package is there as after `pip install`, but for built-in ones: errors would name it."""
    if "format" not in request.fixturenames or request.getfixturevalue("format") not in ROWS:
        monkeypatch.syspath_prepend(str(OUTSIDE))


def each(field: str) -> pytest.MarkDecorator:
    """Each format with each name in this field of its record."""
    pairs = [(format, name) for format, support in SUPPORTED.items() for name in getattr(support, field)]
    return pytest.mark.parametrize(("format", "name"), pairs)


each_format = pytest.mark.parametrize("format", SUPPORTED)
each_engine = pytest.mark.parametrize("engine", ENGINES)
each_mutation = pytest.mark.parametrize(
    "mutations", [truncations, changed_bytes, overwritten_lengths, inserted_and_deleted]
)


def encode(events: Sequence[wf.Event], support: Support, **options: Any) -> list[bytes]:
    return list(wf.encode(events, support.format, options=support.writing, **options))


def corrupt(events: Iterable[wf.Event]) -> list[wf.Corrupt]:
    return [event for event in events if isinstance(event, wf.Corrupt)]


def good(events: Iterable[wf.Event]) -> list[wf.Event]:
    return [event for event in events if not isinstance(event, wf.Corrupt)]


def test_every_format_is_here() -> None:
    assert list(SUPPORTED) == list(wf.FORMATS)


# Good messages


@each("samples")
def test_samples(format: str, name: str) -> None:
    """Whole, in pieces, with a tail, cut short; and back to the same bytes."""
    support = SUPPORTED[format]
    sample = support.samples[name]
    first = len(support.before)
    events = read([*support.before, sample.message], "declaration", format=format, **sample.reading)[first:]
    assert events
    assert not corrupt(events)
    if sample.events is not None:
        assert events == list(sample.events)
    check_message(support, sample.message, events, **sample.reading)
    check_same_bytes(support, sample, events)


@each_format
def test_events_come_back(format: str) -> None:
    support = SUPPORTED[format]

    @given(support.events("utf-8"))
    def check(events: list[wf.Event]) -> None:
        messages = encode(events, support)
        assert len(messages) == len(events)
        reading = support.known(events)
        check_whole(messages, events, format=format, **reading)
        if len(events) != 1 or not support.says_its_end(messages[0]):
            return
        if support.is_batched or not isinstance(
            events[0], wf.Unknown
        ):  # a line that is not known may go on in the next
            check_message(support, messages[0], events, **reading)

    check()


@pytest.mark.parametrize("encoding", ENCODINGS)
@each_format
def test_other_encodings(format: str, encoding: str) -> None:
    support = SUPPORTED[format]

    @given(support.events(encoding))
    def check(events: list[wf.Event]) -> None:
        reading = {"encoding": encoding, **support.known(events)}
        check_whole(encode(events, support, encoding=encoding), events, format=format, **reading)

    check()


@pytest.mark.parametrize("encoding", ["utf-8", *ENCODINGS])
@pytest.mark.parametrize("format", [format for format, support in SUPPORTED.items() if format.startswith("gaussdb-")])
def test_batches(format: str, encoding: str) -> None:
    """Batches of any size come back, and streams of them that are cut anywhere."""
    support = SUPPORTED[format]
    assert support.is_batched
    writing = {**support.writing, "sending-batch": 1}
    sizes = st.sampled_from([0, 1, 40, 200, 1000, 1 << 20]) | st.integers(0, 300)
    most, options = (12, {}) if encoding == "utf-8" else (6, {"encoding": encoding})

    @given(st.lists(st.tuples(support.events(encoding), strategies.U64), max_size=most), sizes, st.data())
    def check(pairs: list[tuple[list[wf.Event], int]], batch_bytes: int, data: st.DataObject) -> None:
        events = [with_lsn(event, lsn) for one, lsn in pairs for event in one]
        messages = list(wf.encode(events, format, options=writing, encoding=encoding, batch_bytes=batch_bytes))
        if not support.known(events):
            check_whole(messages, events, format=format, **options)
            check_pieces(data.draw(strategies.cuts(b"".join(messages))), events, format=format, **options)
            return
        for event in events:  # one table a reading: with many, a name could end where another one does
            answer = agree(messages, format=format, mode="PERMISSIVE", **options, **support.known([event]))
            assert event in answer.events
            if not options:
                account_all(messages, answer.by_message(), format)

    check()


def with_lsn(event: wf.Event, lsn: int) -> wf.Event:
    """Records of a batch have LSNs; a heartbeat without one is no record."""
    return event if event.lsn is not None or isinstance(event, wf.Heartbeat) else replace(event, lsn=lsn)


@each_format
def test_anything_comes_back_or_is_refused(format: str) -> None:
    """A writer never writes what would be read as something else."""
    support = SUPPORTED[format]

    @given(text_strategies.any_events())
    def check(event: wf.Event) -> None:
        try:
            messages = encode([event], support)
        except wf.EncodeError:
            return
        *described, found = read(messages, format=format, **support.known([event]))
        assert all(isinstance(one, wf.Relation) for one in described)
        assert without_lsn(support.reduced(found)) == without_lsn(support.reduced(event))

    check()


def without_lsn(event: wf.Event) -> wf.Event:
    """Without the LSN, which is the carrier's; the writer counts sizes, the reader makes an unknown record's text."""
    if isinstance(event, wf.Ddl):
        event = replace(event, size=None)
    if isinstance(event, wf.Unknown):
        event = replace(event, text=None)
    return replace(event, lsn=None)


@each_engine
@each_format
def test_a_transaction(format: str, engine: str) -> None:
    """It is in order; its messages follow each other in a stream where they say where they end. A second end is not."""
    support = SUPPORTED[format]
    messages = encode(support.stream, support)
    found = read(messages, engine, format=format, strict=True)
    assert found == list(support.stream)
    with pytest.raises(wf.OrderError, match=r"between transactions: expected .*, got COMMIT"):
        read([*messages, messages[-1]], engine, format=format, strict=True)
    assert read([None, *messages, None], engine, format=format) == found
    table = wf.arrow.changes([None, *messages], format, engine=engine)
    assert table["message"].to_pylist() == list(range(1, len(messages) + 1))


@each_format
def test_a_decoder_takes_messages_that_say_their_end(format: str) -> None:
    support = SUPPORTED[format]
    messages = encode(support.stream, support)
    if all(map(support.says_its_end, messages)):
        data = b"".join(message + find_format(format).separator for message in messages)
        for width in (1, 7, 1000):
            pieces = [data[place : place + width] for place in range(0, len(data), width)]
            check_pieces(pieces, support.stream, format=format)
        return
    what_to_do = "does not say where it ends.* give whole messages to decode|expected batches, which say where they end"
    with pytest.raises(wf.WireformatError, match=what_to_do):
        wf.Decoder(format).feed(messages[0])


@pytest.mark.parametrize("mode", MODES)
@each_engine
@each_format
def test_a_live_source(format: str, engine: str, mode: str) -> None:
    """It gives what a list of its messages gives, up to the error; see also `ask`, which other tests call for each."""
    support = SUPPORTED[format]
    good = [*support.before, *(sample.message for sample in support.samples.values())]
    for messages in (good, *([*support.before, bad.message, support.good] for bad in support.bad.values())):
        events, error = events_and_error(messages, engine, format=format, mode=mode)
        check_live(messages, events, error, engine=engine, format=format, mode=mode)


# Bad messages


@each_engine
@each("bad")
def test_failfast_says_what_is_wrong_and_where(format: str, name: str, engine: str) -> None:
    support = SUPPORTED[format]
    bad = support.bad[name]
    before = [*support.before, support.good, None]
    answer = ask([*before, bad.message, support.good], engine, format=format)
    error = answer.error
    assert error is not None
    expected = dict(bad.facts)
    is_narrowed = "the messages look like" in str(error)
    found = {
        "type": type(error),
        "text": without_number(record_text(error) if is_narrowed else str(error)),
        **vars(error),
    }
    if is_narrowed and "text" in expected:
        expected["text"] = record_text(str(expected["text"]))
    assert {fact: found.get(fact) for fact in expected} == expected
    assert (error.format, error.message) == (format, len(before))
    assert str(error).startswith(f"{type(error).words}: expected ")
    assert f"[{format}: message {len(before)}, byte {error.message_offset}, record {error.record}" in str(error)
    assert error.path is None or f"field {error.path}" in str(error)
    assert len(error.spot or b"") <= 16
    assert bad.message[error.message_offset :].startswith(error.spot or b"")
    assert "secret" not in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    first = len(before) - 1
    assert answer.events[:first] == read(before, format=format)
    if bad.good is not None:
        assert answer.events[first:] == read(bad.good, format=format)


def without_number(text: str) -> str:
    return re.sub(r"message \d+, ", "", text, count=1)


@each_engine
@each("bad")
def test_permissive_keeps_it_and_goes_on(format: str, name: str, engine: str) -> None:
    support = SUPPORTED[format]
    bad = support.bad[name]
    before = [*support.before, support.good]
    answer = ask([*before, bad.message, *before], engine, format=format, mode="PERMISSIVE")
    by_message = answer.by_message()
    around = read(before, format=format)
    place = len(before)
    assert list(chain.from_iterable(by_message[number] for number in range(place))) == around
    assert list(chain.from_iterable(by_message[number] for number in range(place + 1, 2 * place + 1))) == around
    account(bad.message, by_message[place], format)
    first = corrupt(by_message[place])[0]
    failed = ask([*before, bad.message], engine, format=format)
    assert failed.error is not None
    assert record_text(failed.error) == record_text(first.error)
    assert failed.events == [*around, *by_message[place][: by_message[place].index(first)]]


@each("bad")
def test_both_engines_agree_on_it(format: str, name: str) -> None:
    """In each mode, and wherever it comes; what is dropped is counted."""
    support = SUPPORTED[format]
    messages = [*support.before, support.bad[name].message, *support.before, support.good]
    agree(messages, format=format)
    kept, dropped = (agree(messages, format=format, mode=mode) for mode in MODES[1:])
    check_dropped(kept.events, dropped.events, dropped.table)


def check_dropped(kept: list[wf.Event], dropped: list[wf.Event], table: pa.Table | None) -> None:
    assert dropped == good(kept)
    assert table is not None
    assert table.schema.metadata[b"wireformat.dropped"] == str(len(corrupt(kept))).encode()


FEW = 50
"""If there are fewer mutants, all may be good or unknown."""


@each_mutation
@each("samples")
def test_mutants(format: str, name: str, mutations: Mutations) -> None:
    """Nothing but a WireformatError, both engines alike, and every byte in one place."""
    support = SUPPORTED[format]
    sample = support.samples[name]
    mutants = list(mutations(sample.message))[:: 1 if mutations is truncations else sample.one_in]
    messages = list(support.before)
    for number, mutant in enumerate(mutants):
        messages += [mutant, *support.probes] if number % 5 == 0 else [mutant]
    answer = agree(messages, format=format, mode="PERMISSIVE", **sample.reading)
    assert corrupt(answer.events) or len(mutants) < FEW
    account_all(messages, answer.by_message(), format)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@each_format
def test_splices(format: str, encoding: str) -> None:
    support = SUPPORTED[format]
    spliced = (splices(left, right, step=support.splice_step) for left, right in support.splices)
    messages = [*support.before, *chain.from_iterable(spliced)]
    answer = agree(messages, format=format, mode="PERMISSIVE", encoding=encoding)
    assert corrupt(answer.events)
    account_all(messages, answer.by_message(), format)


@cache
def some_mutants(format: str) -> list[bytes]:
    """Few enough to be read many times."""
    all_mutations = (truncations, changed_bytes, overwritten_lengths, inserted_and_deleted)
    every = [
        mutant
        for sample in SUPPORTED[format].samples.values()
        for mutations in all_mutations
        for mutant in mutations(sample.message)
    ]
    return every[::97]


READINGS: dict[str, dict[str, Any]] = {
    "gbk": {"encoding": "gbk"},
    "latin-1": {"encoding": "latin-1"},
    "ascii": {"encoding": "ascii"},
    "gbk, replaced": {"encoding": "gbk", "encoding_errors": "replace"},
    "utf-8, replaced": {"encoding_errors": "replace"},
    "one table": {"tables": ["public.t"]},
    "no table": {"tables": []},
    "some kinds": {"kinds": ["INSERT", "COMMIT", "UNKNOWN"]},
    "no kind": {"kinds": []},
}


def of_another_table(event: wf.Corrupt, tables: list[str]) -> bool:
    """Whether the error names a table that is none of these; patterns are plain, or have a * for one part."""
    named = re.search(r", table (.+?)(, bytes there .*)?\](; .*)?$", event.error, re.DOTALL)
    if named is None or "\ufffd" in named[1]:
        return False
    patterns = [re.escape(table).replace(r"\*", ".*") for table in tables]
    return not any(re.fullmatch(pattern, named[1], re.DOTALL) for pattern in patterns)


def is_row_of_pgoutput(event: wf.Corrupt) -> bool:
    """Its errors do not always name the table, though the reader knows it."""
    return event.raw[:1] in (b"I", b"U", b"D") and len(event.raw) >= 9 and "unknown relation" not in event.error


@pytest.mark.parametrize(
    ("format", "name"),
    [(format, name) for format, support in SUPPORTED.items() for name in [*READINGS, *support.readings]],
)
def test_mutants_in_other_readings(format: str, name: str) -> None:
    """What cannot be read is there whatever the filters leave out, unless its table is known and not asked for."""
    support = SUPPORTED[format]
    reading = {**READINGS, **support.readings}[name]
    messages = [*support.before, *some_mutants(format)]
    kept = agree(messages, format=format, mode="PERMISSIVE", **reading)
    unfiltered = {key: value for key, value in reading.items() if key not in ("tables", "kinds")}
    everything = corrupt(read(messages, format=format, mode="PERMISSIVE", **unfiltered))
    bad = corrupt(kept.events)
    assert [event for event in everything if event in bad] == bad
    left_out = [event for event in everything if event not in bad]
    tables = reading.get("tables", ["*"])
    assert not any(of_another_table(event, tables) for event in bad)
    assert all(of_another_table(event, tables) or is_row_of_pgoutput(event) for event in left_out)
    assert "tables" in reading or not left_out
    dropped = agree(messages, format=format, mode="DROPMALFORMED", **reading)
    check_dropped(kept.events, dropped.events, dropped.table)


@each_format
def test_failfast_says_what_permissive_keeps(format: str) -> None:
    """Message by message: the events before the first bad spot, then its error in the words of the CORRUPT row."""
    support = SUPPORTED[format]
    messages = some_mutants(format)
    bad = 0
    for message in messages:
        kept = read([*support.before, message], format=format, mode="PERMISSIVE")
        answer = agree([*support.before, message], format=format)
        if not corrupt(kept):
            assert (answer.events, answer.error) == (kept, None)
            continue
        first = corrupt(kept)[0]
        assert answer.events == kept[: kept.index(first)]
        assert answer.error is not None
        assert record_text(answer.error) == record_text(first.error)
        bad += 1
    assert bad > len(messages) // 10


def own_options(support: Support) -> st.SearchStrategy[dict[str, Any]]:
    """A value for each option of reading that this format has for itself."""
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in support.options.items()})


@each_format
def test_any_bytes(format: str) -> None:
    support = SUPPORTED[format]

    @given(st.lists(st.binary(max_size=60), max_size=6), own_options(support))
    def check(messages: list[bytes], options: dict[str, Any]) -> None:
        answer = agree(messages, format=format, mode="PERMISSIVE", **options)
        account_all(messages, answer.by_message(), format)
        for engine in ENGINES if support.is_a_stream else ():
            decoder = wf.Decoder(format, engine=engine, mode="PERMISSIVE", **options)
            for message in messages:
                decoder.feed(message)
            decoder.close()
            if any(messages):
                assert decoder.events()

    check()


readings = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(MODES),
        "encoding": st.sampled_from(["utf-8", "gbk", "latin-1"]),
        "encoding_errors": st.sampled_from(["strict", "replace"]),
        "tables": st.sampled_from([None, [], ["public.*"], ["*.orders", 'public."a.b"'], ["*.id1", "pg_catalog.*"]]),
        "kinds": st.sampled_from(
            [None, ["INSERT", "DELETE"], ["BEGIN", "COMMIT", "HEARTBEAT"], ["BEGIN", "RELATION", "STREAM_STOP"]]
        ),
    }
)


@each_format
def test_generated_events_mutated(format: str) -> None:
    support = SUPPORTED[format]

    @given(st.lists(support.events("utf-8"), min_size=1, max_size=4), readings, st.data())
    def check(streams: list[list[wf.Event]], reading: dict[str, Any], data: st.DataObject) -> None:
        messages = list(chain.from_iterable(encode(events, support) for events in streams))
        if not messages:
            return
        mutated = list(messages)
        for place in data.draw(st.lists(st.integers(0, len(messages) - 1), min_size=1, max_size=6)):
            mutated[place] = data.draw(strategies.mutated(messages) | st.none())
        agree(mutated, format=format, **reading, **data.draw(own_options(support)))
        answer = agree(mutated, format=format, mode="PERMISSIVE")
        account_all(mutated, answer.by_message(), format)

    check()


MARKER = "s3cr3t-0f-th3-r0w"


@each_format
def test_an_error_never_shows_a_value(format: str) -> None:
    """Rows are broken everywhere; their values are all the same marker. No part of it is shown."""
    support = SUPPORTED[format]
    messages = encode([marked(event) for event in support.stream], support)
    rows = [message for message in messages if MARKER.encode() in message]
    assert len(rows) == 3
    mutants = [
        mutant
        for row in rows
        for mutations in (truncations, changed_bytes, inserted_and_deleted)
        for mutant in mutations(row)
    ]
    if support.has_lengths:
        mutants += chain.from_iterable(map(overwritten_lengths, rows))
        mutants += splices(rows[0], rows[1], step=5)
    described = [message for message in messages if message not in rows]
    texts = [event.error for event in corrupt(read([*described, *mutants], format=format, mode="PERMISSIVE"))]
    assert len(texts) > len(mutants) // 10 > 50
    width = 5 if support.has_lengths else 4
    pieces = [MARKER[place : place + width] for place in range(len(MARKER) - width + 1)]
    shown = [*pieces, *(piece.encode().hex(" ") for piece in pieces)]
    assert [text for text in texts if any(piece in text for piece in shown)] == []


def marked(event: wf.Event) -> wf.Event:
    """The event with the marker in place of each value."""
    if not isinstance(event, wf.RowChange):
        return event
    images = [image and replace(image, values=(MARKER,) * len(image.values)) for image in (event.new, event.old)]
    return replace(event, new=images[0], old=images[1])


ENOUGH_BYTES = 1 << 20
WATCHED = pa.proxy_memory_pool(pa.default_memory_pool())
"""Counts what Arrow allocates; lives as long as any buffer that comes from it."""


@each_engine
@each("lies")
def test_lies_take_no_memory(format: str, name: str, engine: str) -> None:
    """A message of less than 100 bytes takes less than a mebibyte, whatever it claims."""
    support = SUPPORTED[format]
    lie = support.lies[name]
    assert len(lie) < 100
    messages = [*support.before, lie]
    ask([*messages, support.good], engine, format=format, mode="PERMISSIVE")  # what is made once is made now
    pool = pa.default_memory_pool()
    pa.set_memory_pool(WATCHED)
    tracemalloc.start()
    try:
        answer = ask(messages, engine, format=format, mode="PERMISSIVE")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(pool)
    assert isinstance(answer.events[-1], wf.Corrupt)
    assert peak < ENOUGH_BYTES
    assert (WATCHED.max_memory() or 0) < ENOUGH_BYTES
