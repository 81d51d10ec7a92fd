"""The formats by name, a row each; a format is loaded when it is first looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ..errors import OptionError
from ..options.checks import shown
from ..options.table import nearest
from .base import Format

_PLACES = {
    "gaussdb-binary": ("gaussdb_binary", "GAUSSDB_BINARY"),
    "gaussdb-json": ("gaussdb_json", "GAUSSDB_JSON"),
    "gaussdb-text": ("gaussdb_text", "GAUSSDB_TEXT"),
    "mppdb-json": ("mppdb_json", "MPPDB_JSON"),
    "opengauss-test-decoding": ("opengauss_test_decoding", "OPENGAUSS_TEST_DECODING"),
    "sql-decoding": ("sql_decoding", "SQL_DECODING"),
    "test-decoding": ("test_decoding", "TEST_DECODING"),
    "pgoutput": ("pgoutput.reader", "PGOUTPUT"),
}
"""The module of each format, and its name there."""


class Formats(Mapping[str, Format]):
    """All formats by name: like a dictionary that nobody can change."""

    def __getitem__(self, name: str) -> Format:
        module, constant = _PLACES[name]
        format: Format = getattr(import_module(f".{module}", __package__), constant)
        return format

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


FORMATS = Formats()


def find_format(name: Any) -> Format:
    """The format of this name; raises OptionError with the known ones."""
    return FORMATS[find_format_name(name)]


def find_format_name(name: Any) -> str:
    """The name itself, without loading the format; raises OptionError with the known ones."""
    if not isinstance(name, str) or name not in _PLACES:
        raise OptionError(f"unknown format {shown(name)}{nearest(name, _PLACES)}; known are {', '.join(_PLACES)}")
    return name
