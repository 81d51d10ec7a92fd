"""Paths of this machine as users write them, also where no shell has replaced `~`."""

from __future__ import annotations

import os
from typing import Any

from ..errors import OptionError
from .checks import shown


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
