"""Writes relations of pgoutput to the dictionary from the bytes of their messages, once these are in UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import NamedTuple

import numpy as np

from ....formats.pgoutput.messages import HEAD_BYTES, REPLICA_IDENTITIES
from ...arrays import Array, Int
from ...ascii import QUOTE, SPACE
from ...jit.byte_ranges import copy_bytes
from ...jit.compiler import compiled, hot, inner
from ...jit.intrinsics import BLOCK, copy_block, lowest_bit, special_marks
from ..binary_text.forms import FORM, HEX_FORM, form_of
from ..dictionary import (
    CELL_ENTRIES,
    CELL_FACTS,
    CELL_NAME,
    CELL_QUOTED,
    CELL_TYPE,
    CELLS,
    COLUMNS,
    DETAILS,
    DICTIONARY_TEXT,
    FIRST_TYPE,
    SCHEMA,
    TABLE,
    TYPE_TABLE_SIZE,
    UNDECIDED,
)
from ..joined_texts import decode_joined
from ..primitives import (
    is_ascii_anywhere,
    read_16,
    read_32,
    read_64,
    same_bytes,
    transcode_flag,
    write_decimal,
    zero_at,
)
from .characters import decode_name

NOT_WRITTEN, NO_ROOM = 0, -1
"""Instead of the first entry of a relation: Python must read it, or make room for it."""

TEXT_PER_BYTE, TEXT_MORE = 16, 128
"""How many bytes of text a relation needs for each byte of its message, and besides: a name is written three times, two
of them with up to six bytes for one, and a column, which has ten bytes or more, needs less than a hundred besides."""

TYPE_BYTES = 8
"""Number and modifier of a column's type, after its name."""

_FORMS = np.array([form_of(oid) for oid in range(TYPE_TABLE_SIZE)], np.int32)
_OTHER_FORM = form_of(TYPE_TABLE_SIZE)
_IDENTITY_TEXT = np.frombuffer("".join(REPLICA_IDENTITIES.values()).encode(), np.uint8)
_IDENTITIES = np.zeros((256, 2), np.int64)
"""Place and length of the name of a replica identity, by its byte."""
for _byte, _name in REPLICA_IDENTITIES.items():
    _IDENTITIES[_byte] = bytes(_IDENTITY_TEXT).index(_name.encode()), len(_name)

_ESCAPED = np.zeros((256, 7), np.uint8)
"""For each byte: the number of bytes that it has in a string of JSON, and these bytes."""
for _byte in range(256):
    _text = encode_basestring(chr(_byte))[1:-1].encode("latin-1")
    _ESCAPED[_byte, : len(_text) + 1] = len(_text), *_text

_UNLISTED = np.frombuffer(b"oid:", np.uint8)


class RelationArrays(NamedTuple):
    """Where relations are written."""

    pairs: Array
    """int32[n, 2]: the dictionary, then relations"""
    text: Array
    """uint8[n]: their texts, which follow those of the dictionary"""
    used: Array
    """int64[USED_FIELDS], changed; see USED_PAIRS"""


USED_PAIRS, USED_TEXT, LAST_START, LAST_SIZE, LAST_ENTRY, LAST_UTF8, USED_FIELDS = range(7)
"""How many pairs and bytes of text are used; and the last relation that was written: where what follows its names lies
among the messages that are kept, how long that is, its first entry, and whether it was in UTF-8: the same bytes are
other names in another encoding."""


@inner
def _put_escaped(text: Array, to: Int, at: Int, end: Int) -> Int:
    """Copies text[at:end] as it is in a string of JSON; returns the end of the copy."""
    while at < end:
        copy_block(text, to, text, at)
        plain = min(lowest_bit(special_marks(text, at) | 1 << BLOCK), end - at)
        at += plain
        to += plain
        if plain < BLOCK and at < end:
            for step in range(_ESCAPED[text[at], 0]):
                text[to] = _ESCAPED[text[at], step + 1]
                to += 1
            at += 1
    return to


@hot
def _set_pair(pairs: Array, entry: Int, start: Int, length: Int) -> None:
    """Sets an entry to a place in the text of the relations."""
    pairs[entry, 0], pairs[entry, 1] = ~(len(DICTIONARY_TEXT) + start), length


