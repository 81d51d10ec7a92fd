"""The formats of other packages: entry points of the group `wireformat.formats`, each a FormatRow."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING

from ..errors import OptionError
from .row import FormatRow

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "wireformat.formats"


def outside_row(name: str) -> FormatRow | None:
    """Returns the row of this name, or None if no package has it. Raises OptionError if it cannot be loaded."""
    found = _entry_points(tuple(sys.path)).get(name, ())
    return _load(name, found) if found else None


def outside_rows() -> dict[str, FormatRow]:
    """Returns all rows by name. A row that cannot be loaded is left out with a RuntimeWarning."""
    rows = {}
    for name, found in _entry_points(tuple(sys.path)).items():
        try:
            rows[name] = _load(name, found)
        except OptionError as error:
            _warn(str(error))
    return rows


@cache
def _entry_points(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    from importlib.metadata import entry_points  # takes a part of every start

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


@cache
def _load(name: str, points: tuple[EntryPoint, ...]) -> FormatRow:
    found, *others = points
    if others:
        values = ", ".join(sorted(point.value for point in points))
        raise OptionError(f"the format {name} cannot be loaded: several packages have one of this name: {values}")
    try:
        row = found.load()
        if isinstance(row, FormatRow):
            row.check_differences()
    except Exception as error:
        raise OptionError(
            f"the format {found.name} cannot be loaded: {found.value} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(row, FormatRow):
        raise OptionError(
            f"the format {found.name} cannot be loaded: expected {found.value} to be a FormatRow, "
            f"got {type(row).__name__}"
        )
    if row.name != found.name:
        raise OptionError(f"the format {found.name} cannot be loaded: its row in {found.value} is named {row.name}")
    return row


@cache
def _warn(message: str) -> None:
    """Once for each message."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
