"""Keeps numba from making machine code of functions that only compiled functions call, to shorten a cold start.

They are linked into their callers, which are optimised afterwards. This uses parts of numba that are not public, so it
is limited to the releases that it was tested with. With other releases, numba compiles everything in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

RELEASES = ((0, 68),)
"""The releases of numba that linking was tested with."""


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc] # numba has no types
    """The LLVM code of one function, not optimised and without machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Returns 0, as for every function without machine code."""
        return 0


@contextmanager
def linking(names: Collection[str]) -> Iterator[None]:
    """Within this context, functions with these qualified names get no machine code of their own."""
    if numba.version_info.short not in RELEASES:
        yield
        return
    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        set_env: Callable[[str, Any], None] = codegen.set_env

        def create_library(name: str, **settings: Any) -> JITCodeLibrary:
            return (LinkedLibrary if name in names else JITCodeLibrary)(codegen, name, **settings)

        def set_env_where_defined(name: str, env: Any) -> None:
            if codegen._engine.is_symbol_defined(name):
                set_env(name, env)

        codegen.create_library, codegen.set_env = create_library, set_env_where_defined
        try:
            yield
        finally:
            del codegen.create_library, codegen.set_env
