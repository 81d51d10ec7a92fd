"""The parts of all inputs through one engine: events or record batches, with messages counted through all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..arrow.columns.rows_from_events import build
from ..arrow.engine.choice import make_engine
from ..arrow.unread import HEADS, UNREAD, ReadSummary
from ..errors import DecodeError
from ..events import Event
from ..formats.base import Format
from ..formats.guess import guess_format, heads
from ..options import ReadOptions
from ..stream.judged import wrong_format
from ..stream.reader import Located
from .exits import BAD_DATA, Failed, in_words_of_the_command
from .inputs import InputPart, line_file_hint
from .screen import say
from .table_filter import TableFilter


class Decoding:
    """Decodes parts in their order.

    name_text   how the name of a table is printed in errors
    messages    how many there were until now
    Raises Failed in FAILFAST, with the name of the input before the text of the DecodeError.
    """

    def __init__(self, format: Format, options: ReadOptions, name_text: Callable[[str], str] = str) -> None:
        self._options = options
        self._name_text = name_text
        self._engine = make_engine(format, options, threads=None)
        self._filter = TableFilter(format, options, name_text)
        self._separator_bytes = len(format.separator)
        self._format = format.name
        self._is_read = False
        self._heads: list[bytes] = []
        self._is_empty: dict[str, bool] = {}
        self._line_files: dict[str, str] = {}
        self.messages = 0

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""
        return self._engine.dropped

    def complaints(self) -> Iterator[str]:
        """Yields, after the last part, a line for each empty input and each filter that matched nothing."""
        for source, is_empty in self._is_empty.items():
            if is_empty:
                yield f"{source} is empty: there are no messages in it"
        yield from self._filter.complaints()

    def events(self, part: InputPart) -> Iterator[Event]:
        """The events of a part."""
        return (item.event for item in self.located(part))

    def located(self, part: InputPart) -> Iterator[Located]:
        """The events of a part with their places; messages count through all parts."""
        with self._next(part) as first:
            for item in self._lost(part, first) if part.is_lost else self._engine.events(part.messages, first):
                yield item
                self._is_read = self._is_read or item.event.kind not in UNREAD

    def batches(self, part: InputPart, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a part, with the columns of the schema."""
        with self._next(part) as first:
            if part.is_lost:
                yield from build(self._lost(part, first), schema, self._options.heartbeat_factor)
            else:
                for batch in self._engine.batches(part.messages, schema, first):
                    yield batch
                    self._is_read = self._is_read or ReadSummary().and_of(batch).is_read

    def check(self) -> None:
        """Call it at the end. Raises Failed in FAILFAST if nothing could be read and it looks like another format.

        In the other modes it says so, on standard error.
        """
        if not self._is_read:
            for source, hint in self._line_files.items():
                say(f"{source}: {hint}")
        guess = guess_format(self._heads)
        if self._is_read or self.messages < 2 or not guess.candidates or self._format in guess.candidates:
            return
        if self._options.mode == "FAILFAST":
            error = wrong_format(self._format, "no record that could be read", guess)
            raise Failed(str(in_words_of_the_command(error)), BAD_DATA)
        say(f"no record could be read as {self._format}: {guess.reason}; is --format right?")

    @contextmanager
    def _next(self, part: InputPart) -> Iterator[int]:
        """Count the messages of a part; gives the index of the first one. Errors are told with their place."""
        first, self.messages = self.messages, self.messages + len(part.messages)
        self._is_empty[part.source] = self._is_empty.get(part.source, True) and not len(part.messages)
        if part.stream_offset == 0 and len(part.messages):
            hint = line_file_hint(part.messages[0], self._format)
            self._line_files |= {} if hint is None else {part.source: hint}
        self._filter.look(part)
        if len(self._heads) < HEADS:
            self._heads += heads(part.messages)
        try:
            yield first
        except DecodeError as error:
            if part.stream_offset is not None and error.message is not None and error.message_offset is not None:
                before = sum(len(one) + self._separator_bytes for one in part.messages[: error.message - first])
                error.add(stream_offset=part.stream_offset + before + error.message_offset)
            if error.table is not None:
                error.add(table=self._name_text(error.table))
            error.hint = self._line_files.get(part.source, error.hint)
            raise Failed(f"{part.source}: {in_words_of_the_command(error)}", BAD_DATA) from None

    def _lost(self, part: InputPart, first: int) -> Iterator[Located]:
        offset = part.stream_offset or 0
        for index, raw in enumerate(part.messages, first):
            yield from self._engine.unframed(raw, index, offset, part.error)
            offset += len(raw)
