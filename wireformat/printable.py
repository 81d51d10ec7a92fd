"""Text for a terminal or a page, with control characters as escapes."""

from __future__ import annotations

import re

STEERING = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Part of a character class: DEL, the control characters of ISO 8859, and those that end a line or change the direction
of writing. It does not have the control characters of ASCII."""

_STEERS = re.compile(rf"[\x00-\x08\x0a-\x1f{STEERING}]")


def printable(text: str) -> str:
    r"""The text in one line: control characters but the tab, and turns of direction, as `\x1b`, `\n` or `\u202e`."""
    return _STEERS.sub(lambda found: repr(found[0])[1:-1], text)
