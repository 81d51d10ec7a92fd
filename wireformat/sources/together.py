"""Messages that are decoded together: what is decoded at once costs as much as thousands of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from ..arrow.scan.message_batches import COUNTED_BYTES, concatenated, counted_bytes
from ..limits import MESSAGE_BATCH_BYTES, OPEN_TRANSACTIONS_BYTES
from .source import Source, SourceMessages

Item = TypeVar("Item")

TINY_BYTES, JOINED_BYTES = 4 << 10, 64 << 10
"""Arrays up to this size are joined, up to this one: each costs more than its messages."""

PIECE_SHARE = 8
"""Messages up to this fraction of a memory limit, an eighth, are decoded together."""


def chunked(arrays: Iterable[pa.Array], most_bytes: int | None = None) -> Iterator[pa.ChunkedArray]:
    """Yields binary arrays, those of a type that follow each other as one, which copies tiny ones alone.

    most_bytes   up to which they are put together; None for MESSAGE_BATCH_BYTES
    """
    most_bytes = MESSAGE_BATCH_BYTES if most_bytes is None else most_bytes
    sized = ((array, counted_bytes(array)) for array in arrays)
    tiny = _together(sized, itemgetter(1), lambda one: one[0].type if one[1] <= TINY_BYTES else None, JOINED_BYTES)
    joined = (concatenated([array for array, _ in some]) for some in tiny)
    for some in _together(joined, counted_bytes, attrgetter("type"), most_bytes):
        yield pa.chunked_array(some)


class Piece(NamedTuple):
    """Messages that are decoded together.

    messages   of one or more sources
    begins     for each of their parts, the index of its source, and how many messages come before it
    """

    messages: SourceMessages
    begins: list[tuple[int, int]]


def pieces(sources: Sequence[Source], memory_limit: int = OPEN_TRANSACTIONS_BYTES) -> Iterator[Piece]:
    """Yields the messages of all sources, in order; what small sources have is put together.

    memory_limit   that of a Capture; it bounds what is put together, as MESSAGE_BATCH_BYTES does, since the rows of
                   small messages take many times as much memory
    """
    most_bytes = min(MESSAGE_BATCH_BYTES, memory_limit // PIECE_SHARE)
    given = (
        _Given(index, source, messages)
        for index, source in enumerate(sources)
        for messages in _apart(source.read(), most_bytes)
    )
    for some in _together(given, attrgetter("counted_bytes"), attrgetter("kind"), most_bytes):
        begins, count = [], 0
        for one in some:
            begins.append((one.source_index, count))
            count += len(one.messages.messages)
        yield Piece(_joined([one.messages for one in some]), begins)


class _Given(NamedTuple):
    """Messages of a source, and its index."""

    source_index: int
    source: Source
    messages: SourceMessages

    @property
    def kind(self) -> object:
        """What messages have in common that can be put together; None if these are decoded alone, as they come."""
        given = self.messages
        if not self.source.is_repeatable or given.is_lost:
            return None
        if isinstance(given.messages, pa.ChunkedArray):
            return given.messages.type
        return None if given.stream_offset is None else list

    @property
    def counted_bytes(self) -> int:
        """Their size as it counts."""
        messages = self.messages.messages
        if isinstance(messages, pa.ChunkedArray):
            return sum(map(counted_bytes, messages.chunks))
        return max(self.messages.read_bytes, COUNTED_BYTES * len(messages))


def _apart(given: Iterable[SourceMessages], most_bytes: int) -> Iterator[SourceMessages]:
    """Yields messages; if fewer bytes than usual may be put together, it takes apart what a source has put together."""
    for one in given:
        if most_bytes >= MESSAGE_BATCH_BYTES or not isinstance(one.messages, pa.ChunkedArray):
            yield one
            continue
        parts = [*chunked(one.messages.chunks, most_bytes)] or [one.messages]
        each, rest = divmod(one.read_bytes, len(parts))
        for number, messages in enumerate(parts):
            yield one._replace(messages=messages, read_bytes=each + (number < rest))


def _joined(some: Sequence[SourceMessages]) -> SourceMessages:
    if len(some) == 1:
        return some[0]
    if isinstance(some[0].messages, pa.ChunkedArray):
        messages: Any = pa.chunked_array([chunk for one in some for chunk in one.messages.chunks])
    else:
        messages = [message for one in some for message in one.messages]
    return some[0]._replace(messages=messages, read_bytes=sum(one.read_bytes for one in some), parts=tuple(some))


def _together(
    items: Iterable[Item], bytes_of: Callable[[Item], int], kind_of: Callable[[Item], Any], most_bytes: int
) -> Iterator[list[Item]]:
    """Yields items in groups: those of a kind that follow each other, up to a size. An item of the kind None is alone.

    A group is not held back for an item that will hardly have room, because it is as large as the last one. An error of
    the items is raised after those before it.
    """
    some: list[Item] = []
    size, kind = 0, None
    try:
        for item in items:
            item_bytes, item_kind = bytes_of(item), kind_of(item)
            if some and (item_kind is None or item_kind != kind or size + item_bytes > most_bytes):
                given, some, size = some, [], 0
                yield given
            some.append(item)
            size, kind = size + item_bytes, item_kind
            if kind is None or size + item_bytes > most_bytes:
                given, some, size = some, [], 0
                yield given
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some
