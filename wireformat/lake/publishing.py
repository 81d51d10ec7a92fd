"""Tables of a lake that are worked on, or published, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Table = TypeVar("Table")

PUBLISHED_AT_ONCE = 8
"""Number of tables published at once, however many processors there are: the threads mostly wait for the storage."""


def for_each(work: Callable[[Table], object], tables: Iterable[Table], threads: int) -> None:
    """Does a work for each table, in threads. After an error no more is begun; it is raised when all threads are done.

    If there are several errors, it is that of the first table.
    """
    has_failed = Event()

    def done(table: Table) -> None:
        try:
            if not has_failed.is_set():
                work(table)
        except BaseException:
            has_failed.set()
            raise

    with ThreadPoolExecutor(threads, "wireformat-lake") as pool:
        for task in [pool.submit(done, table) for table in tables]:
            task.result()
