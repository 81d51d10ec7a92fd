"""Who may import whom: one list from the bottom to the top, and where each library is used. Read out of the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ROWS = (
    "errors lsn limits identifiers printable temporary times tracing",
    "pgtypes ddl",
    "events declare grammar options",
    "framing",
    "formats",
    "inspection",
    "stream",
    "plugin",
    "arrow.batch_size",
    "arrow.arrays arrow.ascii arrow.schemas arrow.codes arrow.commit_times arrow.row_changes",
    "arrow.logical_messages",
    "arrow.unread",
    "arrow.jit",
    "arrow.noted_texts",
    "arrow.readers",
    "arrow.scan",
    "arrow.columns",
    "arrow.engine",
    "arrow.change_table arrow.committed arrow.typed_tables arrow.written",
    "arrow.noted",
    "arrow",
    "sources",
    "lake capture_reading",
    "capture_tables",
    "api capture testing",
    "chunks live",
    "__init__",
    "cli spark_udfs",
    "__main__",
)
LAYERS = [name for row in ROWS for name in row.split()]
"""From the bottom to the top: a module imports only what stands before it, or lies in its own package. Of `arrow`, each
folder and file is a layer of its own."""

STRANGERS = (
    {"plugin", "arrow"},
    {"arrow.committed", "arrow.jit"},
    {"arrow.committed", "arrow.scan"},
    {"arrow.committed", "arrow.columns"},
    {"arrow.committed", "arrow.engine"},
    {"arrow.committed", "arrow.change_table"},
    {"arrow.typed_tables", "arrow.scan"},
    {"arrow.typed_tables", "arrow.columns"},
    {"arrow.typed_tables", "arrow.engine"},
    {"arrow.typed_tables", "arrow.change_table"},
)
"""Layers that do not know each other, whichever stands first; `arrow` stands for all that it holds."""

LIBRARIES = {
    "construct": {"declare", "framing", "formats"},
    "numba": {"arrow.jit"},
    "llvmlite": {"arrow.jit"},
    "pyarrow": {
        "arrow",
        "sources",
        "lake",
        "capture_reading",
        "capture_tables",
        "capture",
        "chunks",
        "live",
        "cli",
        "spark_udfs",
    },
    "deltalake": {"lake"},
    "psycopg": {"live"},
    "gaussdb": {"live"},
    "pyspark": {"spark_udfs"},
    "pandas": {"spark_udfs"},
    "typer": {"cli"},
    "rich": {"cli"},
}
"""Which layers may use a library; `arrow` stands for all that it holds."""

MOST_FILES = 16
"""In one folder, `__init__` not counted: a reader takes in about fifteen names at once."""

PICKLES = {
    "wireformat.arrow.committed.spill": "files in a temporary folder, which the same process reads",
    "spark_udfs.decoding.batches": "measures how large a row is for Spark",
    **dict.fromkeys(
        (f"spark_udfs.chunks.{name}" for name in ("files", "frame_files", "frames", "groups", "light_pass", "reading")),
        "summaries and plans of chunks, between the driver and the tasks of one capture",
    ),
}
"""Modules that may pickle, and why that does not outlive the process."""

PICKLERS = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}

NOBODY_IMPORTS = {"tests", "benchmarks", "examples", "tools"}


def violations(root: Path) -> list[str]:
    """What is against the rules in the packages wireformat and spark_udfs of a folder."""
    return [
        f"{path.relative_to(root)}:{line}: {layer} imports {imported}"
        for package in ("wireformat", "spark_udfs")
        for path in sorted((root / package).rglob("*.py"))
        for layer in [layer_of(module_name(root, path))]
        for line, imported in imports(root, path)
        if not allowed(layer, imported)
    ]


def allowed(layer: str, imported: str) -> bool:
    top = imported.split(".")[0]
    if top in NOBODY_IMPORTS:
        return False
    if top not in ("wireformat", "spark_udfs"):
        return not LIBRARIES.get(top, {layer}).isdisjoint({layer, layer.split(".")[0]})
    target = layer_of(imported)
    if any({layer, target} == pair or {layer.split(".")[0], target.split(".")[0]} == pair for pair in STRANGERS):
        return False
    return target == layer or LAYERS.index(target) < LAYERS.index(layer)


def layer_of(module: str) -> str:
    """The name in LAYERS of a module of the packages: its package, or itself where it lies at the top."""
    top, *below = module.split(".")
    if top == "spark_udfs":
        return top
    if below[:1] == ["arrow"]:
        return ".".join(below[:2])
    return below[0] if below else "__init__"


def module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(root: Path, path: Path) -> Sequence[tuple[int, str]]:
    """(line, full name) of everything that a file imports, wherever it does: in functions and for type checkers too."""
    return _imports(root, path, path.read_text(encoding="utf-8"))


@cache
def _imports(root: Path, path: Path, code: str) -> Sequence[tuple[int, str]]:
    """Each file is parsed once: several tests look at all of them."""
    return tuple(_found_imports(root, path.relative_to(root).parts[:-1], code))


def _found_imports(root: Path, package: tuple[str, ...], code: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield node.lineno, inner if is_module(root, inner) else source
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
            name, *anchor = node.args
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, (".".join(package) if anchor else "") + name.value


def is_module(root: Path, name: str) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_imports_follow_the_layers() -> None:
    assert violations(ROOT) == []


def test_every_module_has_a_layer() -> None:
    modules = [module_name(ROOT, path) for path in (ROOT / "wireformat").rglob("*.py")]
    assert len(modules) > 30
    assert {layer_of(module) for module in modules} <= set(LAYERS)


def circles(root: Path) -> list[list[str]]:
    """Modules that import each other, directly or not; what is imported in a function or for type checkers counts."""
    edges = {
        module_name(root, path): {name for _, name in imports(root, path) if is_file(root, name)}
        for package in ("wireformat", "spark_udfs")
        for path in (root / package).rglob("*.py")
        if path.name != "__init__.py"
    }
    return [[*found, found[0]] for found in strong_components(edges)]


def strong_components(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes of a graph from each of which every other can be reached, single nodes left out."""
    reached = {node: reachable(edges, node) for node in edges}
    groups = {frozenset(other for other in reached[node] if node in reached.get(other, ())) for node in edges}
    return sorted(sorted(group) for group in groups if group)


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        for node in edges.get(left.pop(), set()) - found:
            found.add(node)
            left.append(node)
    return found


