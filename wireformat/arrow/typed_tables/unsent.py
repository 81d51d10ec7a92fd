"""The columns of a typed table whose values a change did not send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..arrays import Array
from ..codes import combined_codes, grouped
from ..row_changes import TABLE_UPDATE
from ..schemas import NAME_LIST
from .images import EncodedLists, Names
from .rows import ChangeRows
from .versions import Version


def unsent_columns(
    rows: ChangeRows, version_indices: Array, versions: Sequence[Version], columns: Sequence[str], *, are_named: bool
) -> EncodedLists:
    """Returns the columns whose values were not sent: those that a change lists, and those that its new row omits.

    are_named   whether the new row of an UPDATE names each column that the table has, as in `pgoutput`

    An UPDATE in GaussDB's styles omits the columns that PostgreSQL's formats list. An INSERT or UPDATE also omits a
    column that the table got later: neither its version of the table nor an earlier one has the column. Such a row has
    the column's default, which was never sent.
    """
    first_version = {
        name: next((index for index, version in enumerate(versions) if name in version.types), len(versions))
        for name in columns
    }

    def of_row(listed: Names, sent: Names | None, is_numbered: bool, version: int, is_update: bool) -> Names:
        if sent is None or is_numbered:
            return listed
        of_version = versions[version].types if is_update else {}
        there = {*sent, *listed}
        return listed + tuple(
            name for name in columns if name not in there and (name in of_version or first_version[name] > version)
        )

    new = rows.new.names
    is_update = (rows.kinds == TABLE_UPDATE) & (not are_named)
    codes = combined_codes([rows.layouts, version_indices])
    firsts, of_codes = grouped(codes)
    # many layouts differ in their old images alone
    numbers: dict[tuple[Names, Names | None, bool, int, bool], int] = {}
    own = []
    for first in firsts.tolist():
        listed = rows.unchanged.lists[rows.unchanged.codes[first]] or ()
        sent = new.lists[new.codes[first]]
        key = listed, sent, bool(rows.numbered[first]), int(version_indices[first]), bool(is_update[first])
        own.append(numbers.setdefault(key, len(numbers)))
    return EncodedLists(np.array(own, np.int64)[of_codes], [of_row(*key) or None for key in numbers])


def is_unsent(unsent: EncodedLists, name: str) -> Array:
    """Returns bool[n]: whether this column was not sent."""
    return unsent.where(lambda names: name in (names or ()))


def unsent_lists(unsent: EncodedLists, filled: Mapping[str, Array]) -> pa.Array:
    """Returns the columns that were not sent, without those that were filled from the old image.

    filled   column to bool[n]: whether the row's value was filled
    """
    if not any(unsent.lists):
        return pa.nulls(len(unsent.codes), NAME_LIST)
    codes = combined_codes([unsent.codes, *(flags.astype(np.int64) for flags in filled.values())])
    firsts, of_codes = grouped(codes)
    lists = []
    for first in firsts.tolist():
        names = unsent.lists[unsent.codes[first]] or ()
        lists.append([name for name in names if name not in filled or not filled[name][first]] or None)
    return pa.array(lists, NAME_LIST).take(pa.array(of_codes))
