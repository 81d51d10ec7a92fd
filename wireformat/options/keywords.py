"""Keyword arguments of public functions: a name that is not one of them raises an error that names the nearest."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .table import check_names

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def checks_keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same function. A keyword that it does not have raises OptionError, which names the nearest one."""
    parameters = inspect.signature(function).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    known += [parameter.name for parameter in parameters if parameter.name not in ("self", *known)]
    allowed = frozenset(known)

    @wraps(function)
    def checked(*args: Parameters.args, **given: Parameters.kwargs) -> Result:
        if not given.keys() <= allowed:
            check_names(given, known)
        return function(*args, **given)

    return checked