def is_file(root: Path, name: str) -> bool:
    return root.joinpath(*name.split(".")).with_suffix(".py").is_file()


def test_no_modules_import_each_other() -> None:
    assert circles(ROOT) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "wireformat" / "arrow").mkdir(parents=True)
    for name, other in (("first", "second"), ("second", "third"), ("third", "first")):
        (tmp_path / "wireformat" / "arrow" / f"{name}.py").write_text(f"from .{other} import x\n")
    (found,) = circles(tmp_path)
    assert found == [f"wireformat.arrow.{name}" for name in ("first", "second", "third", "first")]


def test_no_folder_has_many_files() -> None:
    packages = [ROOT / "wireformat", ROOT / "spark_udfs"]
    folders = [*packages, *(folder for package in packages for folder in package.rglob("*/"))]
    counts = {str(folder.relative_to(ROOT)): len([*folder.glob("[!_]*.py")]) for folder in folders}
    assert {name: count for name, count in counts.items() if count > MOST_FILES} == {}


UNUSED_AT_FIRST = {
    "import wireformat": ("numba", "pyarrow", "pyspark", "construct", "pandas"),
    "import wireformat; wireformat.arrow.CHANGES": ("numba", "construct", "pandas"),
    "import wireformat; wireformat.arrow.transactions": ("numba", "construct", "pandas"),
    "import wireformat; wireformat.arrow.latest": ("numba", "construct", "pandas"),
}
"""What is run, and libraries that it does not load."""


@pytest.mark.parametrize("code", UNUSED_AT_FIRST)
def test_libraries_are_loaded_when_they_are_used(code: str) -> None:
    run = f"import sys; {code}; print(sorted(set({UNUSED_AT_FIRST[code]!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_library_is_used_where_it_may_be() -> None:
    """Else a row of LIBRARIES would hold for a name that nobody imports."""
    used = {name.split(".")[0] for path in (ROOT / "wireformat").rglob("*.py") for _, name in imports(ROOT, path)}
    assert {"construct", "numba", "pyarrow"} <= used


