"""What the bytes of a message mean, field by field: trees that the formats' own declarations and grammars make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import DecodeError, OptionError, counted
from ..formats.guess import Guess, guess_format
from ..formats.registry import find_format
from ..options import ReadOptions
from ..options.checks import shown
from .nodes import Node, fragment, text_lines
from .reading import RecordReader

__all__ = ["Inspection", "Node", "inspect_message"]


@dataclass(slots=True, eq=False)
class Inspection:
    """A message as a tree of fields: for every byte its field, its value and the rule of the format.

    message  its bytes
    format   the format that it was read as
    records  a tree for each record
    guess    why it was read as that format; None where the format was given
    """

    message: bytes
    format: str
    records: list[Node]
    guess: Guess | None = None

    def leaves(self) -> Iterator[Node]:
        """Yields the smallest nodes, in the order of the bytes: together they cover each byte once."""
        for record in self.records:
            yield from record.leaves()

    @property
    def errors(self) -> list[DecodeError]:
        """The errors, in the order of the records."""
        return [record.error for record in self.records if record.error is not None]

    def __str__(self) -> str:
        return "\n".join(text_lines(self.message, self.records))

    def __repr__(self) -> str:
        wrong = f", {counted(len(self.errors), 'error')}" if self.errors else ""
        size, records = counted(len(self.message), "byte"), counted(len(self.records), "record")
        return f"<Inspection of {size} of {self.format}: {records}{wrong}; print it to see the tree>"

    def _repr_html_(self) -> str:
        return fragment(self.message, self.records)

    def find(self, path: str, record: int = 0) -> Node:
        """Returns the first node of this path in a record, by its index in `records`; raises KeyError."""
        if not 0 <= record < len(self.records):
            raise KeyError(f"records[{record}]")
        return self.records[record].find(path)


def inspect_message(
    message: Any,
    format: str | None = None,
    *,
    before: Iterable[bytes] = (),
    record: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
) -> Inspection:
    """See `wireformat.inspect`."""
    options = ReadOptions.check(
        encoding=encoding, encoding_errors=encoding_errors, known_tables=known_tables, dialect=dialect
    )
    data = _bytes(message)
    if isinstance(before, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"before: expected an iterable of messages, got one {type(before).__name__}")
    if not isinstance(before, Iterable):
        raise TypeError(f"before: expected an iterable of messages, got {type(before).__name__}")
    guess = None
    if format is None:
        guess = guess_format([data])
        format = guess.name or next(iter(guess.candidates), None)
        if format is None:
            raise OptionError(f"option format: {guess.reason}; pass the format of the messages")
    reader = RecordReader(find_format(format), options)
    for earlier in before:
        reader.learn(_bytes(earlier))
    records = [
        reader.node(data, piece, index)
        for index, piece in enumerate(reader.slices(data))
        if record is None or index == record
    ]
    if record is not None and not records:
        raise OptionError(f"option record: expected the index of a record of the message, got {shown(record)}")
    return Inspection(data, format, records, guess)


def _bytes(message: Any) -> bytes:
    if isinstance(message, bytes):
        return message
    if hasattr(message, "as_buffer"):  # of Arrow
        message = message.as_buffer() if message.is_valid else None
    try:
        return bytes(memoryview(message))
    except TypeError:
        raise TypeError(f"message: expected bytes, got {type(message).__name__}") from None
