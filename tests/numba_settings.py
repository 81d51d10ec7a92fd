"""How numba compiles in processes that tests start: each set of settings has a cache of its own."""

from __future__ import annotations

COMPILED_SOON = {"NUMBA_OPT": "0"}
"""Code that runs once need not be fast: without optimization it is compiled in a third of the time."""

BOUNDS_CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"}
"""Every index is checked. What more optimization takes, it does not save."""

UNCOMPILED = {"NUMBA_DISABLE_JIT": "1"}
"""For coverage and debuggers; warnings of numpy's arithmetic are errors, so nothing wraps by accident."""
