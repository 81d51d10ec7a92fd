"""Wrong arguments: every public function refuses them in words, with an error of this package or a clear TypeError."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.committed.spill import RowSpill

from .engines import FORMAT
from .handmade import COMMIT, INSERT, message

PACKAGES = [Path(wf.__file__).parent, Path(wf.__file__).parents[1] / "spark_udfs"]
MESSAGE = message(INSERT, COMMIT)
CHANGES = wf.arrow.changes([b"BEGIN 5", b"table s.t: INSERT: id[integer]:1", b"COMMIT 5"], "test-decoding")
TYPED_CHANGES = wf.arrow.typed(wf.arrow.transactions(CHANGES), "s.t")
EVENTS = [wf.Begin(lsn=1, csn=5, first_lsn=1), wf.Commit(lsn=2, xid=9)]

WRONG: tuple[Any, ...] = (
    *(None, 5, -1, 1.5, True, "x", "", b"x", [], [5], [[]], [None], ["x"], ["x", "x"], {}, {"x": []}, {5: 5}),
    *(object(), range(3), [[0, 0, 9]], int, pa.table({"x": [b""]}), pa.array([1]), pa.array(["x"]), 1 << 80),
)
"""What may come instead of anything."""


def decoded(messages: Any, format: Any, **options: Any) -> None:
    list(wf.decode(messages, format, **options))


def fed(data: Any) -> None:
    decoder = wf.Decoder(FORMAT)
    decoder.feed(data)


def batches(messages: Any, format: Any, **options: Any) -> None:
    list(wf.arrow.batches(messages, format, **options))


def encoded(events: Any, format: Any, **options: Any) -> None:
    list(wf.encode(events, format, **options))


def streamed(**options: Any) -> None:
    for _ in zip(range(9), wf.testing.stream(**options), strict=False):
        pass


def committed(events: Any, **options: Any) -> None:
    list(wf.transactions(events, **options))


def taken(batch: Any) -> None:
    with wf.arrow.Transactions() as found:
        list(found.take(batch))


READING = list(inspect.signature(wf.ReadOptions.check).parameters)
TRANSACTIONS = ["two_phase", "drop_resent", "memory_limit", "after"]
STREAM = list(inspect.signature(wf.testing.stream).parameters)
ENCODING = list(inspect.signature(wf.arrow.encode).parameters)[2:]
TYPED = list(inspect.signature(wf.arrow.typed).parameters)[2:]

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "decode": (decoded, ([MESSAGE], FORMAT), ["engine", *READING]),
    "Decoder": (wf.Decoder, (FORMAT,), ["engine", *READING]),
    "Decoder.decode": (wf.Decoder(FORMAT).decode, (MESSAGE,), []),
    "Decoder.feed": (fed, (MESSAGE,), []),
    "guess_format": (wf.guess_format, ([MESSAGE],), []),
    "encode": (encoded, (EVENTS, FORMAT), ["options", "encoding", "batch_bytes"]),
    "transactions": (committed, (EVENTS,), TRANSACTIONS),
    "ReadOptions.check": (wf.ReadOptions.check, (), READING),
    "Options.gaussdb": (wf.Options.gaussdb, ({},), ["plugin", "product", "via", "max_process_memory_mb"]),
    "lsn_text": (wf.lsn_text, (5,), []),
    "lsn_value": (wf.lsn_value, ("0/5",), []),
    "ddl.to_sql": (wf.ddl.to_sql, ('{"fmt": "x"}',), []),
    "TupleData": (wf.TupleData, (("a",), ("1",), ("text",)), []),
    "plugin.Encoder": (wf.plugin.Encoder, (FORMAT,), ["batch_bytes"]),
    "arrow.changes": (wf.arrow.changes, ([MESSAGE], FORMAT), ["columns", "engine", "threads", *READING]),
    "arrow.batches": (batches, ([MESSAGE], FORMAT), ["columns", "engine", "threads", *READING]),
    "arrow.encode": (wf.arrow.encode, (CHANGES, "test-decoding"), ENCODING),
    "testing.stream": (streamed, (), STREAM),
    "arrow.transactions": (wf.arrow.transactions, (CHANGES,), TRANSACTIONS),
    "arrow.open_transactions": (wf.arrow.open_transactions, (CHANGES,), TRANSACTIONS),
    "arrow.Transactions": (wf.arrow.Transactions, (), [*TRANSACTIONS, "state", "store"]),
    "arrow.Transactions.take": (taken, (CHANGES.to_batches()[0],), []),
    "arrow.typed": (wf.arrow.typed, (CHANGES, "s.t"), TYPED),
    "arrow.tables": (wf.arrow.tables, (CHANGES,), []),
    "arrow.latest": (wf.arrow.latest, (TYPED_CHANGES, ["id"]), ["stream_by"]),
    "arrow.change_schema": (wf.arrow.change_schema, (["kind"],), []),
    "arrow.committed_schema": (wf.arrow.committed_schema, (wf.arrow.CHANGES,), []),
}
"""The function, arguments that it takes, and the names of options."""


def wrong_calls(
    call: Callable[..., Any], good: tuple[Any, ...], options: list[str], values: tuple[Any, ...] = WRONG
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The call with each of its arguments wrong, in words and to be run."""
    for value in values:
        for place in range(len(good)):
            arguments = (*good[:place], value, *good[place + 1 :])
            yield f"argument {place}: {value!r}", lambda arguments=arguments: call(*arguments)
        for option in options:
            yield f"{option}={value!r}", lambda option=option, value=value: call(*good, **{option: value})


