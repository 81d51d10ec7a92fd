"""What the rows that were read tell about the columns of the version of the next row of their table.

An UPDATE or DELETE is of the version that the row before it has, unless it names other columns. So where all rows since
some row name only columns of that one, they are of its version. An INSERT names all columns of its version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ...options.table_names import TableName
from ..arrays import Array
from ..scan.notes import DELETE
from .layouts import Layout

Columns: TypeAlias = "Mapping[str, str | None]"
"""The type of each column; None in an untyped image."""

_MOST_LATER = 64
"""So many layouts are kept of a table before its columns are made of them."""


class LastColumns:
    """Columns that the version of the last row of a table has, for a reader that takes all rows of tables in order."""

    def __init__(self) -> None:
        self._of: dict[TableName, tuple[Columns | Layout, list[Layout]]] = {}
        """Columns, or a layout that has them, and the layouts of the rows after it, the last one last."""

    def of(self, table: TableName) -> Columns:
        """Returns those of a table; none if they are not known."""
        first, later = self._of.get(table, ({}, []))
        columns = _columns_of(first) if isinstance(first, Layout) else first
        return columns if all(_has_all(columns, layout) for layout in later) else _columns_of(later[-1])

    def forget(self, table: TableName | None = None) -> None:
        """Forgets those of a table, or all: rows follow of which nothing is known."""
        if table is None:
            self._of.clear()
        else:
            self._of.pop(table, None)

    def take(self, codes: Array, layouts: Sequence[Layout]) -> None:
        """Learns from the next rows.

        codes   int64[n]: the index of the layout of each row
        """
        lasts = np.full(len(layouts), -1)
        lasts[codes] = np.arange(len(codes))  # the last one of equal indices stays
        order = np.argsort(lasts)[np.count_nonzero(lasts < 0) :]
        for layout in [layouts[code] for code in order.tolist()]:
            known = self._of.get(layout.table)
            if known is None or (layout.new is not None and not layout.unchanged):
                self._of[layout.table] = layout, []
                continue
            known[1].append(layout)
            if len(known[1]) > _MOST_LATER:
                self._of[layout.table] = self.of(layout.table), []


def _columns_of(layout: Layout) -> Columns:
    """Returns columns that the version of a row with this layout has; none if that is not sure."""
    names = layout.old if layout.new is None else layout.new
    if not names or layout.unchanged or names[0].startswith("$") or len({*names}) < len(names) or _is_mixed(layout):
        return {}
    types = _types_of(layout)
    return {} if "" in types.values() else types


def _has_all(columns: Columns, layout: Layout) -> bool:
    """Whether rows of a layout, which are no INSERTs, name none but these columns."""
    names = {*(layout.old or ()), *(layout.unchanged or ())}
    return _types_of(layout).items() <= columns.items() and columns.keys() >= names and not _is_mixed(layout)


def _types_of(layout: Layout) -> Columns:
    names = (layout.old if layout.new is None else layout.new) or ()
    return dict.fromkeys(names) if layout.types is None else dict(zip(names, layout.types, strict=True))


def _is_mixed(layout: Layout) -> bool:
    """Whether it is that of a DELETE with a new image: the types are those of this, the names those of the old one."""
    return layout.new is not None and layout.kind == DELETE
