"""Compiling with inner functions that are only linked: the same code as numba's own way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numba
import pytest
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

from wireformat.arrow.jit import linking

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
    assert kinds["outer"] is JITCodeLibrary


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
