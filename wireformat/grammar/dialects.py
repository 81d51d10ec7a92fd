"""What servers of the two families print differently, where their text is otherwise the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..identifiers import KEYWORDS, POSTGRES_KEYWORDS
from .literals import WRITERS, LiteralWriter


class Dialect(NamedTuple):
    """How one family writes names, types and values; reading takes both.

    keywords    names that are quoted though they are plain
    unprinted   types that the server prints under another name
    literals    how values of a type are written; all others are strings
    """

    keywords: frozenset[str]
    unprinted: frozenset[str]
    literals: Mapping[str, LiteralWriter]


OPENGAUSS = Dialect(KEYWORDS, frozenset({"clob"}), WRITERS)
POSTGRES = Dialect(
    POSTGRES_KEYWORDS, frozenset(), {type: writer for type, writer in WRITERS.items() if type != "tinyint"}
)
"""A type tinyint is a user's there, and so are its values strings."""
