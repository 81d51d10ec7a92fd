"""Keeps numba from making machine code of functions that only compiled functions call, to shorten a cold start.

They are linked into their callers, which are optimised afterwards. This uses parts of numba that are not public, so it
is limited to the releases that it was tested with. With other releases, numba compiles everything in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

RELEASES = ((0, 68),)
"""The releases of numba that linking was tested with."""

HOT: set[str] = set()
"""The qualified names of functions that are inlined wherever they are called."""


class _Library(JITCodeLibrary):  # type: ignore[misc] # numba has no types
    """LLVM code that is optimised only with all that is linked: numba's own passes over each function before that take
    time, and the code becomes no faster."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout


class LinkedLibrary(_Library):
    """The LLVM code of one function, not optimised and without machine code."""

    def add_llvm_module(self, module: Any) -> None:
        """Adds the function's code.

        numba's own setting, `forceinline`, holds for all that the function calls, too.
        """
        if self.name in HOT:
            for function in module.functions:
                if not function.is_declaration:
                    function.add_function_attribute("alwaysinline")
        super().add_llvm_module(module)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Returns 0, as for every function without machine code."""
        return 0


class EntryLibrary(_Library):
    """The machine code of an entry point, with the functions that were linked into it."""

    def _optimize_final_module(self) -> None:
        """Optimises the code once: numba's first round prepares it for counts of references, which it has none of.

        What was linked becomes local. LLVM inlines a local function that is called at one place, however large it is;
        of others only small ones.
        """
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


@contextmanager
def linking(names: Collection[str]) -> Iterator[None]:
    """Within this context, functions with these qualified names get no machine code of their own, and all others are
    entry points."""
    if numba.version_info.short not in RELEASES:
        yield
        return
    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        set_env: Callable[[str, Any], None] = codegen.set_env

        def create_library(name: str, **settings: Any) -> JITCodeLibrary:
            return (LinkedLibrary if name in names else EntryLibrary)(codegen, name, **settings)

        def set_env_where_defined(name: str, env: Any) -> None:
            if codegen._engine.is_symbol_defined(name):
                set_env(name, env)

        codegen.create_library, codegen.set_env = create_library, set_env_where_defined
        try:
            yield
        finally:
            del codegen.create_library, codegen.set_env
