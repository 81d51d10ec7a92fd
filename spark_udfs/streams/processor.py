"""What a worker does with the messages of a stream in each micro-batch, and what it keeps in Spark's state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import wireformat as wf
from wireformat.chunks.saved import StreamState, read_stream, write_stream

from ..chunks.groups import stream_key
from ..decoding.task import shown_value
from ..decoding.unconverted import series_of
from ..positions import not_unique, out_of_order
from .question import Question

STATE, PIECE_KEY, PIECE = "state binary", "number bigint", "piece binary"
"""The schemas of Spark's state, which never change; see wireformat.chunks.saved for the bytes."""


class MapPieces:
    """Pieces in a MapState."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def put(self, number: int, piece: bytes) -> None:
        """See Pieces."""
        self._state.updateValue((number,), (piece,))

    def get(self, number: int) -> bytes | None:
        """See Pieces."""
        found = self._state.getValue((number,))
        return None if found is None else found[0]

    def drop(self, number: int) -> None:
        """See Pieces."""
        self._state.removeKey((number,))


class Processor(StatefulProcessor):
    """Answers a question about the messages of each stream, micro-batch by micro-batch."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state of a stream: what its messages so far have left, and messages of open transactions."""
        self._stream = handle.getValueState("stream", STATE)
        self._pieces = handle.getMapState("pieces", PIECE_KEY, PIECE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Processes the messages of a micro-batch.

        Raises OrderError for messages that precede earlier ones, BadRows for equal positions, and OptionError for
        columns order_by of other types than before.
        """
        from wireformat.chunks.micro_batches import MicroBatchReader  # loads numba, which the driver does not need

        question = self._question
        stream = tuple(_python(value) for value in key)[: len(question.streams)]
        saved = self._stream.get()
        state = StreamState() if saved is None else read_stream(saved[0], question.settings)
        messages = _sorted(_table(rows, question.order), question.streams, stream)
        _check_follows(state.last, messages, question.settings.order_by, stream)
        reader = MicroBatchReader(
            question.settings.format, question.options, state, MapPieces(self._pieces), partial(question.name, stream)
        )
        take = reader.take if question.settings.question == "transactions" else reader.take_records
        for answer in take(messages, lambda chunk: question.asked(stream, chunk, chunk.positions)):
            if not len(answer):
                continue
            columns = question.columns(stream, answer)
            yield pd.DataFrame(dict(enumerate(map(series_of, columns))), copy=False)  # Spark takes numbers as places
        question.log(stream, reader.unknown_prepared, reader.dropped)
        left = replace(reader.state, last=_position(messages, len(messages) - 1))
        self._stream.update((write_stream(left, question.settings),))

    def close(self) -> None:
        """Closes nothing: no resources are held between micro-batches."""


def _table(frames: Iterable[pd.DataFrame], order: Sequence[pa.Field]) -> pa.Table:
    """Returns the messages of a micro-batch: the columns order_by, and `message`, which may be more than 2 GiB."""
    types = {**{f"o{index}": field.type for index, field in enumerate(order)}, "message": pa.large_binary()}
    names = [*[field.name for field in order], "message"]
    tables = [
        pa.Table.from_arrays(
            [pa.array(frame[column], type, from_pandas=True) for column, type in types.items()], names=names
        )
        for frame in frames
    ]
    return pa.concat_tables(tables)


def _sorted(messages: pa.Table, streams: Sequence[pa.Field], stream: Sequence[Any]) -> pa.RecordBatch:
    """Returns the messages in the order of their positions; raises BadRows if two have the same one."""
    order = messages.columns[:-1]
    keys = pa.table({str(index): column for index, column in enumerate(order)})
    indices = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    (batch,) = messages.take(indices).combine_chunks().to_batches()
    same = np.ones(max(len(batch) - 1, 0), bool)
    for column in batch.columns[:-1]:
        same &= np.asarray(pc.equal(column[1:], column[:-1]))
    if same.any():
        names = [*[field.name for field in streams], *batch.schema.names[:-1]]
        raise not_unique(f"two messages at {_shown(names, [*stream, *_position(batch, int(same.argmax()))])}")
    return batch


def _position(messages: pa.RecordBatch, row: int) -> tuple[Any, ...]:
    return tuple(column[row].as_py() for column in messages.columns[:-1])


def _check_follows(
    last: tuple[Any, ...] | None, messages: pa.RecordBatch, names: Sequence[str], stream: Sequence[Any]
) -> None:
    """Raises OrderError unless the messages follow those of earlier micro-batches."""
    if last is None:
        return
    first = _position(messages, 0)
    if [*map(type, last)] != [*map(type, first)]:
        raise wf.OptionError(
            f"option order_by: expected {', '.join(names)} of the types in earlier micro-batches of stream "
            f"{stream_key(stream)}, got others: cast them, or start over with a new checkpoint folder"
        )
    if first <= last:
        raise out_of_order(
            f"messages of stream {stream_key(stream)} that follow those of earlier micro-batches",
            f"a message at {_shown(names, first)} after one at {_shown(names, last)}; "
            "Spark reads files in the order of their modification times",
        )


def _shown(names: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in zip(names, values, strict=True))


def _python(value: Any) -> Any:
    """Returns a value of a key, which may be one of numpy."""
    return value.item() if isinstance(value, np.generic) else value
