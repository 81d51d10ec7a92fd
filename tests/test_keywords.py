"""Keywords of public functions: explicit, complete, and a typo names the nearest; `dir` lists what is public."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import wireformat as wf
from wireformat.options import ReadOptions

READING = (wf.decode, wf.Decoder, wf.arrow.changes, wf.arrow.batches, wf.Capture.__init__, wf.inspect)
NOT_OF_A_CAPTURE = {"tables", "kinds"}
NOT_OF_ONE_MESSAGE = {"mode", "heartbeat_unit", "exclude_users", "skip_empty_xacts", "strict", *NOT_OF_A_CAPTURE}

MODULES = (wf, wf.arrow, wf.lake, wf.live, wf.plugin, wf.testing)
METHODS = ("changes", "committed", "messages", "typed", "latest", "write")


def functions_of(module: Any) -> list[Any]:
    """Public functions of a module that take keywords."""
    found = [vars(module).get(name) or getattr(module, name) for name in module.__all__]
    return [one for one in found if inspect.isfunction(one) and has_keywords(one)]


def has_keywords(function: Any) -> bool:
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    return bool(kinds & {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD})


FUNCTIONS: list[Any] = [
    *(function for module in MODULES for function in functions_of(module)),
    *(getattr(wf.Capture, name) for name in ("__init__", *METHODS)),
]


@pytest.mark.parametrize("function", READING, ids=lambda function: function.__qualname__)
def test_options_of_reading_are_those_of_read_options(function: Any) -> None:
    known = inspect.signature(ReadOptions.check).parameters
    found = inspect.signature(function).parameters
    missing = NOT_OF_A_CAPTURE if function is wf.Capture.__init__ else set()
    missing = NOT_OF_ONE_MESSAGE if function is wf.inspect else missing
    assert known.keys() - found.keys() == missing
    for name in known.keys() & found.keys():
        assert (found[name].default, found[name].annotation) == (known[name].default, known[name].annotation)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_every_keyword_is_explicit_and_has_a_type(function: Any) -> None:
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
        assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: wf.Capture([]), r"Capture\(\) needs the argument 'format'"),
        (lambda: wf.Capture(mode="FAILFAST", threads=1), r"Capture\(\) needs the argument 'messages'"),
        (lambda: wf.Capture([], "pgoutput").typed(), r"typed\(\) needs the argument 'table'"),
        (lambda: wf.arrow.changes([]), r"changes\(\) needs the argument 'format'"),
    ],
)
def test_a_missing_argument_is_named(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"^{text}$"):
        call()


@pytest.mark.parametrize(
    ("call", "typo", "nearest"),
    [
        (lambda **given: wf.decode([], "pgoutput", **given), "tabels", "tables"),
        (lambda **given: wf.Decoder("pgoutput", **given), "encodign", "encoding"),
        (lambda **given: wf.encode([], "pgoutput", **given), "option", "options"),
        (lambda **given: wf.transactions([], **given), "twophase", "two_phase"),
        (lambda **given: wf.inspect(b"", "pgoutput", **given), "recrod", "record"),
        (lambda **given: wf.Capture([], "pgoutput", **given), "orderby", "order_by"),
        (lambda **given: wf.Capture([b""], "pgoutput").changes(**given), "colums", "columns"),
        (lambda **given: wf.arrow.changes([], "pgoutput", **given), "thread", "threads"),
        (lambda **given: wf.arrow.batches([], "pgoutput", **given), "colums", "columns"),
    ],
)
def test_a_typo_names_the_nearest(call: Any, typo: str, nearest: str) -> None:
    with pytest.raises(wf.OptionError, match=f"unknown option '{typo}', did you mean '{nearest}'"):
        call(**{typo: None})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: f"{function.__module__}.{function.__qualname__}")
def test_every_function_names_the_nearest(function: Any) -> None:
    """Of each keyword, with a letter too many."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            with pytest.raises(wf.OptionError, match=f"unknown option '{name}x', did you mean '{name}'"):
                function(**{f"{name}x": None})


def test_functions_on_spark() -> None:
    """Importing them needs no Java."""
    pytest.importorskip("pyspark")
    import spark_udfs

    assert dir(spark_udfs) == sorted(spark_udfs.__all__)
    found = [*functions_of(spark_udfs), *(getattr(spark_udfs.Capture, name) for name in METHODS)]
    assert {"capture", "change_reader", "decode", "typed_reader"} <= {function.__name__ for function in found}
    for function in found:
        test_every_keyword_is_explicit_and_has_a_type(function)
        test_every_function_names_the_nearest(function)


def test_dir_lists_what_is_public() -> None:
    assert dir(wf) == sorted([*wf.__all__, "__version__"])
    for module in (*MODULES[1:], wf.ddl):
        assert dir(module) == sorted(module.__all__)
    for module in (*MODULES, wf.ddl):
        assert all(hasattr(module, name) for name in dir(module))


def test_an_event_is_shown_as_the_call_that_makes_it() -> None:
    row = wf.TupleData(names=("a",), values=(None,), types=("integer",))
    for event in (
        wf.Begin(xid=7),
        wf.Commit(),
        wf.Insert(lsn=16, table_schema="public", table_name="t", new=row),
        wf.Truncate(tables=(("public", "t"),), cascade=True),
    ):
        assert eval(repr(event), dict(vars(wf))) == event
    assert repr(wf.Begin(xid=7)) == "Begin(xid=7)"


def test_a_capture_in_a_notebook() -> None:
    assert "pgoutput" in wf.Capture([b""], "pgoutput")._repr_html_()
