"""The names of folders and columns in a lake, made from names on the wire."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
"""Bytes that stay as they are: every file system, URL and shell accepts them. Capitals are not among them, because some
file systems ignore case."""

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that Windows keeps for devices."""

MOST_CHARACTERS = 200
"""Longer names of folders are cut, and end in a digest: file systems accept 255 bytes."""

_DIGEST_CHARACTERS = 32


def folder_of(table: tuple[str, ...]) -> str:
    """Returns the folder of a table in its lake, `schema/table`. Different tables have different folders.

    A byte other than a to z, 0 to 9, `_` and `-` becomes `~` and two hex digits, and so does a `_` or `-` at the
    beginning. This is percent-encoding with another sign, because readers of Delta tables decode `%` in paths.
    """
    return "/".join(map(_folder, table))


def _folder(name: str) -> str:
    """Returns the name of the folder of a schema or table."""
    raw = name.encode("utf-8", "surrogatepass")
    encoded = "".join(
        chr(byte) if byte in _PLAIN and (index or byte not in b"_-") else f"~{byte:02X}"
        for index, byte in enumerate(raw)
    )
    if _RESERVED.fullmatch(encoded):
        encoded = f"~{raw[0]:02X}{encoded[1:]}"
    if len(encoded) > MOST_CHARACTERS:
        digest = hashlib.sha256(raw).hexdigest()[:_DIGEST_CHARACTERS]
        encoded = f"{encoded[: MOST_CHARACTERS - _DIGEST_CHARACTERS - 2]}~~{digest}"
    return encoded or "~"


def stored_names(columns: Iterable[str], known: Mapping[str, str], others: Sequence[str]) -> dict[str, str]:
    """Returns the name under which each column is stored. They differ in more than case: `id` beside `Id` is `id_2`.

    known    the names that the lake already has
    others   further columns that are stored
    """
    names = dict(known)
    taken = {name.casefold() for name in [*names.values(), *others]}
    for column in columns:
        if column in names:
            continue
        stored, number = column, 2
        while stored.casefold() in taken:
            stored, number = f"{column}_{number}", number + 1
        names[column] = stored
        taken.add(stored.casefold())
    return names
