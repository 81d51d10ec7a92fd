"""Keyword arguments of public functions: the error for an unknown one names the nearest known one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .table import check_names

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def checks_keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Returns the function with a check: an unknown keyword raises OptionError, which names the nearest one.

    A missing argument raises TypeError, as always, but by the name of the public class.
    """
    parameters = inspect.signature(function).parameters.values()
    are_many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in are_many]
    known = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    known += [parameter.name for parameter in parameters if parameter.name not in ("self", *known)]
    allowed = frozenset(known)

    @wraps(function)
    def checked(*args: Parameters.args, **given: Parameters.kwargs) -> Result:
        if not given.keys() <= allowed:
            check_names(given, known)
        missing = [name for name in needed[len(args) :] if name not in given]
        if missing:
            name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
            raise TypeError(f"{name}() needs the argument {missing[0]!r}")
        return function(*args, **given)

    return checked
