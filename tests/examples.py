"""How many examples a test takes: hypothesis's profiles, and mutations of which a short run makes a part.

HYPOTHESIS_PROFILE names the profile: `quick` for `make quick` and `make test`, `default` for everything, `thorough` for
many examples, which are others in each run, `few` for code that checks bounds, and `uncompiled` for code that runs a
hundred times slower.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from hypothesis import HealthCheck, Phase, settings

Parameters = ParamSpec("Parameters")
Example = TypeVar("Example")

# Generated events are large for hypothesis, and the first call of the scan may compile: neither is a fault of a test.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
}

settings.register_profile("default", derandomize=True, max_examples=50, **_COMMON)
settings.register_profile("thorough", max_examples=2000, print_blob=True, **_COMMON)
settings.register_profile("few", derandomize=True, max_examples=5, **_COMMON)
settings.register_profile("uncompiled", derandomize=True, max_examples=5, **_COMMON)
settings.register_profile("quick", derandomize=True, max_examples=3, **_COMMON)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)

ONE_IN = 7 if PROFILE in ("quick", "uncompiled") else 1
"""One in this many mutants is made: a prime, so that each of the things done to a byte is done to some of the bytes."""


def at_most(examples: int) -> settings:
    """Settings of a test that takes no more examples than these, whatever the profile says."""
    return settings(max_examples=min(examples, settings().max_examples))


def thinned(examples: Callable[Parameters, Iterable[Example]]) -> Callable[Parameters, Iterator[Example]]:
    """The same examples, in a short run one in ONE_IN of them."""

    @wraps(examples)
    def some(*args: Parameters.args, **options: Parameters.kwargs) -> Iterator[Example]:
        return islice(examples(*args, **options), 0, None, ONE_IN)

    return some
