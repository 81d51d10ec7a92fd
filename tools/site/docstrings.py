"""Docstrings in the style of this code as reStructuredText, which Sphinx reads.

A paragraph whose lines are `name    sentence` becomes a list of fields, an indented one a literal block. In all others
`code` is code, and nothing else is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

ENTRY = re.compile(r"(\S(?:[^\s`]| (?! ))*?)(?: {2,})(\S.*)")
"""A line of a list: names, two or more spaces, a sentence."""
CODE = re.compile(r"`([^`]+)`")
SPECIAL = re.compile(r"([\\*|]|\b_|_\b)")


def convert(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """The handler of Sphinx's event autodoc-process-docstring."""
    lines[:] = [*_converted(lines), ""]


def _converted(lines: list[str]) -> Iterator[str]:
    for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
        if is_blank:
            yield ""
            continue
        paragraph = list(group)
        if paragraph[0].startswith(" "):
            yield from ["::", "", *("    " + line for line in paragraph)]
        elif found := ENTRY.fullmatch(paragraph[0]):
            yield from _listed(paragraph, found.start(2))
        else:
            yield from _text("\n".join(paragraph)).splitlines()


def _listed(lines: list[str], column: int) -> Iterator[str]:
    """The lines of a list whose sentences begin in a column; a line that is none of its entries ends it."""
    parts: list[list[str]] = []
    for line in lines:
        entry = ENTRY.fullmatch(line) or re.fullmatch(rf"(\w{{{column - 1}}})() (.+)", line)
        if line.startswith(" "):
            parts[-1][-1] += " " + line.strip()
        elif entry is not None:
            parts.append([entry[1], entry[entry.lastindex or 0]])
        elif len(parts[-1]) == 1:
            parts[-1][0] += " " + line
        else:
            parts.append([line])
    for *names, sentence in parts:
        yield from [f"**{_text(names[0])}**", "    " + _text(sentence)] if names else ["", _text(sentence)]


def _text(text: str) -> str:
    """Text in which only `code` is markup."""
    parts = CODE.split(text)
    return "".join(f"``{part}``" if index % 2 else SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))
