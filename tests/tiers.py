"""Which tests `make quick` and `make test` leave out: the marks that follow from what a test uses.

A test that uses Spark's session is marked `spark`, one that uses a server `server`. Of tests alike, which differ in the
capture or the server only, some are enough for a short run; the others are marked `slow`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import wireformat as wf

from .golden_cases import CASES, Case
from .servers.captures import capture_names

MARKS = {"spark": "spark", "servers": "server", "runs": "server"}
"""The mark of the tests that use a fixture."""

CAPTURES_OF_A_FORMAT = 3
"""So many captures of each format are enough for a test in a short run."""

SERVERS = (15, 18)
"""So are these versions: test_decoding is there with the first, the newest protocol with the other."""

_FORMATS = {case.name: case.format for case in CASES} | {
    name: next(format for format in ("pgoutput", "test-decoding") if format in name) for name in capture_names()
}
"""The format of each capture."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests by the fixtures that they use; then those that a short run has enough of."""
    alike: dict[tuple[Any, ...], list[pytest.Item]] = {}
    on_spark: dict[str, list[pytest.Item]] = {}
    for item in items:
        parameters = parameters_of(item)
        for name in {MARKS[fixture] for fixture in MARKS.keys() & fixtures_of(item)}:
            item.add_marker(name)
        if item.get_closest_marker("spark"):
            on_spark.setdefault(item.nodeid.split("[")[0], []).append(item)
        captures = {name: format for name, value in parameters.items() if (format := format_of_capture(value))}
        if captures:
            others = [repr(value) for name, value in parameters.items() if name not in captures]
            alike.setdefault((item.nodeid.split("[")[0], *captures.values(), *others), []).append(item)
        if item.get_closest_marker("server") and parameters.get("version", SERVERS[0]) not in SERVERS:
            item.add_marker("slow")
    for cases in alike.values():
        _mark_others(cases, {len(cases) * number // CAPTURES_OF_A_FORMAT for number in range(CAPTURES_OF_A_FORMAT)})
    for cases in on_spark.values():
        _mark_others(cases, {0})  # Spark takes seconds for each


def _mark_others(cases: list[pytest.Item], enough: set[int]) -> None:
    for number, item in enumerate(cases):
        if number not in enough:
            item.add_marker("slow")


def fixtures_of(item: pytest.Item) -> set[str]:
    """The fixtures that a test uses, or that those use; pytest counts its parameters among them."""
    return set(getattr(item, "fixturenames", ())) - parameters_of(item).keys()


def parameters_of(item: pytest.Item) -> dict[str, Any]:
    """The values of a test's parameters, by name."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def format_of_capture(value: Any) -> str | None:
    """The format of a capture or of its name; None of anything else."""
    return value.format if isinstance(value, Case) else _FORMATS.get(value) if isinstance(value, str) else None


def format_of(item: pytest.Item) -> str | None:
    """The format that a test's parameters name, or that its capture is in."""
    for value in parameters_of(item).values():
        if isinstance(value, str) and value in wf.FORMATS:
            return value
        if format := format_of_capture(value):
            return format
    return None
