"""DDL templates: the SQL that the server printed, each conversion, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat import limits

from .golden_cases import CASES, FOLDER, Case

CAPTURES = sorted(FOLDER.glob("*_ddl_truncate.truth.jsonl"))
PRINTED = [
    record for path in CAPTURES for record in map(json.loads, path.read_bytes().splitlines()) if record["kind"] == "DDL"
]


def test_every_capture_with_ddl_is_there() -> None:
    assert [path.name.split("_")[0] for path in CAPTURES] == ["mppdb", "sql", "testdec"]
    assert len(PRINTED) == 48
    assert sum("decoded" in record for record in PRINTED) == 42


@pytest.mark.parametrize("wrap", [str, str.encode, json.loads, lambda text: f'{{"JDDL": {text}}}'])
def test_the_sql_that_the_server_printed(wrap: Any) -> None:
    for record in PRINTED:
        if "decoded" in record:
            assert wf.ddl.to_sql(wrap(record["content"])) == record["decoded"]


@pytest.mark.parametrize(
    "record", [record for record in PRINTED if "decoded" not in record], ids=lambda record: record["cmdtype"]
)
def test_content_without_sql_is_no_template(record: dict[str, Any]) -> None:
    with pytest.raises(wf.BadTemplate, match="expected JSON, got text that is none"):
        wf.ddl.to_sql(record["content"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name.endswith("_ddl_truncate")], ids=lambda case: case.name
)
def test_events_of_ddl_hold_both(case: Case) -> None:
    events = [event for event in wf.decode(case.array, case.format) if isinstance(event, wf.Ddl)]
    assert len(events) == 16
    for event in events:
        if event.sql is not None:
            assert event.content is not None
            assert wf.ddl.to_sql(event.content) == event.sql


CONVERSIONS: dict[str, tuple[str, Any, str]] = {
    "string": ("s", "as it is, %{x}s", "as it is, %{x}s"),
    "object": ("s", {"fmt": "SET %{x}I", "x": "a b"}, 'SET "a b"'),
    "present": ("s", {"fmt": "CASCADE", "present": True}, "CASCADE"),
    "not present": ("s", {"fmt": "%{nothing}s", "present": False}, ""),
    "not present, without a format": ("s", {"present": False}, ""),
    "plain identifier": ("I", "plain_1", "plain_1"),
    "keyword": ("I", "order", '"order"'),
    "quote": ("I", 'a"b', '"a""b"'),
    "name": ("D", {"objname": "t"}, "t"),
    "name of openGauss": ("D", {"schemaname": "S", "objname": "t.u", "attrname": "user"}, '"S"."t.u"."user"'),
    "name of GaussDB": ("D", {"schema_name": "public", "object_name": "t"}, "public.t"),
    "type without a schema": ("T", {"typename": "My Type", "typmod": "", "typarray": False}, '"My Type"'),
    "type with an empty schema": (
        "T",
        {"schemaname": "", "typename": "timestamp with time zone", "typmod": "(3)", "typarray": True},
        "timestamp with time zone(3)[]",
    ),
    "type of GaussDB": (
        "T",
        {"schema_name": "pg_catalog", "type_name": "varchar", "typmod": "(20)", "typarray": False},
        'pg_catalog."varchar"(20)',
    ),
    "type without more": ("T", {"typename": "int4"}, "int4"),
    "literal": ("L", "no $ matter", "'no $ matter'"),
    "literal with a quote": ("L", "it's", "$$it's$$"),
    "literal with a backslash": ("L", "a\\b", "$$a\\b$$"),
    "literal with a dollar": ("L", "it's 5$", "$_$it's 5$$_$"),
    "literal with a tag": ("L", "'$_X$_XYQ$_'", "$_XYZ$'$_X$_XYQ$_'$_XYZ$"),
    "literal with the whole tag": ("L", "'$_XYZZYX__X", "$_XYZZYX__XY$'$_XYZZYX__X$_XYZZYX__XY$"),
    "integer": ("n", -5, "-5"),
    "large integer": ("n", 2**64, "18446744073709551616"),
    "float": ("n", 1e22, "10000000000000000000000"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion(name: str) -> None:
    conversion, value, sql = CONVERSIONS[name]
    template = {"fmt": f"<%{{x}}{conversion}>", "x": value}
    assert wf.ddl.to_sql(template) == wf.ddl.to_sql(json.dumps(template)) == f"<{sql}>"
    assert wf.ddl.to_sql(json.dumps(template).encode() + b"\0") == f"<{sql}>"


@pytest.mark.parametrize(
    ("number", "sql"), [("1.50", "1.50"), ("1e5", "100000"), ("1E-3", "0.001"), ("9" * 5000, "9" * 5000)]
)
def test_a_number_in_text_keeps_its_digits(number: str, sql: str) -> None:
    assert wf.ddl.to_sql(f'{{"fmt": "%{{x}}n", "x": {number}}}') == sql


@given(st.text().filter(lambda text: "'" in text or "\\" in text) | st.text("$_XYZ'", min_size=1))
def test_a_literal_in_dollar_quotes_ends_at_its_tag_and_not_before(text: str) -> None:
    sql = wf.ddl.to_sql({"fmt": "%{x}L", "x": text})
    if sql.startswith("$"):
        tag = sql[: sql.index("$", 1) + 1]
        assert sql.index(tag, len(tag)) == len(sql) - len(tag)
        assert sql[len(tag) : -len(tag)] == text
    else:
        assert sql == f"'{text}'"
        assert "'" not in text


@given(st.text("ab'\\ é\n\0\""))
def test_percent_signs_and_everything_else_are_copied(text: str) -> None:
    assert wf.ddl.to_sql({"fmt": f"{text}%%{text}"}) == f"{text}%{text}"


def test_arrays_leave_out_what_prints_nothing() -> None:
    elements = ["", "a", {"present": False}, {"fmt": "%{x}n", "x": 1}, {"fmt": ""}, "b"]
    assert wf.ddl.to_sql({"fmt": "(%{x:, }s)", "x": elements}) == "(a, 1, b)"
    assert wf.ddl.to_sql({"fmt": "(%{x:}I)(%{y:, }D)", "x": ["a", "B"], "y": []}) == '(a"B")()'


REFUSED: dict[str, tuple[Any, str]] = {
    "missing": ({"fmt": "%{a}s"}, "expected an element of this name, got none [JDDL: field a]"),
    "missing below": (
        {"fmt": "%{a:, }s", "a": ["", {"fmt": "%{b}D", "b": {}}]},
        "expected an element of this name, got none [JDDL: field a[1].b.objname]",
    ),
    "no format": ({}, "expected an element of this name, got none [JDDL: field fmt]"),
    "format of another type": ({"fmt": 5}, "expected a string, got a number [JDDL: field fmt]"),
    "no object": ([], "expected an object, got an array [JDDL]"),
    "nothing": (None, "expected an object, got null [JDDL]"),
    "unknown conversion": ({"fmt": "%{a}x", "a": 1}, "expected a conversion, one of s I D T L n, got 'x'"),
    "s of a number": ({"fmt": "%{a}s", "a": 1}, "expected a string or an object, got a number [JDDL: field a]"),
    "s of an array": ({"fmt": "%{a}s", "a": ["x"]}, "expected a string or an object, got an array [JDDL: field a]"),
    "array of a string": ({"fmt": "%{a:, }s", "a": "x"}, "expected an array, got a string [JDDL: field a]"),
    "I of an object": ({"fmt": "%{a}I", "a": {"fmt": "x"}}, "expected a string, got an object [JDDL: field a]"),
    "D of a string": ({"fmt": "%{a}D", "a": "x"}, "expected an object, got a string [JDDL: field a]"),
    "D, schema": ({"fmt": "%{a}D", "a": {"objname": "x", "schemaname": None}}, "a string, got null [JDDL: field a.sch"),
    "T, array": ({"fmt": "%{a}T", "a": {"typename": "x", "typarray": 1}}, "expected a boolean, got a number"),
    "L of null": ({"fmt": "%{a}L", "a": None}, "expected a string, got null [JDDL: field a]"),
    "n of a boolean": ({"fmt": "%{a}n", "a": True}, "expected a number, got a boolean [JDDL: field a]"),
    "n of a string": ({"fmt": "%{a}n", "a": "5"}, "expected a number, got a string [JDDL: field a]"),
    "n of no number": ({"fmt": "%{a}n", "a": float("nan")}, "expected a number of at most 131072 digits"),
    "n of many digits": ('{"fmt": "%{a}n", "a": 1e999999999}', "expected a number of at most 131072 digits"),
    "n of too many digits": ('{"fmt": "", "a": 1e99999999999999999999}', "expected numbers of at most 131072 digits"),
    "present of a string": ({"fmt": "%{a}s", "a": {"present": "no"}}, "a boolean, got a string [JDDL: field a.pres"),
    "percent at the end": (
        {"fmt": "é%"},
        "expected %% or %{name}x, got a % before something else [JDDL: field fmt, by",
    ),
    "percent alone": ({"fmt": "é% a"}, "byte in the field 2]"),
    "not closed": ({"fmt": "%{a"}, "field fmt, byte in the field 0]"),
    "without a conversion": ({"fmt": "%{a}", "a": "x"}, "field fmt, byte in the field 0]"),
    "without a name": ({"fmt": "%{}s", "": "x"}, "field fmt, byte in the field 0]"),
    "no JSON": ('{"fmt": é}', "expected JSON, got text that is none [JDDL: byte in the field 8]"),
    "no number of JSON": ('{"fmt": "", "a": NaN}', "expected JSON, got the word NaN"),
    "no UTF-8": (b'{"fmt": "\xff"}', "expected UTF-8, got other bytes [JDDL: byte in the field 9]"),
    "half a pair": (r'{"fmt": "\ud800"}', "expected characters, got half of a surrogate pair"),
    "a long name": ({"fmt": "%{" + "a" * 10**6 + "}s"}, f"field {'a' * limits.PATH_CHARACTERS}...]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    content, words = REFUSED[name]
    with pytest.raises(wf.BadTemplate) as raised:
        wf.ddl.to_sql(content)
    assert str(raised.value).startswith("bad DDL template: expected ")
    assert words in str(raised.value)


def nested(depth: int, fmt: str = "%{a}s", end: Any = "x") -> Any:
    for _ in range(depth):
        end = {"fmt": fmt, "a": end}
    return end


def test_depth_is_limited() -> None:
    assert wf.ddl.to_sql(nested(limits.DDL_DEPTH + 1)) == "x"
    round_about: dict[str, Any] = {"fmt": "%{a}s"}
    round_about["a"] = round_about
    for content in (nested(limits.DDL_DEPTH + 2), '{"a":' * 10**5, "[" * 10**6, round_about):
        with pytest.raises(wf.LimitExceeded, match=r"limits\.DDL_DEPTH is 64, the "):
            wf.ddl.to_sql(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "limit"),
    [
        (nested(60, "%{a}s%{a}s"), "DDL_ELEMENTS"),
        (nested(60, "%{a}s%{a}s", {"present": False}), "DDL_ELEMENTS"),
        (nested(30, "%{a}s%{a}s", "x" * 10**6), "DDL_CHARACTERS"),
        ({"fmt": "%{a:" + "x" * 10**6 + "}s", "a": ["y"] * 1000}, "DDL_CHARACTERS"),
    ],
)
def test_what_is_printed_is_limited(content: Any, limit: str) -> None:
    with pytest.raises(
        wf.LimitExceeded, match=rf"limits\.{limit} is {getattr(limits, limit)}, the DDL template prints"
    ):
        wf.ddl.to_sql(content)


WORDS = ["fmt", "present", "schemaname", "objname", "schema_name", "object_name", "typename", "typmod", "typarray", "a"]
FORMATS = st.lists(
    st.sampled_from(["%%", "%", "%{a}", "%{", " x"])
    | st.builds("%{{a{}}}{}".format, st.sampled_from(["", ":, "]), st.sampled_from("sIDTLnq"))
).map("".join)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | FORMATS,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner),
    max_leaves=20,
)
TEMPLATES = st.recursive(
    ANY_JSON,
    lambda inner: st.fixed_dictionaries({"fmt": FORMATS, "a": inner | st.lists(inner, max_size=3)}),
    max_leaves=8,
)


def sql_or_error(content: Any) -> str:
    try:
        return wf.ddl.to_sql(content)
    except (wf.BadTemplate, wf.LimitExceeded) as error:
        return str(error)


@given(TEMPLATES)
def test_any_json_gives_sql_or_an_error(content: Any) -> None:
    assert isinstance(sql_or_error(content), str)
    assert isinstance(sql_or_error(json.dumps(content)), str)


@given(st.text() | st.binary())
def test_any_text_gives_an_error(content: str | bytes) -> None:
    with pytest.raises((wf.BadTemplate, wf.LimitExceeded)):
        wf.ddl.to_sql(content)
