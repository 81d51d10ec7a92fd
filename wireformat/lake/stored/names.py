"""What a table is called in a lake: names from the wire as names of folders, and columns that differ in case only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
"""Bytes that stay as they are: those that every file system, URL and shell takes, in small letters only."""

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that Windows keeps for devices."""

MOST_CHARACTERS = 200
"""Longer names of folders are cut, and end in a digest: file systems take 255 bytes."""

_DIGEST_CHARACTERS = 32


def folder_of(table: tuple[str, ...]) -> str:
    """Returns the folder of a table in its lake, `schema/table`. Different tables have different folders.

    Bytes other than a to z, 0 to 9, `_` and `-` are written `~4F`, also capitals, and a `_` or `-` at the beginning.
    It is percent-encoding with another sign, because readers of Delta tables decode `%` in paths.
    """
    return "/".join(map(_folder, table))


def _folder(name: str) -> str:
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
    """Returns the names under which columns are stored, which differ in more than case: of `Id` and `id`, `id_2`.

    known    names that the lake has already
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
