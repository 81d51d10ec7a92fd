"""Plugins for tests: with any set of callbacks, each of which notes that it was called."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import wireformat as wf
from wireformat.plugin import Context, OutputPlugin, replay

ALL = frozenset(name for name in vars(OutputPlugin) if not name.startswith("_"))
FILTERS = frozenset(("filter_by_origin", "filter_prepare"))


def make_plugin(names: Iterable[str], answers: Set[Any] = frozenset()) -> Any:
    """A plugin with these callbacks. `calls` has what was called, a filter says True for what is in `answers`."""
    calls: list[tuple[Any, ...]] = []

    def callback(name: str) -> Any:
        if name in FILTERS:

            def ask(self: Any, ctx: Context, *about: Any) -> bool:
                calls.append((name, *about))
                return about[-1] in answers

            return ask

        def call(self: Any, ctx: Context, *event: Any) -> None:
            calls.append((name, *event))

        return call

    plugin = type("Noting", (OutputPlugin,), {name: callback(name) for name in names})()
    plugin.calls = calls
    return plugin


def called(events: Iterable[wf.Event], names: Iterable[str], answers: Set[Any] = frozenset()) -> list[tuple[Any, ...]]:
    """What a plugin with these callbacks is called with, but for startup, flush and shutdown."""
    plugin = make_plugin(names, answers)
    assert list(replay(events, plugin)) == []
    return [call for call in plugin.calls if call[0] not in ("startup", "flush", "shutdown")]
