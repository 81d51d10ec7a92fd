"""Log sequence numbers: 64-bit positions in the write-ahead log, printed as two hexadecimal halves."""

from __future__ import annotations

import re
from operator import index

from .errors import OptionError

_FORM = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_WRAP = 1 << 64


def lsn_text(value: int) -> str:
    """Returns an LSN as the servers print it: `0/CFE5C80`, without padding.

    value   unsigned 64-bit, or the int64 with the same bits, as the row-change table stores it
    Raises OptionError, a ValueError, outside that range. Source: PostgreSQL manual, "pg_lsn Type".
    """
    try:
        value = index(value)  # also of numpy
    except TypeError:
        raise TypeError(f"lsn: expected a number, got {type(value).__name__}") from None
    if not -(1 << 63) <= value < _WRAP:
        raise OptionError(f"lsn: expected a number of 64 bits, got {value}")
    value %= _WRAP
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def lsn_value(text: str) -> int:
    """Returns `0/CFE5C80` as an unsigned 64-bit number; raises OptionError, a ValueError, on anything else."""
    if not isinstance(text, str):
        raise TypeError(f"lsn: expected a text, got {type(text).__name__}")
    match = _FORM.fullmatch(text)
    if match is None:
        raise OptionError(f"lsn: expected two hexadecimal numbers of up to 8 digits with a slash between, got {text!r}")
    return int(match[1], 16) << 32 | int(match[2], 16)


def signed(value: int) -> int:
    """The int64 with the same bits as an unsigned 64-bit number: how Arrow and Spark columns hold it."""
    return value - _WRAP if value >= 1 << 63 else value


def unsigned(value: int) -> int:
    """The unsigned 64-bit number with the same bits as an int64: the inverse of `signed`."""
    return value % _WRAP
