"""Spark's daemon in tests: what every worker loads first is loaded once, before workers are forked from it.

A worker that raised an error is not used again, and many tests are about errors: each new one would need two seconds.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import pandas as pd
from pyspark import daemon, worker

import spark_udfs
import wireformat as wf

from ..arrow.scan.probe import OTHER_SAMPLES
from ..engines import FORMAT
from ..handmade import SAMPLES

LOADED = (pd, spark_udfs, worker)

SAMPLES_OF = {FORMAT: [*SAMPLES.values()], **{name: OTHER_SAMPLES[name] for name in ("pgoutput", "test-decoding")}}
"""Messages of the formats that most tests decode."""


def load() -> None:
    """Load machine code from the cache; workers do not search it for garbage after each task."""
    for format, messages in SAMPLES_OF.items():
        with suppress(Exception):  # what is wrong with the package is told by the tests
            wf.arrow.transactions(wf.arrow.changes(messages, format, mode="PERMISSIVE"))
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    daemon.manager()
