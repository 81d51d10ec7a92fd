"""The servers' options that shape what is written, a row each, and how a set of them is checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import OptionError


class Option(NamedTuple):
    """One option. A switch has a bool as default, and `allowed` is what its values are called."""

    name: str
    default: bool | int
    allowed: tuple[str | int, ...]
    sentence: str


SWITCH = ("on", "off")

WRITE_OPTIONS = (
    Option("sending-batch", 0, (0, 1), "1 collects records into messages of a little more than 1 MiB."),
    Option("include-xids", True, SWITCH, "BEGIN and COMMIT carry the transaction id, if the event has one."),
    Option("include-timestamp", False, SWITCH, "BEGIN and COMMIT carry the commit time, if the event has one."),
    Option("include-originid", False, SWITCH, "BEGIN carries the replication origin, if the event has one."),
    Option("include-user", False, SWITCH, "BEGIN carries the user name, if the event has one."),
    Option("skip-empty-xacts", False, SWITCH, "Transactions without row changes are left out."),
)
"""Defaults are those of parallel decoding. Source: GaussDB document, "Logical Decoding Options"."""

_WORDS: dict[str, bool | int] = {"on": True, "true": True, "off": False, "false": False, "0": 0, "1": 1}


def resolve(given: Mapping[str, Any] | None, table: tuple[Option, ...] = WRITE_OPTIONS) -> dict[str, bool | int]:
    """All options of the table with the given values checked and the others at their defaults.

    Switches and numbers also take on, off, true, false, 0 and 1 as words. Raises OptionError with the name, the value
    and what is allowed.
    """
    rows = {row.name: row for row in table}
    values = {row.name: row.default for row in table}
    for name, value in (given or {}).items():
        if name not in rows:
            raise OptionError(f"unknown option {name!r}{nearest(name, rows)}; known are {', '.join(rows)}")
        row = rows[name]
        known = _WORDS.get(value.lower()) if isinstance(value, str) else value
        is_switch = row.allowed == SWITCH
        if not isinstance(known, int) or known not in ((False, True) if is_switch else row.allowed):
            raise OptionError(f"option {name}: expected {' or '.join(map(str, row.allowed))}, got {value!r}")
        values[name] = bool(known) if is_switch else int(known)
    return values


def nearest(name: str, known: Any) -> str:
    """`, did you mean x?`, or nothing where no known name is near."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f", did you mean {close[0]!r}?" if close else ""
