"""Options of a lake with values of wrong types: an OptionError that names the option, and nothing is written."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from .writing import KEYS, MESSAGES, files_of

VALUES: tuple[Any, ...] = (
    *(None, 5, True, 1.5, "", "x", "\0", "a\0b", b"", b"x", [], [5], ["x"], ["x", None], (b"x",), {}, {"x": 5}),
    *({"x": "y"}, {"x": ["y"]}, {5: "x"}, {None: None}, {"public.orders": 5}, {"public.orders": object()}, object()),
    *(int, Path, range(2), float("nan"), 1 << 80, pa.table({"x": [1]}), pa.array(["x"]), lambda: None, Path("a\0b")),
)
FITS: dict[str, Callable[[Any], bool]] = {
    "folder": lambda value: value == "x",
    "filesystem": lambda value: value is None,
    "storage_options": lambda value: value is None or value in ({}, {"x": "y"}),
    "partition_by": lambda value: value is None or value in ({}, {"x": "y"}),
    "tables": lambda value: value is None or value in (["x"], []),
    "keys": lambda value: value is None or value == [],
    "schemas": lambda value: value is None or value == {},
    "rejects": lambda value: value is None or value == "x",
    "durable": lambda value: value is True,
    "format": lambda value: False,
    "state": lambda value: False,
}
"""By option: whether a value has the right type, and means something."""

OPTIONS = [*inspect.signature(wf.Capture.write).parameters][1:]


def test_each_option_is_here() -> None:
    assert {*OPTIONS} == {*FITS}


def complaints(call: Callable[..., Any], option: str) -> list[str]:
    """What is wrong with how the call ends, for each value that does not fit."""
    found = []
    for value in VALUES:
        if isinstance(value, (pa.Table, pa.Array)) or not FITS[option](value):
            try:
                call(**{option: value})
            except wf.OptionError as error:
                if re.match(rf"option {option}\b|table public\.orders: option {option[:-1]}\b", str(error)):
                    continue
                found.append(f"{value!r}: {error}")
            except Exception as error:
                found.append(f"{value!r}: {type(error).__name__}: {error}")
            else:
                found.append(f"{value!r}: no error")
    return found


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(("format", "state"), [("parquet", "changes"), ("delta", "latest")])
def test_a_write(format: str, state: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    capture = wf.Capture(MESSAGES[:5], "gaussdb-binary", mode="PERMISSIVE")
    given = {"folder": tmp_path / "lake", "format": format, "state": state}
    if option == "keys":
        given |= {"state": "latest"}
    elif state == "latest":
        given |= {"keys": KEYS}
    assert complaints(lambda **options: capture.write(**{**given, **options}), option) == []
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("option", ["folder", "filesystem", "storage_options"])
@pytest.mark.parametrize("call", [wf.lake.position, wf.lake.tables])
def test_questions(call: Callable[..., Any], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wf.Capture(MESSAGES[:5], "gaussdb-binary").write("lake")
    assert complaints(lambda **options: call(**{"folder": "lake", **options}), option) == []
