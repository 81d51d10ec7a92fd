"""The decoder of a command: errors that end it, and complaints about empty inputs and filters without a match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..errors import DecodeError
from ..events import Event
from ..formats.base import Format
from ..options import ReadOptions
from ..sources.decoding import SourceDecoder
from ..sources.files import line_file_hint
from ..sources.source import SourceMessages
from ..stream.judged import wrong_format
from ..stream.reader import Located
from .exits import BAD_DATA, Failed, in_words_of_the_command
from .screen import say
from .table_filter import TableFilter


class Decoding:
    """Decodes the messages of all inputs in their order.

    name_text   how the name of a table is printed in errors
    Raises Failed in FAILFAST, with the name of the input before the text of the DecodeError.
    """

    def __init__(self, format: Format, options: ReadOptions, name_text: Callable[[str], str] = str) -> None:
        self._decoder = SourceDecoder(format, options)
        self._filter = TableFilter(format, options, name_text)
        self._name_text = name_text
        self._format = format.name
        self._mode = options.mode
        self._is_empty: dict[str, bool] = {}
        self._line_files: dict[str, str] = {}

    @property
    def messages(self) -> int:
        """The number of messages so far."""
        return self._decoder.messages

    @property
    def dropped(self) -> int:
        """The number of records that DROPMALFORMED has left out."""
        return self._decoder.dropped

    def complaints(self) -> Iterator[str]:
        """Yields, after the last messages, a line for each empty input and each filter that matched nothing."""
        for source, is_empty in self._is_empty.items():
            if is_empty:
                yield f"{source} is empty: there are no messages in it"
        yield from self._filter.complaints()

    def events(self, given: SourceMessages) -> Iterator[Event]:
        """Returns the events of some messages."""
        return (item.event for item in self.located(given))

    def located(self, given: SourceMessages) -> Iterator[Located]:
        """Yields the events of some messages with their positions; messages count through all inputs."""
        with self._looked_at(given):
            yield from self._decoder.located(given)

    def batches(self, given: SourceMessages, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of some messages, with the columns of the schema."""
        with self._looked_at(given):
            yield from self._decoder.batches(given, schema)

    def check(self) -> None:
        """Call it at the end. In FAILFAST, raises Failed if nothing could be read and it looks like another format.

        In the other modes it says so, on standard error.
        """
        if not self._decoder.is_read:
            for source, hint in self._line_files.items():
                say(f"{source}: {in_words_of_the_command(hint)}")
        guess = self._decoder.other_format()
        if guess is None:
            return
        if self._mode == "FAILFAST":
            error = wrong_format(self._format, "no record that could be read", guess)
            raise Failed(in_words_of_the_command(str(error)), BAD_DATA)
        say(f"no record could be read as {self._format}: {guess.reason}; is --format right?")

    @contextmanager
    def _looked_at(self, given: SourceMessages) -> Iterator[None]:
        self._is_empty[given.source] = self._is_empty.get(given.source, True) and not len(given.messages)
        if given.stream_offset == 0 and len(given.messages):
            hint = line_file_hint(given.messages[0], self._format)
            self._line_files |= {} if hint is None else {given.source: hint}
        self._filter.look(given)
        try:
            yield
        except DecodeError as error:
            error.add(source=None)  # it comes first
            if error.table is not None:
                error.add(table=self._name_text(error.table))
            error.hint = self._line_files.get(given.source, error.hint)
            raise Failed(f"{given.source}: {in_words_of_the_command(str(error))}", BAD_DATA) from None
