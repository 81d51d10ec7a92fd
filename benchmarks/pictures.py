"""The results as pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from . import bench_formats, bench_lake, bench_live, bench_pgoutput, bench_spark, bench_text, bench_typed
from .measure import Result

OURS, OTHERS = "#2a6f97", "#b0b7bd"
OTHER_PEOPLES = {
    bench_formats.STRUCT,
    bench_text.PYARROW_JSON,
    bench_text.ORJSON,
    bench_text.LEXER,
    bench_pgoutput.STRUCT,
    bench_typed.BY_HAND,
    bench_spark.FLOOR,
    bench_spark.HAND_OVER,
    bench_spark.HAND_UDF,
    bench_spark.FROM_JSON,
    *(bench_lake.PYARROW, bench_lake.DELTALAKE, bench_lake.DUCKDB),
    *(bench_live.BARE, bench_live.RECVLOGICAL, bench_live.BY_HAND, bench_live.SUBSCRIPTION),
}
"""Contestants that do without this package."""


LEAST = {"linear": 0, "log": 0.1}
ROOM_FOR_VALUES = {"linear": 1.2, "log": 4}
"""By scale: where a bar begins, and how far beyond the longest the picture goes."""


def bars(
    results: Mapping[str, Result],
    path: Path,
    *,
    value: Callable[[Result], float],
    label: str,
    written: str = "{:,.0f}",
    scale: str = "linear",
) -> None:
    """A bar for each contestant, with its value behind it."""
    names = list(results)
    values = [value(results[name]) for name in names]
    figure, axes = new_picture(0.42 * len(names) + 1)
    is_ours = [name.removesuffix(bench_live.SMALL) not in OTHER_PEOPLES for name in names]
    drawn = axes.barh(names, values, color=[OURS if ours else OTHERS for ours in is_ours])
    axes.bar_label(drawn, [written.format(number) for number in values], padding=4)
    axes.set_xscale(scale)
    axes.set_xlim(LEAST[scale], max(values) * ROOM_FOR_VALUES[scale])
    if scale == "linear":
        axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(label)
    if not all(is_ours):
        colours = [Patch(color=OURS, label="wireformat"), Patch(color=OTHERS, label="without wireformat")]
        figure.legend(handles=colours, loc="outside upper right", ncols=2, frameon=False)
    save(figure, path)


megabytes_per_second = partial(
    bars,
    value=lambda result: result.megabytes_per_second,
    label="MB/s of input, logarithmic",
    written="{:,.1f}",
    scale="log",
)
changes_per_second = partial(bars, value=lambda result: result.changes_per_second, label="row changes a second")
seconds = partial(bars, value=lambda result: result.median, label="seconds", written="{:.2f}")


def growth(results: Mapping[str, Result], path: Path) -> None:
    """Time and memory over the size of the input."""
    sizes = [result.input_bytes / 1e6 for result in results.values()]
    figure, axes = new_picture(3)
    times = [result.median for result in results.values()]
    axes.plot(sizes, times, marker="o", color=OURS)
    axes.set(xlabel="MB of input", ylabel="seconds", xlim=(0, None), ylim=(0, 1.1 * max(times)))
    peaks = [result.peak_bytes for result in results.values() if result.peak_bytes is not None]
    if len(peaks) == len(results):
        memory = axes.twinx()
        memory.plot(sizes, [peak / 1e6 for peak in peaks], marker="s", linestyle="--", color=OTHERS)
        memory.set(ylabel="peak memory, MB (dashed)", ylim=(0, 1.5 * max(peaks) / 1e6))
    save(figure, path)


def new_picture(height: float) -> tuple[Figure, mpl.axes.Axes]:
    """An empty picture, so many inches high, drawn without a screen."""
    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    """The same results give the same file."""
    with mpl.rc_context({"svg.hashsalt": path.name}):
        figure.savefig(path, metadata={"Date": None})