def complaint(call: Callable[[], Any]) -> str | None:
    """What is wrong with how the call ends, if something is."""
    try:
        call()
    except wf.WireformatError as error:
        return None if str(error) else "an error without words"
    except TypeError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_own = any(Path(last.filename).is_relative_to(package) for package in PACKAGES)
        is_meant = is_own and (last.line or "").startswith("raise") and "expected" in str(error)
        return None if is_meant else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_in_words(name: str) -> None:
    call, good, options = CALLS[name]
    call(*good)
    found = {what: words for what, one in wrong_calls(call, good, options) if (words := complaint(one)) is not None}
    assert not found


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a table as messages": (
        lambda: wf.arrow.changes(pa.table({"payload": [MESSAGE]}), FORMAT),
        "messages: expected one column of messages, got a Table",
    ),
    "numbers as messages": (lambda: wf.arrow.changes(range(3), FORMAT), "expected bytes-like objects, got int"),
    "lists as messages": (lambda: wf.arrow.changes([[0, 0, 9]], FORMAT), "expected bytes-like objects, got list"),
    "text as a message": (lambda: wf.arrow.changes(["x"], FORMAT), "expected bytes-like objects, got str"),
    "one message": (lambda: decoded(MESSAGE, FORMAT), "expected an iterable of messages, got one bytes"),
    "a column twice": (lambda: wf.arrow.changes([], FORMAT, columns=["kind", "kind"]), "'kind' is named twice"),
    "a number as a table": (
        lambda: wf.arrow.changes([], FORMAT, tables=[5]),
        "option tables: expected a list of strings, got 5",
    ),
    "a list as a kind": (
        lambda: wf.arrow.changes([], FORMAT, kinds=[[]]),
        "option kinds: expected a list of strings, got a list",
    ),
    "a flag that is a word": (
        lambda: wf.arrow.typed(CHANGES, "s.t", complete="no"),
        "option complete: expected True or False",
    ),
    "more values than names": (
        lambda: wf.TupleData(("id",), ("1", "2"), ("integer",)),
        "got 1 name, 2 values, 1 type",
    ),
    "columns as changes": (lambda: wf.arrow.typed(list(CHANGES), "s.t"), "expected a pyarrow Table or record batches"),
    "no messages to guess the format of": (
        lambda: wf.guess_format(None),
        "expected an iterable of bytes-like objects, got None",
    ),  # type: ignore[arg-type]
    "a text as a saved state": (lambda: wf.arrow.Transactions(state="x"), "state: expected the bytes of"),  # type: ignore[arg-type]
    "a number as a store": (
        lambda: wf.arrow.Transactions(store=5),  # type: ignore[arg-type]
        "store: expected an object with the methods put, get and drop, got int",
    ),
    "a class as a store": (
        lambda: wf.arrow.Transactions(store=RowSpill),  # type: ignore[arg-type]
        "store: expected an object with the methods put, get and drop, got the class RowSpill",
    ),
    "a mapping as a row image": (
        lambda: encoded([wf.Insert(table_schema="s", table_name="t", new={"id": "1"})], "test-decoding"),  # type: ignore[arg-type]
        "events: INSERT of s.t: new: expected TupleData(names, values, types) or None, got dict",
    ),
    "a number as progress": (
        lambda: wf.Capture([], FORMAT, progress=5),  # type: ignore[arg-type]
        "option progress: expected a function, got 5",
    ),
    "nothing before a message": (
        lambda: wf.inspect(MESSAGE, FORMAT, before=None),  # type: ignore[arg-type]
        "before: expected an iterable of messages, got NoneType",
    ),
    "no events as whole transactions": (
        lambda: wf.plugin.whole_transactions(None),  # type: ignore[arg-type]
        "events: expected an iterable of events, got NoneType",
    ),
    "a number as an event": (lambda: list(wf.plugin.whole_transactions([5])), "events: expected events, got int"),  # type: ignore[list-item]
    "a text as options": (lambda: wf.Options.gaussdb("x"), "options: expected a mapping of names to values, got 'x'"),  # type: ignore[arg-type]
}


IMAGE = wf.TupleData(("id",), ("1",), ("integer",))
WHOLE: tuple[wf.Event, ...] = (
    wf.Begin(lsn=1, csn=5, first_lsn=1, xid=9, commit_lsn=2, commit_time="2024-01-01 00:00:00+00"),
    wf.Relation(
        relation_id=5,
        table_schema="s",
        table_name="t",
        replica_identity="default",
        columns=("id",),
        type_oids=(23,),
        typmods=(-1,),
        key_columns=("id",),
    ),
    wf.Update(lsn=1, table_schema="s", table_name="t", new=IMAGE, old=IMAGE),
    wf.Truncate(lsn=1, tables=(("s", "t"),)),
    wf.Message(lsn=1, transactional=True, prefix="p", content="c"),
    wf.Ddl(lsn=1, sql="x", content="c"),
    wf.Heartbeat(wal_end=5, wal_flushed=4, time=5, lsn=1),
    wf.Commit(lsn=2, xid=9, csn=5, commit_lsn=2, end_lsn=3, commit_time="2024-01-01 00:00:00+00"),
)


@pytest.mark.parametrize("format", wf.FORMATS)
def test_an_event_with_a_wrong_field_is_refused_in_words(format: str) -> None:
    values: tuple[Any, ...] = (None, 5, 1.5, "x", b"x", {}, [], ("a",), ((1, 2),), object())
    found = {}
    for event in WHOLE:
        for field in fields(event):
            for value in values:
                wrong = replace(event, **{field.name: value})
                words = complaint(lambda wrong=wrong: encoded([wrong], format))  # type: ignore[misc]
                if words is not None:
                    found[event.kind, field.name, repr(value)] = words
    assert not found


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_error_says(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((wf.WireformatError, TypeError), match=re.escape(words)):
        call()
