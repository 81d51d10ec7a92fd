"""The messages of a capture as a DataFrame: sorted by stream and position, a partition for each chunk."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from wireformat.chunks.relations import NEEDED_TAGS
from wireformat.framing.copy_data import ENVELOPE, ENVELOPE_BYTES

from ..positions import PositionColumns, chunk_of

CHUNK = StructField("chunk", IntegerType())


@dataclass(frozen=True)
class Messages:
    """The messages of a capture.

    df          with the columns of `positions`, and others
    payload     the binary column with the messages
    positions   the columns that give stream and position of a message
    chunks      the largest number of chunks
    """

    df: DataFrame
    payload: Column
    positions: PositionColumns
    chunks: int

    @cached_property
    def _chunk(self) -> Column:
        """The number of a message's chunk. It is sampled once, so each reading has the same chunks."""
        return chunk_of(self.df, self.positions, self.chunks, [])

    @property
    def fields(self) -> list[StructField]:
        """The columns of `in_chunks`: chunk, stream_by, order_by, message. A plan has nulls in place of a position."""
        positions = [StructField(field.name, field.dataType) for field in self.positions.fields]
        fields = [CHUNK, *positions, StructField("message", BinaryType())]
        return [StructField(str(index), field.dataType) for index, field in enumerate(fields)]

    def in_chunks(self, plans: Mapping[int, Any] | None = None, *, relations_only: bool = False) -> DataFrame:
        """Returns the messages, a chunk in each partition, sorted by stream and position.

        plans            what the task of a chunk gets before its first message, by the number of the chunk; only these
                         chunks are read. None: all chunks
        relations_only   only messages that describe relations of pgoutput, and that begin or end their validity
        """
        df = self.df.where(_is_needed(self.payload)) if relations_only else self.df
        columns = [self._chunk, *self.positions.columns, self.payload]
        rows = df.select(*[column.alias(field.name) for column, field in zip(columns, self.fields, strict=True)])
        if plans is not None:
            if len(plans) < self.chunks:
                rows = rows.where(F.col("0").isin(*plans))
            nothing = [None] * len(self.positions.fields)
            given = [(number, *nothing, pickle.dumps(plan)) for number, plan in plans.items()]
            rows = rows.unionAll(self.df.sparkSession.createDataFrame(given, StructType(self.fields)))
        order = [field.name for field in self.fields[:-1]]
        return rows.repartitionById(self.chunks, "0").sortWithinPartitions(*order)


def _is_needed(message: Column) -> Column:
    """Returns whether the kind byte, after the envelope if there is one, is one of NEEDED_TAGS."""
    first, enveloped = (F.hex(F.substring(message, number, 1)) for number in (1, ENVELOPE_BYTES + 1))
    kind = F.when(first == f"{ENVELOPE:02X}", enveloped).otherwise(first)
    return kind.isin(*[f"{tag:02X}" for tag in NEEDED_TAGS])


def names_of(fields: Sequence[StructField]) -> list[str]:
    """Returns the names of fields."""
    return [field.name for field in fields]
