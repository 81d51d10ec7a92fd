"""What the time of the fast ways is spent on: the share of each stage, by a profiler."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import wireformat as wf

from . import bench_capture
from .generate import BINARY, JSON, PGOUTPUT, TEXT, Capture
from .measure import Result, Say

PACKAGE = str(Path(wf.__file__).resolve().parent) + "/"

STAGES = {
    "arrow/scan/": "scan of the bytes",
    "arrow/noted_texts.py": "copies of values and texts",
    "arrow/noted/copies.py": "copies of values and texts",
    "arrow/noted/facts.py": "copies of values and texts",
    "arrow/noted/selection.py": "copies of values and texts",
    "arrow/columns/complete_images.py": "names and types of columns",
    "arrow/columns/layouts.py": "names and types of columns",
    "arrow/columns/known_layouts.py": "names and types of columns",
    "arrow/columns/": "columns of the row-change table",
    "arrow/commit_times.py": "columns of the row-change table",
    "arrow/noted/": "transactions",
    "arrow/committed/": "transactions",
    "stream/": "transactions",
    "arrow/typed_tables/": "typed values",
    "": "everything else",
}
"""The beginning of a file's path in the package, and the stage of its functions: the first that fits."""

WORKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **{
        f"changes, {format}": (format, partial(wf.arrow.changes, format=format, threads=1))
        for format in (BINARY, JSON, TEXT, PGOUTPUT)
    },
    **{
        bench_capture.of_format(name, format): (format, partial(work, format=format))
        for name, work in (
            (bench_capture.COMMITTED, bench_capture.committed),
            (bench_capture.TYPED, bench_capture.typed),
            (bench_capture.TYPED_ALL, bench_capture.typed_all),
        )
        for format in (BINARY, PGOUTPUT)
    },
}
"""What is profiled: the source of its messages, and the work."""

Function = tuple[str, int, str]
"""A function as pstats names it: file, line, name."""


def name_of(work: str, stage: str) -> str:
    """The name of a result."""
    return f"{work}: {stage}"


def measure(capture: Capture, rounds: int, say: Say) -> dict[str, Result]:
    """Results by name: the seconds of each stage of each work, in each run."""
    results = {}
    for work, (source, run) in WORKS.items():
        table = capture.load(source)
        messages, changes = table["payload"], sum(table["changes"].to_pylist())
        run(messages)  # compiles
        seconds: dict[str, list[float]] = {stage: [] for stage in dict.fromkeys(STAGES.values())}
        for number in range(1, rounds + 1):
            say(f"{work}: run {number} of {rounds}")
            for stage, took in stages_of(run, messages).items():
                seconds[stage].append(took)
        for stage, found in seconds.items():
            if not any(found):
                continue
            name = name_of(work, stage)
            results[name] = Result(name=name, input_bytes=messages.nbytes, changes=changes, seconds=tuple(found))
    return results


def stages_of(work: Callable[[Any], Any], messages: Any) -> dict[str, float]:
    """The seconds of each stage. What other packages do counts for the stage that calls them."""
    profile = cProfile.Profile()
    profile.runcall(work, messages)
    functions: Any = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    found = dict.fromkeys(STAGES.values(), 0.0)
    for function, (_, _, own, _, callers) in functions.items():
        if function[0].startswith(PACKAGE) or not callers:
            found[_stage(function)] += own
        else:
            for caller, (_, _, of_caller, _) in callers.items():
                found[_stage(_of_package(caller, functions, frozenset()))] += of_caller
    return found


def _of_package(function: Function, functions: Any, seen: frozenset[Function]) -> Function:
    """The function of this package that calls a function of another one, most of the time."""
    if function[0].startswith(PACKAGE) or function in seen:
        return function
    callers = functions[function][4] if function in functions else {}
    if not callers:
        return function
    most = max(callers, key=lambda caller: callers[caller][3])
    return _of_package(most, functions, seen | {function})


def _stage(function: Function) -> str:
    path = function[0].removeprefix(PACKAGE) if function[0].startswith(PACKAGE) else ""
    return next(stage for start, stage in STAGES.items() if path.startswith(start))


def share(result: Result, group: Mapping[str, Result]) -> str:
    """The share of a stage in the time of its work."""
    work, _, _ = result.name.rpartition(": ")
    return f"{result.median / sum(one.median for name, one in group.items() if name.rpartition(': ')[0] == work):.0%}"
