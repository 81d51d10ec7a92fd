"""Codes: small numbers, from 0 on, which rows have alike where they are alike in something, such as their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import Array
from .schemas import TEXT_MAP

MOST_FOR_RADIX_SORT = 1 << 16
"""numpy sorts numbers of 16 bits without comparing them."""

MOST_BITS = 63
"""The most bits of a code: int64 without its sign."""

_MOST_BYTES = 1 << 30
"""Longer texts get offsets of 64 bits: Arrow's offsets of 32 bits end at 2 GiB."""

HASH_BITS = (1 << 40) - 1
"""The bits of a hash that are kept at each step: multiplied by 257, it still fits into int64."""


def combined_codes(columns: Sequence[Array], most_bits: int = MOST_BITS) -> Array:
    """Returns int64[n]: rows with equal codes in all columns have the same code, of at most `most_bits` bits."""
    codes, count = np.asarray(columns[0], np.int64), _count(columns[0])
    for column in columns[1:]:
        more = _count(column)
        if more == 1:
            continue
        if count * more > 1 << MOST_BITS:
            codes, column = _dense(codes), _dense(column)
            count, more = _count(codes), _count(column)
        codes = codes * more + column
        count *= more
    return codes if count <= 1 << most_bits else _dense(codes)


def _count(codes: Array) -> int:
    """Returns how many codes there are up to the greatest."""
    return int(codes.max(initial=0)) + 1


def _dense(codes: Array) -> Array:
    """Returns the same codes without gaps."""
    return encoded(pa.chunked_array([pa.array(codes)]))


def encoded(column: pa.ChunkedArray) -> Array:
    """Returns the codes of equal values, int64[n], without gaps."""
    rows = pa.table({"value": column, "row": pa.array(np.arange(len(column)))})
    # for texts that are all different, this is almost twice as fast as dictionary_encode
    groups = rows.group_by("value", use_threads=False).aggregate([("row", "list")])["row_list"]
    lengths = pc.list_value_length(groups).to_numpy()
    codes = np.empty(len(column), np.int64)
    codes[pc.list_flatten(groups).to_numpy()] = np.repeat(np.arange(len(groups)), lengths)
    return codes


def codes_of_values(column: pa.ChunkedArray) -> Array:
    """Returns int64[n]: equal values have the same code, from 0 on. Nulls are equal, so are NaNs, and 0 and -0.

    A null map and an empty one have the same code.
    """
    if pa.types.is_map(column.type):
        if len(column) <= _FEW and column.type == TEXT_MAP:
            with suppress(UnicodeDecodeError):  # Arrow does not check texts
                return _codes_of_few(column)
        return combined_codes([_codes_of_lists(lists) for lists in _lists_of_maps(column)])
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _codes_of_lists(column)
    if pa.types.is_signed_integer(column.type) and not column.null_count and len(column):
        ends = pc.min_max(column).as_py()
        if ends["max"] - ends["min"] < 1 << 31:
            return _numbers(column).astype(np.int64) - ends["min"]
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    elif (pa.types.is_string(column.type) or pa.types.is_binary(column.type)) and column.nbytes > _MOST_BYTES:
        column = column.cast(pa.large_string() if pa.types.is_string(column.type) else pa.large_binary())
    return encoded(column)


_FEW = 64
"""Up to this many maps are compared in less time than Arrow takes to begin."""


def _codes_of_few(maps: pa.ChunkedArray) -> Array:
    code_of: dict[tuple[tuple[str, str], ...], int] = {}
    found = [code_of.setdefault((*(entries or ()),), len(code_of)) for entries in maps.to_pylist()]
    return np.array(found, np.int64)


def _lists_of_maps(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yields the keys and the items."""
    for part, type in (("keys", column.type.key_type), ("items", column.type.item_type)):
        lists = [pa.ListArray.from_arrays(chunk.offsets, getattr(chunk, part)) for chunk in column.chunks]
        yield pa.chunked_array(lists, pa.list_(type))


def _codes_of_lists(column: pa.ChunkedArray) -> Array:
    """The same for lists: equal lists are equal bytes of the codes of their elements."""
    elements = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    codes = codes_of_values(elements)
    lengths = _numbers(pc.list_value_length(column).fill_null(0))
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]) * codes.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(codes)]
    lists = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), buffers)
    found = codes_of_values(pa.chunked_array([lists])) + 1
    if column.null_count:
        found[_numbers(column.is_null())] = 0
    return found


def _numbers(column: pa.ChunkedArray) -> Array:
    return column.to_numpy()


def grouped(codes: Array) -> tuple[Array, Array]:
    """Returns the first row of each code that occurs, int64[m], and for each row the index of its code in it, int64[n].

    The codes are in ascending order. They are sorted only if there may be more codes than rows. If all codes occur, the
    second array is the given one.
    """
    count = int(codes.max(initial=-1)) + 1
    if count > len(codes):
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return firsts, inverse.reshape(-1)
    firsts = np.full(count, -1)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last one that is assigned stays
    occurs = firsts >= 0
    return (firsts, codes) if occurs.all() else (firsts[occurs], (np.cumsum(occurs) - 1)[codes])


def groups_of(codes: Array) -> list[Array]:
    """Returns the rows of each code that occurs, in ascending order of the codes."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def in_groups(codes: Array, count: int) -> tuple[Array, list[int]]:
    """Returns the rows ordered by their codes, int64[n], and where those of each code begin and the last ones end.

    count   all codes are below
    """
    order = np.argsort(codes.astype(np.uint16) if count <= MOST_FOR_RADIX_SORT else codes, kind="stable")
    return order, np.cumsum([0, *np.bincount(codes, minlength=count).tolist()]).tolist()
