"""Tests that share a fixture, and so run in one process: those of a file, or of a folder with one session for all."""

from __future__ import annotations

FIRST = ("spark", "servers", "arrow/test_compiled.py", "spark/test_connect.py")
"""Folders with one session or server for all their tests, and files that take longest: these groups begin first."""


def group_of(nodeid: str) -> str:
    """The group of a test; `nodeid` begins with the path of its file below the repository."""
    path = nodeid.split("::")[0].split("/", 1)[1]
    folder = path.split("/")[0]
    return folder if folder in FIRST and path not in FIRST else path


def rank_of(group: str) -> int:
    """Groups of a low rank begin first."""
    return FIRST.index(group) if group in FIRST else len(FIRST)
