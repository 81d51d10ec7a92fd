"""What `make quick` and `make test` run: every layer and every format, and nothing that a short run must not start."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import wireformat as wf

from .engines import ENGINES
from .groups import group_of
from .tiers import (
    CAPTURES_OF_A_FORMAT,
    CASES_ENOUGH,
    CASES_OF_A_TEST,
    COLLECTED,
    MARKS,
    SERVERS,
    WAITING,
    fixtures_of,
    format_of,
    format_of_capture,
    parameters_of,
)

ROOT = Path(__file__).parent.parent

STARTERS = {"local_session", "getOrCreate", "running", "run_workload"}
"""What starts Spark or a server, where a test calls it without a fixture."""
REFUSED = {"test_none_beside_spark_connect"}
"""Tests in which it is not started."""


class Collected:
    """Keeps the tests that pytest finds."""

    items: list[pytest.Item]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)


@pytest.fixture(scope="module")
def items(pytestconfig: pytest.Config) -> list[pytest.Item]:
    """All tests there are, also where few of them run now."""
    here = pytestconfig.invocation_params.dir
    if [here / argument for argument in pytestconfig.args] == [ROOT / "tests"]:
        return list(pytestconfig.stash[COLLECTED])
    found = Collected()
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    assert pytest.main([*options, str(ROOT / "tests")], plugins=[found]) == pytest.ExitCode.OK
    return found.items


def selection(target: str) -> Callable[[pytest.Item], bool]:
    """Whether a target of the Makefile runs a test."""
    recipe = re.search(rf"^{target}:.*\n(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    expression = re.search(r"-m '(.*?)'", recipe[1])
    assert expression is not None
    marks = {*re.findall(r"\w+", expression[1])} - {"and", "or", "not"}
    return lambda item: bool(eval(expression[1], {mark: bool(item.get_closest_marker(mark)) for mark in marks}))


@pytest.fixture(scope="module")
def quick(items: list[pytest.Item]) -> list[pytest.Item]:
    return list(filter(selection("quick"), items))


@pytest.fixture(scope="module")
def short(items: list[pytest.Item]) -> list[pytest.Item]:
    """What `make test` runs."""
    return list(filter(selection("test"), items))


@pytest.fixture(scope="module")
def rest(items: list[pytest.Item]) -> list[pytest.Item]:
    """What `make test-rest` runs."""
    return list(filter(selection("test-rest"), items))


def folders(items: list[pytest.Item]) -> set[str]:
    return {item.path.relative_to(ROOT / "tests").parts[0] for item in items}


@pytest.mark.slow
def test_every_folder_and_every_layer_has_quick_tests(items: list[pytest.Item], quick: list[pytest.Item]) -> None:
    assert folders(items) - folders(quick) == {"test_wheel.py"}, "a wheel is built and installed, which takes its time"
    layers = {path.parent.name for path in (ROOT / "wireformat").glob("*/__init__.py")}
    assert layers - folders(quick) == set()


@pytest.mark.parametrize("format", wf.FORMATS)
def test_every_format_has_quick_tests(quick: list[pytest.Item], format: str) -> None:
    """In files of several layers, by both engines; at least some of them over captures."""
    own = [item for item in quick if format_of(item) == format]
    assert {parameters_of(item).get("engine") for item in own} >= {*ENGINES}
    assert len(folders(own)) >= 4
    captures = {str(value) for item in own for value in parameters_of(item).values() if format_of_capture(value)}
    assert len(captures) >= CAPTURES_OF_A_FORMAT


def test_a_test_has_no_more_cases_than_are_enough(quick: list[pytest.Item]) -> None:
    """Of captures, some of each format are enough, whatever else the cases differ in."""
    counted = Counter(
        item.nodeid.split("[")[0]
        for item in quick
        if not any(format_of_capture(value) for value in parameters_of(item).values())
    )
    assert {name for name, count in counted.items() if count > CASES_OF_A_TEST} <= CASES_ENOUGH.keys()


def test_quick_tests_start_neither_spark_nor_a_server(quick: list[pytest.Item]) -> None:
    for item in quick:
        assert isinstance(item, pytest.Function)
        assert not MARKS.keys() & fixtures_of(item), item.nodeid
        starts = STARTERS & set(item.function.__code__.co_names)
        assert not starts or item.originalname in REFUSED, item.nodeid


def test_a_short_run_has_spark_and_a_server_of_each_kind(short: list[pytest.Item], quick: list[pytest.Item]) -> None:
    assert set(quick) < set(short)
    """One session, and servers of each kind: all tests that share them run in one process."""
    on_spark, on_servers = ([one for one in short if one.get_closest_marker(mark)] for mark in ("spark", "server"))
    assert len(on_spark) > 100
    assert {group_of(item.nodeid) for item in on_spark} == {"spark"}
    assert {group_of(item.nodeid) for item in on_servers} == {"servers", "live"}
    versions = [parameters_of(item).get("version") for item in on_servers]
    assert set(versions) - {None} == set(SERVERS)


def test_a_short_run_and_the_rest_are_everything(
    items: list[pytest.Item], short: list[pytest.Item], rest: list[pytest.Item]
) -> None:
    assert {*short} | {*rest} == {*items}
    once = {*items} - {*rest}
    assert not [item.nodeid for item in once if item.get_closest_marker("hypothesis")]
    assert not [item.nodeid for item in once if "mutants" in item.nodeid or "fuzz/test_texts" in item.nodeid]
    assert len(once) > 2000


def test_every_test_over_captures_has_some_in_a_short_run(items: list[pytest.Item], short: list[pytest.Item]) -> None:
    over_captures = {
        item.nodeid.split("[")[0]
        for item in items
        if any(format_of_capture(value) for value in parameters_of(item).values())
    }
    assert over_captures - {item.nodeid.split("[")[0] for item in short} == set()


def test_the_tests_with_alike_cases_are_there(items: list[pytest.Item], quick: list[pytest.Item]) -> None:
    for name, enough in CASES_ENOUGH.items():
        cases, chosen = ([item for item in some if item.nodeid.split("[")[0] == name] for some in (items, quick))
        assert len(cases) > enough == len(chosen), name


def test_tests_that_wait_are_there(items: list[pytest.Item]) -> None:
    assert {*WAITING} <= {item.nodeid.split("[")[0] for item in items}
