"""How hypothesis runs: the same examples every time, or many more with HYPOTHESIS_PROFILE=thorough."""

from __future__ import annotations

import os

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
