"""Tests that share something run in one process: those of a file, or of a folder with one session for all.

Where a file has tests for all formats, those of a format share its compiled scan.
"""

from __future__ import annotations

from wireformat.formats.registry import ROWS

FIRST = (
    *("spark", "servers", "live", "arrow/jit/test_compiler.py", "spark/test_connect.py"),
    *("lake/test_captures.py", "test_wheel.py", "site/test_build.py", "site/test_notebook.py"),
    *("formats/test_golden.py", "capture/test_verbs.py", "capture/test_pieces.py"),
)
"""Folders with one session or server for all their tests, and files that take longest: these groups begin first.

A long file that began last would leave the other processes without work."""


TOGETHER = dict.fromkeys(
    ("arrow/columns/test_events.py", "formats/test_golden.py", "stream/test_order.py"), "formats/test_golden.py"
)
"""The groups of files that share what takes long to find: here what each engine makes of the reference captures."""

BY_FORMAT = ("formats/test_conformance.py",)
"""Files of which the tests of each format are a group."""


def group_of(nodeid: str) -> str:
    """The group of a test; `nodeid` begins with the path of its file below the repository."""
    path, _, test = nodeid.split("/", 1)[1].partition("::")
    if path in BY_FORMAT:
        parameters = test.partition("[")[2]
        return " ".join([path, *(format for format in ROWS if parameters.startswith(format))])
    folder = path.split("/")[0]
    return TOGETHER.get(path, folder if folder in FIRST and path not in FIRST else path)


def rank_of(group: str) -> int:
    """Groups of a low rank begin first."""
    return FIRST.index(group) if group in FIRST else len(FIRST)
