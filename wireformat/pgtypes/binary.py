"""Values in a type's binary send form to the text that its output function gives: the table of types."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from ..errors import counted
from . import OIDS
from .binary_array import array_text, vector_text
from .binary_numbers import double_text, integer_reader, numeric_text, real_text
from .binary_times import date_text, interval_text, time_text, time_zone_text, timestamp_text, timestamp_zone_text
from .catalogue import SQL_NAMES


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
        "xid": integer_reader(">I"),
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
