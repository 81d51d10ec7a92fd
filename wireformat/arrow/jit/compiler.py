"""Compiles functions with numba. The cache is in a writable folder of the current user."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import llvmlite
import numba
import numba.extending
import numpy as np
from llvmlite import binding
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from .linking import HOT, RELEASES, Compiler, linking

Function = TypeVar("Function", bound=Callable[..., Any])

CHECKED = bool(numba.config.BOUNDSCHECK or numba.config.DISABLE_JIT)
"""Whether numba checks bounds or does not compile. The plain versions of functions are used then."""

_SETTINGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, "no_rewrites": True}
"""The compiled code does not allocate, is not called from C, and has no expressions of whole arrays. Without numba's
support for these, a cold start is shorter."""

_IS_LINKED = numba.version_info.short in RELEASES
"""Whether inner functions are linked and passes left out, as in the releases of numba that this was tested with."""

if _IS_LINKED:
    _SETTINGS["pipeline_class"] = Compiler

_INNER: set[str] = set()
"""The qualified names of functions that only compiled functions call."""

_ID_BYTES = 7
"""The size of the number from which a compilation counts its functions."""

_FROZEN = 1000
"""From so many objects on, somebody has frozen them. CPython 3.12 counts some hundreds that live for ever with them."""

_FOLDER_LOCK = Lock()
"""Held while numba's folder for its cache is another one: threads import modules with compiled functions, too."""


def inner(function: Function) -> Function:
    """Lets compiled functions call this function; for Python it stays a plain function.

    Unlike njit this compiles one version for all constant arguments, which saves most of the time of a cold start. LLVM
    decides whether it is inlined.
    """
    return _jitable(_named(function), is_hot=False)


def hot(function: Function) -> Function:
    """An inner function that is inlined. A call for each cell would be slow, since each array is seven arguments."""
    HOT.add(_named(function).__qualname__)
    return _jitable(function, is_hot=True)


def _jitable(function: Function, *, is_hot: bool) -> Function:
    """Lets compiled functions call this function. Where it is linked, HOT alone says whether it is inlined."""
    settings = _SETTINGS if _IS_LINKED else {**_SETTINGS, "forceinline": is_hot}
    return numba.extending.register_jitable(**settings)(function)


def _named(function: Function) -> Function:
    """Gives an inner function a qualified name that tells its module, and what it encloses.

    numba names machine code, and linking knows functions, by the qualified name.
    """
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    told = ", ".join(getattr(one, "__qualname__", repr(one)) for one in enclosed)
    function.__qualname__ = f"{function.__module__}:{function.__qualname__}({told})"
    _INNER.add(function.__qualname__)
    return function


def compiled(function: Function, *, by_byte: bool = False) -> Function:
    """Compiles an entry point at its first call, or loads it from the cache.

    by_byte   whether its loops take one item at a time. Most loops in a scan or a copy are short, over the bytes of a
              name or the cells of a row: as loops over many items at once they take long to compile, and need the
              registers of the loops around them

    Callers must always pass the same types. numba replaces its cache files as a whole, but if two processes add
    different signatures of one function at the same time, they can damage its index.
    """
    function.__qualname__ += outside_mark(function)
    folder = cache_folder()
    with _FOLDER_LOCK:
        previous, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
        try:
            dispatcher = numba.njit(nogil=True, cache=True, **_SETTINGS)(function)
        except RuntimeError:  # numba finds no folder for its cache
            dispatcher = None
        finally:
            numba.config.CACHE_DIR = previous
    if dispatcher is None or not _is_cached_in(folder, dispatcher):
        dispatcher = numba.njit(nogil=True, **_SETTINGS)(function)
    return _quick_to_load(dispatcher, by_byte)


def _is_cached_in(folder: str, dispatcher: Any) -> bool:
    """Whether numba caches the code in this folder. True if numba does not compile.

    For a package in a zip file, numba uses another folder, whose name has no digest of the sources.
    """
    if not isinstance(dispatcher, Dispatcher):
        return True
    path = getattr(getattr(dispatcher, "_cache", None), "cache_path", None)
    return isinstance(path, str) and Path(path).is_relative_to(folder)


