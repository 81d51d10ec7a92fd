"""Hands tests out to processes group by group, in the order in which they were collected."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from .groups import group_of


class GroupScheduling(LoadScopeScheduling):  # not by xdist's marks of groups, which do nothing since pytest 9.2
    """What xdist does with modules, done with groups."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
