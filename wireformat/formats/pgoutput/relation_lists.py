"""The lists of a relation as JSON texts, as in `detail` of the row changes and in saved positions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

RELATION_LISTS = ("columns", "type_oids", "typmods", "key_columns")
"""The fields of Relation that are lists."""

LISTS = (*RELATION_LISTS, "binary")
"""The keys of `detail` whose texts are lists."""


def list_text(values: Sequence[str | int]) -> str:
    """Returns the text of a list."""
    return json.dumps(values, ensure_ascii=False)


@lru_cache(maxsize=256)  # many tables have the same types, modifiers and keys
def read_list(text: str) -> tuple[Any, ...]:
    """Returns the list of a text."""
    return tuple(json.loads(text))


def relation_lists(texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns the lists of a relation by their names; one without a text is empty."""
    return {name: read_list(texts.get(name, "[]")) for name in RELATION_LISTS}