@hot
def _copy_pair(pairs: Array, entry: Int, other: Int) -> None:
    """Sets an entry to that of another relation."""
    pairs[entry, 0], pairs[entry, 1] = pairs[other, 0], pairs[other, 1]


@hot
def _put_text(to: RelationArrays, used: Int, entry: Int, source: Array, at: Int, length: Int) -> Int:
    """Copies the text of an entry; returns the end of the copy."""
    _set_pair(to.pairs, entry, used, length)
    return copy_bytes(to.text, used, source, at, length)


IN_ASCII, IN_UTF8, DECODED = range(3)
"""Which names are written: those in ASCII, those that are UTF-8, or all, since they were decoded."""


@inner
def _is_final(buffer: Array, at: Int, end: Int, names: Int) -> bool:
    if names == DECODED or is_ascii_anywhere(buffer, at, end - at):
        return True
    return names == IN_UTF8 and transcode_flag(buffer, at, end - at, True) == 0


@inner
def write_relation(kept: Array, at: Int, stop: Int, to: RelationArrays, names: Int) -> Int:
    """Writes a relation; returns its first entry, NOT_WRITTEN or NO_ROOM.

    kept[at:stop]   the message, among those that are kept; BLOCK bytes or more follow it
    names           IN_ASCII, IN_UTF8 or DECODED
    """
    pairs, text, size = to.pairs, to.text, stop - at
    entry, used = to.used[USED_PAIRS], to.used[USED_TEXT]
    if entry + CELLS + size > len(pairs) or used + TEXT_PER_BYTE * size + TEXT_MORE > len(text):
        return np.int64(NO_ROOM)
    schema = at + HEAD_BYTES
    schema_end = zero_at(kept, schema, stop)
    table_end = zero_at(kept, schema_end + 1, stop)
    rest = table_end + 1
    if schema_end == schema or rest + 3 > stop:
        return np.int64(NOT_WRITTEN)
    if not (_is_final(kept, schema, schema_end, names) and _is_final(kept, schema_end + 1, table_end, names)):
        return np.int64(NOT_WRITTEN)
    count = read_16(kept, rest + 1)
    pairs[entry + COLUMNS, 0], pairs[entry + COLUMNS, 1] = count, UNDECIDED
    last = to.used[LAST_ENTRY]
    is_like_last = to.used[LAST_SIZE] == stop - rest and to.used[LAST_UTF8] == (names != IN_ASCII)
    if is_like_last and same_bytes(kept, rest, kept, to.used[LAST_START], stop - rest):
        for offset in range(DETAILS + 1, CELLS + CELL_ENTRIES * count):  # partitions have their columns in common
            _copy_pair(pairs, entry + offset, last + offset)
    else:
        used = _write_columns(kept, rest, stop, count, to, names)
        if used < 0:
            return np.int64(NOT_WRITTEN)
        to.used[LAST_START], to.used[LAST_SIZE] = rest, stop - rest
        to.used[LAST_ENTRY], to.used[LAST_UTF8] = entry, names != IN_ASCII
    used = _put_text(to, used, entry + SCHEMA, kept, schema, schema_end - schema)
    used = _put_text(to, used, entry + TABLE, kept, schema_end + 1, table_end - schema_end - 1)
    begin = used
    used = write_decimal(text, used, read_32(kept, schema - 4), False)
    _set_pair(pairs, entry + DETAILS, begin, used - begin)
    to.used[USED_PAIRS], to.used[USED_TEXT] = entry + CELLS + CELL_ENTRIES * count, used
    return entry


