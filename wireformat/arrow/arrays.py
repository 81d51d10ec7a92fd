"""Type aliases for arrays and numbers, for modules that load no numba."""

from __future__ import annotations

from typing import Any

Int = Any
"""int64 in compiled code; an int or a numpy.int64 where the same function runs uncompiled."""

Array = Any
"""A numpy array; the docstring of its function says of what."""


def read_only(array: Array) -> Array:
    """The same array, as the one type that the scan is compiled for."""
    array.flags.writeable = False
    return array
