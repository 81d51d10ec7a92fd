"""How tests run: hypothesis takes the same examples every time, or many more with HYPOTHESIS_PROFILE=thorough; and
tests that share a fixture run in one process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# Generated events are large for hypothesis, and the first call of the scan may compile: neither is a fault of a test.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
}

settings.register_profile("default", derandomize=True, max_examples=50, **_COMMON)
settings.register_profile("thorough", max_examples=2000, print_blob=True, **_COMMON)
settings.register_profile("uncompiled", derandomize=True, max_examples=5, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

FOLDER = Path(__file__).parent
LONG_GROUPS = ("spark", "servers", "arrow/test_compiled.py")
"""Folders with one session or server for all their tests, and the longest file: they begin first."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With --dist loadgroup the tests of a group run in one process: those of a file, or of a folder above."""
    groups = {item: _group(item.path.relative_to(FOLDER)) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    ranks = {group: rank for rank, group in enumerate(LONG_GROUPS)}
    items.sort(key=lambda item: ranks.get(groups[item], len(ranks)))


def _group(path: Path) -> str:
    top = path.parts[0]
    return top if top in LONG_GROUPS else path.as_posix()
