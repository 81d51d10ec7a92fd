"""The servers' options that shape what is written: a table, its defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.options import WRITE_OPTIONS, resolve
from wireformat.options.table import nearest

DEFAULTS = {
    "sending-batch": 0,
    "include-xids": True,
    "include-timestamp": False,
    "include-originid": False,
    "include-user": False,
    "skip-empty-xacts": False,
}


def test_defaults_are_those_of_parallel_decoding() -> None:
    assert resolve(None) == resolve({}) == DEFAULTS


@pytest.mark.parametrize(
    ("given", "value"),
    [(True, True), ("on", True), ("TRUE", True), ("1", True), (1, True), (0, False), ("Off", False), ("false", False)],
)
def test_switches(given: Any, value: bool) -> None:
    assert resolve({"include-user": given})["include-user"] is value


@pytest.mark.parametrize("given", [1, "1", True, "on"])
def test_sending_batch_is_a_number(given: Any) -> None:
    value = resolve({"sending-batch": given})["sending-batch"]
    assert (value, type(value)) == (1, int)


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("value", [2, -1, "yes", "", None, 0.5, [1]])
def test_values_that_are_refused(name: str, value: Any) -> None:
    with pytest.raises(wf.OptionError) as raised:
        resolve({name: value})
    for part in (f"option {name}: expected ", f"got {value!r}"):
        assert part in str(raised.value)


def test_what_is_allowed_is_said_in_its_own_words() -> None:
    with pytest.raises(wf.OptionError, match="sending-batch: expected 0 or 1, got 2"):
        resolve({"sending-batch": 2})
    with pytest.raises(wf.OptionError, match="include-user: expected on or off, got 2"):
        resolve({"include-user": 2})


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(
        wf.OptionError, match=r"unknown option 'include-xid', did you mean 'include-xids'\?; known are "
    ):
        resolve({"include-xid": True})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("permissive", ", did you mean 'PERMISSIVE'?"),
        ("Insert", ", did you mean 'INSERT'?"),
        ("insert", ", did you mean 'insert'?"),
        ("PERMISIVE", ", did you mean 'PERMISSIVE'?"),
        ("x", ""),
        (5, ""),
    ],
)
def test_a_hint_ignores_upper_and_lower_case_but_prefers_the_same(name: Any, hint: str) -> None:
    assert nearest(name, ["PERMISSIVE", "INSERT", "insert"] if name == "insert" else ["PERMISSIVE", "INSERT"]) == hint


def test_the_first_word_of_several_names_brings_all_of_them() -> None:
    known = ["gaussdb-binary", "gaussdb-json", "gaussdb-text", "pgoutput"]
    assert nearest("gaussdb", known) == ", did you mean 'gaussdb-binary', 'gaussdb-json' or 'gaussdb-text'?"


def test_every_option_says_what_it_does() -> None:
    assert {option.name for option in WRITE_OPTIONS} == set(DEFAULTS)
    for option in WRITE_OPTIONS:
        values = [resolve({option.name: value})[option.name] for value in option.allowed]
        assert option.default in values
        assert len(set(values)) == len(values)
        assert option.sentence.endswith(".")
