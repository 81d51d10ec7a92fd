"""One Spark task: what to decode, checked on the driver, and the decoder that runs in the worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.formats.guess import named
from wireformat.formats.registry import find_format

from .relations import Key, Run, Timeline
from .schemas import MESSAGE, arrow_schema, change_names

SHOWN_CHARACTERS = 64
"""How much of a kept string an error shows."""


class Kept(NamedTuple):
    """A column of the input that comes back before the rows."""

    name: str
    nullable: bool = True
    told: bool = False
    """whether an error tells its message by this column: an integer or a string"""


@dataclass(frozen=True)
class Plan:
    """What workers have to do; small, checked, and pickled to them.

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
    ) -> Plan:
        """The plan for a user's options; raises OptionError."""
        return cls(find_format(format).name, change_names(columns), wf.ReadOptions.check(**options), tuple(keep))

    def note(self, value: Callable[[int], object]) -> str | None:
        """`partition=3, offset=17`: a message by its kept values, which `value` gives by position; None without any."""
        told = [(column.name, value(place)) for place, column in enumerate(self.keep) if column.told]
        return ", ".join(f"{name}={_shown(found)}" for name, found in told) or None


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


class Task:
    """Decodes the messages of one task, a batch at a time."""

    def __init__(self, plan: Plan, timeline: Timeline | None = None) -> None:
        from wireformat.arrow.engine.choice import make_engine  # loads numba, which the driver does not need

        self.plan = plan
        self._schema = arrow_schema(plan.columns)
        self._engine = make_engine(find_format(plan.format), plan.options)
        self._timeline = timeline
        self._run: Run | None = None
        self._seen = 0

    def rows(
        self,
        messages: Any,
        note: Callable[[int], str | None] = lambda index: None,
        placed: Sequence[list[Any]] = (),
    ) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        """The rows of the next messages, some megabytes at a time.

        messages    a binary array, or a list of bytes or None
        note        index of a message to its `Plan.note`
        placed      the columns of the timeline, stream_by and order_by, a list each
        yields      int64[n], the index of each row's message in `messages`; and n rows, at least one
        Raises DecodeError in FAILFAST: with the note, or where there is none with the message's number in this task.
        """
        first = self._seen
        self._seen += len(messages)
        order = None if self._timeline is None else _order(self._timeline, placed)
        if order is not None:
            messages = pa.array(messages, pa.large_binary()).take(order.places)

        def place(number: int) -> int:
            return number - first if order is None else int(order.places[number - first].as_py())

        try:
            for batch in self._batches(messages, first, order):
                if batch.num_rows:
                    places = pc.subtract(batch.column(MESSAGE), first)
                    yield places if order is None else order.places.take(places), batch.drop_columns([MESSAGE])
        except wf.DecodeError as error:
            named(error, messages, self.plan.format)
            number = error.message
            known_by = None if number is None else note(place(number))
            raise error.add(note=known_by, message=None if known_by else number) from None

    def _batches(self, messages: Any, first: int, order: _Order | None) -> Iterator[pa.RecordBatch]:
        if self._timeline is None or order is None:
            yield from self._engine.batches(messages, self._schema, first)
            return
        for run in self._timeline.runs(order.keys, self._run):
            self._run = run
            if run.known is not None:
                self._engine.set_relations(run.known)
            yield from self._engine.batches(messages[run.start : run.stop], self._schema, first + run.start)

    def close(self) -> None:
        """Tell the log what DROPMALFORMED has left out."""
        if self._engine.dropped:
            logging.getLogger(__package__).warning(
                "DROPMALFORMED left out %d records of %s in this task", self._engine.dropped, self.plan.format
            )


class _Order(NamedTuple):
    """The order of messages by stream and position."""

    keys: list[tuple[Key, Key]]
    """of each message, in their order"""
    places: pa.Array
    """int64[n]: where each stands in the input"""


def _order(timeline: Timeline, placed: Sequence[list[Any]]) -> _Order:
    """Raises OptionError for a position that is null, since it has no place in the order."""
    count = len(timeline.stream_by)
    positions = list(zip(*placed[count:], strict=True))
    streams = list(zip(*placed[:count], strict=True)) if count else [()] * len(positions)
    if any(None in column for column in placed):
        raise wf.OptionError(f"option relations: a message has no {' or '.join(timeline.columns)}")
    keys = list(zip(streams, positions, strict=True))
    places = sorted(range(len(keys)), key=keys.__getitem__)
    return _Order([keys[place] for place in places], pa.array(places, pa.int64()))
