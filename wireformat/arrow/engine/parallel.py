"""Runs work ahead in threads and yields the results in order. Compiled functions do not hold Python's global lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import pyarrow as pa

from ...options.checks import number

Item = TypeVar("Item")
Result = TypeVar("Result")


def checked_threads(threads: object) -> int:
    """Returns how many threads to use; None means as many as Arrow uses (`pyarrow.cpu_count`). Raises OptionError."""
    if threads is None:
        return int(pa.cpu_count())
    return number("threads", threads, 1)


def map_in_order(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[tuple[Item, Result]]:
    """Yields each item with the result of its work, in order. No more than `threads` results are computed ahead. What
    was yielded is not kept.

    An error of `items` is raised after the results of the items before it.

    With a single item or a single thread, the work runs in the calling thread. The threads end soon after the iterator:
    they are not waited for, since the garbage collector may close the iterator in any thread, also in one that is being
    started, and Python's lock for the shutdown of thread pools is then held by the thread that starts it.
    """
    errors: list[Exception] = []
    items = _until_error(items, errors)

    def worked(item: Item) -> tuple[Item, Result]:
        return item, work(item)

    begun = deque(islice(items, 2))
    if threads == 1 or len(begun) < 2:
        yield from map(worked, chain(_taken(begun), items))
    else:
        yield from _in_threads(chain(_taken(begun), items), work, threads)
    if errors:
        raise errors[0]


def _taken(items: deque[Item]) -> Iterator[Item]:
    """Yields the items, which are taken out of the queue."""
    while items:
        yield items.popleft()


def _until_error(items: Iterator[Item], errors: list[Exception]) -> Iterator[Item]:
    """Yields the items, and keeps the error that ends them."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)


def _in_threads(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[tuple[Item, Result]]:
    """See `map_in_order`."""
    pool = ThreadPoolExecutor(threads)
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(work, item)))
            del item
            if len(waiting) > threads:
                yield _result(waiting)
        while waiting:
            yield _result(waiting)
    finally:
        for _, future in waiting:
            future.cancel()


def _result(waiting: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    """Takes the first item out of the queue, and returns it with its result."""
    item, future = waiting.popleft()
    return item, future.result()
