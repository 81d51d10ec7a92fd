"""Keyword arguments of public functions: unknown ones are errors, and lists of names are read once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .table import check_names

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


_LISTS = {"columns", "exclude_users", "keep", "keys", "kinds", "known_tables", "order_by", "stream_by", "tables"}
"""The keyword arguments that are lists of names."""


def checks_keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Returns the function with a check: an unknown keyword raises OptionError, which names the nearest one.

    A missing argument raises TypeError, as always, but by the name of the public class. Iterables of names become
    tuples: on Spark, workers get them, and a generator would be empty by then.
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
        arguments: Any = {name: _once(value) if name in _LISTS else value for name, value in given.items()}
        return function(*args, **arguments)

    return checked


def _once(value: Any) -> Any:
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    return tuple(value) if is_list else value
