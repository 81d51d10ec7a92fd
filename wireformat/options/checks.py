"""Checks of arguments and paths as users give them. Errors name the argument, what is allowed, and what was given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import OptionError
from .table import nearest


def one_of(option: str, value: Any, allowed: Sequence[str]) -> str:
    """Returns the value if it is one of some words; raises OptionError."""
    if not isinstance(value, str) or value not in allowed:
        near = nearest(value, allowed) if isinstance(value, str) else ""
        raise OptionError(f"option {option}: expected {', '.join(allowed)}; got {shown(value)}{near}")
    return value


def name(option: str, value: Any) -> str:
    """Returns the value if it is a text that is not empty; raises OptionError."""
    if not isinstance(value, str) or not value:
        raise OptionError(f"option {option}: expected a name, got {shown(value)}")
    return value


def texts(option: str, value: Any) -> tuple[str, ...]:
    """Returns the strings of a list or another iterable; raises OptionError."""
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
    """Returns the names if all are different; raises OptionError."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(f"option {option}: {twice[0]!r} is named twice")
    return names


def flag(option: str, value: Any) -> bool:
    """Returns the value if it is True or False; raises OptionError for anything else, also if it is truthy."""
    if not isinstance(value, bool):
        raise OptionError(f"option {option}: expected True or False, got {shown(value)}")
    return value


def number(option: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns the value if it is a whole number from `least` on, and not above `most`; raises OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        end = "on" if most is None else f"to {most}"
        raise OptionError(f"option {option}: expected a whole number from {least} {end}, got {shown(value)}")
    return value


def amount(option: str, value: Any) -> float:
    """Returns the value if it is a number from 0 on; raises OptionError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:  # nor is NaN
        raise OptionError(f"option {option}: expected a number from 0 on, got {shown(value)}")
    return value


def mapping(option: str, value: Any) -> dict[str, Any]:
    """Returns a mapping of names to values, empty for None; raises OptionError."""
    if value is not None and not isinstance(value, Mapping):
        raise OptionError(f"{option}: expected a mapping of names to values, got {shown(value)}")
    return dict(value or {})


def shown(value: Any) -> str:
    """Returns a value as an error shows it: a short one as it is, otherwise its type."""
    if value is None or isinstance(value, (str, int, float)):
        text = repr(value)
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return f"a {type(value).__name__}"


SHOWN_CHARACTERS = 80
"""The length up to which an error shows a value."""


def path_or_uri(option: str, value: Any) -> str:
    """Returns a path or URI as text; raises OptionError."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise OptionError(f"option {option}: expected a path or URI, got {shown(value)}")
    return text


def in_home(path: str) -> str:
    """Returns a path with the home folder in place of a `~` or `~user` at its beginning, as pandas and DuckDB do.

    Other paths, and those of users that are not there, stay as they are.
    """
    return os.path.expanduser(path)  # noqa: PTH111 - Path raises where there is no home
