"""The callbacks: which a plugin has, which of them it must have together."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.plugin import IN_BLOCK, OUTSIDE, Encoder, OutputPlugin, replay
from wireformat.plugin.callbacks import CALLBACKS, RULES, STREAMING, TWO_PHASE, callbacks_of

from .plugins import make_plugin

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")

POSTGRESQL = [
    "startup",
    "begin",
    "change",
    "truncate",
    "commit",
    "message",
    "filter_by_origin",
    "shutdown",
    "filter_prepare",
    "begin_prepare",
    "prepare",
    "commit_prepared",
    "rollback_prepared",
    "stream_start",
    "stream_stop",
    "stream_abort",
    "stream_prepare",
    "stream_commit",
    "stream_change",
    "stream_message",
    "stream_truncate",
]
BASE = {"begin", "change", "commit"}
BLOCKS = {"stream_start", "stream_stop", "stream_abort", "stream_commit", "stream_change"}
PREPARED = {"begin_prepare", "prepare", "commit_prepared", "rollback_prepared"}


def test_the_callbacks_are_the_servers_and_two_more() -> None:
    assert len(POSTGRESQL) == 21
    assert set(CALLBACKS) == {*POSTGRESQL, "abort", "ddl", "other", "flush"}


@pytest.mark.parametrize("more", [set(), BLOCKS, PREPARED, BLOCKS | PREPARED | {"stream_prepare"}], ids=len)
def test_what_is_required_is_enough(more: set[str]) -> None:
    assert callbacks_of(make_plugin(BASE | more)) == BASE | more
    for name in BASE | more:
        with pytest.raises(wf.PluginError, match=rf"missing are {name}\b"):
            callbacks_of(make_plugin((BASE | more) - {name}))


@pytest.mark.parametrize("name", sorted(set(CALLBACKS) - BASE))
def test_each_other_callback_alone(name: str) -> None:
    """One of a group asks for the group, as at the server; any other one is allowed by itself."""
    group = BLOCKS if name in STREAMING - TWO_PHASE else PREPARED if name in TWO_PHASE else set()
    missing = group - {name}
    if not missing:
        assert callbacks_of(make_plugin({*BASE, name})) == {*BASE, name}
        return
    with pytest.raises(wf.PluginError) as raised:
        callbacks_of(make_plugin({*BASE, name}))
    listed = re.search(r"missing are ([\w, ]+); it has (\w+)$", str(raised.value))
    assert listed is not None
    assert (set(listed[1].split(", ")), listed[2]) == (missing, name)


def test_a_prepared_stream_needs_its_callback() -> None:
    with pytest.raises(wf.PluginError, match="streaming and two-phase commit has stream_prepare"):
        callbacks_of(make_plugin(BASE | BLOCKS | PREPARED))


def test_subclasses_have_what_their_bases_have() -> None:
    class Filtered(Encoder):
        def filter_by_origin(self, ctx: Any, origin: int | str | None) -> bool:
            return True

    assert callbacks_of(Filtered("gaussdb-binary")) - callbacks_of(Encoder("gaussdb-binary")) == {"filter_by_origin"}
    assert set(CALLBACKS) - callbacks_of(Encoder("gaussdb-binary")) == {
        "shutdown",
        "filter_by_origin",
        "filter_prepare",
    }


def test_it_is_refused_before_an_event_is_read() -> None:
    def untouched() -> Any:
        raise AssertionError("an event was read")
        yield

    with pytest.raises(wf.PluginError, match="missing are change, commit"):
        replay(untouched(), make_plugin({"begin"}))
    with pytest.raises(wf.PluginError, match="expected an OutputPlugin, got a type"):
        replay(untouched(), OutputPlugin)  # type: ignore[arg-type]


def test_every_kind_has_a_callback() -> None:
    public = [getattr(wf, name) for name in wf.__all__]
    kinds = {kind.kind for kind in public if isinstance(kind, type) and hasattr(kind, "kind")}
    assert set(OUTSIDE) == set(IN_BLOCK) == kinds - {"CORRUPT"}
    named = {*OUTSIDE.values(), *IN_BLOCK.values(), "begin_prepare"}
    assert set(CALLBACKS) - named == {"startup", "shutdown", "flush", "filter_by_origin", "filter_prepare"}


def test_the_page_has_the_rules() -> None:
    rows = [(rule.what, ", ".join(rule.needed)) for rule in RULES]
    assert [row for row in rows if f"| {row[0]} | {row[1]} |" not in PAGE] == []


def test_the_page_has_the_callbacks() -> None:
    table = re.search(r"\| kind of event .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE)
    assert table is not None
    listed = {"outside": {}, "block": {}}
    for line in table[1].splitlines():
        kinds, outside, block = (cell.strip() for cell in line.split("|")[1:4])
        for kind, (where, cell) in itertools.product(kinds.split(", "), (("outside", outside), ("block", block))):
            if cell:
                listed[where][kind] = cell.split(";")[0]
    for where, known in (("outside", OUTSIDE), ("block", IN_BLOCK)):
        assert listed[where].items() <= known.items()
    assert set(listed["outside"]) | set(listed["block"]) == set(OUTSIDE)
