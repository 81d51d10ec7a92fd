"""Values in a type's binary send form to the text that its output function gives: the table of types.

Arrays; dates, times and intervals in the styles ISO and postgres, in UTC.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from math import prod
from uuid import UUID

from ..errors import counted
from ..times import DAYS_TO_2000, MICROS_OF_DAY, clock_text, day_text
from . import OIDS
from .binary_numbers import double_text, integer_reader, numeric_text, real_text, unpack
from .catalogue import SQL_NAMES

_DATE = struct.Struct(">i")
_TIME = struct.Struct(">q")
_TIME_ZONE = struct.Struct(">qi")
_INTERVAL = struct.Struct(">qii")

DATES = range(-2_451_545, 2_145_031_949)
"""Days since 2000-01-01: from 4713 BC to the year 5874897."""
TIMESTAMPS = range(-211_813_488_000_000_000, 9_223_371_331_200_000_000 + 1)
"""Microseconds since 2000-01-01: from 4713 BC to the end of the year 294276, to which timestamp(0) may round up."""
ZONES = range(-57_599, 57_600)
"""Seconds west of Greenwich: less than 16 hours either way."""

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
_INFINITIES = ("-infinity", "infinity")
_INFINITE_DATES = dict(zip(INT32, _INFINITIES, strict=True))
_INFINITE_TIMESTAMPS = dict(zip(INT64, _INFINITIES, strict=True))
_INFINITE_INTERVALS = dict(zip(zip(INT64, INT32, INT32, strict=True), _INFINITIES, strict=True))
"""Version 17 and newer; before, these were intervals like others, of 178956970 years."""


def date_text(data: bytes) -> str:
    """Days since 2000-01-01."""
    (days,) = unpack(_DATE, data)
    if days in _INFINITE_DATES:
        return _INFINITE_DATES[days]
    _check(days, DATES, "a date")
    day, era = day_text(days + DAYS_TO_2000)
    return day + era


def time_text(data: bytes) -> str:
    """Microseconds since midnight; 24:00:00 is a time."""
    return _clock(unpack(_TIME, data)[0])


def time_zone_text(data: bytes) -> str:
    """Microseconds since midnight, and seconds west of Greenwich."""
    micros, west = unpack(_TIME_ZONE, data)
    _check(west, ZONES, "an offset")
    hours, minutes, seconds = abs(west) // 3600, abs(west) // 60 % 60, abs(west) % 60
    rest = f":{minutes:02}:{seconds:02}" if seconds else (f":{minutes:02}" if minutes else "")
    return f"{_clock(micros)}{'-' if west > 0 else '+'}{hours:02}{rest}"


def timestamp_text(data: bytes) -> str:
    """Microseconds since 2000-01-01."""
    return _timestamp(data, "")


def timestamp_zone_text(data: bytes) -> str:
    """The same in UTC, and with its offset."""
    return _timestamp(data, "+00")


def interval_text(data: bytes) -> str:
    """Microseconds, days and months, each with a sign of its own."""
    micros, days, months = parts = unpack(_INTERVAL, data)
    if parts in _INFINITE_INTERVALS:
        return _INFINITE_INTERVALS[parts]
    years, months = _years(months)
    texts = []
    negative = False  # the part before: after it, a positive one has its sign written
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            texts.append(f"{'+' if negative and number > 0 else ''}{number} {unit}{'' if number == 1 else 's'}")
            negative = number < 0
    if micros or not texts:
        sign = "-" if micros < 0 else ("+" if negative else "")
        texts.append(sign + clock_text(abs(micros)))
    return " ".join(texts)


def _timestamp(data: bytes, zone: str) -> str:
    (micros,) = unpack(_TIME, data)
    if micros in _INFINITE_TIMESTAMPS:
        return _INFINITE_TIMESTAMPS[micros]
    _check(micros, TIMESTAMPS, "a timestamp")
    days, clock = divmod(micros, MICROS_OF_DAY)
    day, era = day_text(days + DAYS_TO_2000)
    return f"{day} {clock_text(clock)}{zone}{era}"


def _clock(micros: int) -> str:
    _check(micros, range(MICROS_OF_DAY + 1), "a time of day")
    return clock_text(micros)


def _years(months: int) -> tuple[int, int]:
    years, rest = divmod(abs(months), 12)
    return (-years, -rest) if months < 0 else (years, rest)


def _check(number: int, allowed: range, what: str) -> None:
    if number not in allowed:
        raise ValueError(f"expected {what}, got a number that is out of its range")


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
    texts = []
    for item in items:
        text = "NULL" if item is None else element_text(item)
        if text is None:
            return None
        texts.append(text if item is None else _quoted(text))
    if not dimensions:
        return "{}"
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


def binary_text(type_oid: int, data: bytes, encoding: str, errors: str) -> str | None:
    """The text form of a value, as a server of version 12 or newer prints it with time zone UTC and style ISO.

    type_oid           number of the column's type
    data               the value as the type's send function gives it
    encoding, errors   of texts, as bytes.decode takes them
    returns            None: the type is not listed here, or its text would be far longer than the value
    Raises ValueError, in words and without values, if the bytes are not of this type; where a text is not in the
    encoding, it is the UnicodeDecodeError of bytes.decode, which has bytes in its words. LookupError for an unknown
    encoding.
    Source: the send and output functions of the types, seen on servers of versions 15, 16 and 18.
    """
    if type_oid in _TEXTS:
        return data.decode(encoding, errors)
    if type_oid in _READERS:
        return _READERS[type_oid](data)
    if type_oid in _ELEMENTS:
        element = _ELEMENTS[type_oid]
        return array_text(data, element, lambda item: binary_text(element, item, encoding, errors))
    if type_oid == OIDS["jsonb"]:
        if data[:1] != b"\x01":
            raise ValueError(f"expected version 1 of jsonb, got {f'version {data[0]}' if data else 'no bytes'}")
        return data[1:].decode(encoding, errors)
    return None


def has_text(type_oid: int) -> bool:
    """Whether the type is one whose binary form can be turned into text."""
    return type_oid in _TEXTS or type_oid in _READERS or type_oid in _ELEMENTS or type_oid == OIDS["jsonb"]


def _boolean(data: bytes) -> str:
    if len(data) != 1:
        raise ValueError(f"expected 1 byte, got {len(data)}")
    return "t" if data[0] else "f"


def _char(data: bytes) -> str:
    """One byte; none for zero; octal digits where it is not ASCII, as version 16 and newer print it."""
    if len(data) != 1:
        raise ValueError(f"expected 1 byte, got {len(data)}")
    byte = data[0]
    return f"\\{byte:03o}" if byte > 0x7F else (chr(byte) if byte else "")


def _bytea(data: bytes) -> str:
    return f"\\x{data.hex()}"


def _uuid(data: bytes) -> str:
    if len(data) != 16:
        raise ValueError(f"expected 16 bytes, got {len(data)}")
    return str(UUID(bytes=bytes(data)))


def _bits(data: bytes) -> str:
    """A number of bits, then as many bits, from the left of the bytes."""
    if len(data) < 4:
        raise ValueError(f"expected at least 4 bytes, got {len(data)}")
    (count,) = struct.unpack_from(">i", data)
    if count < 0 or len(data) - 4 != (count + 7) // 8:
        raise ValueError(f"expected the bytes of {counted(count, 'bit')}, got {len(data) - 4}")
    return "".join(f"{byte:08b}" for byte in data[4:])[:count]


def _xid(data: bytes) -> str:
    """Returns a transaction id of 4 bytes, or one of openGauss: 8 bytes, the lower half first (its xidsend)."""
    if len(data) != 8:
        return integer_reader(">I")(data)
    low, high = struct.unpack(">II", data)
    return str(high << 32 | low)


_TEXTS = {OIDS[name] for name in ("text", "character varying", "character", "name", "unknown", "xml", "json")}

_READERS: dict[int, Callable[[bytes], str | None]] = {
    OIDS[name]: reader
    for name, reader in {
        "boolean": _boolean,
        '"char"': _char,
        "smallint": integer_reader(">h"),
        "integer": integer_reader(">i"),
        "bigint": integer_reader(">q"),
        "oid": integer_reader(">I"),
        "xid": _xid,
        "cid": integer_reader(">I"),
        "xid8": integer_reader(">Q"),
        "real": real_text,
        "double precision": double_text,
        "numeric": numeric_text,
        "bytea": _bytea,
        "uuid": _uuid,
        "bit": _bits,
        "bit varying": _bits,
        "date": date_text,
        "time without time zone": time_text,
        "time with time zone": time_zone_text,
        "timestamp without time zone": timestamp_text,
        "timestamp with time zone": timestamp_zone_text,
        "interval": interval_text,
        "int2vector": lambda data: vector_text(data, OIDS["smallint"], integer_reader(">h")),
        "oidvector": lambda data: vector_text(data, OIDS["oid"], integer_reader(">I")),
    }.items()
}
"""Type number to the function that reads it, for types whose text is not in the database's encoding."""

_ELEMENTS = {
    OIDS[f"{SQL_NAMES[oid]}[]"]: oid
    for oid in sorted({*_TEXTS, *_READERS, OIDS["jsonb"]})
    if f"{SQL_NAMES[oid]}[]" in OIDS
}
"""Array type to the type of its elements."""
