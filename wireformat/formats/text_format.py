"""What the text formats share: a record's first bytes say how it is read, an event's type how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

from ..errors import BadTag, DecodeError, EncodeError
from ..events import Ddl, Event, RowChange, Unknown
from ..framing import text_batch
from ..framing.frames import Frame, record
from ..grammar.cursor import Cursor
from ..grammar.lines import Line, find_line, read_line, write_parts
from ..options import ReadOptions, resolve
from ..tracing import active_trace
from .base import refuse_others
from .direct.layouts import Layouts, RowParts
from .guess import hinted, looks_like
from .message_writer import ALONE, OPTION_OF_FIELD, MessageWriter, Packing
from .pgoutput.relations import Relations
from .row import FormatRow

TEXT_PACKING = Packing(record, full=text_batch.END, rest=text_batch.END)
"""Batched JSON and TEXT: both ways to close a message look the same."""

RecordReader = Callable[[Cursor, int | None, ReadOptions], Event]
"""Reads the record at the cursor, to its end; the number is the LSN in its frame."""


def reader(read: Callable[[Cursor, int | None], Event]) -> RecordReader:
    """Returns a reader that asks for no options."""
    return lambda cursor, lsn, options: read(cursor, lsn)


RecordWriter = Callable[[Any, str], bytes]
"""Writes an event in an encoding; raises EncodeError."""


@dataclass(frozen=True)
class TextFormat:
    """A format whose records are text.

    row         its row in the registry, or of another package
    lines       the lines around transactions
    records     all other records: how they begin, and how they are read
    writers     the same events: how each is written
    separator   what follows each message where they come one after the other
    packing     how records lie in a message where the option sending-batch asks for batches
    row_parts   how row changes are written from layouts, if they are; `writers` is then for the others
    new_first   whether the new tuple comes before the old one
    """

    row: FormatRow
    lines: tuple[Line, ...]
    records: tuple[tuple[bytes, RecordReader], ...]
    writers: Mapping[type[Event], RecordWriter]
    packing: Packing = ALONE
    separator: bytes = b""
    row_parts: RowParts | None = None
    new_first: bool = False
    relations: ClassVar[None] = None

    @property
    def name(self) -> str:
        """See Format.name."""
        return self.row.name

    @property
    def sentence(self) -> str:
        """See Format.sentence."""
        return self.row.sentence

    @cached_property
    def framing(self) -> ModuleType:
        """The module that finds records in messages."""
        return import_module(self.row.framing)

    def fresh(self, relations: Relations | None = None) -> TextFormat:
        """See Format.fresh."""
        return self

    def frames(self, message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
        """See Format.frames."""
        try:
            yield from self.framing.frames(message, *((at, record) if self.framing is text_batch else ()))
        except DecodeError as error:
            raise hinted(error, message, 0, len(message), self.name) from None

    def find_end(self, data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
        """See Format.find_end."""
        try:
            found: tuple[bool, int] = self.framing.find_end(data, start, searched, seen)
        except DecodeError as error:
            raise hinted(error, data, start, len(data), self.name) from None
        return found

    def texts(self, message: bytes) -> Iterator[bytes]:
        """The texts of the records as they are: the reference client prints them, a line feed after each.

        Raises DecodeError where the framing is broken.
        """
        return (message[frame.start : frame.stop] for frame in self.frames(message))

    def read(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        """See Format.read."""
        encoding, errors = options.encoding, options.encoding_errors
        cursor = Cursor(message, frame.start, frame.stop, encoding, errors, trace=active_trace())
        try:
            return self._record(cursor, frame.lsn, options)
        except DecodeError as error:
            raise hinted(error, message, frame.start, frame.stop, self.name) from None

    def _record(self, cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
        for head, read in self.records:
            if cursor.sees(head):
                cursor.shows = False  # the next bytes may be a value
                return read(cursor, lsn, options)
        line = find_line(cursor, self.lines)
        if line is not None:
            return line.event(lsn=lsn, **read_line(cursor, line))
        if looks_like(cursor.data, cursor.at, cursor.stop, self.name):
            cursor.shows = False  # its first bytes may be a value, too
            raise BadTag(f"a record of {self.name}", "another", **cursor.where("record"))
        raw = cursor.data[cursor.at : cursor.stop]
        try:
            text = raw.decode(options.encoding, options.encoding_errors)
        except UnicodeDecodeError:
            text = None
        return Unknown(lsn=lsn, raw=raw, text=text)

    def says(self, event: type[Event]) -> Set[str]:
        """See Format.says."""
        lines = [line for line in self.lines if line.event is event]
        said = {part.field for line in lines for part in line.parts}
        if event in self.writers or not lines:
            said |= {field.name for field in fields(event)} - {"xid", "old_kind", "binary"}
        return said

    def writer(self, options: Mapping[str, Any] | None, *, encoding: str, batch_bytes: int) -> MessageWriter:
        """See Format.writer."""
        given = resolve(options, self.row.options)
        packing = self.packing if given.get("sending-batch") else ALONE
        return MessageWriter(self.name, given, packing, batch_bytes, _TextBodies(self, given, packing, encoding).body)


_TIME = re.compile(r"(?a)[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?[+-][0-9]{2}")


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, or a time without anything that a line could take for something else."""
    return type(value) is int or (type(value) is str and _TIME.fullmatch(value) is not None)


