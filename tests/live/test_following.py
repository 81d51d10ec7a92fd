"""The options of `follow`, and those of the verbs for slots, are checked before they connect."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from wireformat import OptionError, live


@pytest.mark.parametrize("option", ["batch_seconds", "idle_seconds", "reconnect_seconds"])
@pytest.mark.parametrize("value", [-1, -0.5, math.nan, "5", True, None])
def test_a_time_is_a_number_from_0_on(option: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"option {option}: expected a number from 0 on, got "):
        live.follow("host=nowhere.invalid", tmp_path / "lake", slot="lake", publication="shop", **{option: value})
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("value", [-1, 2.5, "96 MB", math.nan, None])
def test_a_limit_of_memory_is_a_number_of_bytes(value: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="option memory_limit: expected a whole number from 0 on, got "):
        live.follow("host=nowhere.invalid", tmp_path / "lake", slot="lake", publication="shop", memory_limit=value)


@pytest.mark.parametrize("value", [5, "include-xids", ["include-xids"]])
def test_options_of_the_plugin_are_a_mapping(value: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="option options: expected a mapping of names to values, got "):
        live.follow("host=nowhere.invalid", tmp_path / "lake", slot="lake", publication="shop", options=value)


@pytest.mark.parametrize("value", [-1, 2.5])
def test_an_alarm_is_a_number_of_bytes(value: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="option retained_alarm: expected a whole number from 0 on, got "):
        live.follow("host=nowhere.invalid", tmp_path / "lake", slot="lake", publication="shop", retained_alarm=value)


VERBS: dict[str, Callable[..., Any]] = {
    "follow": partial(live.follow, to="lake"),
    "check": live.check,
    "create_slot": live.create_slot,
    "drop_slot": live.drop_slot,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("value", [None, 5, b"lake", "", ["lake"]])
def test_a_slot_has_a_name(verb: str, value: Any) -> None:
    with pytest.raises(OptionError, match="option slot: expected a name, got "):
        VERBS[verb]("host=nowhere.invalid", slot=value)


@pytest.mark.parametrize("verb", ["follow", "create_slot"])
@pytest.mark.parametrize("value", [None, 5, ""])
def test_a_plugin_has_a_name(verb: str, value: Any) -> None:
    with pytest.raises(OptionError, match="option plugin: expected a name, got "):
        VERBS[verb]("host=nowhere.invalid", slot="lake", plugin=value)


@pytest.mark.parametrize("verb", ["follow", "check"])
@pytest.mark.parametrize("value", [5, [], [None], b"shop", ""])
def test_a_publication_has_a_name(verb: str, value: Any) -> None:
    with pytest.raises(OptionError, match="option publication: expected a name or several, got "):
        VERBS[verb]("host=nowhere.invalid", slot="lake", publication=value)


def test_a_position_is_that_of_a_capture() -> None:
    with pytest.raises(OptionError, match="option position: expected the position of a lake or a capture, got 5"):
        live.check("host=nowhere.invalid", slot="lake", position=5)  # type: ignore[arg-type]
