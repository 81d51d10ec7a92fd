"""How tests run: each knows what it needs, and tests that share a fixture run in one process."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from . import examples, tiers, warm_up
from .groups import group_of, rank_of
from .java_settings import short_queries

__all__ = ["examples"]  # imported before any test: it loads hypothesis's profile

gc.set_threshold(20_000, 20, 20)  # Python looks for garbage after 700 new objects, which takes a twelfth of a run


def pytest_runtest_setup() -> None:
    """What a test starts finds the archive of Spark's classes that another process may have made by now."""
    os.environ.update(short_queries())


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m leaves out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks; groups in the order in which they begin."""
    tiers.mark(items)
    items.sort(key=lambda item: rank_of(group_of(item.nodeid)))
    config.stash[tiers.COLLECTED] = tuple(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What the tests share is compiled once. All that was collected stays: no search for garbage looks at it again."""
    gc.collect()
    gc.freeze()
    warm_up.compile_share(session.config)


def pytest_unconfigure() -> None:
    """Libraries look at the end for what they have left behind."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With -n the tests of a group run in one process."""
    from .group_scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are processors: many tests wait, for a server, a disk or Java."""
    return (os.cpu_count() or 1) + 1
