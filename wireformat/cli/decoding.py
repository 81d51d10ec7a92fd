"""The decoder of a command, with errors that end it, and complaints about empty inputs, filters without a match, and
filters that name a table that the input does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow import change_schema
from ..arrow.engine.choice import make_engine
from ..errors import DecodeError
from ..events import Event
from ..formats.base import Format
from ..options import ReadOptions
from ..options.table_names import TableName, suggestion, written
from ..sources.decoding import SourceDecoder
from ..sources.files import line_file_hint
from ..sources.source import SourceMessages
from ..stream.judged import wrong_format
from ..stream.reader import Located
from .exits import BAD_DATA, Failed, in_words_of_the_command
from .screen import say


def is_empty_text(source: str) -> str:
    """Returns the line about an input without messages."""
    return f"{source} is empty: there are no messages in it"


class Decoding:
    """Decodes the messages of all inputs in their order.

    name_text   returns the text with which errors name a table

    In FAILFAST, raises Failed, whose text has the name of the input before that of the DecodeError.
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
                yield is_empty_text(source)
        yield from self._filter.complaints()

    def events(self, given: SourceMessages) -> Iterator[Event]:
        """Returns the events of some messages; raises Failed."""
        return (item.event for item in self.located(given))

    def located(self, given: SourceMessages) -> Iterator[Located]:
        """Yields the events of some messages with their positions, which count messages through all inputs.

        Raises Failed.
        """
        with self._looked_at(given):
            yield from self._decoder.located(given)

    def batches(self, given: SourceMessages, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of some messages, with the columns of the schema; raises Failed."""
        with self._looked_at(given):
            yield from self._decoder.batches(given, schema)

    def check(self) -> None:
        """Raises Failed if nothing could be read, and the messages look like another format. Call it at the end.

        In modes other than FAILFAST, it prints that to standard error instead.
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
        """Notes what complaints need of the messages, and raises Failed for a DecodeError."""
        self._is_empty[given.source] = self._is_empty.get(given.source, True) and not len(given.messages)
        if given.stream_offset == 0 and len(given.messages):
            hint = line_file_hint(given.messages[0], self._format)
            self._line_files |= {} if hint is None else {given.source: hint}
        self._filter.look(given)
        try:
            yield
        except DecodeError as error:
            error.add(source=None)  # the name of the input already comes first
            if error.table is not None:
                error.add(table=self._name_text(error.table))
            error.hint = self._line_files.get(given.source, error.hint)
            raise Failed(f"{given.source}: {in_words_of_the_command(str(error))}", BAD_DATA) from None


COLUMNS = ("kind", "table_schema", "table_name")


class TableFilter:
    """Reads the names of tables for a command that filters by them, until each pattern has matched one.

    name_text   returns the text with which a table is named
    """

    def __init__(self, format: Format, options: ReadOptions, name_text: Callable[[str], str] = str) -> None:
        everything = ReadOptions(
            mode="PERMISSIVE",
            encoding=options.encoding,
            encoding_errors=options.encoding_errors,
            known_tables=options.known_tables,
            dialect=options.dialect,
        )
        self._unmatched = [replace(options, tables=(pattern,), kinds=None) for pattern in options.tables or ()]
        self._name_text = name_text
        self._engine = make_engine(format, everything, threads=None)
        self._schema = change_schema(COLUMNS)
        self._tables: set[TableName] = set()

    @property
    def has_unmatched(self) -> bool:
        """Whether a pattern has matched no table so far."""
        return bool(self._unmatched)

    def look(self, given: SourceMessages) -> None:
        """Takes the names of tables from the next messages."""
        if self._unmatched and not given.is_lost:
            self.add(self._names(given))

    def _names(self, given: SourceMessages) -> Iterator[TableName]:
        for batch in self._engine.batches(given.messages, self._schema):
            named = pa.Table.from_batches([batch]).filter(pc.field("kind") != "TYPE").drop(["kind"])
            for row in named.group_by([*COLUMNS[1:]]).aggregate([]).drop_null().to_pylist():
                yield row["table_schema"], row["table_name"]

    def add(self, tables: Iterable[TableName]) -> None:
        """Takes the names of tables that the input is known to have."""
        self._tables.update(tables)
        self._unmatched = [
            option for option in self._unmatched if not any(option.keeps("INSERT", table) for table in self._tables)
        ]

    def complaints(self) -> Iterator[str]:
        """Yields a line for each pattern that has matched no table so far, with the tables that it may mean."""
        there = [self._name_text(written(table)) for table in self._tables]
        for option in self._unmatched:
            pattern = self._name_text(written((option.tables or ())[0]))
            yield f"--tables {pattern}: matches no table of the input{suggestion(pattern, there)}"
