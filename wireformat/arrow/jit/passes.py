"""Which passes of numba's compiler see the compiled functions."""

from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

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