@inner
def _write_columns(kept: Array, rest: Int, stop: Int, count: Int, to: RelationArrays, names: Int) -> Int:
    """Writes what follows the names of a table, from byte `rest` on; returns the end of its texts, or -1.

    The names follow each other, and so do the types: the gather then copies those of a row as one text. Types are those
    of the last relation if it has the same: tables whose columns have other names often have their types in common.
    """
    pairs, text, used = to.pairs, to.text, to.used[USED_TEXT]
    entry = to.used[USED_PAIRS]
    cells, first_name = entry + CELLS, used
    keys = hexed = np.int64(0)
    identity = _IDENTITIES[kept[rest]]
    if identity[1] == 0:
        return np.int64(-1)
    last, last_at = to.used[LAST_ENTRY], to.used[LAST_START] + 3
    has_types = to.used[LAST_SIZE] > 0 and pairs[last + COLUMNS, 0] == count
    at = rest + 3
    for column in range(count):
        cell = cells + CELL_ENTRIES * column
        begin = used
        if at + 2 + TYPE_BYTES > stop or kept[at] > 1:
            return np.int64(-1)
        is_key = np.int64(kept[at])
        at += 1
        while at < stop:
            copy_block(text, used, kept, at)
            plain = lowest_bit(special_marks(kept, at) | 1 << BLOCK)
            at += plain
            used += plain
            if plain < BLOCK:
                if kept[at] == 0:
                    break
                text[used] = kept[at]
                at += 1
                used += 1
        if at + 1 + TYPE_BYTES > stop:
            return np.int64(-1)
        oid = read_32(kept, at + 1)
        form = np.int64(_FORMS[oid]) if oid < len(_FORMS) else np.int64(_OTHER_FORM)
        keys += is_key
        hexed += form & FORM == HEX_FORM
        _set_pair(pairs, cell + CELL_NAME, begin, used - begin)
        pairs[cell + CELL_FACTS, 0], pairs[cell + CELL_FACTS, 1] = is_key, form
        pairs[cell + CELL_QUOTED, 0] = pairs[cell + CELL_QUOTED, 1] = 0
        if has_types:
            last_at += 2 + np.int64(pairs[last + CELLS + CELL_ENTRIES * column + CELL_NAME, 1])
            has_types = read_64(kept, at + 1) == read_64(kept, last_at)
            last_at += TYPE_BYTES
        at += 1 + TYPE_BYTES
    if at != stop or not _is_final(text, first_name, used, names):
        return np.int64(-1)
    if (hexed > 0 or 0 < keys < count) and _has_twins(pairs, text, cells, count, hexed > 0):
        return np.int64(-1)
    at = rest + 3
    for column in range(count):
        cell = cells + CELL_ENTRIES * column
        if has_types:
            _copy_pair(pairs, cell + CELL_TYPE, last + cell - entry + CELL_TYPE)
            continue
        at += 2 + np.int64(pairs[cell + CELL_NAME, 1])
        oid = read_32(kept, at)
        known = FIRST_TYPE + oid
        if oid < TYPE_TABLE_SIZE and pairs[known, 1] > 0:
            place, length = ~np.int64(pairs[known, 0]), np.int64(pairs[known, 1])
            used = _put_text(to, used, cell + CELL_TYPE, DICTIONARY_TEXT, place, length)
        else:
            begin = used
            used = write_decimal(text, copy_bytes(text, used, _UNLISTED, 0, len(_UNLISTED)), oid, False)
            _set_pair(pairs, cell + CELL_TYPE, begin, used - begin)
        at += TYPE_BYTES
    used = _put_text(to, used, entry + DETAILS + 1, _IDENTITY_TEXT, identity[0], identity[1])
    for detail in range(4):  # the names of the columns, the numbers of their types, the modifiers, the names of the key
        if has_types and 1 <= detail <= 2:
            _copy_pair(pairs, entry + DETAILS + 2 + detail, last + DETAILS + 2 + detail)
            continue
        begin = used
        text[used] = OPENING
        used += 1
        at = rest + 3
        for column in range(count):
            cell = cells + CELL_ENTRIES * column
            length = np.int64(pairs[cell + CELL_NAME, 1])
            at += 2 + length
            if detail == 3 and pairs[cell + CELL_FACTS, 0] == 0:
                at += TYPE_BYTES
                continue
            if used > begin + 1:
                text[used], text[used + 1] = COMMA, SPACE
                used += 2
            if detail == 1:
                used = write_decimal(text, used, read_32(kept, at), False)
            elif detail == 2:
                modifier = read_32(kept, at + 4)
                used = write_decimal(text, used, modifier - (modifier >> 31 << 32), True)
            else:
                start, name = used, ~np.int64(pairs[cell + CELL_NAME, 0]) - len(DICTIONARY_TEXT)
                text[used] = QUOTE
                used = _put_escaped(text, used + 1, name, name + length)
                text[used] = QUOTE
                used += 1
                if detail == 0 and pairs[cell + CELL_FACTS, 1] & FORM == HEX_FORM:
                    _set_pair(pairs, cell + CELL_QUOTED, start, used - start)
            at += TYPE_BYTES
        text[used] = CLOSING
        used += 1
        _set_pair(pairs, entry + DETAILS + 2 + detail, begin, used - begin)
    return used


