"""Keeps numba from making machine code of functions that only compiled functions call, to shorten a cold start.

They are linked into their callers, which are optimised afterwards, and passes that have nothing to do are left out.
This uses parts of numba that are not public, so it is limited to the releases that it was tested with. With other
releases, numba compiles everything in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite.binding import Linkage, create_pass_builder, create_pipeline_tuning_options
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target

RELEASES = ((0, 68),)
"""The releases of numba that linking was tested with."""

HOT: set[str] = set()
"""The qualified names of functions that are inlined wherever they are called."""


class _Library(JITCodeLibrary):  # type: ignore[misc] # numba has no types
    """LLVM code that is optimised only with all that is linked: numba's own passes over each function before that take
    time, and the code becomes no faster."""

    _linking_libraries: list[JITCodeLibrary]

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

    def finalize(self) -> None:
        """Links nothing: an entry point links all that it calls, directly or not."""
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        self._shared_module = self._final_module
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Returns 0, as for every function without machine code."""
        return 0


class EntryLibrary(_Library):
    """The machine code of an entry point, with the functions that were linked into it."""

    def __init__(self, codegen: Any, name: str, *, by_byte: bool) -> None:
        super().__init__(codegen, name)
        self._by_byte = by_byte

    def finalize(self) -> None:
        """Links all that is called, and makes machine code."""
        called: dict[JITCodeLibrary, None] = {}
        waiting = [*self._linking_libraries]
        while waiting:
            library = waiting.pop()
            if library not in called:
                called[library] = None
                waiting += library._linking_libraries if isinstance(library, LinkedLibrary) else ()
        self._linking_libraries = [*called]
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimises the code once: numba's first round prepares it for counts of references, which it has none of.

        What was linked becomes local. LLVM inlines a local function that is called at one place, however large it is;
        of others only small ones.
        """
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        tuning = create_pipeline_tuning_options(int(numba.config.OPT))
        tuning.slp_vectorization = numba.config.SLP_VECTORIZE
        tuning.loop_vectorization = numba.config.LOOP_VECTORIZE and not self._by_byte
        tuning.loop_interleaving = tuning.loop_unrolling = not self._by_byte
        builder = create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)


@contextmanager
def linking(names: Collection[str], *, by_byte: bool = False) -> Iterator[None]:
    """Within this context, functions with these qualified names get no machine code of their own, and all others are
    entry points.

    by_byte   whether their loops take one item at a time: see `compiled`
    """
    if numba.version_info.short not in RELEASES:
        yield
        return
    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        set_env: Callable[[str, Any], None] = codegen.set_env

        def create_library(name: str, **settings: Any) -> JITCodeLibrary:
            if name in names:
                return LinkedLibrary(codegen, name, **settings)
            return EntryLibrary(codegen, name, by_byte=by_byte, **settings)

        def set_env_where_defined(name: str, env: Any) -> None:
            if codegen._engine.is_symbol_defined(name):
                set_env(name, env)

        codegen.create_library, codegen.set_env = create_library, set_env_where_defined
        try:
            yield
        finally:
            del codegen.create_library, codegen.set_env


UNUSED = {
    "WithLifting": "blocks that are compiled for Python's objects",
    "InlineClosureLikes": "functions within functions, comprehensions",
    "MakeFunctionToJitFunction": "functions within functions",
    "RewriteDynamicRaises": "errors with values",
    "InlineInlinables": "functions that numba inlines before it knows types",
    "InlineOverloads": "functions that numba inlines by their types",
    "FindLiterallyCalls": "numba.literally",
    "LiteralUnroll": "numba.literal_unroll",
    "LiteralPropagationSubPipelinePass": "numba.literal_unroll",
    "NoPythonSupportedFeatureValidation": "generators and other features that it refuses",
    "DumpParforDiagnostics": "parallel loops",
}
"""Passes by the name of their class, and what they are for: no compiled function has it, and the passes take time.

IRLegalization is needed. It marks where variables end: without that, LLVM keeps values through loops that no longer
need them, and the scan of JSON becomes slower.
"""


class Compiler(CompilerBase):  # type: ignore[misc] # numba has no types
    """numba's compiler without the passes that have nothing to do."""

    def define_pipelines(self) -> list[PassManager]:
        """Returns the only pipeline."""
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager = PassManager("nopython")
        manager.passes = [(one, told) for one, told in whole.passes if one.__name__ not in UNUSED]
        manager.finalize()
        return [manager]