class _TextBodies:
    """Events to bytes; which fields are written is the options' affair."""

    def __init__(self, format: TextFormat, options: Mapping[str, bool | int], packing: Packing, encoding: str) -> None:
        self._format = format
        self._options = options
        self._is_alone = packing is ALONE
        self._encoding = encoding
        self._checked: set[tuple[Line, frozenset[str]]] = set()
        """Lines with these fields that are read as what they are, whatever their numbers and times are."""
        parts = format.row_parts
        self._rows = None if parts is None else Layouts(parts, encoding, new_first=format.new_first)

    def body(self, event: Event) -> bytes:
        """The text of an event; raises EncodeError for what the format cannot say."""
        written = self._rows.write(event) if self._rows is not None and isinstance(event, RowChange) else None
        return self._declared(event) if written is None else written

    def _declared(self, event: Event) -> bytes:
        refuse_others(event, self._format.says(type(event)))
        lines = [line for line in self._format.lines if line.says(event)]
        if lines:
            return self._line(event, lines)
        write = self._format.writers.get(type(event))
        if write is not None:
            written: bytes = write(event, self._encoding)
            if isinstance(event, Ddl):
                self._check(
                    written, lambda found: replace(event, lsn=found.lsn, size=getattr(found, "size", 0)) == found
                )
            return written
        if isinstance(event, Unknown):
            self._check(event.raw, lambda found: isinstance(found, Unknown))
            return event.raw
        raise EncodeError("the format cannot say it")

    def _line(self, event: Event, lines: list[Line]) -> bytes:
        """A line around a transaction: the first that has what it requires. Texts that would be read as something else
        cannot be said."""
        given = {field.name: getattr(event, field.name) for field in fields(event) if field.name != "lsn"}
        said = {
            name: value
            for name, value in given.items()
            if value is not None and self._options.get(OPTION_OF_FIELD.get(name, ""), True)
        }
        line = next((line for line in lines if line.required <= said.keys()), lines[-1])
        text = line.word + write_parts(line.parts, said, self._encoding)
        shape = line, frozenset(said)
        is_plain = all(map(_is_plain, said.values()))
        if not (is_plain and shape in self._checked):
            wanted = line.event(lsn=event.lsn, **said)
            self._check(text, lambda found: replace(found, lsn=event.lsn) == wanted)
            if is_plain:
                self._checked.add(shape)
        return text

    def _check(self, text: bytes, is_same: Callable[[Event], bool]) -> None:
        frame = Frame(0, 0, len(text), None)
        try:
            is_alone = not self._is_alone or list(self._format.frames(text)) == [frame]
            said = is_alone and is_same(self._format.read(text, frame, ReadOptions(encoding=self._encoding)))
        except DecodeError:
            said = False
        if not said:
            raise EncodeError("it would be read as something else")
