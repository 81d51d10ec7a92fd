"""`python -m benchmarks`: measure, print the tables, write docs/performance.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from . import (
    bench_arrow,
    bench_capture,
    bench_committed,
    bench_corners,
    bench_driver,
    bench_encode,
    bench_formats,
    bench_growth,
    bench_growth_spark,
    bench_inspect,
    bench_lake,
    bench_live,
    bench_live_load,
    bench_pgoutput,
    bench_profile,
    bench_spark,
    bench_spark_capture,
    bench_start,
    bench_text,
    bench_typed,
    kept,
    machine,
    report,
)
from .contestants import race
from .corner import Corner
from .generate import Capture, ready_capture
from .measure import TURN_SECONDS, Result, Say

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
FOLDER = ROOT / "build" / "benchmarks"
KEPT = ROOT / "benchmarks" / "results.json"

FILE_WIDTH = 120
"""Characters of a line that goes to a file or a pipe."""

QUIET_LOAD = 0.5
"""Load average above which something else is running."""


class Effort(NamedTuple):
    """How much is measured: MB of binary messages, runs of each contestant, how often Spark reads the messages, and
    row changes in the histories of `growth-spark`."""

    megabytes: float
    python_rounds: int
    spark_rounds: int
    growth_rounds: int
    committed_rounds: int
    corner_rounds: int
    corner_changes: int
    corner_turn: float
    start_rounds: int
    inspect_bytes: int
    live_rounds: int
    live_changes: int
    live_seconds: float
    spark_copies: int
    growth_changes: tuple[int, ...]
    driver_chunks: tuple[int, ...]
    corners: tuple[Corner, ...] = bench_corners.CORNERS


FULL = Effort(
    42.6,
    python_rounds=7,
    spark_rounds=5,
    growth_rounds=5,
    committed_rounds=3,
    corner_rounds=3,
    corner_changes=bench_corners.CHANGES,
    corner_turn=TURN_SECONDS,
    start_rounds=3,
    inspect_bytes=1_000_000_000,
    live_rounds=3,
    live_changes=400_000,
    live_seconds=600,
    spark_copies=bench_spark.COPIES,
    growth_changes=(1_000_000, 4_000_000, 16_000_000),
    driver_chunks=(10_000, 100_000),
)
QUICK = Effort(
    4,
    python_rounds=1,
    spark_rounds=1,
    growth_rounds=1,
    committed_rounds=1,
    corner_rounds=1,
    corner_changes=bench_corners.QUICK_CHANGES,
    corner_turn=0,
    start_rounds=1,
    inspect_bytes=10_000_000,
    live_rounds=1,
    live_changes=20_000,
    live_seconds=4,
    spark_copies=1,
    growth_changes=(100_000, 400_000),
    driver_chunks=(100, 1_000),
)


class Group(str, Enum):
    """What can be measured alone."""

    start = "start"
    inspect = "inspect"
    python = "python"
    text = "text"
    pgoutput = "pgoutput"
    encode = "encode"  # type: ignore[assignment]  # nobody calls str.encode of it
    typed = "typed"
    committed = "committed"
    capture = "capture"
    profile = "profile"
    lake = "lake"
    live = "live"
    live_load = "live-load"
    growth = "growth"
    corners = "corners"
    spark = "spark"
    spark_capture = "spark-capture"
    driver = "driver"
    growth_spark = "growth-spark"


GROUPS: dict[Group, Callable[[Capture, Effort, Say], dict[str, Result]]] = {
    Group.start: lambda capture, effort, say: bench_start.measure(capture, effort.start_rounds, say),
    Group.inspect: lambda capture, effort, say: bench_inspect.measure(
        capture, effort.inspect_bytes, effort.python_rounds, FOLDER / "inspect", say
    ),
    Group.python: lambda capture, effort, say: race(
        [*bench_formats.CONTESTANTS, *bench_arrow.CONTESTANTS], capture, effort.python_rounds, say
    ),
    Group.text: lambda capture, effort, say: race(bench_text.CONTESTANTS, capture, effort.python_rounds, say),
    Group.pgoutput: lambda capture, effort, say: race(bench_pgoutput.CONTESTANTS, capture, effort.python_rounds, say),
    Group.encode: lambda capture, effort, say: race(bench_encode.CONTESTANTS, capture, effort.python_rounds, say),
    Group.typed: lambda capture, effort, say: race(bench_typed.CONTESTANTS, capture, effort.python_rounds, say),
    Group.committed: lambda capture, effort, say: race(
        bench_committed.CONTESTANTS, capture, effort.committed_rounds, say
    ),
    Group.capture: lambda capture, effort, say: race(bench_capture.CONTESTANTS, capture, effort.python_rounds, say),
    Group.profile: lambda capture, effort, say: bench_profile.measure(capture, effort.python_rounds, say),
    Group.lake: lambda capture, effort, say: bench_lake.measure(capture, effort.python_rounds, FOLDER / "lake", say),
    Group.live: lambda capture, effort, say: bench_live.measure(
        effort.live_changes, effort.live_rounds, FOLDER / "live", say
    ),
    Group.live_load: lambda capture, effort, say: bench_live_load.measure(
        effort.live_changes, effort.live_seconds, FOLDER / "live-load", say
    ),
    Group.growth: lambda capture, effort, say: bench_growth.measure(capture, effort.growth_rounds, say),
    Group.corners: lambda capture, effort, say: bench_corners.measure(
        effort.corner_changes, effort.corner_rounds, say, effort.corners, turn=effort.corner_turn
    ),
    Group.spark: lambda capture, effort, say: bench_spark.measure(
        capture, effort.spark_rounds, FOLDER / "spark", effort.spark_copies, say
    ),
    Group.spark_capture: lambda capture, effort, say: bench_spark_capture.measure(
        capture, effort.spark_rounds, FOLDER / "spark-capture", effort.spark_copies, say
    ),
    Group.driver: lambda capture, effort, say: bench_driver.measure(effort.driver_chunks, effort.start_rounds, say),
    Group.growth_spark: lambda capture, effort, say: bench_growth_spark.measure(
        capture, effort.growth_changes, FOLDER / "growth-spark", say
    ),
}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    only: Annotated[list[Group] | None, typer.Option(help="Measure this group; can be given more than once.")] = None,
    quick: Annotated[bool, typer.Option(help="Little data, one run each: to see whether all works.")] = False,
    megabytes: Annotated[float | None, typer.Option(help="Of binary messages. Else 42.6, or 4 with --quick.")] = None,
    corners_of: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Measure corners of this format alone, with --only corners.")
    ] = None,
    live_seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Of load on a live slot. Else 600, or 4 with --quick.")
    ] = None,
    write: Annotated[
        bool | None,
        typer.Option(
            help="Write docs/performance.md, with the last results of the other groups. Else only a full run does.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure speed and memory, side by side in one run."""
    console = Console(stderr=True)
    load = os.getloadavg()[0]
    if load > QUIET_LOAD:
        console.print(f"The machine is busy (load {load:.1f}): the numbers will not be good.", style="bold red")
    effort = QUICK if quick else FULL
    if megabytes is not None:
        effort = effort._replace(megabytes=megabytes)
    if live_seconds is not None:
        effort = effort._replace(live_seconds=live_seconds)
    if corners_of is not None:
        of_format = tuple(one for one in bench_corners.CORNERS if one.format == corners_of)
        if not of_format:
            raise typer.BadParameter(f"no corner is of the format {corners_of}", param_hint="--corners-of")
        effort = effort._replace(corners=of_format)
    is_full = effort._replace(corners=FULL.corners) == FULL
    with console.status("") as status:
        say = status.update
        say(f"making {effort.megabytes:g} MB of messages")
        capture = ready_capture(FOLDER, effort.megabytes)
        runs: dict[str, kept.Run] = {}
        for group, measure in GROUPS.items():
            if group not in (only or GROUPS):
                continue
            found = measure(capture, effort, say)
            if not found:  # something that it needs is not installed here
                continue
            if group == Group.corners and corners_of is not None:
                found = {**kept.kept(KEPT)[group.value].results, **found}
            runs[group.value] = kept.Run(machine.description(), load, found)
            if is_full:  # what a later group does, or who stops it, must not cost hours
                kept.keep(KEPT, {group.value: runs[group.value]})
            if not console.is_terminal:
                console.print(f"Measured: {group.value}")
    screen = Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)
    report.print_tables(screen, {group: run.results for group, run in runs.items()})
    if write or (write is None and effort == FULL and not only):
        others = kept.kept(KEPT) if is_full else {}
        all_runs = {**others, **runs}
        report.write_page(PAGE, {group.value: all_runs[group.value] for group in GROUPS if group.value in all_runs})
        console.print(f"Written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    app()
