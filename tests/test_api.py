"""The public names: what they take, when they refuse it, and what importing them loads."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from functools import partial
from typing import Any

import pytest

import wireformat as wf

from .engines import FORMAT
from .handmade import COMMIT, INSERT, message

HEAVY = ("construct", "numba", "numpy", "pandas", "pyarrow", "pyspark")


def loaded_by(code: str) -> set[str]:
    """Which of the HEAVY packages a fresh interpreter has loaded after some code."""
    code += f"\nimport sys\nsys.stdout.write(' '.join(sorted(set(sys.modules) & set({HEAVY!r}))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    assert not loaded_by("import wireformat") & {"construct", "numba", "pandas", "pyarrow", "pyspark"}


def test_what_needs_no_engine_loads_none() -> None:
    code = (
        "import wireformat as wf\n"
        "wf.lsn_text(5), wf.lsn_value('0/5'), list(wf.FORMATS), wf.ReadOptions.check(mode='PERMISSIVE')\n"
        "list(wf.encode([wf.Commit(lsn=1, xid=2)], 'gaussdb-binary'))"
    )
    assert not loaded_by(code) & {"numba", "pandas", "pyarrow", "pyspark"}


@pytest.mark.slow
def test_arrow_is_loaded_when_it_is_used() -> None:
    of_schemas = loaded_by("import wireformat as wf\nwf.arrow.CHANGES")
    assert "pyarrow" in of_schemas
    assert "numba" not in of_schemas
    assert "numba" in loaded_by("import wireformat as wf\nwf.arrow.changes")
    code = f"import wireformat as wf\nwf.arrow.changes([{message(INSERT, COMMIT)!r}], 'gaussdb-binary')"
    assert not loaded_by(code) & {"pandas", "pyspark"}


def test_every_public_name_is_there() -> None:
    for name in wf.__all__:
        assert getattr(wf, name) is not None
    with pytest.raises(AttributeError, match="arow"):
        wf.arow  # noqa: B018 - the look-up is the test


def test_every_public_name_says_what_it_is() -> None:
    for name in wf.__all__:
        thing = getattr(wf, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), name


def test_formats_say_what_they_are() -> None:
    assert next(iter(wf.FORMATS)) == FORMAT
    for name, format in wf.FORMATS.items():
        assert format.name == name
        assert len(format.sentence) > 20


def test_events_are_frozen_values() -> None:
    event = wf.Commit(lsn=1, xid=2)
    assert event == wf.Commit(lsn=1, xid=2)
    assert len({event, wf.Commit(lsn=1, xid=2), wf.Commit(lsn=1)}) == 2
    with pytest.raises(FrozenInstanceError):
        event.lsn = 5  # type: ignore[misc]
    image = wf.TupleData(("a", "b"), ("1", None), ("integer", "text"))
    assert image.as_dict() == {"a": "1", "b": None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "FAILSAFE"}, "FAILFAST"),
        ({"encoding": "utf-99"}, "option encoding"),
        ({"encoding_errors": "ignore"}, "strict, replace"),
        ({"tables": "public.t"}, "a list of strings"),
        ({"tables": ["t"]}, r"schema\.table"),
        ({"kinds": ["INSRT"]}, "INSERT"),
        ({"heartbeat_unit": "ns"}, "s, ms, us"),
        ({"engine": "scam"}, "scan"),
        ({"format": "gaussdb-binery"}, "gaussdb-binary"),
    ],
)
def test_options_are_refused_before_anything_is_read(options: dict[str, Any], words: str) -> None:
    """The error names the option and what is allowed; the messages are not touched."""

    def untouched() -> Any:
        raise AssertionError("a message was read")
        yield

    given = {"format": FORMAT, **options}
    for call in (wf.decode, wf.arrow.changes, wf.arrow.batches):
        with pytest.raises(wf.OptionError, match=words):
            call(untouched(), **given)
    with pytest.raises(wf.OptionError, match=words):
        wf.Decoder(**given)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mod", "unknown option 'mod', did you mean 'mode'?; known are "),
        ("engin", "did you mean 'engine'?"),
        ("Tables", "did you mean 'tables'?"),
        ("xyz", "unknown option 'xyz'; known are "),
    ],
)
def test_an_unknown_option_is_refused_by_its_name(name: str, words: str) -> None:
    calls: tuple[Any, ...] = tuple(partial(call, []) for call in (wf.decode, wf.arrow.batches, wf.arrow.changes))
    calls += (wf.Decoder,)
    for call in calls:
        with pytest.raises(wf.OptionError, match=re.escape(words)):
            call(FORMAT, **{name: "red"})


def test_every_option_that_is_known_is_taken() -> None:
    assert not list(wf.arrow.batches([], FORMAT, columns=["kind"], engine="scan", threads=1, mode="PERMISSIVE"))
    assert not list(wf.decode([], FORMAT, engine="scan", mode="PERMISSIVE"))


def test_events_come_as_they_are_asked_for() -> None:
    events = wf.decode([message(INSERT, COMMIT)], FORMAT)
    assert next(events).kind == "INSERT"
    assert next(events).kind == "COMMIT"
    assert next(events, None) is None
