"""`wireformat decode`; and the decoder of a command, with errors that end it, and complaints about empty inputs, and
about filters without a match, or that name a table that the input does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.engine.choice import make_engine
from ..arrow.schemas import change_schema, widened, with_format
from ..arrow.unread import UNREAD
from ..errors import DecodeError, counted
from ..events import Event
from ..formats.base import Format
from ..formats.registry import find_format
from ..options import ReadOptions
from ..options.table_names import TableName, suggestion, written
from ..sources.decoding import SourceDecoder
from ..sources.files import line_file_hint
from ..sources.source import SourceMessages
from ..stream.judged import wrong_format
from ..stream.reader import Located
from .exits import BAD_DATA, Failed, in_words_of_the_command
from .inputs import all_messages, find_inputs, progress
from .output import find_output, open_output
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


def decode(
    paths: Sequence[str],
    output: Path,
    *,
    to: str | None,
    format: str,
    column: str | None,
    columns: list[str] | None,
    **options: Any,
) -> None:
    """Writes the rows of all inputs to one file, which appears only if there was no error, or to standard output.

    to        the format of standard output, a key of STREAMS
    columns   columns of the row-change table; None for all

    The other options are those of `ReadOptions`. Raises Failed and OptionError.
    """
    schema = with_format(change_schema(columns), format)
    wider = widened(schema, "kind", "message", "raw")
    checked = ReadOptions.check(**options)
    decoding = Decoding(find_format(format), checked)
    written = find_output(output, to, paths)
    rows, unread = 0, Counter[str]()
    with (
        find_inputs(paths, find_format(format), column) as inputs,
        open_output(written, schema) as write,
        progress(inputs, on_screen=written.is_screen) as advance,
    ):
        for messages in all_messages(inputs):
            for batch in decoding.batches(messages, wider):
                rows += len(batch)
                unread.update({kind: _rows_of_kind(batch, kind) for kind in UNREAD})
                write(batch.select(schema.names))
            advance(messages.read_bytes)
        decoding.check()
    summary = [f"{counted(rows, 'row', ',')} from {counted(decoding.messages, 'message', ',')}"]
    summary += [f"{count:,} of them {kind}" for kind, count in unread.items() if count]
    if decoding.dropped:
        summary.append(f"{decoding.dropped:,} skipped")
    say(f"{written.name}: {', '.join(summary)}")
    for line in decoding.complaints():
        say(line)


def _rows_of_kind(batch: pa.RecordBatch, kind: str) -> int:
    return pc.sum(pc.equal(batch["kind"], kind)).as_py() or 0
