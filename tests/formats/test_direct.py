"""Rows that are written directly: the same bytes and the same errors as by the declarations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats import text_format
from wireformat.formats.adapt import adapted
from wireformat.formats.direct.layouts import MOST_LAYOUTS, Layouts
from wireformat.formats.direct.records import DirectRecords
from wireformat.formats.pgoutput.row_layouts import RowLayouts
from wireformat.formats.registry import ROWS, find_format

from .. import pgoutput_strategies, strategies, text_strategies
from ..golden_cases import CASES, Case, event_of
from ..handmade_pgoutput import ALL
from .test_text_writing import CANNOT_SAY as TEXT_CANNOT_SAY
from .test_writing import CANNOT_SAY

WRITERS = (Layouts, RowLayouts, DirectRecords)
each_format = pytest.mark.parametrize("format", ROWS)

OPTIONS = [
    {},
    {"sending-batch": 1, "include-timestamp": True, "include-originid": True},
]


@contextmanager
def watched(change: Callable[[bytes | None], bytes | None]) -> Iterator[None]:
    """What direct writers give goes through a function first."""
    with pytest.MonkeyPatch.context() as patch:
        for writer in WRITERS:

            def write(self: Any, *args: Any, _write: Any = writer.write, **known: Any) -> bytes | None:
                return change(_write(self, *args, **known))

            patch.setattr(writer, "write", write)
        if change(b"") is None:
            patch.setattr(text_format, "_is_plain", lambda value: False)
        yield


def outcome(events: Sequence[Any], format: str, options: dict[str, Any], encoding: str = "utf-8") -> list[Any]:
    """The messages, and the error that ended them."""
    found: list[Any] = []
    try:
        for message in wf.encode(events, format, options=options, encoding=encoding):
            found.append(message)
    except Exception as error:
        found.append((type(error), str(error)))
    return found


def check(events: Sequence[Any], format: str, encoding: str = "utf-8", direct: list[Any] | None = None) -> None:
    """Fails where a direct writer and the declaration differ; `direct` is what it gave without options, if known."""
    for options in OPTIONS if format.startswith("gaussdb-") else OPTIONS[:1]:
        given = direct if direct and not options else outcome(events, format, options, encoding)
        with watched(lambda written: None):
            assert outcome(events, format, options, encoding) == given


def others(event: wf.Event) -> Iterator[wf.Event]:
    """The event, and the same with other values: those that every type takes, that few take, and that none takes."""
    yield event
    if isinstance(event, wf.RowChange):
        for value in ("7", None, "", wf.UNCHANGED, "t", "101", r"\x07", "a'b\"\\\n", "表", "\udfff", 7, b"7"):
            yield replace(event, **{side: _filled(getattr(event, side), value) for side in ("new", "old")})


def _filled(image: Any, value: Any) -> Any:
    return replace(image, values=(value,) * len(image.names)) if isinstance(image, wf.TupleData) else image


@each_format
@given(data=st.data())
def test_generated_events(format: str, data: st.DataObject) -> None:
    """Each event by itself, with the layout that the one before has left."""
    event = data.draw(strategies.events() | text_strategies.any_events())
    said, _ = adapted(event, format)
    for one in others(said):
        check([said, one], format)


@pytest.mark.parametrize("format", [name for name in ROWS if name.startswith(("gaussdb", "sql", "test", "mppdb"))])
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
@given(data=st.data())
def test_events_of_a_text_format(format: str, encoding: str, data: st.DataObject) -> None:
    make = (
        strategies.events if format == "gaussdb-binary" else (lambda encoding: text_strategies.events(format, encoding))
    )
    event = data.draw(make(encoding))
    for one in others(event):
        check([event, one], format, encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@given(data=st.data())
def test_streams_of_pgoutput(encoding: str, data: st.DataObject) -> None:
    events = data.draw(pgoutput_strategies.streams(encoding))
    check(events, "pgoutput", encoding)
    for at, event in enumerate(events):
        for one in others(event) if at > len(events) - 3 else ():
            check([*events[:at], event, one], "pgoutput", encoding)


@cache
def golden_events(case: Case) -> list[wf.Event]:
    """The events of a capture; a list for all formats."""
    return [event_of(record, errors="replace") for record in case.truth if "error" not in record]


@cache
def cases_of_each_workload() -> list[Case]:
    """One of the captures whose events have the same rows: decode styles and batches make no difference to events."""
    found: dict[Any, Case] = {}
    for case in CASES:
        events = [
            (type(event), event.new, event.old) if isinstance(event, wf.RowChange) else type(event)
            for event in golden_events(case)
        ]
        found.setdefault(tuple(events), case)
    return [*found.values()]


def sayable(events: Iterable[wf.Event], format: str) -> Iterator[wf.Event]:
    """Those that a writer of the format does not refuse."""
    writer = find_format(format).writer(None, encoding="utf-8", batch_bytes=0)
    for event in events:
        with suppress(Exception):
            for _ in writer.write(event):
                pass
            yield event


@pytest.mark.slow
@each_format
def test_golden_events_are_written_directly(format: str) -> None:
    """The events of every workload in every format; nearly all rows without the declaration."""
    rows = taken = 0

    def count(written: bytes | None) -> bytes | None:
        nonlocal taken
        taken += written is not None
        return written

    for case in cases_of_each_workload():
        said = [*sayable((adapted(event, format)[0] for event in golden_events(case)), format)]
        with watched(count):
            direct = outcome(said, format, {})
        check(said, format, direct=direct)
        rows += sum(isinstance(event, wf.RowChange) for event in said)
    assert rows > 1000
    assert taken > 0.85 * rows  # of `pgoutput` the first row of each relation is not


def test_handmade_messages_of_pgoutput() -> None:
    for _, event in ALL.values():
        for one in others(event):
            check([event, one], "pgoutput")


def test_what_no_format_can_say() -> None:
    """The same words of the error, whichever way found out."""
    for event, _ in CANNOT_SAY.values():
        check([event], "gaussdb-binary")
    for format, event, _ in TEXT_CANNOT_SAY.values():
        check([event], format)


ROW = wf.Update(
    lsn=1,
    table_schema="s",
    table_name="t",
    new=wf.TupleData(("a", "b"), ("1", "x"), ("integer", "text")),
    old=wf.TupleData(("a",), ("1",), ("integer",)),
)
STRANGE: dict[str, dict[str, Any]] = {
    "a transaction id": {"xid": 7},
    "the kind of old": {"old_kind": "key"},
    "another kind of old": {"old_kind": "other"},
    "columns in binary": {"binary": ("b",)},
    "no columns in binary, as a list": {"binary": []},
    "columns in binary, as a text": {"binary": "b"},
    "names in a list": {"new": wf.TupleData(["a", "b"], ("1", "x"), ("integer", "text"))},  # type: ignore[arg-type]
    "names in a text": {"new": wf.TupleData("ab", "12", ("integer", "text"))},  # type: ignore[arg-type]
    "values in a list": {"new": wf.TupleData(("a", "b"), ["1", "x"], ("integer", "text"))},  # type: ignore[arg-type]
    "no types": {"new": wf.TupleData(("a", "b"), ("1", "x"))},
    "a name twice": {"new": wf.TupleData(("a", "a"), ("1", "2"), ("integer", "integer"))},
    "another type": {"new": wf.TupleData(("a", "b"), ("1", "x"), ("integer", "oid:99999"))},
    "NULL outside of the key": {"old": wf.TupleData(("a", "b"), ("1", None), ("integer", "text"))},
    "no new row": {"new": None},
    "no old row": {"old": None},
    "a number as table": {"table_name": 7},
    "another relation": {"relation_id": 99},
}

CONTROLS = [
    wf.Begin(lsn=1, csn=2, first_lsn=3, xid=4, commit_time="2026-11-21 01:02:03+00", origin=5, username="u"),
    wf.Begin(xid=4, commit_lsn=5, commit_time="2026-11-21 01:02:03.5+08"),
    wf.Begin(xid=4, gid="g", lsn=1, end_lsn=2, prepare_time="2026-11-21 01:02:03+00"),
    wf.Begin(xid=4),
    wf.Commit(lsn=1, xid=4, commit_time="2026-11-21 01:02:03+00", csn=7),
    wf.Commit(commit_lsn=1, end_lsn=2, commit_time="2026-11-21 01:02:03+00"),
    wf.Prepare(lsn=1, end_lsn=2, prepare_time="2026-11-21 01:02:03+00", xid=4, gid="g"),
    wf.CommitPrepared(commit_lsn=1, end_lsn=2, commit_time="2026-11-21 01:02:03+00", xid=4, gid="g"),
    wf.StreamStart(xid=4, first_segment=True),
    wf.StreamStop(xid=None),
    wf.StreamCommit(xid=4, commit_lsn=1, end_lsn=2, commit_time="2026-11-21 01:02:03+00"),
    wf.Heartbeat(lsn=1, wal_end=2, wal_flushed=3, time=4),
    wf.Origin(lsn=1, origin="o"),
]
ODD: list[Any] = [
    None,
    -1,
    1 << 64,
    1 << 32,
    True,
    1.5,
    "",
    "x",
    "\0",
    "\udfff",
    "2026-11-21 01:02:03 (at",
    b"x",
    [],
    {},
]


@each_format
@pytest.mark.parametrize("kind", [wf.Insert, wf.Update, wf.Delete])
def test_strange_rows(format: str, kind: type[wf.RowChange]) -> None:
    for strange in STRANGE.values():
        row = kind(**{field.name: getattr(ROW, field.name) for field in fields(ROW)} | strange)
        for before in ([], [ROW], [row], [wf.StreamStart(xid=5, first_segment=True)]):
            check([*before, row, ROW], format)


@each_format
def test_records_around_transactions(format: str) -> None:
    """Each with every odd value in each of its fields, after one that was good, so that its shape is known."""
    for event in CONTROLS:
        for field in fields(event):
            for value in ODD:
                odd = replace(event, **{field.name: value})
                check([adapted(event, format)[0], odd], format)


@pytest.mark.parametrize("format", ["gaussdb-binary", "pgoutput"])
def test_records_around_transactions_are_written_directly(format: str) -> None:
    """All that the format says of them; a declaration takes ten times as long."""
    taken: list[bytes] = []

    def note(written: bytes | None) -> bytes | None:
        if written:
            taken.append(written)
        return written

    said = [*sayable((adapted(event, format)[0] for event in CONTROLS), format)]
    with watched(note):
        messages = outcome(said, format, {})
    assert len(taken) == len(messages) == len(said)


@each_format
def test_layouts_are_forgotten_where_there_are_many(format: str) -> None:
    """Memory has a limit, and the bytes stay the same."""
    chance = Random(7)
    types = {"sql-decoding": ("?string",)}.get(format, ("text",))
    rows = [
        wf.Insert(lsn=1, table_schema="s", table_name=f"t{number}", new=wf.TupleData(("$1",), ("x",), types))
        for number in range(MOST_LAYOUTS + 2)
    ]
    chance.shuffle(rows)
    written = outcome([*rows, *rows[:3]], format, {})
    assert len(set(written)) == len(rows) * (2 if format == "pgoutput" else 1)
    times = Counter(written)
    assert written[-3:] == [message for message in written if times[message] > 1][:3]
