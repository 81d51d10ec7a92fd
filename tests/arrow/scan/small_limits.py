"""Makes limits small, so that small inputs take every path on which the scratch is too small."""

from __future__ import annotations

import sys
from collections import deque

import pytest

from wireformat.arrow.scan import scratch


def shrink(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Set limits of wireformat.limits in every module that has taken them over."""
    for name, value in limits.items():
        holders = [
            module for key, module in sys.modules.items() if key.startswith("wireformat.") and hasattr(module, name)
        ]
        assert len(holders) > 1, f"nobody uses limits.{name}"
        for module in holders:
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(scratch, "_spare", deque(maxlen=1))  # what others left is larger