def _quick_to_load(dispatcher: Any, by_byte: bool) -> Any:
    """Lets compiled code be loaded from the cache without loading the compiler's tables, which numba fills first.

    The function is not changed if numba does not compile, or in a release of numba that works differently.
    """
    if not isinstance(dispatcher, Dispatcher):
        return dispatcher
    code_cache = getattr(dispatcher, "_cache", None)
    if isinstance(code_cache, FunctionCache) and hasattr(code_cache, "_load_overload"):

        def load_overload(signature: Any, context: Any) -> Any:
            """Loads code; None if it is not there, or in a file that has lost bytes: it is then compiled again."""
            try:
                with code_cache._guard_against_spurious_io_errors():
                    return code_cache._load_overload(signature, context)
            except Exception:  # of pickle or numba: what a power cut or a full disk has left can be any bytes
                with suppress(OSError):
                    Path(code_cache._cache_file._index_path).unlink()
                return None

        def save_overload(signature: Any, data: Any) -> None:
            """Saves code, unless the disk is full, or the sources have changed since this process began with them."""
            with suppress(OSError):
                if digest_of_sources() == _first_digest_of_sources():
                    save(signature, data)

        def index_key(signature: Any, codegen: Any) -> Any:
            """Leaves out what the function encloses, which numba pickles: other bytes in another process, for some."""
            return signature, codegen.magic_tuple(), dispatcher.py_func.__qualname__

        save = code_cache.save_overload
        code_cache.load_overload, code_cache.save_overload = load_overload, save_overload
        code_cache._index_key = index_key
    compile_now = dispatcher.compile

    def compile_without_collecting(signature: Any) -> Any:
        """Compiles without garbage collection, which would often search the compiler's objects, though most survive.

        Nor does the first collection afterwards search them: all objects are made old ones, without looking at them.

        numba names machine code by the qualified name, the types and a number that begins anew in each process, and
        copies of a process have the same. Code in the cache could thus have the name of other code, such as that of
        another function of the same maker: a process that loads both then runs one of them in place of the other.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with global_compiler_lock, linking(_INNER, by_byte=by_byte):
                FunctionIdentity._unique_ids = count(int.from_bytes(os.urandom(_ID_BYTES), "big"))
                return compile_now(signature)
        finally:
            if was_enabled:
                if gc.get_freeze_count() < _FROZEN:  # what somebody else has frozen stays frozen
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    dispatcher.compile = compile_without_collecting
    return dispatcher


@cache
def _first_digest_of_sources() -> str:
    """That when this process first asked for the folder."""
    return digest_of_sources()


@cache
def cache_folder() -> str:
    """Returns the first usable one of NUMBA_CACHE_DIR, the user's cache folder, the temporary folder and a new folder.

    The package's own folder may be read-only. The folder's name has a digest of the sources, since numba checks only
    the file of the entry point.
    """
    name = f"wireformat-{digest(_first_digest_of_sources())}"
    owner = os.getuid() if hasattr(os, "getuid") else None
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path raises where there is no home
    folders = [Path(user_cache, name), Path(tempfile.gettempdir(), f"{name}-{owner or 0}")]
    if numba.config.CACHE_DIR:
        folders.insert(0, Path(numba.config.CACHE_DIR, name).absolute())
    for folder in folders:
        if folder.is_absolute() and _usable(folder, owner):
            return str(folder)
    return tempfile.mkdtemp(prefix=f"{name}-")


def _usable(folder: Path, owner: int | None) -> bool:
    """Whether this user, and no other user, can write to the folder or replace it: the code in it will be run.

    owner   the user's number; None on systems without such numbers, where files have no permission bits either
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        status = folder.lstat()
        parents = [parent.stat() for parent in folder.resolve().parents]
    except OSError:
        return False
    if owner is None:
        return stat.S_ISDIR(status.st_mode)
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    others_replace = any(
        parent.st_uid not in (0, owner) or (parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX)
        for parent in parents
    )
    return stat.S_ISDIR(status.st_mode) and not others_write and not others_replace and status.st_uid == owner


def outside_mark(*functions: Callable[..., Any]) -> str:
    """Returns "" for functions of this package, and a digest of their names and packages, or modules, for others.

    It goes into the names of compiled functions, since the name of the cache folder covers this package alone.
    """
    own = __name__.partition(".")[0]
    outside = [function for function in functions if function.__module__.partition(".")[0] != own]
    if not outside:
        return ""
    hashed = hashlib.sha256()
    for function in outside:
        path = getattr(sys.modules[function.__module__.partition(".")[0]], "__path__", None)
        source = function.__code__.co_filename
        sources = digest_of_sources(path[0], ()) if path else hashlib.sha256(Path(source).read_bytes()).hexdigest()
        hashed.update(f"{function.__module__} {function.__qualname__} {sources} ".encode())
    return f"_{hashed.hexdigest()[:16]}"


_CODE_SETTINGS = (
    *("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE"),
    *("CPU_NAME", "CPU_FEATURES"),
)
"""Settings of numba that change the code. Its file names distinguish releases of Python, but not CPUs: two machines
with one home could write the same file."""


def _cpu() -> list[str]:
    """The name of this machine's CPU, and its features if LLVM knows them."""
    with suppress(RuntimeError):
        return [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return [binding.get_host_cpu_name()]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 - Path takes longer


LEFT_OUT = frozenset(
    {
        "api.py",
        "arrow/committed",
        "arrow/engine",
        "capture.py",
        "capture_reading.py",
        "capture_tables.py",
        "chunks",
        "cli",
        "inspection",
        "lake",
        "live",
        "plugin",
        "sources",
        "stream/committed_changes.py",
        "testing",
    }
)
"""Files and folders of the package that no module with compiled functions imports, directly or not. A change in them
does not cause code to be compiled again."""


def digest(sources: str | None = None) -> str:
    """Returns a digest of all that affects compiled code: sources, the compiling libraries, their settings, the CPU.

    sources   `digest_of_sources`, if it is known
    """
    settings = [str(getattr(numba.config, name, None)) for name in _CODE_SETTINGS] + _cpu()
    releases = numba.__version__, llvmlite.__version__, np.__version__
    return hashlib.sha256(repr((*releases, settings, sources or digest_of_sources())).encode()).hexdigest()[:16]


def digest_of_sources(package: str = _PACKAGE, left_out: Collection[str] = LEFT_OUT) -> str:
    """Returns a digest of the sources of a package.

    Compiled code can contain constants of any module that its own imports. Reading all of them takes 3 ms.
    """
    hashed = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        inside = folder[len(package) + 1 :].replace(os.sep, "/")
        before = f"{inside}/" if inside else ""
        folders[:] = sorted(name for name in folders if name != "__pycache__" and before + name not in left_out)
        for name in sorted(names):
            if name.endswith((".py", ".pyc")) and not name.startswith(".") and before + name not in left_out:
                path = os.path.join(folder, name)  # noqa: PTH118
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                    source = file.read()
                hashed.update(f"{path[len(package) :]} {len(source)} ".encode())
                hashed.update(source)
    return hashed.hexdigest()[:16]
