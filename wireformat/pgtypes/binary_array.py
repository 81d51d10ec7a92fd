"""Arrays in binary form to the text of their output function."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from math import prod

from ..errors import counted

_HEAD = struct.Struct(">iiI")
_DIMENSION = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")

MAX_DIMENSIONS = 6
"""As the server has it."""

_PLAIN = re.compile(r'(?!null\Z)[^"\\{},\t\n\v\f\r ]+', re.IGNORECASE | re.ASCII)
"""An element that needs no quotes. Only these six count as white space."""
_ESCAPED = re.compile(r'(["\\])')


def array_text(data: bytes, element_oid: int, element_text: Callable[[bytes], str | None]) -> str | None:
    """The array as `{1,NULL,3}`, with `[0:2]=` in front where a lower bound is not 1.

    data           dimensions, whether there are NULLs, type of the elements; length and lower bound of each
                   dimension; then length and bytes of each element, -1 for NULL; integers of 32 bits
    element_text   reads one element; where it gives None, so does the array
    Raises ValueError.
    """
    dimensions, items = _read(data, element_oid)
    if not dimensions:
        return "{}"
    texts = []
    for item in items:
        text = "NULL" if item is None else element_text(item)
        if text is None:
            return None
        texts.append(text if item is None else _quoted(text))
    for length, _ in reversed(dimensions):
        texts = [f"{{{','.join(texts[start : start + length])}}}" for start in range(0, len(texts), length)]
    bounds = ""
    if any(lower != 1 for _, lower in dimensions):
        bounds = "".join(f"[{lower}:{lower + length - 1}]" for length, lower in dimensions) + "="
    return bounds + texts[0]


def vector_text(data: bytes, element_oid: int, element_text: Callable[[bytes], str]) -> str:
    """An oidvector or int2vector: sent as an array of one dimension that starts at 0, printed with blanks."""
    dimensions, items = _read(data, element_oid)
    if len(dimensions) > 1:
        raise ValueError(f"expected one dimension, got {len(dimensions)}")
    texts = []
    for item in items:
        if item is None:
            raise ValueError("expected no NULL, got one")
        texts.append(element_text(item))
    return " ".join(texts)


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + _ESCAPED.sub(r"\\\1", text) + '"'


def _read(data: bytes, element_oid: int) -> tuple[list[tuple[int, int]], Iterator[bytes | None]]:
    """Lengths and lower bounds of the dimensions, none where the array is empty; and the elements."""
    if len(data) < _HEAD.size:
        raise ValueError(f"expected at least {_HEAD.size} bytes, got {len(data)}")
    count, flags, oid = _HEAD.unpack_from(data)
    if not 0 <= count <= MAX_DIMENSIONS:
        raise ValueError(f"expected up to {MAX_DIMENSIONS} dimensions, got {count}")
    if flags not in (0, 1):
        raise ValueError(f"expected 0 or 1 for NULLs, got {flags}")
    if oid != element_oid:
        raise ValueError(f"expected elements of type {element_oid}, got {oid}")
    start = _HEAD.size + count * _DIMENSION.size
    if len(data) < start:
        raise ValueError(f"expected {counted(count, 'dimension')}, got {counted(len(data) - _HEAD.size, 'byte')}")
    dimensions = [_DIMENSION.unpack_from(data, place) for place in range(_HEAD.size, start, _DIMENSION.size)]
    if any(length < 0 or lower + length - 1 >= 1 << 31 for length, lower in dimensions):
        raise ValueError("expected dimensions in their range, got one that is not")
    expected = prod(length for length, _ in dimensions) if dimensions else 0
    if expected * _LENGTH.size > len(data) - start:
        raise ValueError(f"expected {counted(expected, 'element')}, got {counted(len(data) - start, 'byte')}")
    items = _items(data, start, expected)
    return (dimensions if expected else []), items


def _items(data: bytes, place: int, count: int) -> Iterator[bytes | None]:
    for number in range(count):
        if len(data) - place < _LENGTH.size:
            raise ValueError(f"expected the length of element {number}, got {counted(len(data) - place, 'byte')}")
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        if length < -1 or length > len(data) - place:
            raise ValueError(f"expected {counted(length, 'byte')} of element {number}, got {len(data) - place}")
        yield None if length < 0 else data[place : place + length]
        place += max(length, 0)
    if place != len(data):
        raise ValueError(f"expected nothing after the last element, got {counted(len(data) - place, 'byte')}")
