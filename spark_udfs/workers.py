"""What a Python worker of Spark keeps from task to task."""

from __future__ import annotations

import gc
import sys

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
