"""The results as tables, on the screen and in docs/performance.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from . import (
    bench_committed,
    bench_corners,
    bench_driver,
    bench_encode,
    bench_formats,
    bench_lake,
    bench_live,
    bench_live_load,
    bench_pgoutput,
    bench_profile,
    bench_scan,
    bench_spark,
    bench_spark_capture,
    bench_text,
    bench_typed,
    pictures,
)
from .bench_growth import FACTORS, name_of
from .generate import BINARY
from .kept import Run
from .measure import Result
from .targets import TARGETS, Results

Group = Mapping[str, Result]

Cell = Callable[[Result, Group], str]


def megabytes(size: int | None) -> str:
    """A number of bytes, or nothing where it is not known."""
    return "" if size is None else f"{size / 1e6:,.0f} MB"


def ratio_to(baseline: str) -> dict[str, Cell]:
    """How many times as many row changes a second as the baseline."""
    return {
        f"ratio to {baseline}": lambda result, group: (
            f"{result.changes_per_second / group[baseline].changes_per_second:,.2f}"
        )
    }


def spread(result: Result, group: Group) -> str:
    """How far the runs are apart, against the median."""
    return f"{(max(result.seconds) - min(result.seconds)) / result.median:.0%}"


def time_ratio(result: Result, group: Group) -> str:
    """The time, against that for the least data."""
    return f"{result.median / group[name_of(FACTORS[0])].median:.2f}"


NAME: dict[str, Cell] = {"contestant": lambda result, group: result.name}
INPUT: dict[str, Cell] = {"input": lambda result, group: f"{result.input_bytes / 1e6:,.1f} MB"}
SPEED: dict[str, Cell] = {
    "MB/s": lambda result, group: f"{result.megabytes_per_second:,.1f}",
    "rows/s": lambda result, group: f"{result.changes_per_second:,.0f}",
    "columns per row": lambda result, group: str(result.columns),
}
SPREAD: dict[str, Cell] = {"spread": spread}
SECONDS: dict[str, Cell] = {"seconds": lambda result, group: f"{result.median:.2f}"}
PEAK: dict[str, Cell] = {"peak memory": lambda result, group: megabytes(result.peak_bytes)}
SPARK_PEAKS: dict[str, Cell] = {
    "Python workers": PEAK["peak memory"],
    "JVM": lambda result, group: megabytes(result.jvm_bytes),
}


class Section(NamedTuple):
    """The results of one group: what they are called, explained, tabled (heading to cell) and drawn."""

    title: str
    sentence: str
    cells: dict[str, Cell]
    draw: Callable[[Group, Path], None]


SECTIONS: dict[str, Section] = {
    "python": Section(
        "In Python",
        "Batched binary messages in memory, row changes of 8 columns. wf.arrow.changes takes as many threads as Arrow "
        "does, by default one for each processor; all others take one. The readers that give Python "
        "objects keep none of them; the Arrow tables are whole. Peak memory is that of one run in a fresh process, "
        "with input and output. The declaration reads only a part of the data." + bench_scan.FLOOR,
        {
            **NAME,
            **INPUT,
            **SPEED,
            **PEAK,
            **ratio_to(bench_formats.STRUCT),
            **SPREAD,
        },
        pictures.megabytes_per_second,
    ),
    "text": Section(
        "JSON and TEXT, on one core",
        "The same row changes as JSON and as TEXT. This package reads batched messages into a whole Arrow table. "
        "pyarrow.json, in one thread and told the schema, and orjson read the row changes alone, a JSON object a line: "
        "without framing, LSN, BEGIN and COMMIT. pyarrow.json leaves SQL literals as they are. The readers that give "
        "Python objects keep none of them. Peak memory is that of one run in a fresh process, with input and output."
        + bench_scan.FLOOR,
        {
            **NAME,
            **INPUT,
            **SPEED,
            **PEAK,
            **ratio_to(bench_text.PYARROW_JSON),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "pgoutput": Section(
        "pgoutput",
        "The same row changes as PostgreSQL sends them, a message a record; the tables are described at the beginning."
        + bench_scan.FLOOR,
        {
            **NAME,
            **INPUT,
            **SPEED,
            **PEAK,
            **ratio_to(bench_pgoutput.STRUCT),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "encode": Section(
        "Writing",
        "Messages of the same row changes, a message a record: from events that are in memory, a part of the data, and "
        "from a row-change table. What a format cannot say was left out before. The input is that of the messages from "
        "which events and rows were read.",
        {
            **NAME,
            **INPUT,
            "rows/s": SPEED["rows/s"],
            **PEAK,
            **ratio_to(bench_encode.by_events(BINARY)),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "typed": Section(
        "Typed tables",
        "From a row-change table, decoded before, of 20 tables of 8 columns to a typed table of each, one after the "
        "other, on one core; the second contestant lists the tables first and takes the types from the rows. By hand: "
        "a dict of Python's own values for each row, from the lists that Arrow makes of the change table, of a part of "
        "the data. Values are those of the rows after the change, NULLs among them.",
        {
            **NAME,
            "rows/s": SPEED["rows/s"],
            "values/s": lambda result, group: f"{result.changes_per_second * (result.columns or 0):,.0f}",
            **PEAK,
            **ratio_to(bench_typed.BY_HAND),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "spark": Section(
        "On Spark",
        f"local[{bench_spark.CORES}], a task a core, write to noop, warm; the input lies in Spark's memory. The floor "
        "takes decoded rows to Python and back; the next one only takes them out of Python. Data pass between the JVM "
        "and Python through Unix domain sockets, except where TCP is named. from_json reads the JSON "
        "lines of the same changes, and leaves SQL literals as they are. The slow ones read less data. Peak memory is "
        "that of one run out of Parquet files in a fresh session: all Python workers together, and the JVM.",
        {
            **NAME,
            **INPUT,
            **SPEED,
            **SPARK_PEAKS,
            **ratio_to(bench_spark.FROM_JSON),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "spark-capture": Section(
        "Spark: from raw messages to answers",
        f"spark_udfs.capture, local[{bench_spark.CORES}], out of Parquet files, warm, to noop or to a lake. What a "
        "question needs to know of all chunks was found before; `tables` and `write` include it, so that `write` reads "
        'the messages twice. The workers read the files, except where it says "read by Spark": there the DataFrame has '
        "a filter. The floor takes the messages of a DataFrame through the JVM to Python, and does nothing with them. "
        "`typed` and `latest` of the only table have other data, beside their own decode.",
        {
            **NAME,
            **INPUT,
            **SECONDS,
            "rows/s": SPEED["rows/s"],
            **ratio_to(bench_spark_capture.DECODE),
            **ratio_to(bench_spark_capture.DECODE_ONE),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "growth-spark": Section(
        "Growth on Spark",
        f"spark_udfs.capture of raw messages with one table, local[{bench_spark.CORES}], and its typed changes to "
        "noop. The messages are in Parquet files, of which each partition has some, in order. The looks through all "
        "messages before the answer are included. One run each, in a session of its own, after two runs over less "
        "data; peak memory is that of all Python workers together, and of the JVM.",
        {
            **NAME,
            **INPUT,
            **SECONDS,
            "per million": lambda result, group: f"{result.median / result.changes * 1e6:.1f} s",
            "rows/s": SPEED["rows/s"],
            **SPARK_PEAKS,
        },
        pictures.changes_per_second,
    ),
    "capture": Section(
        "Captures",
        "wf.Capture in one thread, from messages in memory to the row changes of committed transactions, to the typed "
        "table of one of 20 tables, whose types are given, and to all 20 typed tables, which are listed before. Small "
        "arrays are those of one Arrow column, small files those of a folder." + bench_scan.FLOOR,
        {
            **NAME,
            **INPUT,
            **SPEED,
            **PEAK,
            **ratio_to(bench_formats.STRUCT),
            **ratio_to(bench_pgoutput.STRUCT),
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "profile": Section(
        "What the time is spent on",
        "The stages of wf.arrow.changes and wf.Capture, in one thread, under Python's profiler. It makes many small "
        "calls look slower than they are, and compiled functions not: milliseconds and shares are a guide to where the "
        "time goes, and no measure of speed. What Arrow and numpy do counts for the stage that calls them.",
        {
            "work and stage": NAME["contestant"],
            "ms": lambda result, group: f"{1000 * result.median:.1f}",
            "share": bench_profile.share,
        },
        pictures.seconds,
    ),
    "lake": Section(
        "Lakes",
        f"wf.Capture.write with {bench_lake.THREADS} threads, from binary messages in memory to files of 20 tables. "
        "pyarrow and deltalake write typed tables that were read before, in as many threads. DuckDB reads files of the "
        "typed changes, takes the last change of each key, and writes files.",
        {
            **NAME,
            **INPUT,
            **SECONDS,
            "rows/s": SPEED["rows/s"],
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "live": Section(
        "A live slot",
        f"From a slot of PostgreSQL {bench_live.VERSION}, whose changes are all there before, in transactions of "
        f"{bench_live.ROWS_OF_A_TRANSACTION:,} rows, or of {bench_live.SMALL_ROWS} where it says small transactions. "
        f"wf.live.follow writes typed files, with {bench_live.THREADS} threads; the subscription writes into a second "
        "server on the same machine. The first server shares the processors with each of them.",
        {**NAME, **INPUT, **SECONDS, **SPEED, **SPREAD},
        pictures.changes_per_second,
    ),
    "live-load": Section(
        "A live slot under load",
        f"A session inserts rows all the time, {bench_live_load.SHARE:.0%} of what `wireformat follow` can write, and "
        f"batches are written every {bench_live_load.BATCH_SECONDS:g} s. The lag is from the commit of the oldest "
        "change of a batch to that of the batch in the lake. Memory is the resident memory of the process, the median "
        "of a quarter of the time; `--live-seconds 600` measures ten minutes.",
        {
            "measured": NAME["contestant"],
            **INPUT,
            "median": lambda result, group: "" if result.peak_bytes else f"{result.median:.2f} s",
            "maximum": lambda result, group: "" if result.peak_bytes else f"{max(result.seconds):.2f} s",
            "memory": PEAK["peak memory"],
        },
        pictures.seconds,
    ),
    "committed": Section(
        "Transactions in Arrow",
        f"wf.arrow.Transactions, on one core, over row changes in batches of {bench_committed.BATCH_ROWS:,} rows, "
        "decoded before. Each history has transactions of one kind; where all are open together, none ends before the "
        "last row change of all. Peak memory is that of one run in a fresh process, with the input.",
        {
            **NAME,
            "rows/s": SPEED["rows/s"],
            "transactions/s": lambda result, group: f"{bench_committed.transactions_per_second(result):,.0f}",
            "per transaction": lambda result, group: f"{1e6 / bench_committed.transactions_per_second(result):,.1f} µs",
            **PEAK,
            **SPREAD,
        },
        pictures.changes_per_second,
    ),
    "driver": Section(
        "The driver's part of spark_udfs.capture",
        "Made-up summaries of chunks, unpickled, planned and pickled in one process without Spark, as the driver does. "
        f"Each chunk stands for {bench_driver.CHANGES_IN_CHUNK:,} messages. The input is the pickled summaries; peak "
        "memory is beyond them.",
        {**NAME, **INPUT, **SECONDS, **PEAK, **SPREAD},
        pictures.seconds,
    ),
    "growth": Section(
        "Growth",
        "wf.arrow.batches over a stream of messages; no batch is kept. Peak memory is beyond the messages themselves.",
        {**NAME, **INPUT, **SECONDS, "time ratio": time_ratio, **SPEED, **PEAK, **SPREAD},
        pictures.growth,
    ),
    "corners": Section(
        "Corners",
        f"wf.arrow.changes, or Capture.typed if the name says so, on one core, over {bench_corners.CHANGES:,} row "
        "changes or other records, which have what the corner is named after. Encodings are compared with the same "
        "changes in ASCII, binary values with texts, and other corners with plain rows. Times are those for a byte, or "
        "for a row where rows are tiny.",
        {
            "format and corner": NAME["contestant"],
            **INPUT,
            "MB/s": SPEED["MB/s"],
            "rows/s": SPEED["rows/s"],
            "times slower": lambda result, group: f"{bench_corners.times_slower(result, group):.1f}",
            **SPREAD,
        },
        pictures.megabytes_per_second,
    ),
    "start": Section(
        "Start",
        "From the start of a Python process to the first decoded message of 1 MiB.",
        {"start": NAME["contestant"], **SECONDS, **SPREAD},
        pictures.seconds,
    ),
    "inspect": Section(
        "Command line",
        "From the start of the command to its end; the files are in the page cache, as they were just written.",
        {"command": NAME["contestant"], **INPUT, **SECONDS, **SPREAD},
        pictures.seconds,
    ),
}


def tables(results: Results) -> dict[str, list[list[str]]]:
    """Title to lines of cells, the headings first."""
    verdicts = [[target.sentence, target.wanted, *target.verdict(results)] for target in TARGETS]
    found = {"Targets": [["target", "wanted", "measured", ""], *verdicts]}
    for group, section in SECTIONS.items():
        if group in results:
            lines = [
                [cell(result, results[group]) for cell in section.cells.values()] for result in results[group].values()
            ]
            found[section.title] = [[*section.cells], *lines]
    return found


STYLES = {"pass": "[green]pass[/]", "miss": "[bold red]miss[/]"}


def print_tables(console: Console, results: Results) -> None:
    """All tables on the screen."""
    for title, (headings, *lines) in tables(results).items():
        table = Table(headings[0], title=title, title_justify="left")
        for heading in headings[1:]:
            table.add_column(heading, justify="right")
        for line in lines:
            table.add_row(*(STYLES.get(cell, cell) for cell in line))
        console.print(table)


INTRODUCTION = (
    "Written by `make bench`; [how to read it](../benchmarks/README.md). All contestants of a table were measured in "
    "one run, in turn; numbers are medians of several runs."
)

TARGETS_SENTENCE = (
    "The targets against struct by hand were set where that reads 14 to 21 MB/s. Where a target is missed, the section "
    '"What the time is spent on" shows the stages, and the scan alone in the other sections how much of it is left '
    "once all rows are read."
)


def write_page(page: Path, runs: Mapping[str, Run]) -> None:
    """The page with all tables, and its pictures in a folder of the same name beside it."""
    results = {group: run.results for group, run in runs.items()}
    machines = {run.machine for run in runs.values()}
    loads = sorted(f"{run.load:.1f}" for run in runs.values())
    about = f"Load of the machine before the runs: {loads[0]} to {loads[-1]}."
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    shown = tables(results)
    parts = [
        "# Performance",
        INTRODUCTION,
        *(f"{machine}. {about}" for machine in machines if len(machines) == 1),
        "## Targets",
        TARGETS_SENTENCE,
        markdown(shown["Targets"]),
    ]
    for group, section in SECTIONS.items():
        if group in results:
            section.draw(results[group], folder / f"{group}.svg")
            picture = f"![{section.title}]({folder.name}/{group}.svg)"
            own = [f"{runs[group].machine}."] if len(machines) > 1 else []
            parts += [f"## {section.title}", section.sentence, *own, markdown(shown[section.title]), picture]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table; the first line holds the headings, the first column words and the others numbers."""
    headings, *rows = lines
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, rule, *rows))
