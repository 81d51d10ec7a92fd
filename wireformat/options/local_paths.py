"""Paths of this machine as users write them, also where no shell has replaced `~`."""

from __future__ import annotations

import os


def in_home(path: str) -> str:
    """Returns a path with the home folder in place of a `~` or `~user` at its beginning, as pandas and DuckDB do.

    Other paths, and those of users that are not there, stay as they are.
    """
    return os.path.expanduser(path)  # noqa: PTH111 - Path raises where there is no home
