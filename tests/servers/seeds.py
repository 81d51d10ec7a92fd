"""The seed of workloads that are other ones each run: printed, so that a failure shows it, and can be given."""

from __future__ import annotations

import os
import sys
from functools import cache
from random import SystemRandom

VARIABLE = "WIREFORMAT_TEST_SEED"


@cache
def run_seed() -> int:
    """The seed of this process."""
    given = os.environ.get(VARIABLE)
    return SystemRandom().randrange(1 << 32) if given is None else int(given)


def tell_seed() -> None:
    """Print it: pytest shows it with a test that fails."""
    sys.stdout.write(f"workloads of this run: {VARIABLE}={run_seed()}\n")