def test_nothing_is_pickled_that_outlives_the_process() -> None:
    """A state, a checkpoint or a file would hold classes by their names, and reading it would run code."""
    found = {
        module_name(ROOT, path)
        for package in ("wireformat", "spark_udfs")
        for path in (ROOT / package).rglob("*.py")
        if PICKLERS & {name.split(".")[0] for _, name in imports(ROOT, path)}
    }
    assert found == {*PICKLES}


MADE_UP = {
    "a layer above": ("wireformat/framing/frames.py", "from ..formats.base import Format", "wireformat.formats.base"),
    "a neighbour to the right": ("wireformat/events.py", "from .options import reading", "wireformat.options.reading"),
    "by its full name": (
        "wireformat/lsn.py",
        "import wireformat.arrow.engine.choice",
        "wireformat.arrow.engine.choice",
    ),
    "the package itself": ("wireformat/stream/reader.py", "from wireformat import decode", "wireformat"),
    "a package from within": ("wireformat/stream/reader.py", "from .. import arrow", "wireformat.arrow"),
    "in a function": ("wireformat/formats/base.py", "def f():\n    from ..api import decode", "wireformat.api"),
    "by a call": ("wireformat/errors.py", 'import_module(".arrow", __package__)', "wireformat.arrow"),
    "the command line": ("wireformat/api.py", "from .cli import main", "wireformat.cli"),
    "what stands beside": (
        "wireformat/arrow/engine/choice.py",
        "from ...plugin import callbacks",
        "wireformat.plugin.callbacks",
    ),
    "Spark's package": ("wireformat/arrow/engine/choice.py", "import spark_udfs", "spark_udfs"),
    "numba outside": ("wireformat/times.py", "import numba", "numba"),
    "pyarrow outside": ("wireformat/formats/base.py", "import pyarrow.compute as pc", "pyarrow.compute"),
    "construct outside": ("wireformat/arrow/engine/choice.py", "from construct import Struct", "construct"),
    "pyspark outside": ("wireformat/cli/main.py", "from pyspark.sql import SparkSession", "pyspark.sql"),
    "the tests": ("wireformat/api.py", "import tests.engines", "tests.engines"),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_violation_is_found(name: str, tmp_path: Path) -> None:
    """The checker finds what is made up here, in a copy of the folders with nothing else in it."""
    path, code, imported = MADE_UP[name]
    for layer in LAYERS:
        if layer not in ("__init__", "spark_udfs"):
            (tmp_path / "wireformat" / layer.replace(".", "/")).mkdir(parents=True, exist_ok=True)
    for module in ("plugin/callbacks.py", "formats/base.py", "options/reading.py", "arrow/engine/choice.py"):
        (tmp_path / "wireformat" / module).write_text("")
    assert violations(tmp_path) == []
    (tmp_path / path).write_text(f'"""Made up."""\n{code}\n')
    (found,) = violations(tmp_path)
    layer = layer_of(module_name(tmp_path, tmp_path / path))
    assert found.startswith(path)
    assert found.endswith(f": {layer} imports {imported}")


ALLOWED = {
    "a layer below": (
        "wireformat/arrow/engine/choice.py",
        "from ...formats.base import Format\nfrom ...errors import X",
    ),
    "its own package": ("wireformat/arrow/engine/choice.py", "from .scanner import y\nfrom . import splice"),
    "its libraries": (
        "wireformat/arrow/engine/choice.py",
        "import pyarrow as pa\nimport numpy as np\nimport os",
    ),
    "everything": ("spark_udfs/decode.py", "import wireformat\nimport pyspark.sql\nimport pandas\nfrom . import other"),
    "a neighbour to the left": ("wireformat/options/reading.py", "from ..events import Event"),
    "the public names": ("wireformat/cli/main.py", "from .. import decode\nimport wireformat as wf"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_no_violation(name: str, tmp_path: Path) -> None:
    path, code = ALLOWED[name]
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(code)
    assert violations(tmp_path) == []
