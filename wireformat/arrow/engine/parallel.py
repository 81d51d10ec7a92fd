"""Work done ahead in threads, with its results in order. The compiled functions hold no lock of Python's."""

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
    """How many threads to use; None is as many as Arrow uses (`pyarrow.cpu_count`). Raises OptionError."""
    if threads is None:
        return int(pa.cpu_count())
    return number("threads", threads, 1)


def map_in_order(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[tuple[Item, Result]]:
    """Each item with the result of its work, in order; `threads` items are worked on at a time, and as many wait.

    One item, or one thread, starts no other thread.
    """
    first = list(islice(items, 2))
    if threads == 1 or len(first) < 2:
        yield from ((item, work(item)) for item in chain(first, items))
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in chain(first, items):
            waiting.append((item, pool.submit(work, item)))
            if len(waiting) > threads:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
