"""A corner: messages with something that is rare or hard to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Corner(NamedTuple):
    """One kind of messages, and what it is compared with."""

    name: str
    format: str
    make: Callable[[int], Any]
    """The messages for so many row changes, or other records."""
    easy: str | None
    """The name of its easy case; None: it is one."""
    options: Mapping[str, Any] = {}
    """Of wf.arrow.changes, or wf.Capture."""
    per_row: bool = False
    """Rows are tiny: the times for a row are compared, not those for a byte."""
    captures: bool = False
    """Whether wf.Capture reads them, and not wf.arrow.changes."""
    columns: Mapping[str, str] | None = None
    """The types of public.orders, of which wf.Capture.typed reads the rows; None: row changes are read."""
    most: float = 3
    """How many times slower it may be."""
