"""How tests run: hypothesis takes the same examples every time, or others with HYPOTHESIS_PROFILE=thorough or few; and
tests that share a fixture run in one process."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from .groups import group_of, rank_of

# Generated events are large for hypothesis, and the first call of the scan may compile: neither is a fault of a test.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
}

settings.register_profile("default", derandomize=True, max_examples=50, **_COMMON)
settings.register_profile("thorough", max_examples=2000, print_blob=True, **_COMMON)
settings.register_profile("few", derandomize=True, max_examples=5, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups in the order in which they begin."""
    items.sort(key=lambda item: rank_of(group_of(item.nodeid)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With -n the tests of a group run in one process."""
    from .group_scheduling import GroupScheduling

    return GroupScheduling(config, log)
