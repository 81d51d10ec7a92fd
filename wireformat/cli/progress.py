"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..sources.source import Source


@contextmanager
def progress(inputs: Sequence[Source], *, on_screen: bool = False) -> Iterator[Callable[[int], None]]:
    """Shows how much of the inputs has been read. Yields a function to call with the bytes read since the last call.

    on_screen   whether the command prints to the terminal; there is then no bar
    """
    if on_screen or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    sizes = [input.size for input in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(size: int) -> None:
            bar.advance(task, size)
            shown = bar.tasks[task]
            if total and shown.total is not None and shown.completed > shown.total:
                bar.update(task, total=shown.total + total)  # the inputs are read again

        yield advance
