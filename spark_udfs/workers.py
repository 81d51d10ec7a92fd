"""What Python workers of Spark keep from task to task, and what they log because a result has no column for it."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence

from pyspark import TaskContext

_loaded = 0
"""How many modules were loaded when the worker was settled last."""


def settle() -> None:
    """Lets the garbage collector skip what has been loaded; call it at the end of a task.

    After each task, Spark has the collector look through all objects of the worker. With numba and pyarrow loaded,
    that takes longer than a small task. Outside of a worker it does nothing.
    """
    global _loaded
    if TaskContext.get() is not None and len(sys.modules) != _loaded:
        gc.collect()
        gc.freeze()
        _loaded = len(sys.modules)


SHOWN_GIDS = 20
"""The number of gids that one line of the log shows."""


def log_unknown_prepared(gids: Sequence[str], where: str) -> None:
    """Logs the prepared transactions that ended without a known PREPARE."""
    if gids:
        more = "" if len(gids) <= SHOWN_GIDS else f" and {len(gids) - SHOWN_GIDS} more"
        shown = ", ".join(map(repr, gids[:SHOWN_GIDS]))
        logging.getLogger(__package__).warning(
            "%s: transactions ended that were not prepared before, nothing is delivered of them: %s%s",
            where,
            shown,
            more,
        )
