"""Chosen rows, as typed tables read them: of a record batch, or of anything else that can say the same of its rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...lsn import lsn_text
from ..arrays import Array, batch_size
from ..row_changes import RELATION_ID_COLUMN
from ..schemas import CHANGES
from .images import EncodedLists, Image, encoded_lists, image_of_maps


class Selection(Protocol):
    """Chosen rows of one source, in order.

    new, old      their images
    types         the lists of the types of their values, encoded
    unchanged     the columns that they list as not sent
    layout_codes  int64[n]: rows with the same code are of one kind, with the same columns and types; None if unknown
    layouts       what rows with the same code have in common, of row changes alone; None if it is unknown
    """

    @property
    def layout_codes(self) -> Array | None:
        """See the class."""

    @property
    def layouts(self) -> Sequence[Hashable] | None:
        """See the class."""

    def __len__(self) -> int:
        """The number of rows."""

    @property
    def nbytes(self) -> int:
        """About the size in memory."""

    @property
    def new(self) -> Image:
        """See the class."""

    @property
    def old(self) -> Image:
        """See the class."""

    @property
    def types(self) -> EncodedLists:
        """See the class."""

    @property
    def unchanged(self) -> EncodedLists:
        """See the class."""

    @property
    def relation_ids(self) -> pa.Array:
        """int64: the OIDs of the tables; null if the row change does not state it."""

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """Returns a column of the rows; null if there is none of this name."""

    def position(self, index: int) -> dict[str, Any]:
        """Returns the position of a row in its input, as the attributes of an error."""

    def detail(self, index: int) -> dict[str, str] | None:
        """Returns the `detail` of a row; None if the rows have no such column."""

    def chosen(self, indices: Array) -> Selection:
        """Returns some of the rows; the indices are ascending."""


@dataclass(frozen=True)
class BatchSelection:
    """Rows of a record batch.

    rows   int64[n]: their indices, ascending
    """

    batch: pa.RecordBatch
    rows: Array

    layout_codes: ClassVar[None] = None
    layouts: ClassVar[None] = None

    def __len__(self) -> int:
        """See Selection."""
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """See Selection."""
        return batch_size(self.batch)

    @property
    def new(self) -> Image:
        """See Selection."""
        return image_of_maps(self._map("new"), self.rows)

    @property
    def old(self) -> Image:
        """See Selection."""
        return image_of_maps(self._map("old"), self.rows)

    @property
    def types(self) -> EncodedLists:
        """See Selection."""
        return self._lists("types")

    @property
    def unchanged(self) -> EncodedLists:
        """See Selection."""
        return self._lists("unchanged")

    @property
    def relation_ids(self) -> pa.Array:
        """See Selection."""
        names = self.batch.schema.names
        if RELATION_ID_COLUMN in names:
            return self.batch[RELATION_ID_COLUMN].take(pa.array(self.rows)).cast(pa.int64())
        if "detail" in names:
            detail = _cast_to_schema(self.batch["detail"].take(pa.array(self.rows)), "detail")
            return pc.map_lookup(detail, "relation_id", "first").cast(pa.int64())
        return pa.nulls(len(self.rows), pa.int64())

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """See Selection."""
        if name not in self.batch.schema.names:
            return pa.nulls(len(self.rows), type)
        column = self.batch[name].take(pa.array(self.rows))
        return column if column.type == type else column.cast(type)

    def position(self, index: int) -> dict[str, Any]:
        """See Selection."""
        return row_position(self.batch, int(self.rows[index]))

    def detail(self, index: int) -> dict[str, str] | None:
        """See Selection."""
        if "detail" not in self.batch.schema.names:
            return None
        return dict(self.batch["detail"][int(self.rows[index])].as_py() or ())

    def chosen(self, indices: Array) -> BatchSelection:
        """See Selection."""
        return BatchSelection(self.batch, self.rows[indices])

    def _map(self, name: str) -> Any:
        column, text = self.batch[name], pa.string()
        is_text = (column.type.key_type, column.type.item_type) == (text, text)
        return column if is_text else _cast_to_schema(column, name)

    def _lists(self, name: str) -> EncodedLists:
        column = self.batch[name]
        return encoded_lists(
            column if column.type.value_type == pa.string() else _cast_to_schema(column, name), self.rows
        )


def _cast_to_schema(column: pa.Array, name: str) -> pa.Array:
    """Casts a column to its type in the row-change table."""
    return column.cast(CHANGES.field(name).type)


def row_position(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """Returns the position of a row in its input, as the attributes of an error."""
    names = batch.schema.names
    found: dict[str, Any] = {name: batch[name][row].as_py() for name in ("message", "record") if name in names}
    sequence = batch["sequence"][row].as_py() if "sequence" in names else None
    return found | ({} if sequence is None else {"sequence": sequence_text(sequence)})


def sequence_text(sequence: dict[str, int]) -> str:
    """Returns a `sequence` as errors show it."""
    return f"{lsn_text(sequence['commit_lsn'])} / {sequence['ordinal']}"
