"""Both engines at once: run them on the same bytes, demand the same answer, and give it in a form that prints well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numba
import pyarrow as pa

import wireformat as wf
from wireformat.arrow.engine.scan_engine import SCANNED_ALONE_BYTES
from wireformat.formats.registry import ROWS

FORMAT = "gaussdb-binary"
ENGINES = ("scan", "declaration")
MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")

SCANS = {row.name: row.scan for row in ROWS.values() if row.scan is not None}
"""The scans of the built-in formats."""

CHECKS_BOUNDS = bool(numba.config.BOUNDSCHECK)
"""Whether compiled code checks each index. Where it finds none that is wrong, it says what it says without checks."""


@dataclass
class Answer:
    """What an engine made of some messages."""

    events: list[wf.Event]
    """Those before the error, if there is one."""
    table: pa.Table | None
    error: wf.DecodeError | None

    def by_message(self) -> dict[int, list[wf.Event]]:
        """The events of every message that has some."""
        assert self.table is not None
        found: dict[int, list[wf.Event]] = {}
        messages = self.table["message"].to_pylist()
        for event in self.events:
            found.setdefault(messages[0], []).append(event)
            del messages[: rows_of_event(event)]
        assert not messages
        return found


def rows_of_event(event: wf.Event) -> int:
    """How many rows of the table an event fills."""
    return len(event.tables) or 1 if isinstance(event, wf.Truncate) else 1


def ask(messages: Any, engine: str, *, format: str = FORMAT, **options: Any) -> Answer:
    """Events and table of one engine; the table is checked in depth, and both end in the same error.

    A live source of the same messages gives the same, event by event, where it is read in another way than the
    declaration reads any: by a scan of each long message. tests/formats/test_conformance.py has all the others.
    """
    events, error = events_and_error(messages, engine, format=format, **options)
    if engine == "scan" and max(map(_size, messages), default=0) > SCANNED_ALONE_BYTES:
        check_live(messages, events, error, engine=engine, format=format, **options)
    table = table_error = None
    try:
        table = wf.arrow.changes(messages, format, engine=engine, **options)
    except wf.DecodeError as found:
        table_error = found
    assert facts(table_error) == facts(error), engine
    if table is not None:
        table.validate(full=True)
        assert len(table) == sum(map(rows_of_event, events)), engine
    else:
        assert _rows_before_the_error(messages, engine, format, options) == sum(map(rows_of_event, events)), engine
    return Answer(events, table, error)


def check_live(
    messages: Any, events: list[wf.Event], error: wf.DecodeError | None, *, engine: str, format: str, **options: Any
) -> None:
    """A live source of these messages gives these events, and the error after them."""
    live = (message for message in (messages if isinstance(messages, Sequence) else messages.to_pylist()))
    found, found_error = events_and_error(live, engine, format=format, **options)
    assert (found, record_facts(found_error)) == (events, record_facts(error)), engine


def _size(message: Any) -> int:
    return len((message.as_py() if isinstance(message, pa.Scalar) else message) or b"")


def events_and_error(
    messages: Any, engine: str, *, format: str = FORMAT, **options: Any
) -> tuple[list[wf.Event], wf.DecodeError | None]:
    """The events before the error, and the error, if there is one."""
    events: list[wf.Event] = []
    try:
        for event in wf.decode(messages, format, engine=engine, **options):
            events.append(event)
    except wf.DecodeError as found:
        return events, found
    return events, None


def _rows_before_the_error(messages: Any, engine: str, format: str, options: dict[str, Any]) -> int:
    count = 0
    with suppress(wf.DecodeError):
        for batch in wf.arrow.batches(messages, format, engine=engine, **options):
            count += batch.num_rows
    return count


def agree(messages: Sequence[Any], **options: Any) -> Answer:
    """What both engines say, or the scan where it checks bounds; fails at the first thing in which they differ."""
    if CHECKS_BOUNDS:
        return ask(messages, "scan", **options)
    return same(messages, *(ask(messages, engine, **options) for engine in ENGINES))


def same(messages: Sequence[Any], scan: Answer, declaration: Answer) -> Answer:
    """The answer of the scan; fails at the first thing in which that of the declaration differs."""
    assert facts(scan.error) == facts(declaration.error)
    for place, (left, right) in enumerate(zip(scan.events, declaration.events, strict=False)):
        assert left == right, f"event {place}: {left} by scan, {right} by declaration"
    assert len(scan.events) == len(declaration.events)
    if scan.table is not None and not scan.table.equals(declaration.table, check_metadata=True):
        for left, right in zip(rows(scan.table), rows(declaration.table), strict=True):
            assert left == right, f"rows differ for the message {_shown(messages, left['message'])}"
        raise AssertionError(f"schemas differ: {scan.table.schema} and {declaration.table.schema}")
    return scan


def read(messages: Iterable[Any], engine: str = "scan", *, format: str = FORMAT, **options: Any) -> list[wf.Event]:
    """The events, as a list."""
    return list(wf.decode(messages, format, engine=engine, **options))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python values; commit_time in microseconds."""
    if "commit_time" in table.column_names:
        place = table.column_names.index("commit_time")
        table = table.set_column(place, "commit_time", table["commit_time"].cast(pa.int64()))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


_FORMATS = re.compile("; (?:it looks|the messages look) like .*", re.DOTALL)


def record_text(error: wf.DecodeError | str) -> str:
    """The text of an error, or of a CORRUPT row, without the likely formats: other messages change what it says."""
    return _FORMATS.sub("", str(error))


def record_facts(error: wf.DecodeError | None) -> tuple[Any, ...] | None:
    """Everything that an error says about its record. A live source cannot look at messages that are still to come."""
    if error is None:
        return None
    return type(error), record_text(error), sorted({**error.__dict__, "hint": None}.items())


def facts(error: wf.DecodeError | None) -> tuple[Any, ...] | None:
    """Everything that an error says."""
    return None if error is None else (type(error), str(error), sorted(error.__dict__.items()))


def _shown(messages: Sequence[Any], index: int) -> str:
    message = messages[index]
    return repr(bytes(message.as_py() if isinstance(message, pa.Scalar) else message))