OPENING, CLOSING, COMMA = b"[],"


@inner
def _has_twins(pairs: Array, text: Array, cells: Int, count: Int, any_column: bool) -> bool:
    """Whether a column of the key, or any column, has the name of another column."""
    for column in range(count):
        cell = cells + CELL_ENTRIES * column
        if not any_column and pairs[cell + CELL_FACTS, 0] == 0:
            continue
        start, length = ~np.int64(pairs[cell, 0]) - len(DICTIONARY_TEXT), np.int64(pairs[cell, 1])
        for other in range(count):
            twin = cells + CELL_ENTRIES * other
            if (
                other != column
                and pairs[twin, 1] == length
                and same_bytes(text, start, text, ~np.int64(pairs[twin, 0]) - len(DICTIONARY_TEXT), length)
            ):
                return True
    return False


@inner
def decode_names(data: Array, at: Int, stop: Int, to: Int, characters: Array) -> Int:
    """Writes a Relation message with its names in UTF-8 to data[to:]; returns its end, or -1 if it cannot.

    data         has room for MOST_GROWTH times the message, and BLOCK bytes more; `to` is not before `stop`
    characters   see characters.py
    """
    used, plain = copy_bytes(data, to, data, at, HEAD_BYTES), at + HEAD_BYTES
    for name in range(stop - plain):
        end, used = decode_name(data, plain, stop, data, used, characters)
        if end < 0 or end == stop:
            return np.int64(-1)
        plain = min(end + after_name(name), stop)
        used = copy_bytes(data, used, data, end, plain - end)
        if plain == stop:
            break
    return used


@inner
def after_name(name: Int) -> Int:
    """How many bytes the end of a name and what follows it have, up to the next one; `name` is its number.

    A table is followed by the replica identity, the number of columns and a flag, and a column by its type and the flag
    of the next one.
    """
    if name == 0:
        return np.int64(1)
    return np.int64(5) if name == 1 else np.int64(2 + TYPE_BYTES)


def rewrite(records: Sequence[memoryview], encoding: str, errors: str) -> tuple[Array, Array]:
    """Returns the messages with names in UTF-8, and int64[n, 2]: where each begins, -1 if a name is bad, and ends.

    encoding   one of JOINABLE
    """
    data = np.frombuffer(b"".join(records), np.uint8)
    stops = np.cumsum([*map(len, records)])
    starts = np.concatenate([[0], stops[:-1]])
    names = np.zeros(len(data), np.uint8)
    _copy_names(data, starts, stops, names)
    zeros = np.flatnonzero(names == 0)
    decoded, offsets, bad = decode_joined(names, zeros, encoding, errors)
    rewritten = decoded.copy()
    rewritten[offsets[1:] - 1] = data[zeros]
    places = offsets[np.searchsorted(zeros, np.stack([starts, stops], axis=-1))]
    places[np.searchsorted(stops, zeros[bad > 0], "right"), 0] = -1
    return rewritten, places


@compiled
def _copy_names(data: Array, starts: Array, stops: Array, names: Array) -> None:
    """Copies the names that are not ASCII to where they are in the messages; a zero byte follows each."""
    for message in range(len(starts)):
        at, stop = starts[message] + HEAD_BYTES, stops[message]
        for name in range(stop - at):
            if at >= stop:
                break
            end = zero_at(data, at, stop)
            if end < stop and not is_ascii_anywhere(data, at, end - at):
                for place in range(at, end):
                    names[place] = data[place]
            at = end + after_name(name)
