"""Messages that are decoded together: what is decoded at once costs as much as thousands of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from ..arrow.scan.message_batches import counted_bytes
from ..limits import MESSAGE_BATCH_BYTES
from .source import Source, SourceMessages

Item = TypeVar("Item")


def chunked(arrays: Iterable[pa.Array], most_bytes: int = MESSAGE_BATCH_BYTES) -> Iterator[pa.ChunkedArray]:
    """Yields binary arrays, those of a type that follow each other as one, which copies nothing, up to a size."""
    for some in _together(arrays, counted_bytes, lambda array: array.type, most_bytes):
        yield pa.chunked_array(some)


class Piece(NamedTuple):
    """Messages that are decoded together.

    messages   of one or more sources; the name is that of the first one
    begins     for each source, its index, and how many of the messages come before its own
    """

    messages: SourceMessages
    begins: list[tuple[int, int]]


def pieces(sources: Sequence[Source]) -> Iterator[Piece]:
    """Yields the messages of all sources, in order: what small files have is put together, if it is in Arrow arrays."""
    given = ((index, messages) for index, source in enumerate(sources) for messages in source.read())
    for some in _together(given, lambda item: _bytes_of(item[1]), lambda item: _type_of(item[1]), MESSAGE_BATCH_BYTES):
        begins, count = [], 0
        for index, one in some:
            begins.append((index, count))
            count += len(one.messages)
        yield Piece(_joined([one for _, one in some]), begins)


def _bytes_of(given: SourceMessages) -> int:
    """Returns the size as it counts; lists are decoded alone, as soon as they come."""
    return MESSAGE_BATCH_BYTES if _type_of(given) is None else sum(map(counted_bytes, given.messages.chunks))


def _type_of(given: SourceMessages) -> pa.DataType | None:
    return given.messages.type if isinstance(given.messages, pa.ChunkedArray) else None


def _joined(some: Sequence[SourceMessages]) -> SourceMessages:
    if len(some) == 1:
        return some[0]
    messages = pa.chunked_array([chunk for one in some for chunk in one.messages.chunks])
    return SourceMessages(some[0].source, messages, sum(one.read_bytes for one in some))


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
