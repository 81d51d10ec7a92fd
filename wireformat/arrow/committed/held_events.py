"""Events of transactions that have not ended, in Arrow files: a column of pickled events."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .spill import RowSpill

_SCHEMA = pa.schema([pa.field("event", pa.large_binary(), nullable=False)])


class EventSpill:
    """An `EventStore` in files of the store of rows."""

    def __init__(self) -> None:
        self._rows = RowSpill(memory_limit=0)

    def put(self, pieces: Iterable[list[Any]]) -> list[int]:
        """See EventStore.put."""
        return self._rows.put_in_file(
            pa.record_batch([[pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in piece]], schema=_SCHEMA)
            for piece in pieces
        )

    def get(self, handle: int) -> Iterator[Any]:
        """See EventStore.get."""
        return (pickle.loads(cell.as_buffer()) for cell in self._rows.get(handle)["event"])

    def drop(self, handle: int) -> None:
        """See EventStore.drop."""
        self._rows.drop(handle)

    def close(self) -> None:
        """See EventStore.close."""
        self._rows.close()
