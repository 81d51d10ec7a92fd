"""JSON lines read with orjson and Python: what a good Python programmer writes today.

It trusts its input, as the other readers by hand: no positions in errors, no types. A line has no LSN.
"""

from __future__ import annotations

import re

import orjson

Change = tuple[str, str, str, dict[str, str | None] | None, dict[str, str | None] | None]
"""kind, schema, table, new, old"""

FIELDS = 5

split_table = re.compile(r'("(?:[^"]|"")*"|[^".]+)\.(.+)', re.DOTALL).fullmatch

WORDS = {"null": None, "true": "t", "false": "f"}


def read_line(line: bytes) -> Change:
    """The row change of one line."""
    change = orjson.loads(line)
    schema, table = split_table(change["table_name"]).groups()  # type: ignore[union-attr]  # each name has a schema
    return (
        change["op_type"],
        unquoted(schema),
        unquoted(table),
        read_image(change["columns_name"], change["columns_val"]),
        read_image(change["old_keys_name"], change["old_keys_val"]),
    )


def read_image(names: list[str], literals: list[str]) -> dict[str, str | None] | None:
    """Column names to values; a tuple without columns and none at all look the same."""
    if not names:
        return None
    return {unquoted(name): value_of(literal) for name, literal in zip(names, literals, strict=True)}


def unquoted(name: str) -> str:
    """An SQL identifier's name."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def value_of(literal: str) -> str | None:
    """An SQL literal's value: `'it''s'`, `B'101'`, `true`, `null` or a number."""
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    if literal.startswith("B'"):
        return literal[2:-1]
    return WORDS.get(literal, literal)
