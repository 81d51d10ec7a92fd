"""The plan of a decoding, checked on the driver, and the decoder of one Spark task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.errors import counted
from wireformat.formats.guess import named
from wireformat.formats.registry import find_format

from ..positions import no_position
from ..schemas import MESSAGE, arrow_schema, change_names
from ..workers import settle
from .relations import Key, MessageRun, Timeline

SHOWN_CHARACTERS = 64
"""The number of characters of a kept string that an error shows."""


class Kept(NamedTuple):
    """A column of the input that is returned before the columns of the rows."""

    name: str
    nullable: bool = True
    is_shown: bool = False
    """Whether errors identify a message by this column: an integer or a string."""


@dataclass(frozen=True)
class DecodingPlan:
    """The checked options of a decoding, pickled to the workers.

    format      name of the format
    columns     of the row-change table, without `message`
    options     see `wireformat.ReadOptions`
    """

    format: str
    columns: tuple[str, ...]
    options: wf.ReadOptions
    keep: tuple[Kept, ...] = ()

    @classmethod
    def check(
        cls, format: str, columns: Sequence[str] | None = None, *, keep: Sequence[Kept] = (), **options: Any
    ) -> DecodingPlan:
        """Returns the plan for a user's options; raises OptionError."""
        return cls(find_format(format).name, change_names(columns), wf.ReadOptions.check(**options), tuple(keep))

    def note(self, value: Callable[[int], object]) -> str | None:
        """Returns `partition=3, offset=17`, which identifies a message by its kept values; None if there are none.

        value   the index of a kept column to its value
        """
        shown = [(column.name, value(index)) for index, column in enumerate(self.keep) if column.is_shown]
        return ", ".join(f"{name}={shown_value(found)}" for name, found in shown) or None


def shown_value(value: object) -> str:
    """Returns a kept value as an error shows it."""
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


class Task:
    """Decodes the messages of one task, a batch at a time."""

    def __init__(self, plan: DecodingPlan, timeline: Timeline | None = None) -> None:
        from wireformat.arrow.engine.choice import make_engine  # loads numba, which the driver does not need

        self.plan = plan
        self._schema = arrow_schema(plan.columns)
        self._engine = make_engine(find_format(plan.format), plan.options)
        self._timeline = timeline
        self._last_run: MessageRun | None = None
        self._message_count = 0

    def rows(
        self,
        messages: Any,
        note: Callable[[int], str | None] = lambda index: None,
        positions: Sequence[list[Any]] = (),
    ) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        """Yields the rows of the next messages, a few megabytes at a time.

        messages    a binary array, or a list of bytes or None
        note        the index of a message to its `DecodingPlan.note`
        positions   the columns of the timeline, stream_by and order_by, a list each
        yields      int64[n], the index of each row's message in `messages`; and n rows, at least one

        Raises DecodeError in FAILFAST mode. It has the note or, without one, the number of the message in this task.
        """
        first = self._message_count
        self._message_count += len(messages)
        order = None if self._timeline is None else _order(self._timeline, positions)
        if order is not None:
            messages = pa.array(messages, pa.large_binary()).take(order.indices)

        def index(number: int) -> int:
            return number - first if order is None else int(order.indices[number - first].as_py())

        try:
            for batch in self._batches(messages, first, order):
                if batch.num_rows:
                    message_of_row = pc.subtract(batch.column(MESSAGE), first)
                    if order is not None:
                        message_of_row = order.indices.take(message_of_row)
                        batch = _with_errors(batch, lambda number: f"message {first + index(number)}")
                    yield message_of_row, batch.drop_columns([MESSAGE])
        except wf.DecodeError as error:
            named(error, messages, self.plan.format)
            if error.message is not None:
                given = index(error.message)
                identified = note(given)
                error.add(note=identified, message=None if identified else first + given)
            raise error from None

    def _batches(self, messages: Any, first: int, order: _Order | None) -> Iterator[pa.RecordBatch]:
        if self._timeline is None or order is None:
            yield from self._engine.batches(messages, self._schema, first)
            return
        for run in self._timeline.runs(order.keys, self._last_run):
            self._last_run = run
            if run.relations is not None:
                self._engine.set_relations(run.relations)
            yield from self._engine.batches(messages[run.start : run.stop], self._schema, first + run.start)

    def close(self) -> None:
        """Logs the number of records that DROPMALFORMED skipped; call it at the end of the task."""
        if self._engine.dropped:
            logging.getLogger("spark_udfs").warning(
                "DROPMALFORMED left out %s of %s in this task",
                counted(self._engine.dropped, "record"),
                self.plan.format,
            )
        settle()


def _with_errors(batch: pa.RecordBatch, name: Callable[[int], str]) -> pa.RecordBatch:
    """Returns rows whose errors have these names of messages, in place of those of sorted ones."""
    at = batch.schema.get_field_index("error")
    if at < 0:
        return batch
    return batch.set_column(at, batch.schema.field(at), named_errors(batch.column(at), batch[MESSAGE], name))


def named_errors(errors: pa.Array, messages: pa.Array, name: Callable[[int], str]) -> pa.Array:
    """Returns the errors of rows with the names of their messages in place of the indices in the chunk.

    messages   the indices
    """
    if errors.null_count == len(errors):
        return errors
    named = [
        text and text.replace(f": message {message},", f": {name(message)},", 1)
        for text, message in zip(errors.to_pylist(), messages.to_pylist(), strict=True)
    ]
    return pa.array(named, errors.type)


class _Order(NamedTuple):
    """Messages sorted by stream and position.

    keys     stream and position of each message
    indices  int64[n]: the index of each message in the input
    """

    keys: list[tuple[Key, Key]]
    indices: pa.Array


def _order(timeline: Timeline, columns: Sequence[list[Any]]) -> _Order:
    """Raises BadRows for a position that is null."""
    count = len(timeline.stream_by)
    positions = list(zip(*columns[count:], strict=True))
    streams = list(zip(*columns[:count], strict=True)) if count else [()] * len(positions)
    empty = [name for name, column in zip(timeline.columns, columns, strict=True) if None in column]
    if empty:
        raise no_position(empty)
    keys = list(zip(streams, positions, strict=True))
    indices = sorted(range(len(keys)), key=keys.__getitem__)
    return _Order([keys[index] for index in indices], pa.array(indices, pa.int64()))
