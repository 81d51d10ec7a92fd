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
    """Yields each item with the result of its work, in order. No more than `threads` results are computed ahead.

    An error of `items` is raised after the results of the items before it.

    With a single item or a single thread, the work runs in the calling thread. The threads end soon after the iterator:
    they are not waited for, since the garbage collector may close the iterator in any thread, also in one that is being
    started, and Python's lock for the shutdown of thread pools is then held by the thread that starts it.
    """
    errors: list[Exception] = []
    items = _until_error(items, errors)
    first = list(islice(items, 2))
    if threads == 1 or len(first) < 2:
        yield from ((item, work(item)) for item in chain(first, items))
    else:
        yield from _in_threads(chain(first, items), work, threads)
    if errors:
        raise errors[0]


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
            if len(waiting) > threads:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        for _, future in waiting:
            future.cancel()
