"""Arguments of public functions: each list of names is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from wireformat.options.keywords import checks_keywords

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LISTS = {"columns", "exclude_users", "keep", "keys", "kinds", "known_tables", "order_by", "stream_by", "tables"}
"""The keyword arguments that are lists of names."""


def checks_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Returns the function with the check of its keywords. Iterables of names become tuples.

    An answer reads them when it is computed, and the workers get them: a generator would be empty by then.
    """
    checked: Callable[..., Result] = checks_keywords(function)

    @wraps(function)
    def with_tuples(*args: Parameters.args, **given: Parameters.kwargs) -> Result:
        return checked(*args, **{name: _once(value) if name in LISTS else value for name, value in given.items()})

    return with_tuples


def _once(value: Any) -> Any:
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    return tuple(value) if is_list else value
