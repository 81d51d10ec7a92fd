"""Record batches made in several threads: the same rows, the same errors, in the same order."""

from __future__ import annotations

import concurrent.futures.thread
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

import wireformat as wf
from wireformat.arrow.engine.scan_engine import map_in_order
from wireformat.arrow.scan.relations import relation_table

from ...golden_cases import CASES
from ...servers.captures import read_capture
from ..scan.small_limits import shrink

CASE = next(case for case in CASES if case.name == "b_many_batch")
BAD = b"\0\0\0\x09\0\0\0\0\0\0\0\x07IF"
"""A good frame around a row change that ends at once."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=4000)


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_rows_are_the_same(threads: int, mode: str) -> None:
    messages = [*CASE.messages, BAD, *CASE.messages, BAD, *CASE.messages]
    one = wf.arrow.changes(messages, CASE.format, mode=mode, threads=1)
    more = wf.arrow.changes(messages, CASE.format, mode=mode, threads=threads)
    assert more.equals(one)
    assert more.schema.metadata == one.schema.metadata
    assert one.num_rows > 100


@pytest.mark.parametrize("name", ["18-pgoutput-4-two-phase", "18-pgoutput-4-binary"])
def test_relations_come_from_other_batches(name: str) -> None:
    messages = read_capture(name).messages
    assert wf.arrow.changes(messages, "pgoutput", threads=3).equals(wf.arrow.changes(messages, "pgoutput", threads=1))


def test_an_error_comes_after_the_rows_before_it() -> None:
    messages = [*CASE.messages, BAD, *CASE.messages]
    wanted = wf.arrow.changes(CASE.messages, CASE.format).num_rows
    rows: list[int] = []
    with pytest.raises(wf.DecodeError) as caught:
        rows.extend(batch.num_rows for batch in wf.arrow.batches(messages, CASE.format, threads=3))
    assert (sum(rows), caught.value.message) == (wanted, len(CASE.messages))


def test_who_stops_early_leaves_no_thread_behind() -> None:
    before = {*threading.enumerate()}  # of other tests: they may end at any time
    batches = wf.arrow.batches(CASE.messages * 20, CASE.format, threads=3)
    next(batches)
    started = {*threading.enumerate()} - before
    assert started
    batches.close()
    for thread in started:
        thread.join(60)
    assert not [thread for thread in started if thread.is_alive()]


def test_an_iterator_is_closed_while_a_thread_is_started() -> None:
    """The garbage collector does it in the new thread, while the lock of all thread pools is held."""
    found = map_in_order(iter(range(10)), str, 2)
    next(found)
    closer = threading.Thread(target=found.close, daemon=True)
    with concurrent.futures.thread._global_shutdown_lock:
        closer.start()
        closer.join(10)
        assert not closer.is_alive()


def test_only_so_many_messages_are_read_ahead() -> None:
    taken = 0

    def messages() -> Iterator[bytes]:
        nonlocal taken
        for message in CASE.messages * 50:
            taken += 1
            yield message

    batches = wf.arrow.batches(messages(), CASE.format, threads=2)
    next(batches)
    assert taken < len(CASE.messages) * 10
    batches.close()


def test_results_keep_the_order_of_the_items() -> None:
    first_may_end = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert first_may_end.wait(60)
        else:
            first_may_end.set()
        return item * item

    assert list(map_in_order(iter(range(50)), work, 4)) == [(item, item * item) for item in range(50)]


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_what_is_no_number_of_threads(threads: object) -> None:
    with pytest.raises(wf.OptionError, match="option threads: expected a whole number from 1 on"):
        wf.arrow.changes([], CASE.format, threads=threads)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 3])
def test_relations_are_kept_for_the_next_batch_but_not_without_end(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = read_capture("18-pgoutput-4-two-phase").messages
    wanted = wf.arrow.changes(messages, "pgoutput", engine="declaration")
    monkeypatch.setattr(relation_table, "MOST_TEXT", 100)
    assert wf.arrow.changes(messages, "pgoutput", threads=threads).equals(wanted)


class _Item:
    """Something that can be counted while it is in use."""


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_yielded_is_not_kept(threads: int) -> None:
    alive = weakref.WeakSet[_Item]()

    def made(_: int) -> _Item:
        item = _Item()
        alive.add(item)
        return item

    found = map_in_order(map(made, range(6)), lambda item: None, threads)
    for left in range(5, -1, -1):
        next(found)
        for _ in range(1000):
            if len(alive) <= min(left, threads):
                break
            time.sleep(0.001)  # a thread may still be about to let its item go
        assert len(alive) <= min(left, threads)
