"""`Extent`: the positions that a part of the messages has of a stream, from which chunks are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .groups import Range, stream_key


class Extent(NamedTuple):
    """The positions that a partition, or what it has of a file, has of a stream.

    stream         the values of stream_by
    first, last    the lowest and the highest position
    partition      its number
    row            where the first row is in the partition: sorts the extents of a partition
    begins_later   whether the first row has another position than `first`
    ends_earlier   whether the last row has another position than `last`

    The last three stay as they are where rows are known to be in order.
    """

    stream: tuple[Any, ...]
    first: tuple[Any, ...]
    last: tuple[Any, ...]
    partition: int
    row: int = 0
    begins_later: bool = False
    ends_earlier: bool = False


def of_partitions(of_files: Sequence[Extent]) -> list[Extent]:
    """Returns the extents of whole partitions, in the order of stream and position."""
    by_partition: dict[tuple[Any, ...], list[Extent]] = {}
    for one in of_files:
        by_partition.setdefault((one.stream, one.partition), []).append(one)
    found = []
    for parts in by_partition.values():
        begin, end = min(parts, key=lambda one: one.row), max(parts, key=lambda one: one.row)
        first, last = min(one.first for one in parts), max(one.last for one in parts)
        begins_later = begin.begins_later or begin.first != first
        ends_earlier = end.ends_earlier or end.last != last
        found.append(Extent(begin.stream, first, last, begin.partition, begin.row, begins_later, ends_earlier))
    return sorted(found)


def joined(parts: Iterable[list[Extent] | None]) -> list[Extent] | None:
    """Returns the extents of all rows of a partition.

    parts   those of rows that follow each other; None of rows that are not in the order of stream and position

    None if any rows are not in this order.
    """
    found: list[Extent] = []
    for part in parts:
        if part is None:
            return None
        for one in part:
            if found and (found[-1].stream, found[-1].last) >= (one.stream, one.first):
                return None
            if found and found[-1].stream == one.stream:
                one = one._replace(first=found.pop().first)
            found.append(one)
    return found


def overlap(found: Sequence[Extent]) -> bool:
    """Whether extents, in the order of stream and position, have positions in common."""
    return any(before.last >= after.first for before, after in pairwise(found) if before.stream == after.stream)


def ranges_of(found: Iterable[Extent], numbers: Iterable[int]) -> dict[str, dict[int, Range]]:
    """Returns extents, in the order of stream and position, as the ranges of chunks with these numbers."""
    ranges: dict[str, dict[int, Range]] = {}
    for number, one in zip(numbers, found, strict=True):
        of_stream = ranges.setdefault(stream_key(one.stream), {})
        of_stream[number] = Range(len(of_stream), one.first, one.last, one.partition)
    return ranges
