"""Compiled code: that it is kept and loaded, that nobody is disturbed by it; and the same code uncompiled."""

from __future__ import annotations

import gc
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from wireformat.arrow.jit import compiler as compiled

from ...numba_settings import BOUNDS_CHECKED, COMPILED_SOON, UNCOMPILED
from ...test_architecture import imports
from ..scan.probe import entry_points, use_everything, use_little

ROOT = Path(__file__).parents[3]
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24
SUBPROCESS_SECONDS = 3600

# root may write everywhere, so it gives that right up before the probe begins; anybody else has none to give up.
WITHOUT_PRIVILEGES = (
    "import ctypes, os, sys\n"
    f"os.geteuid() == 0 and ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, {CAP_DAC_OVERRIDE}, 0, 0, 0)\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This one, with all places for caches inside a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    places = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder)}
    return {**kept, **COMPILED_SOON, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **places, **more}


def start(env: dict[str, str], *command: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    arguments = [sys.executable, *command]
    return subprocess.Popen(arguments, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def facts(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What the probe printed; it must not have complained."""
    out, err = process.communicate(timeout=SUBPROCESS_SECONDS)
    assert process.returncode == 0, err
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


PROBE = ("-W", "error", "-m", "tests.arrow.scan.probe")


@pytest.fixture(scope="module")
def two_at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Two processes that find the same empty cache at the same time, and what they made: everything, and a little."""
    folder = tmp_path_factory.mktemp("cache")
    processes = [start(environment(folder), *PROBE, *arguments) for arguments in ([], ["little"])]
    return folder, [facts(process) for process in processes]


@pytest.mark.slow
def test_two_processes_that_compile_at_once_both_give_the_rows(two_at_once: Any) -> None:
    folder, found = two_at_once
    for one, expected in zip(found, (use_everything(), use_little()), strict=True):
        assert one["digest"] == expected
        assert sum(one["made"].values()) > 0
        assert Path(one["folder"]).parent == folder / "cache"


@pytest.mark.slow
def test_what_is_compiled_is_loaded_the_next_time(two_at_once: Any) -> None:
    folder, (first, _) = two_at_once
    again = facts(start(environment(folder), *PROBE))
    assert again["digest"] == first["digest"]
    assert again["made"] == dict.fromkeys(again["made"], 0)
    assert again["loaded"] == dict.fromkeys(again["made"], 1)


@pytest.mark.slow
def test_every_entry_point_is_compiled_for_one_signature(two_at_once: Any) -> None:
    _, (first, _) = two_at_once
    assert len(first["signatures"]) >= 2
    assert first["signatures"] == dict.fromkeys(first["signatures"], 1)
    use_everything()
    assert {name: len(one.signatures) for name, one in entry_points().items()} == first["signatures"]


def summing(count: int) -> Callable[[int], int]:
    """A new entry point."""

    def total(number: int) -> int:
        for other in range(count):
            number += other
        return number

    return compiled.compiled(total)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("is_frozen", [False, True])
def test_no_collection_searches_the_objects_of_the_compiler(
    is_frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left to a full one, unless others have frozen objects, which stay so."""
    monkeypatch.setattr(compiled, "cache_folder", lambda: str(tmp_path))
    add, found = summing(3), []
    gc.unfreeze()  # of all tests
    gc.collect()
    if is_frozen:
        gc.freeze()

    def note(phase: str, info: dict[str, int]) -> None:
        found.append(info["collected"] if phase == "stop" else 0)

    gc.callbacks.append(note)
    try:
        assert add(np.int64(1)) == 4
        _ = [[number] for number in range(2 * gc.get_threshold()[0])]  # so many that Python looks for garbage
        assert gc.isenabled()
        assert (gc.get_freeze_count() > 1000) == is_frozen  # CPython 3.12 counts some hundreds of its own
    finally:
        gc.callbacks.remove(note)
        gc.freeze()
    assert found
    assert (sum(found) > 1000) == is_frozen, found


@pytest.mark.slow
def test_a_package_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Nor can the home: the cache goes where temporary files go, and nothing is left in the package."""
    installed, home, temporary = tmp_path / "installed", tmp_path / "home", tmp_path / "temporary"
    for package in ("wireformat", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "golden", "seeds")
        shutil.copytree(ROOT / package, installed / package, ignore=ignored)
    home.mkdir()
    temporary.mkdir()
    before = _files(installed)
    for path in [home, installed, *installed.rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": str(installed)}
    env = environment(temporary, **places)
    try:
        cannot_write = start(env, "-c", WITHOUT_PRIVILEGES, "-c", "open('probe', 'w')", cwd=installed)
        assert "PermissionError" in cannot_write.communicate(timeout=SUBPROCESS_SECONDS)[1]
        found = facts(start(env, "-c", WITHOUT_PRIVILEGES, *PROBE, "little", cwd=temporary))
    finally:
        for path in [home, installed, *installed.rglob("*")]:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o200)
    assert Path(found["package"]) == installed / "wireformat"
    assert found["digest"] == use_little()
    assert sum(found["made"].values()) > 0
    assert Path(found["folder"]).parent == temporary
    assert _files(installed) == before
    assert _files(home) == set()


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be changed."""
    return Path(
        shutil.copytree(ROOT / "wireformat", tmp_path / "wireformat", ignore=shutil.ignore_patterns("__pycache__"))
    )


@pytest.mark.slow
def test_a_constant_of_another_folder_counts_in_a_warm_cache(package: Path, tmp_path: Path) -> None:
    """What is compiled in holds places in KINDS; one kind more moves them all."""
    program = "import wireformat as wf; print(wf.arrow.changes([b'COMMIT 1'], 'test-decoding')['kind'].to_pylist())"
    env = environment(tmp_path, PYTHONPATH=str(tmp_path))

    def kinds() -> str:
        out, err = start(env, "-c", program, cwd=tmp_path).communicate(timeout=SUBPROCESS_SECONDS)
        assert err == ""
        return out.strip()

    assert kinds() == "['COMMIT']"
    reading = package / "options" / "reading.py"
    text = reading.read_text()
    reading.write_text(text.replace('    "BEGIN",\n', '    "SNAPSHOT",\n    "BEGIN",\n', 1))
    assert reading.read_text() != text
    assert kinds() == "['COMMIT']"
    assert len(list((tmp_path / "cache").glob("wireformat-*"))) == 2


@pytest.mark.slow
def test_every_source_of_compiled_code_counts_in_the_name_of_the_cache(package: Path) -> None:
    left_out = {source for name in compiled.LEFT_OUT for source in sources_of(package / name)}
    sources = sorted({*sources_of(package)} - left_out)
    for source in left_out:
        source.write_text("")
    found = {compiled.digest_of_sources(str(package))}
    assert found == {compiled.digest_of_sources()}
    for source in sources:
        with source.open("a") as file:
            file.write("# another line\n")
        found.add(compiled.digest_of_sources(str(package)))
    sources[0].rename(sources[0].with_name("renamed.py"))
    found.add(compiled.digest_of_sources(str(package)))
    assert len(found) == len(sources) + 2


def sources_of(path: Path) -> list[Path]:
    """The sources of a folder, or a file itself."""
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert found, path
    return found


@pytest.mark.slow
def test_compiled_code_imports_nothing_that_is_left_out() -> None:
    package = ROOT / "wireformat"
    imported = {
        source: {path_of(name) for _, name in imports(ROOT, source) if name.startswith("wireformat.")}
        for source in sources_of(package)
    }
    todo = [source for source, found in imported.items() if Path(compiled.__file__) in found]
    found: set[Path] = set()
    while todo:
        source = todo.pop()
        if source not in found:
            found.add(source)
            todo.extend(imported[source])
    assert len(found) > 100
    for name in compiled.LEFT_OUT:
        assert found.isdisjoint(sources_of(package / name))


def test_no_inner_function_has_the_name_of_an_entry_point() -> None:
    """Linking knows functions by their names alone: such an entry point would get no machine code. It may be one of an
    outside format."""
    assert compiled._INNER
    assert all(":" in name for name in compiled._INNER)
    assert not any(":" in one.__qualname__ for one in entry_points().values())


MAKERS = """
import sys
from itertools import count

import numpy as np
from numba.core.bytecode import FunctionIdentity

from wireformat.arrow.jit.compiler import compiled, inner


def make_walk(name, change):
    @inner
    def change_all(numbers, at):
        # Long enough for machine code of its own.
        for step in range(len(numbers)):
            for other in range(len(numbers)):
                numbers[at] = change(numbers[at]) ^ (numbers[step] * numbers[other] & 0)
                numbers[at] |= numbers[step] // (numbers[other] | 1) & 0
                numbers[at] |= numbers[step] % (numbers[other] | 1) & 0
                numbers[at] |= numbers[other] // (numbers[step] | 1) & 0
                numbers[at] |= numbers[other] % (numbers[step] | 1) & 0

    def walk(numbers):
        change_all(numbers, 0)
        change_all(numbers, 1)

    walk.__name__ = walk.__qualname__ = name
    return compiled(walk)


@inner
def add_one(number):
    return number + 1


@inner
def add_ten(number):
    return number + 10


WALKS = {"ones": make_walk("ones", add_one), "tens": make_walk("tens", add_ten)}
FunctionIdentity._unique_ids = count(1 << 20)  # as in a process that has compiled as many functions as another one
for name in sys.argv[1:]:
    numbers = np.zeros(2, np.int64)
    WALKS[name](numbers)
    print(*numbers)
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_functions_of_one_maker_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Numba names machine code by the function's name and a number that begins anew in each process. In a process that
    loads one function and compiles another, both may have the same number.
    """
    (tmp_path / "makers.py").write_text(MAKERS)

    def run(*names: str) -> list[str]:
        process = start(environment(tmp_path), str(tmp_path / "makers.py"), *names, cwd=tmp_path)
        out, err = process.communicate(timeout=SUBPROCESS_SECONDS)
        assert err == ""
        return out.splitlines()

    assert run("ones") == ["4 4"]
    assert run("ones", "tens") == ["4 4", "40 40"]
    assert run("tens", "ones") == ["40 40", "4 4"]


SMALL = """
import pyarrow as pa
from wireformat.arrow.noted_texts import NotedTexts

assert NotedTexts.of(pa.array(["abc", None, "de"])).strings().to_pylist() == ["abc", None, "de"]
"""
"""Compiles little."""

FULL_DISK = """
import errno
import numba.core.caching as caching

def full(self, name, data):
    raise OSError(errno.ENOSPC, "No space left on device")

caching.IndexDataCacheFile._save_data = full
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("kind", ["nbc", "nbi"])
def test_a_file_of_the_cache_that_has_lost_bytes(kind: str, tmp_path: Path) -> None:
    """A power cut or a full disk leaves such files. What they held is compiled again."""

    def run(program: str = SMALL) -> dict[Path, int]:
        assert start(environment(tmp_path), "-c", program).communicate(timeout=SUBPROCESS_SECONDS)[1] == ""
        return {path: path.stat().st_size for path in tmp_path.rglob(f"*_note_rows*.{kind}")}

    run(FULL_DISK + SMALL)
    ((path, size),) = run().items()
    for left in (0, size // 2):
        path.write_bytes(path.read_bytes()[:left])
        assert {*run()} == {path}
        assert path.stat().st_size > left


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_nothing_is_kept_once_the_sources_have_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What this process compiles may be of older sources, or of newer ones, than the name of the folder says."""
    monkeypatch.setattr(compiled, "cache_folder", lambda: str(tmp_path))
    for digest, is_kept in (("another", False), (compiled._first_digest_of_sources(), True)):
        monkeypatch.setattr(compiled, "digest_of_sources", lambda *folders, digest=digest: digest)
        made = compiled.compiled(lambda number: number + 1)
        assert made(1) == 2
        assert any(tmp_path.rglob("*.nbc")) is is_kept


def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


LONG = "readings or (never_shows and fixed-width)"
"""Tests that take minutes uncompiled: the same code reads the bytes of others."""

NOT_COMPILED = "declaration"
"""The cases of the engine that has no compiled code."""

CHECKED_ANYWAY = "test_a_large_message"
"""A test whose process checks bounds by itself."""

RUNS = {
    "uncompiled": (
        {**UNCOMPILED, "HYPOTHESIS_PROFILE": "uncompiled"},  # one mutant in a few: the others run bounds checked
        *("tests/agreement", "tests/test_times.py", "tests/formats/test_conformance.py"),
        *("tests/formats/test_text_bad_input.py", "tests/formats/test_pgoutput_bad_input.py"),
        *("tests/formats/test_pgoutput_streams.py", "-m", "not slow", "-k", f"not ({LONG} or {NOT_COMPILED})"),
    ),
    "bounds checked": (
        {**BOUNDS_CHECKED, "HYPOTHESIS_PROFILE": "few"},
        *("tests/agreement", "tests/fuzz", "tests/formats/test_conformance.py"),
        *("tests/formats/test_text_bad_input.py", "tests/formats/test_pgoutput_bad_input.py"),
        *("tests/formats/test_pgoutput_streams.py", "tests/formats/test_relations.py"),
        *("tests/arrow/scan/test_scratch.py", "tests/arrow/columns/test_gather.py"),
        *("-k", f"not ({NOT_COMPILED} or {CHECKED_ANYWAY})"),
    ),
}
"""Settings, and arguments of pytest: the tests that try bad bytes, little room and texts of every length."""


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Both at the same time: each takes minutes, and one processor."""
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    started = {name: start({**os.environ, **settings}, *command, *tests) for name, (settings, *tests) in RUNS.items()}
    yield started
    for process in started.values():
        with process:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_same_code_in_another_way(name: str, runs: dict[str, subprocess.Popen[str]]) -> None:
    out, _ = runs[name].communicate(timeout=SUBPROCESS_SECONDS)
    assert runs[name].returncode == 0, out[-5000:]
