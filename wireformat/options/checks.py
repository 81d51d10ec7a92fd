"""Arguments as users give them: checks that say which argument it is, what it may be, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import OptionError
from .table import nearest


def one_of(option: str, value: Any, allowed: Sequence[str]) -> str:
    """One of some words; raises OptionError."""
    if not isinstance(value, str) or value not in allowed:
        near = nearest(value, allowed) if isinstance(value, str) else ""
        raise OptionError(f"option {option}: expected {', '.join(allowed)}; got {shown(value)}{near}")
    return value


def texts(option: str, value: Any) -> tuple[str, ...]:
    """A list of strings, or another iterable of them; raises OptionError."""
    if isinstance(value, str):
        raise OptionError(f"option {option}: expected a list of strings, got the string {value!r}")
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise OptionError(f"option {option}: expected a list of strings, got {shown(value)}")
    found = tuple(value)
    for one in found:
        if not isinstance(one, str):
            raise OptionError(f"option {option}: expected a list of strings, got {shown(one)} in it")
    return found


def once(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of which no two are alike; raises OptionError."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(f"option {option}: {twice[0]!r} is named twice")
    return names


def flag(option: str, value: Any) -> bool:
    """True or False, and nothing that is only as good as true; raises OptionError."""
    if not isinstance(value, bool):
        raise OptionError(f"option {option}: expected True or False, got {shown(value)}")
    return value


def number(option: str, value: Any, least: int) -> int:
    """A whole number; raises OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"option {option}: expected a whole number from {least} on, got {shown(value)}")
    return value


def mapping(option: str, value: Any) -> dict[str, Any]:
    """Values by name, None for none; raises OptionError."""
    if value is not None and not isinstance(value, Mapping):
        raise OptionError(f"{option}: expected a mapping of names to values, got {shown(value)}")
    return dict(value or {})


def shown(value: Any) -> str:
    """A value in an error: a short one as it is, of others the type."""
    if value is None or isinstance(value, (str, int, float)):
        text = repr(value)
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return f"a {type(value).__name__}"


SHOWN_CHARACTERS = 80
"""How much of a value an error shows."""
