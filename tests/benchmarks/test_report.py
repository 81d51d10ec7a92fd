"""The tables, the page and the pictures, of results that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import (
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
    report,
    targets,
)
from benchmarks.kept import Run, keep, kept
from benchmarks.measure import Result

GROUPS = {
    "python": [one.name for one in (*bench_formats.CONTESTANTS, *bench_arrow.CONTESTANTS)],
    "text": [one.name for one in bench_text.CONTESTANTS],
    "pgoutput": [one.name for one in bench_pgoutput.CONTESTANTS],
    "encode": [one.name for one in bench_encode.CONTESTANTS],
    "typed": [one.name for one in bench_typed.CONTESTANTS],
    "capture": [one.name for one in bench_capture.CONTESTANTS],
    "profile": [
        bench_profile.name_of(work, stage)
        for work in bench_profile.WORKS
        for stage in dict.fromkeys(bench_profile.STAGES.values())
    ],
    "lake": [*bench_lake.NAMES],
    "live": [*bench_live.NAMES, *bench_live.SMALL_NAMES],
    "live-load": [*bench_live_load.NAMES],
    "spark": [one.name for one in bench_spark.CONTESTANTS],
    "spark-capture": [*bench_spark_capture.NAMES],
    "driver": [bench_driver.name_of(chunks) for chunks in (10_000, 100_000)],
    "committed": [one.name for one in bench_committed.CONTESTANTS],
    "growth-spark": [
        bench_growth_spark.name_of(size, partitions)
        for size in (1_000_000, 4_000_000)
        for partitions in bench_growth_spark.PARTITIONS
    ],
    "corners": [corner.name for corner in bench_corners.CORNERS],
    "growth": [bench_growth.name_of(factor) for factor in bench_growth.FACTORS],
    "start": [bench_start.COLD, bench_start.UNLINKED, bench_start.WARM],
    "inspect": [
        bench_inspect.HELP,
        *map(bench_inspect.of_format, bench_inspect.FORMATS),
        *(bench_inspect.of_format(format, bench_inspect.TABLES) for format in bench_inspect.FORMATS),
    ],
}
RESULTS = {
    group: {
        name: Result(
            name=name,
            input_bytes=2_000_000,
            changes=1000,
            columns=17,
            seconds=(0.5, 1.0, 3.0),
            peak_bytes=9_000_000,
            output_bytes=1_000_000,
        )
        for name in names
    }
    for group, names in GROUPS.items()
}


def results(group: str, **changed: Result) -> dict[str, Mapping[str, Result]]:
    return {**RESULTS, group: {**RESULTS[group], **{one.name: one for one in changed.values()}}}


def result(name: str, seconds: float, peak: int | None = None) -> Result:
    return Result(name=name, input_bytes=8_000_000, changes=1000, seconds=(seconds,), peak_bytes=peak, output_bytes=0)


def verdicts(found: targets.Results) -> dict[str, tuple[str, str]]:
    return {target.sentence: target.verdict(found) for target in targets.TARGETS}


def test_a_result_is_the_median_of_its_runs() -> None:
    one = RESULTS["python"][bench_formats.STRUCT]
    assert (one.median, one.changes_per_second, one.megabytes_per_second) == (1.0, 1000, 2)


def test_a_ratio_counts_row_changes_not_bytes() -> None:
    found = verdicts(results("spark", decode=result(bench_spark.DECODE, 0.4), json=result(bench_spark.FROM_JSON, 1)))
    assert found["spark_udfs.decode: speed, against from_json"] == ("2.5 x", "pass")
    assert found["spark_udfs.decode: speed, against a Python UDF by hand"] == ("2.5 x", "miss")


def test_peak_memory_is_measured_against_input_and_output() -> None:
    title = "Arrow, all columns: peak memory, against input plus output"
    assert verdicts(RESULTS)[title] == ("3 x", "pass")
    assert verdicts(results("python", one=result(bench_arrow.ALL_COLUMNS, 1, 24_800_000)))[title] == ("3.1 x", "miss")
    assert verdicts(results("python", one=result(bench_arrow.ALL_COLUMNS, 1)))[title] == ("", "not known here")


def test_growth_is_measured_against_ten_times_the_least() -> None:
    title = "10 times the data: time, against 10 times the time"
    most = bench_growth.name_of(10)
    assert verdicts(results("growth", most=result(most, 11.9)))[title] == ("1.19 x", "pass")
    assert verdicts(results("growth", most=result(most, 13)))[title] == ("1.3 x", "miss")
    assert verdicts(results("growth", most=result(most, 7)))[title] == ("0.7 x", "miss")


def test_memory_under_load_is_measured_against_that_of_before() -> None:
    title = "A live slot at half of the highest rate: memory in the last quarter of the time, against the second"
    later = replace(RESULTS["live-load"][bench_live_load.MEMORY_LATER], peak_bytes=18_000_000)
    assert verdicts(RESULTS)[title] == ("1 x", "pass")
    assert verdicts(results("live-load", later=later))[title] == ("2 x", "miss")


def test_the_lag_is_that_of_the_oldest_change_of_a_commit() -> None:
    line = {"rows": 0, "bytes": 0, "time": 0, "last_commit": 10.0, "lag_seconds": 0.5}
    lines = [{**line, "rows": number, "last_commit": 10.0 + number} for number in range(4)]
    found = bench_live_load.results_of(lines, [1, 2, 3, 4])
    assert found[bench_live_load.LAG].seconds == (1.5, 1.5)
    assert [found[name].peak_bytes for name in bench_live_load.NAMES[1:]] == [2, 4]


def test_a_corner_is_measured_against_the_easy_case_of_its_format() -> None:
    title = "Corners: time for a byte, against the easy case"
    slow = replace(RESULTS["corners"]["pgoutput: gbk, chinese"], seconds=(3.5,))
    assert verdicts(RESULTS)[title] == ("1 x", "pass")
    assert verdicts(results("corners", slow=slow))[title] == ("3.5 x", "miss")


def test_a_group_that_was_left_out_is_said() -> None:
    found = report.tables({"start": RESULTS["start"]})
    assert [*found] == ["Targets", "Start"]
    assert {line[-1] for line in found["Targets"][1:]} == {"not measured", "pass"}


def test_every_contestant_has_its_line() -> None:
    found = report.tables(RESULTS)
    for group, section in report.SECTIONS.items():
        assert [line[0] for line in found[section.title][1:]] == GROUPS[group]


@pytest.mark.slow
def test_the_page_names_pictures_that_are_there(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    report.write_page(page, {group: Run("a machine", 0.1, found) for group, found in RESULTS.items()})
    text = page.read_text(encoding="utf-8")
    for group, section in report.SECTIONS.items():
        assert f"![{section.title}](performance/{group}.svg)" in text
        assert "</svg>" in (tmp_path / "performance" / f"{group}.svg").read_text(encoding="utf-8")
    assert "| struct by hand | 2.0 MB | 2.0 | 1,000 | 17 | 9 MB | 1.00 | 250% |" in text


def test_results_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    runs = {group: Run("a machine", 0.1, {**found}) for group, found in RESULTS.items()}
    keep(path, runs)
    group = next(iter(runs))
    keep(path, {group: Run("another one", 0.2, runs[group].results)})
    assert kept(path) == {**runs, group: Run("another one", 0.2, runs[group].results)}
