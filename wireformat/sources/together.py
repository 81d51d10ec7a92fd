"""Messages that are decoded together: what is decoded at once costs as much as thousands of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from ..arrow.scan.message_batches import COUNTED_BYTES, counted_bytes
from ..limits import MESSAGE_BATCH_BYTES
from .source import Source, SourceMessages

Item = TypeVar("Item")


def chunked(arrays: Iterable[pa.Array], most_bytes: int = MESSAGE_BATCH_BYTES) -> Iterator[pa.ChunkedArray]:
    """Yields binary arrays, those of a type that follow each other as one, which copies nothing, up to a size."""
    for some in _together(arrays, counted_bytes, lambda array: array.type, most_bytes):
        yield pa.chunked_array(some)


class Piece(NamedTuple):
    """Messages that are decoded together.

    messages   of one or more sources
    begins     for each of their parts, the index of its source, and how many messages come before it
    """

    messages: SourceMessages
    begins: list[tuple[int, int]]


def pieces(sources: Sequence[Source]) -> Iterator[Piece]:
    """Yields the messages of all sources, in order; what small sources have is put together."""
    given = (_Given(index, source, messages) for index, source in enumerate(sources) for messages in source.read())
    for some in _together(given, attrgetter("bytes"), attrgetter("type"), MESSAGE_BATCH_BYTES):
        firsts = accumulate((len(one.messages.messages) for one in some), initial=0)
        begins = [(one.source_index, first) for one, first in zip(some, firsts, strict=False)]
        yield Piece(_joined([one.messages for one in some]), begins)


class _Given(NamedTuple):
    """Messages of a source, and its index."""

    source_index: int
    source: Source
    messages: SourceMessages

    @property
    def type(self) -> object:
        """What the messages have in common with those that they can be put together with; None if they have to be
        decoded as they come."""
        if not self.source.is_repeatable or self.messages.is_lost:
            return None
        messages = self.messages.messages
        return messages.type if isinstance(messages, pa.ChunkedArray) else type(messages)

    @property
    def bytes(self) -> int:
        """Their size as it counts."""
        if self.type is None:
            return MESSAGE_BATCH_BYTES
        messages = self.messages.messages
        if isinstance(messages, pa.ChunkedArray):
            return sum(map(counted_bytes, messages.chunks))
        return max(self.messages.read_bytes, COUNTED_BYTES * len(messages))


def _joined(some: Sequence[SourceMessages]) -> SourceMessages:
    if len(some) == 1:
        return some[0]
    if isinstance(some[0].messages, pa.ChunkedArray):
        messages: Any = pa.chunked_array([chunk for one in some for chunk in one.messages.chunks])
    else:
        messages = [message for one in some for message in one.messages]
    return some[0]._replace(messages=messages, read_bytes=sum(one.read_bytes for one in some), parts=tuple(some))


def _together(
    items: Iterable[Item], bytes_of: Callable[[Item], int], type_of: Callable[[Item], Any], most_bytes: int
) -> Iterator[list[Item]]:
    """Yields items, those of a type that follow each other together, as soon as another one like the last has no room.

    An error of the items is raised after those before it.
    """
    some: list[Item] = []
    size = 0
    try:
        for item in items:
            item_bytes = bytes_of(item)
            if some and (size + item_bytes > most_bytes or type_of(item) != type_of(some[-1])):
                given, some, size = some, [], 0
                yield given
            some.append(item)
            size += item_bytes
            if size + item_bytes > most_bytes:
                given, some, size = some, [], 0
                yield given
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some
