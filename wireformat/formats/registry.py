"""The formats by name, a row each."""

from __future__ import annotations

from ..errors import OptionError
from ..options.table import nearest
from .base import Format
from .gaussdb_binary import GaussdbBinary

FORMATS: dict[str, Format] = {row.name: row for row in (GaussdbBinary(),)}


def find_format(name: str) -> Format:
    """The format of this name; raises OptionError with the known ones."""
    if name not in FORMATS:
        raise OptionError(f"unknown format {name!r}{nearest(name, FORMATS)}; known are {', '.join(FORMATS)}")
    return FORMATS[name]
