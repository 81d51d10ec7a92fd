"""How this package compiles: numba, with a cache in a folder that can be written and belongs to this user."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numba.extending
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from .linking import linking

Function = TypeVar("Function", bound=Callable[..., Any])

CHECKED = bool(numba.config.BOUNDSCHECK or numba.config.DISABLE_JIT)
"""Whether compiled code checks what is proven elsewhere, as bounds are checked then."""

_SETTINGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, "no_rewrites": True}
"""Nothing is allocated, called from C or written with whole arrays; what numba does for such code takes a part of a
cold start."""

_INNER: set[str] = set()
"""The names of functions that only compiled ones call."""


def inner(function: Function) -> Function:
    """Let compiled functions call this one; for everybody else it stays plain Python.

    Unlike njit this compiles one version for all constant arguments, which is most of the time of a cold start.
    """
    _INNER.add(function.__qualname__)
    return numba.extending.register_jitable(**_SETTINGS)(function)


def hot(function: Function) -> Function:
    """An inner function that is copied into its callers: a call for each cell costs, as an array is seven arguments."""
    _INNER.add(function.__qualname__)
    return numba.extending.register_jitable(**_SETTINGS, forceinline=True)(function)


def compiled(function: Function) -> Function:
    """Compile an entry point at its first call, or load it from the cache.

    Its callers always pass the same types: numba's cache writes its files whole, but two processes that add different
    signatures of one function at the same time could mix up their index.
    """
    before, folder = numba.config.CACHE_DIR, cache_folder()
    numba.config.CACHE_DIR = folder
    try:
        dispatcher = numba.njit(nogil=True, cache=True, **_SETTINGS)(function)
    except RuntimeError:  # numba finds no place for a cache
        dispatcher = None
    finally:
        numba.config.CACHE_DIR = before
    if dispatcher is None or not _is_cached_in(folder, dispatcher):
        dispatcher = numba.njit(nogil=True, **_SETTINGS)(function)
    return _quick_to_load(dispatcher)


def _is_cached_in(folder: str, dispatcher: Any) -> bool:
    """Whether numba keeps the code there, and nowhere else, as for a package inside a zip file: elsewhere the name of
    the folder does not tell what was compiled in. True where numba was told not to compile."""
    if not isinstance(dispatcher, Dispatcher):
        return True
    path = getattr(getattr(dispatcher, "_cache", None), "cache_path", None)
    return isinstance(path, str) and Path(path).is_relative_to(folder)


def _quick_to_load(dispatcher: Any) -> Any:
    """Let compiled code be loaded from the cache without what only the compiler needs.

    numba fills the compiler's tables before it looks into its cache. If a release of numba is made in another way, the
    function stays as it is; so does one that numba was told not to compile.
    """
    if not isinstance(dispatcher, Dispatcher):
        return dispatcher
    held = getattr(dispatcher, "_cache", None)
    if isinstance(held, FunctionCache) and hasattr(held, "_load_overload"):

        def load_overload(signature: Any, context: Any) -> Any:
            with held._guard_against_spurious_io_errors():
                return held._load_overload(signature, context)

        held.load_overload = load_overload
    compile_now = dispatcher.compile

    def compile_undisturbed(signature: Any) -> Any:
        """Most of the compiler's objects live on: to look through them for garbage again and again takes its time."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with linking(_INNER):
                return compile_now(signature)
        finally:
            if was_enabled:
                gc.enable()

    dispatcher.compile = compile_undisturbed
    return dispatcher


@cache
def cache_folder() -> str:
    """The first of NUMBA_CACHE_DIR, the user's cache folder, the temporary folder and a new one that can be written.

    The package's own folder may be read-only. The name below it holds a digest of all that is compiled in, since numba
    looks only at the file of the entry point.
    """
    name = f"wireformat-{digest()}"
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
    """Whether the folder can be written, and by this user alone: what lies in it will be run.

    Nor may others put another folder in its place. Where users have no numbers, files have no such bits either.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        facts = folder.lstat()
        above = [parent.stat() for parent in folder.resolve().parents]
    except OSError:
        return False
    if owner is None:
        return stat.S_ISDIR(facts.st_mode)
    others_write = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    others_replace = any(
        parent.st_uid not in (0, owner) or (parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX)
        for parent in above
    )
    return stat.S_ISDIR(facts.st_mode) and not others_write and not others_replace and facts.st_uid == owner


def outside_mark(function: Callable[..., Any]) -> str:
    """Nothing for a function of this package; for others a digest of the package or module that it is in.

    The folder of the cache is named after the sources of this package alone.
    """
    top = function.__module__.partition(".")[0]
    if top == __name__.partition(".")[0]:
        return ""
    path = Path(function.__code__.co_filename)
    inside = len(function.__module__.split(".")) > 1
    folder = path.parents[len(function.__module__.split(".")) - 2] if inside else path.parent
    return f"_{digest(str(folder))}" if inside else f"_{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


_CODE_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
"""Settings of numba that change the code. Its own cache tells releases of Python and of numba apart, and processors."""


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 - Path takes longer


def digest(package: str = _PACKAGE) -> str:
    """Of all that compiled code may hold: every source of the package, the libraries that compile it, their settings.

    Constants of any module are compiled in, through any number of others; to read all of them takes 3 ms.
    """
    settings = [str(getattr(numba.config, name, None)) for name in _CODE_SETTINGS]
    found = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, np.__version__, settings)).encode())
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyc")) and not name.startswith("."):
                path = os.path.join(folder, name)  # noqa: PTH118
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                    source = file.read()
                found.update(f"{path[len(package) :]} {len(source)} ".encode())
                found.update(source)
    return found.hexdigest()[:16]
