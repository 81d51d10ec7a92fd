"""The passes of numba's compiler that compiled functions do without."""

from __future__ import annotations

import numba
import pytest
from numba.core.compiler import DefaultPassBuilder

from wireformat.arrow.jit import linking
from wireformat.arrow.jit.linking import UNUSED, Compiler

pytestmark = [
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
    pytest.mark.skipif(numba.version_info.short not in linking.RELEASES, reason="numba's own passes are used"),
]


@pytest.fixture
def pipelines() -> dict[str, list[str]]:
    """The names of the passes of numba's pipeline, and of this package's."""
    found = {}

    class Recorded(Compiler):
        def define_pipelines(self):  # type: ignore[no-untyped-def] # numba has no types
            (own,) = super().define_pipelines()
            whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
            found["own"] = [one.__name__ for one, _ in own.passes]
            found["numba"] = [one.__name__ for one, _ in whole.passes]
            return [own]

    @numba.njit(pipeline_class=Recorded, no_rewrites=True)
    def twice(number: int) -> int:
        return 2 * number

    assert twice(21) == 42
    return found


def test_the_others_are_numbas_in_its_order(pipelines: dict[str, list[str]]) -> None:
    assert pipelines["own"] == [name for name in pipelines["numba"] if name not in UNUSED]


def test_numba_has_all_that_are_left_out(pipelines: dict[str, list[str]]) -> None:
    """Else a cold start grows, and nobody sees it."""
    assert UNUSED.keys() <= set(pipelines["numba"])
