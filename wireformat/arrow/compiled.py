"""How this package compiles: numba, with a cache in a folder that can be written and belongs to this user."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.extending
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from .linking import linking

Function = TypeVar("Function", bound=Callable[..., Any])

Int = Any
"""int64 in compiled code; an int or a numpy.int64 where the same function runs uncompiled."""

Array = Any
"""A numpy array; the docstring of its function says of what."""

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
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = before or cache_folder()
    try:
        return _quick_to_load(numba.njit(nogil=True, cache=True, **_SETTINGS)(function))
    except RuntimeError:  # numba finds no place for a cache, as for a package inside a zip file
        return numba.njit(nogil=True, **_SETTINGS)(function)
    finally:
        numba.config.CACHE_DIR = before


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
    """The first of the user's cache folder, the temporary folder and a new one that can be written.

    The package's own folder may be read-only. The name holds a digest of all that is compiled, since numba looks only
    at the file of the entry point, and of the settings that change the code. NUMBA_CACHE_DIR, if set, is used instead.
    """
    name = f"wireformat-{_digest()}"
    owner = os.getuid() if hasattr(os, "getuid") else 0
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path raises where there is no home
    for folder in (Path(user_cache, name), Path(tempfile.gettempdir(), f"{name}-{owner}")):
        if folder.is_absolute() and _usable(folder, owner):
            return str(folder)
    return tempfile.mkdtemp(prefix=f"{name}-")


def _usable(folder: Path, owner: int) -> bool:
    """Whether the folder can be written, and by this user alone: what lies in it will be run."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        facts = folder.lstat()
    except OSError:
        return False
    others_write = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(facts.st_mode) and not others_write and facts.st_uid == owner


def _digest() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    package = files("wireformat")
    for source in sorted((package / "arrow").iterdir(), key=lambda file: file.name):
        if source.name.endswith(".py"):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
