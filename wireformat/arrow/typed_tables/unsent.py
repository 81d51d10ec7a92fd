"""Columns of a typed table whose values a change did not send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..arrays import Array
from .images import Shapes, combined
from .rows import UPDATE, ChangeRows
from .versions import Version

NAMES = pa.list_(pa.field("element", pa.string()))


def unsent_columns(rows: ChangeRows, versions: Array, known: Sequence[Version], columns: Sequence[str]) -> Shapes:
    """The columns whose values were not sent: those that a change lists, and those that its new row leaves out.

    An UPDATE of GaussDB's styles leaves out what PostgreSQL's formats list. An INSERT or UPDATE leaves out a column
    that the table got later: its version of the table has none, nor has an earlier one. What such a row holds there is
    the column's default, which was never sent.
    """
    since = {name: next((n for n, v in enumerate(known) if name in v.types), len(known)) for name in columns}
    new = rows.new.shapes
    ids = combined([rows.unchanged.ids, new.ids, rows.kinds, versions])
    _, firsts, inverse = np.unique(ids, return_index=True, return_inverse=True)
    lists: list[tuple[str, ...] | None] = []
    for first in firsts.tolist():
        listed = rows.unchanged.lists[rows.unchanged.ids[first]] or ()
        sent = new.lists[new.ids[first]]
        if sent is not None and not rows.numbered[first]:
            version = int(versions[first])
            there = known[version].types if rows.kinds[first] == UPDATE else {}
            listed += tuple(
                name for name in columns if (name in there or since[name] > version) and name not in {*sent, *listed}
            )
        lists.append(listed or None)
    return Shapes(inverse.reshape(-1), lists)


def is_unsent(unsent: Shapes, name: str) -> Array:
    """bool[n]: whether this column was not sent."""
    return np.array([name in (names or ()) for names in unsent.lists], bool)[unsent.ids]


def unsent_lists(unsent: Shapes, filled: Mapping[str, Array]) -> pa.Array:
    """The columns that were not sent, without those that were filled."""
    ids = combined([unsent.ids, *(flags.astype(np.int64) for flags in filled.values())])
    _, firsts, inverse = np.unique(ids, return_index=True, return_inverse=True)
    lists = []
    for first in firsts.tolist():
        names = unsent.lists[unsent.ids[first]] or ()
        lists.append([name for name in names if name not in filled or not filled[name][first]] or None)
    return pa.array(lists, NAMES).take(pa.array(inverse.reshape(-1)))
