"""Values in the binary form of their type to the text that the type's output function gives."""

from __future__ import annotations

from collections.abc import Callable

READERS: dict[int, Callable[[bytes, str, str], str]] = {}
"""By type number: (data, encoding, errors) to text; raises ValueError for bytes that are no value."""


def binary_text(type_oid: int, data: bytes, encoding: str, errors: str) -> str | None:
    """The text of a value; None where the type is not known. Raises ValueError."""
    read = READERS.get(type_oid)
    return None if read is None else read(data, encoding, errors)
