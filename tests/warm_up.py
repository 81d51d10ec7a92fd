"""Compiles what most tests use, each process of a parallel run a share: the others load it from the cache."""

from __future__ import annotations

from contextlib import suppress

import pytest


def compile_share(config: pytest.Config) -> None:
    """Decode samples of this process's formats; without -n nothing is done, as each test compiles what it needs."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    import wireformat as wf

    from .arrow.scan.probe import BINARY_VALUES, OTHER_SAMPLES, TYPED
    from .engines import FORMAT
    from .handmade import SAMPLES

    samples = {FORMAT: list(SAMPLES.values()), **OTHER_SAMPLES}
    samples["pgoutput"] = [*samples["pgoutput"], *BINARY_VALUES]
    share = int(worker["workerid"].removeprefix("gw"))
    for format in list(samples)[share :: worker["workercount"]]:
        with suppress(Exception):  # what cannot be compiled is told by the tests
            wf.arrow.changes(samples[format], format, mode="PERMISSIVE")
            if format == FORMAT:
                wf.Capture(TYPED, FORMAT).typed("s.t").read_all()
