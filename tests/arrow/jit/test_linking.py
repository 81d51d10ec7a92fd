"""Compiling with inner functions that are only linked: the same code as numba's own way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from llvmlite.binding import ModuleRef
from numba.core.codegen import JITCodeLibrary
from numba.core.event import Event, Listener, install_listener
from numba.core.registry import cpu_target

from wireformat.arrow.jit import linking
from wireformat.arrow.jit.compiler import _INNER, hot, inner

CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def outer_function() -> Callable[[int], int]:
    @numba.extending.register_jitable
    def twice(number: int) -> int:
        return 2 * number

    @numba.njit
    def outer(number: int) -> int:
        return twice(number) + twice(1)

    return outer


def entry_of_functions(kind: Callable[[Any], Any]) -> tuple[Any, list[str]]:
    """An entry point for six times a number, and the names of its inner functions, of which two call `twice`.

    kind   inner or hot: of the one between them
    """

    @inner
    def twice(number: int) -> int:
        return 2 * number

    @kind
    def four_times(number: int) -> int:
        return twice(twice(number))

    @inner
    def six_times(number: int) -> int:
        return twice(number) + four_times(number)

    @numba.njit
    def entry(number: int) -> int:
        return six_times(number)

    return entry, [one.__qualname__ for one in (twice, four_times, six_times)]


@pytest.mark.parametrize("releases", [linking.RELEASES, ()])
def test_what_is_compiled_does_the_same(releases: tuple[tuple[int, int], ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "RELEASES", releases)
    outer, made = outer_function(), []
    codegen = cpu_target.target_context.codegen()
    with linking.linking({"outer_function.<locals>.twice"}):
        create = codegen.create_library
        monkeypatch.setattr(
            codegen, "create_library", lambda name, **more: made.append(create(name, **more)) or made[-1]
        )
        assert outer(20) == 42
        monkeypatch.undo()
    kinds = {library.name.rsplit(".", 1)[-1]: type(library) for library in made}
    is_tried = numba.version_info.short in releases
    assert kinds["twice"] is (linking.LinkedLibrary if is_tried else JITCodeLibrary)
    assert kinds["outer"] is (linking.EntryLibrary if is_tried else JITCodeLibrary)


@pytest.mark.skipif(numba.version_info.short not in linking.RELEASES, reason="nothing is linked")
@pytest.mark.parametrize("by_byte", [False, True])
def test_functions_are_optimised_once(by_byte: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that is linked into the entry point."""
    outer, tunings = outer_function(), []
    codegen = cpu_target.target_context.codegen()
    monkeypatch.setattr(codegen, "_function_pass_manager", None)
    monkeypatch.setattr(codegen, "_module_pass_manager", None)
    make = linking.create_pass_builder
    monkeypatch.setattr(
        linking, "create_pass_builder", lambda machine, tuning: tunings.append(tuning) or make(machine, tuning)
    )
    with linking.linking({"outer_function.<locals>.twice"}, by_byte=by_byte):
        assert outer(20) == 42
    (tuning,) = tunings
    assert tuning.loop_unrolling is not by_byte
    assert tuning.loop_vectorization is not by_byte


@pytest.mark.skipif(numba.version_info.short not in linking.RELEASES, reason="nothing is linked")
def test_a_function_that_others_share_is_linked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linking copies code: if each function linked what it calls, that of a deep one would be copied many times."""
    entry, inner_names = entry_of_functions(inner)
    linked: list[str] = []
    link = ModuleRef.link_in

    def link_in(module: ModuleRef, other: ModuleRef, preserve: bool = False) -> None:
        if preserve:
            linked.append(other.name)
        link(module, other, preserve)

    monkeypatch.setattr(ModuleRef, "link_in", link_in)
    with linking.linking(_INNER):
        assert entry(3) == 18
    assert sorted(name for name in linked if name in inner_names) == sorted(inner_names)


@pytest.mark.skipif(numba.version_info.short not in linking.RELEASES, reason="nothing is linked")
def test_only_hot_functions_are_always_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a hot one calls them first. Else a cold start grows: what is seldom called would be copied to each
    place that calls it."""
    made: list[JITCodeLibrary] = []

    class Recorded(linking.LinkedLibrary):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            made.append(self)

    @inner
    def twice(number: int) -> int:
        return 2 * number

    @hot
    def four_times(number: int) -> int:
        return twice(twice(number))

    @numba.njit
    def entry(number: int) -> int:
        return four_times(number)

    monkeypatch.setattr(linking, "LinkedLibrary", Recorded)
    with linking.linking({twice.__qualname__, four_times.__qualname__}):
        assert entry(3) == 12
    is_inlined = {library.name: "alwaysinline" in library.get_llvm_str() for library in made}
    assert is_inlined == {twice.__qualname__: False, four_times.__qualname__: True}


@pytest.mark.skipif(numba.version_info.short not in linking.RELEASES, reason="nothing is linked")
def test_a_function_is_compiled_once_for_hot_and_for_other_callers() -> None:
    compiled: list[str] = []

    entry, inner_names = entry_of_functions(hot)

    class Compiled(Listener):  # type: ignore[misc] # numba has no types
        def on_start(self, event: Event) -> None:
            compiled.append(event.data["dispatcher"].py_func.__qualname__)

        def on_end(self, event: Event) -> None:
            pass

    with install_listener("numba:compile", Compiled()), linking.linking(_INNER):
        assert entry(3) == 18
    assert sorted(compiled) == sorted([*inner_names, entry.__qualname__])


def test_nothing_stays_changed_after_an_error() -> None:
    codegen = cpu_target.target_context.codegen()
    before = set(vars(codegen))
    with pytest.raises(ValueError, match="no code"), linking.linking(()):
        raise ValueError("no code")
    assert set(vars(codegen)) == before


def test_the_pinned_release_is_one_that_was_tried() -> None:
    """Else a cold start grows, and nobody sees it."""
    pinned = re.search(r"^numba==(\d+)\.(\d+)", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert (int(pinned[1]), int(pinned[2])) in linking.RELEASES
