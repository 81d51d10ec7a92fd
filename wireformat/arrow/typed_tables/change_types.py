"""The values of `_change_type`, and the kinds of changes that they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array
from ..row_changes import TABLE_DELETE, TABLE_INSERT, TABLE_TRUNCATE, TABLE_UPDATE

CHANGE_TYPES = ("insert", "update", "delete", "truncate", "update_preimage", "update_postimage")
"""The values of `_change_type`. The first four are in the order of TABLE_KINDS."""

PREIMAGE, POSTIMAGE = (CHANGE_TYPES.index(name) for name in ("update_preimage", "update_postimage"))

UPDATES = ("update", "update_postimage")
"""The changes that update a row."""

ROW_CHANGE_TYPES = ("insert", *UPDATES, "delete")
"""The changes that set or delete a row."""

_IGNORED, UNKNOWN_CHANGE = -1, -2
_KINDS = np.array(
    [TABLE_INSERT, TABLE_UPDATE, TABLE_DELETE, TABLE_TRUNCATE, _IGNORED, TABLE_UPDATE, UNKNOWN_CHANGE], np.int8
)
"""The kind that each of CHANGE_TYPES means, and any other value."""


def kinds_of(change_types: Any) -> Array:
    """Returns int8[n]: the kind of each change; -1 for an image before an update, UNKNOWN_CHANGE for other values."""
    return _KINDS[np.asarray(pc.fill_null(pc.index_in(change_types, pa.array(CHANGE_TYPES)), len(CHANGE_TYPES)))]
